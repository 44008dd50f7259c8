package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/bench/columns"
	"stoa/internal/enc/bitshuffle"
	"stoa/pred"
)

// scans measures whole columns, with both ways to allocate batches: new memory for each, and a pool of released ones.
func (b *bench) scans() error {
	t, err := stoa.Open(b.ctx, filepath.Join(b.folder, "cfile"), stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	for i, cols := range sets() {
		name := strings.Join(cols, ",")
		snappy, none := b.peers["scan snappy "+name], b.peers["scan none "+name]
		sums := map[string]sum{}
		if _, err := count(t.Scan(b.ctx, stoa.ScanSpec{Columns: cols}), sums); err != nil {
			return err
		}
		if err := errors.Join(sameSums("pyarrow, Snappy", sums, snappy.Sums),
			sameSums("pyarrow, uncompressed", sums, none.Sums), sameSums("the formula", sums, b.of(cols))); err != nil {
			return err
		}
		fresh, err := b.scan(t, cols, nil)
		if err != nil {
			return err
		}
		pooled, err := b.scan(t, cols, stoa.NewPool())
		if err != nil {
			return err
		}
		floor, aim := "4×", "6×"
		switch i {
		case 0:
			line("CFile scan, 10 columns, fresh buffers", "pyarrow, Snappy Parquet", fresh, snappy.Seconds, "3.5×",
				"5×")
			line("the same", "pyarrow, uncompressed Parquet", fresh, none.Seconds, "1.5×", "2.5×")
			line("CFile scan, 10 columns, pool", "pyarrow, Snappy Parquet", pooled, snappy.Seconds, "", "")
			line("the same", "pyarrow, uncompressed Parquet", pooled, none.Seconds, "", "")
			continue
		case 1:
			floor, aim = "7×", "10×"
		}
		line("column "+name+", pool", "pyarrow, Snappy Parquet", pooled, snappy.Seconds, floor, aim)
		line("column "+name+", fresh buffers", "pyarrow, Snappy Parquet", fresh, snappy.Seconds, "", "")
	}
	return nil
}

// of returns the formula's checksums of some columns.
func (b *bench) of(cols []string) map[string]sum {
	out := map[string]sum{}
	for _, c := range cols {
		out[c] = b.sums[c]
	}
	return out
}

func (b *bench) scan(t *stoa.Table, cols []string, alloc memory.Allocator) (float64, error) {
	return best(processor, func() error {
		n, err := count(t.Scan(b.ctx, stoa.ScanSpec{Columns: cols, Alloc: alloc}), nil)
		if err == nil && n != int64(*nRows) {
			err = fmt.Errorf("%d rows came", n)
		}
		return err
	})
}

// count iterates over batches, and adds up their checksums if sums is not nil.
func count(seq func(func(arrow.RecordBatch, error) bool), sums map[string]sum) (n int64, err error) {
	for rec, err := range seq {
		if err != nil {
			return n, err
		}
		n += rec.NumRows()
		if sums == nil {
			continue
		}
		addBatch(sums, rec)
	}
	return n, nil
}

func addBatch(sums map[string]sum, rec arrow.RecordBatch) {
	for i, f := range rec.Schema().Fields() {
		s := sums[f.Name]
		s.add(rec.Column(i))
		sums[f.Name] = s
	}
}

// unshuffle measures the bit transposition alone: 256 KiB of random bytes in chunks of 8 KiB, as the C library does it.
func (b *bench) unshuffle() error {
	if b.peers["AVX2"].Seconds != 1 {
		return fmt.Errorf("the bitshuffle library does not use AVX2 here")
	}
	r := rand.New(rand.NewPCG(1, 2))
	src, dst := make([]byte, 256<<10), make([]byte, 256<<10)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	for _, width := range []int{4, 8} {
		s, err := best(processor, func() error {
			for range 200 {
				for at := 0; at < len(src); at += 8192 {
					bitshuffle.Untranspose(dst[at:at+8192], src[at:at+8192], width)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		line(fmt.Sprintf("bit-unshuffle, %d bytes, 256 KiB", width), "bitshuffle (C, AVX2)", s/200,
			b.peers[fmt.Sprintf("unshuffle %d", width)].Seconds, "3×", "4.5×")
	}
	return nil
}

// where measures a filter that keeps 0.1 % of the rows, by the sorted key; all columns.
func (b *bench) where() error {
	t, err := stoa.Open(b.ctx, filepath.Join(b.folder, "keyed"), stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	low, high := wanted()
	e, err := pred.Parse(fmt.Sprintf("key >= %d and key < %d", low, high))
	if err != nil {
		return err
	}
	sums := map[string]sum{}
	if _, err := count(t.Scan(b.ctx, stoa.ScanSpec{Filter: e}), sums); err != nil {
		return err
	}
	const times = 20
	s, err := best(processor, func() error {
		for range times {
			if _, err := count(t.Scan(b.ctx, stoa.ScanSpec{Filter: e}), nil); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, who := range []string{"pyarrow", "duckdb"} {
		p := b.peers["where "+who]
		if err := sameSums(who, sums, p.Sums); err != nil {
			return err
		}
		line("--where, 0.1 % of the rows, sorted key",
			map[string]string{"pyarrow": "pyarrow dataset filter", "duckdb": "DuckDB, Parquet"}[who], s/times,
			p.Seconds, "5×", "20×")
	}
	return nil
}

// lookups measures rows by key, all columns, of one open table: the first pass, and the best of five over the same
// keys, when the open file's caches are filled (on the other side, too).
func (b *bench) lookups() error {
	t, err := stoa.Open(b.ctx, filepath.Join(b.folder, "keyed"), stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	pool := stoa.NewPool()
	first := 0.0
	each, err := best(processor, func() error {
		begin := processor()
		for _, k := range b.keys {
			n, err := count(t.Seek(b.ctx, []any{k}, stoa.ScanSpec{Alloc: pool}), nil)
			if err != nil || n != 1 {
				return fmt.Errorf("key %d: %d rows, %v", k, n, err)
			}
		}
		if first == 0 {
			first = (processor() - begin).Seconds() / float64(len(b.keys))
		}
		return nil
	})
	if err != nil {
		return err
	}
	each /= float64(len(b.keys))
	duckdb := b.peers["lookup duckdb"]
	some, err := b.found(t, b.keys[:min(len(b.keys), duckdb.Looked)])
	if err != nil {
		return err
	}
	if err := sameSums("duckdb", some, duckdb.Sums); err != nil {
		return err
	}
	line("look-up of a random key, 10 columns, of 10 k", "DuckDB, Parquet", each, duckdb.Seconds, "50×", "500×")
	if *lookup == "" {
		return nil
	}
	out, err := exec.Command(*lookup, filepath.Join(b.folder, "pages.parquet"),
		filepath.Join(b.folder, "keys.txt")).Output()
	if err != nil {
		return fmt.Errorf("lookup: %v", err)
	}
	var p struct {
		peer
		First float64
	}
	if err := json.Unmarshal(out, &p); err != nil {
		return err
	}
	all, err := b.found(t, b.keys)
	if err != nil {
		return err
	}
	if err := sameSums("parquet-go", all, p.Sums); err != nil {
		return err
	}
	line("the same", "parquet-go, page index", each, p.Seconds, "3×", "10×")
	line("the same, the first time", "parquet-go, page index, the first time", first, p.First, "", "")
	return nil
}

// found returns the checksums of the rows with these keys, all columns.
func (b *bench) found(t *stoa.Table, keys []int64) (map[string]sum, error) {
	sums := map[string]sum{}
	for _, k := range keys {
		if _, err := count(t.Seek(b.ctx, []any{k}, stoa.ScanSpec{}), sums); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// write measures writing all rows from memory.
func (b *bench) write() error {
	tmp, err := tempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	p := b.peers["write snappy"]
	if err := sameSums("what pyarrow wrote", b.sums, p.Sums); err != nil {
		return err
	}
	w, err := b.create(filepath.Join(tmp, "x")+"/", stoa.CreateOptions{To: "cfile"}, batches())
	if err != nil {
		return err
	}
	line("CFile write, 10 columns", "pyarrow write_table, Snappy", w.alone, p.Seconds, "1.5×", "3×")
	line("the same, read back and compared", "pyarrow write_table, Snappy", w.proved, p.Seconds, "", "")
	return nil
}

// tempDir returns a new directory, in memory if possible.
func tempDir() (string, error) {
	if tmp, err := os.MkdirTemp("/dev/shm", "stoa-bench"); err == nil {
		return tmp, nil
	}
	return os.MkdirTemp("", "stoa-bench")
}

// batches returns all rows.
func batches() (all []arrow.RecordBatch) {
	for at := 0; at < *nRows; at += 1 << 16 {
		all = append(all, columns.Rows(at, min(*nRows, at+1<<16)))
	}
	return all
}

// written is the seconds of writing: as the peers write, and with the verification of the output that stoa does by
// default.
type written struct{ alone, proved float64 }

// create measures writing the batches, both ways, and then reads the output.
func (b *bench) create(to string, o stoa.CreateOptions, all []arrow.RecordBatch) (w written, err error) {
	o.NoCheck = false
	if w.proved, err = b.createOnce(to, o, all); err != nil {
		return w, err
	}
	o.NoCheck = true
	if w.alone, err = b.createOnce(to, o, all); err != nil {
		return w, err
	}
	return w, b.check(to, "what stoa wrote")
}

func (b *bench) createOnce(to string, o stoa.CreateOptions, all []arrow.RecordBatch) (seconds float64, err error) {
	return best(processor, func() error {
		if err := os.RemoveAll(to); err != nil {
			return err
		}
		w, err := stoa.Create(b.ctx, to, all[0].Schema(), o)
		if err != nil {
			return err
		}
		defer w.Abort(b.ctx)
		for _, rec := range all {
			if err := w.Write(b.ctx, rec); err != nil {
				return err
			}
		}
		_, err = w.Close(b.ctx)
		return err
	})
}

// check reads a table and compares its checksums with the formula's.
func (b *bench) check(at, what string) error {
	t, err := stoa.Open(b.ctx, strings.TrimSuffix(at, "/"), stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	sums := map[string]sum{}
	if _, err := count(t.Scan(b.ctx, stoa.ScanSpec{}), sums); err != nil {
		return err
	}
	return sameSums(what, b.sums, sums)
}

// threads measures two threads against one, in elapsed time.
func (b *bench) threads() error {
	t, err := stoa.Open(b.ctx, filepath.Join(b.folder, "cfile"), stoa.OpenOptions{})
	if err != nil {
		return err
	}
	defer t.Close()
	var took [3]float64
	for _, n := range []int{1, 2} {
		runtime.GOMAXPROCS(n)
		pool := stoa.NewPool()
		if took[n], err = best(wall, func() error {
			_, err := count(t.Scan(b.ctx, stoa.ScanSpec{Alloc: pool, Parallel: n}), nil)
			return err
		}); err != nil {
			return err
		}
	}
	line("CFile scan, two threads, on the wall", "one thread", took[2], took[1], "1.6×", "1.9×")
	return nil
}
