package main

import (
	"encoding/json"
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

// scans are whole columns; of both ways to hold batches: new memory for each, and a pool that takes released ones back.
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
		if err := sameSums("pyarrow", sums, snappy.Sums); err != nil {
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
			line("CFile scan, 10 columns, fresh buffers", "pyarrow, Snappy Parquet", fresh, snappy.Seconds, "3.5×", "5×")
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

func (b *bench) scan(t *stoa.Table, cols []string, alloc memory.Allocator) (float64, error) {
	return best(processor, func() error {
		n, err := count(t.Scan(b.ctx, stoa.ScanSpec{Columns: cols, Alloc: alloc}), nil)
		if err == nil && n != int64(*nRows) {
			err = fmt.Errorf("%d rows came", n)
		}
		return err
	})
}

// count goes through batches, and sums them up if sums is not nil.
func count(seq func(func(arrow.RecordBatch, error) bool), sums map[string]sum) (n int64, err error) {
	for rec, err := range seq {
		if err != nil {
			return n, err
		}
		n += rec.NumRows()
		if sums == nil {
			continue
		}
		for i, f := range rec.Schema().Fields() {
			s := sums[f.Name]
			s.add(rec.Column(i))
			sums[f.Name] = s
		}
	}
	return n, nil
}

// unshuffle is the bit transposition alone, 256 KiB of random bytes in chunks of 8 KiB, as the C library does it.
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
		line(fmt.Sprintf("bit-unshuffle, %d bytes, 256 KiB", width), "bitshuffle (C, AVX2)", s/200, b.peers[fmt.Sprintf("unshuffle %d", width)].Seconds, "3×", "4.5×")
	}
	return nil
}

// where keeps 0.1 % of the rows, by the sorted key; all columns.
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
		line("--where, 0.1 % of the rows, sorted key", map[string]string{"pyarrow": "pyarrow dataset filter", "duckdb": "DuckDB, Parquet"}[who], s/times, p.Seconds, "5×", "20×")
	}
	return nil
}

// lookups are rows by key, all columns, of one open table: the first time, and the best of five times the same keys, when what an open
// file keeps is there (on the other side, too).
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
			n, err := count(t.Seek(b.ctx, []string{fmt.Sprint(k)}, stoa.ScanSpec{Alloc: pool}), nil)
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
	line("look-up of a random key, 10 columns, of 10 k", "DuckDB, Parquet", each, b.peers["lookup duckdb"].Seconds, "50×", "500×")
	if *lookup == "" {
		return nil
	}
	out, err := exec.Command(*lookup, filepath.Join(b.folder, "pages.parquet"), filepath.Join(b.folder, "keys.txt")).Output()
	if err != nil {
		return fmt.Errorf("lookup: %v", err)
	}
	var p struct{ Seconds, First float64 }
	if err := json.Unmarshal(out, &p); err != nil {
		return err
	}
	line("the same", "parquet-go, page index", each, p.Seconds, "3×", "10×")
	line("the same, the first time", "parquet-go, page index, the first time", first, p.First, "", "")
	return nil
}

// write writes all rows from memory to a directory in memory, if there is one.
func (b *bench) write() error {
	tmp, err := os.MkdirTemp("/dev/shm", "stoa-bench")
	if err != nil {
		if tmp, err = os.MkdirTemp("", "stoa-bench"); err != nil {
			return err
		}
	}
	defer os.RemoveAll(tmp)
	var all []arrow.RecordBatch
	for at := 0; at < *nRows; at += 1 << 16 {
		all = append(all, columns.Rows(at, min(*nRows, at+1<<16)))
	}
	s, err := best(processor, func() error {
		w, err := stoa.Create(b.ctx, filepath.Join(tmp, "x")+"/", columns.Schema, stoa.CreateOptions{To: "cfile"})
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
	if err != nil {
		return err
	}
	line("CFile write, 10 columns", "pyarrow write_table, Snappy", s, b.peers["write snappy"].Seconds, "1.5×", "3×")
	return nil
}

// threads is two against one, by the clock on the wall.
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
