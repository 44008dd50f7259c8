package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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

// set is a set of columns that is scanned.
type set struct {
	name    string
	columns []string
}

func sets() []set {
	all := set{name: "10 columns"}
	for _, f := range columns.Schema.Fields() {
		all.columns = append(all.columns, f.Name)
	}
	out := []set{all}
	for _, c := range []string{"key", "low", "high", "nullable"} {
		out = append(out, set{"column " + c, []string{c}})
	}
	return out
}

// of returns the formula's checksums of some columns.
func (b *bench) of(cols []string) map[string]sum {
	out := map[string]sum{}
	for _, c := range cols {
		out[c] = b.sums[c]
	}
	return out
}

// ownScans scans whole columns in three ways: with new memory for each batch, with a pool of released ones, and with
// the files mapped as well.
func (b *bench) ownScans() error {
	t, err := b.opened("cfile")
	if err != nil {
		return err
	}
	mapped, err := stoa.Open(b.ctx, filepath.Join(b.folder, "cfile"), stoa.OpenOptions{Mmap: true})
	if err != nil {
		return err
	}
	b.open = append(b.open, mapped)
	for _, s := range sets() {
		sums := map[string]sum{}
		decoded, err := count(t.Scan(b.ctx, stoa.ScanSpec{Columns: s.columns}), sums)
		if err != nil {
			return err
		}
		if err := sameSums("the formula", sums, b.of(s.columns)); err != nil {
			return err
		}
		b.runs["scan, "+s.name+", fresh buffers"] = b.scan(t, s.columns, nil)
		b.runs["scan, "+s.name+", pool"] = b.scan(t, s.columns, stoa.NewPool())
		b.runs["scan, "+s.name+", pool and mapped"] = b.scan(mapped, s.columns, stoa.NewPool())
		stored, err := filesBelow(filepath.Join(b.folder, "cfile"), func(name string) bool {
			return len(s.columns) > 1 || strings.TrimSuffix(name, ".cfile") == s.columns[0]
		})
		if err != nil {
			return err
		}
		b.runs["limit, "+s.name] = limit(stored, decoded.bytes)
	}
	return nil
}

func (b *bench) peerScans() error {
	p, err := b.inPython()
	if err != nil {
		return err
	}
	for _, l := range scanLines() {
		for _, l := range l {
			what := strings.TrimPrefix(l.theirs, "python ")
			_, cols, _ := strings.Cut(what, ": ")
			if err := sameSums(l.against, b.of(strings.Split(cols, ",")), p.offers[what].Sums); err != nil {
				return err
			}
		}
	}
	return nil
}

func scanLines() (out [][]line) {
	for i, s := range sets() {
		cols := strings.Join(s.columns, ",")
		fresh, pool, mapped := "scan, "+s.name+", fresh buffers", "scan, "+s.name+", pool",
			"scan, "+s.name+", pool and mapped"
		snappy, none := "python scan snappy: "+cols, "python scan none: "+cols
		const pyarrow, plain = "pyarrow, Snappy Parquet", "pyarrow, uncompressed Parquet"
		best := "limit, " + s.name
		if i == 0 {
			out = append(out, []line{
				{"CFile " + fresh, pyarrow, fresh, snappy, best, "8×", "12×"},
				{"the same", plain, fresh, none, best, "4×", "6×"},
				{"CFile " + pool, pyarrow, pool, snappy, best, "", ""},
				{"the same", plain, pool, none, best, "", ""},
				{"CFile " + mapped, pyarrow, mapped, snappy, best, "11×", "13×"},
				{"the same", plain, mapped, none, best, "5.5×", "6.5×"},
				{"the same", "DuckDB, Snappy Parquet, to Arrow", mapped, "python duckdb: " + cols, best, "", ""},
				{"the same", "polars, Snappy Parquet, to Arrow", mapped, "python polars: " + cols, best, "", ""},
			})
			continue
		}
		floor := [][2]string{{"11×", "15×"}, {"10×", "15×"}, {"9×", "14×"}, {"6×", "10×"}}[i-1]
		out = append(out, []line{
			{s.name + ", pool", pyarrow, pool, snappy, best, floor[0], floor[1]},
			{s.name + ", fresh buffers", pyarrow, fresh, snappy, best, "", ""},
		})
	}
	return out
}

func (b *bench) scan(t *stoa.Table, cols []string, alloc memory.Allocator) run {
	return timed(processor, 1, func() error {
		n, err := count(t.Scan(b.ctx, stoa.ScanSpec{Columns: cols, Alloc: alloc}), nil)
		if err == nil && n.rows != int64(*nRows) {
			err = fmt.Errorf("%d rows came", n.rows)
		}
		return err
	})
}

// size is what came of a scan.
type size struct{ rows, bytes int64 }

// count iterates over batches, and adds up their checksums if sums is not nil.
func count(seq func(func(arrow.RecordBatch, error) bool), sums map[string]sum) (n size, err error) {
	for rec, err := range seq {
		if err != nil {
			return n, err
		}
		n.rows += rec.NumRows()
		if sums == nil {
			continue
		}
		addBatch(sums, rec)
		for _, c := range rec.Columns() {
			n.bytes += int64(c.Data().SizeInBytes())
		}
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

// ownUnshuffle is the bit transposition alone: 256 KiB of random bytes in chunks of 8 KiB, as the C library does it.
func (b *bench) ownUnshuffle() error {
	r := rand.New(rand.NewPCG(1, 2))
	src, dst := make([]byte, 256<<10), make([]byte, 256<<10)
	for i := range src {
		src[i] = byte(r.Uint32())
	}
	const times = 200
	for _, width := range []int{4, 8} {
		b.runs[fmt.Sprint("unshuffle ", width)] = timed(processor, times, func() error {
			for range times {
				for at := 0; at < len(src); at += 8192 {
					bitshuffle.Untranspose(dst[at:at+8192], src[at:at+8192], width)
				}
			}
			return nil
		})
	}
	return nil
}

func (b *bench) peerUnshuffle() error {
	p, err := b.inPython()
	if err != nil {
		return err
	}
	if _, ok := p.offers["unshuffle 4"]; !ok {
		return fmt.Errorf("the bitshuffle library does not use AVX2 here")
	}
	return nil
}

func unshuffleLines() [][]line {
	const c = "bitshuffle (C, AVX2)"
	return [][]line{{{"bit-unshuffle, 4 bytes, 256 KiB", c, "unshuffle 4", "python unshuffle 4", "", "3×", "4.5×"},
		{"bit-unshuffle, 8 bytes, 256 KiB", c, "unshuffle 8", "python unshuffle 8", "", "3×", "4.5×"}}}
}

// ownWhere is a filter that keeps 0.1 % of the rows, by the sorted key; all columns.
func (b *bench) ownWhere() error {
	t, err := b.opened("keyed")
	if err != nil {
		return err
	}
	e, err := pred.Parse(inRange())
	if err != nil {
		return err
	}
	const times = 20
	b.runs["where"] = timed(processor, times, func() error {
		for range times {
			if _, err := count(t.Scan(b.ctx, stoa.ScanSpec{Filter: e}), nil); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func inRange() string {
	low, high := wanted()
	return fmt.Sprintf("key >= %d and key < %d", low, high)
}

func (b *bench) peerWhere() error {
	p, err := b.inPython()
	if err != nil {
		return err
	}
	t, err := b.opened("keyed")
	if err != nil {
		return err
	}
	e, err := pred.Parse(inRange())
	if err != nil {
		return err
	}
	sums := map[string]sum{}
	if _, err := count(t.Scan(b.ctx, stoa.ScanSpec{Filter: e}), sums); err != nil {
		return err
	}
	return errors.Join(sameSums("pyarrow", sums, p.offers["where pyarrow"].Sums),
		sameSums("DuckDB", sums, p.offers["where duckdb"].Sums))
}

func whereLines() [][]line {
	const what = "--where, 0.1 % of the rows, sorted key"
	return [][]line{{{what, "pyarrow dataset filter", "where", "python where pyarrow", "", "5×", "20×"},
		{what, "DuckDB, Parquet", "where", "python where duckdb", "", "5×", "20×"}}}
}

// ownLookups finds rows by key, all columns: in a table that was just opened, and in one that has found the same keys
// before, so that its caches are filled (on the other side, too).
func (b *bench) ownLookups() error {
	t, err := b.opened("keyed")
	if err != nil {
		return err
	}
	pool := stoa.NewPool()
	b.runs["lookup"] = timed(processor, len(b.keys), func() error { return b.seek(t, pool) })
	b.runs["lookup, the first time"] = func() (float64, error) {
		t, err := stoa.Open(b.ctx, filepath.Join(b.folder, "keyed"), stoa.OpenOptions{})
		if err != nil {
			return 0, err
		}
		defer t.Close()
		return timed(processor, len(b.keys), func() error { return b.seek(t, pool) })()
	}
	return nil
}

func (b *bench) seek(t *stoa.Table, pool memory.Allocator) error {
	for _, k := range b.keys {
		n, err := count(t.Seek(b.ctx, []any{k}, stoa.ScanSpec{Alloc: pool}), nil)
		if err != nil || n.rows != 1 {
			return fmt.Errorf("key %d: %d rows, %v", k, n.rows, err)
		}
	}
	return nil
}

func (b *bench) peerLookups() error {
	p, err := b.inPython()
	if err != nil {
		return err
	}
	t, err := b.opened("keyed")
	if err != nil {
		return err
	}
	duckdb := p.offers["lookup duckdb"]
	some, err := b.found(t, b.keys[:min(len(b.keys), duckdb.Looked)])
	if err != nil {
		return err
	}
	if err := sameSums("DuckDB", some, duckdb.Sums); err != nil || *lookup == "" {
		return err
	}
	g, err := b.start("parquet-go", nil, *lookup, filepath.Join(b.folder, "pages.parquet"),
		filepath.Join(b.tmp, "keys.txt"))
	if err != nil {
		return err
	}
	every, err := b.found(t, b.keys)
	if err != nil {
		return err
	}
	return sameSums("parquet-go", every, g.offers["lookup"].Sums)
}

func lookupLines() [][]line {
	return [][]line{{
		{"look-up of a random key, 10 columns, of 10 k", "DuckDB, Parquet", "lookup", "python lookup duckdb", "",
			"50×", "500×"},
		{"the same", "parquet-go, page index", "lookup", "parquet-go lookup", "", "3×", "10×"},
		{"the same, the first time", "parquet-go, page index, the first time", "lookup, the first time",
			"parquet-go lookup, the first time", "", "4×", "10×"}}}
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

// ownWrite writes all rows from memory.
func (b *bench) ownWrite() error {
	return b.create("write", filepath.Join(b.tmp, "x")+"/", stoa.CreateOptions{To: "cfile"}, same)
}

func (b *bench) peerWrite() error {
	p, err := b.inPython()
	if err != nil {
		return err
	}
	return sameSums("what pyarrow wrote", b.sums, p.offers["write snappy"].Sums)
}

func writeLines() [][]line {
	const pyarrow, peer = "pyarrow write_table, Snappy", "python write snappy"
	return [][]line{{{"CFile write, 10 columns", pyarrow, "write", peer, "", "3.5×", "5×"},
		{"the same, read back and compared", pyarrow, "write, proved", peer, "", "", ""}}}
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

func same(in []arrow.RecordBatch) []arrow.RecordBatch { return in }

// create writes a table in two ways: as the peers do, and with the check of the output that stoa makes by default. What
// was written is read once, and compared with the formula.
func (b *bench) create(name, to string, o stoa.CreateOptions,
	form func([]arrow.RecordBatch) []arrow.RecordBatch) error {
	var rows []arrow.RecordBatch // made by the first run, and kept no longer than from one run to the next of a kind
	once := func(o stoa.CreateOptions) run {
		return func() (float64, error) {
			if rows == nil {
				rows = form(batches())
			}
			defer func() { rows = nil; runtime.GC() }() // while it lives, the collector of others would hardly run
			return timed(processor, 1, func() error { return b.createOnce(to, o, rows) })()
		}
	}
	o.NoCheck = true
	b.runs[name] = once(o)
	proved := o
	proved.NoCheck = false
	b.runs[name+", proved"] = once(proved)
	if _, err := b.runs[name](); err != nil {
		return err
	}
	return b.check(to, "what stoa wrote")
}

func (b *bench) createOnce(to string, o stoa.CreateOptions, rows []arrow.RecordBatch) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	w, err := stoa.Create(b.ctx, to, rows[0].Schema(), o)
	if err != nil {
		return err
	}
	defer w.Abort(b.ctx)
	for _, rec := range rows {
		if err := w.Write(b.ctx, rec); err != nil {
			return err
		}
	}
	_, err = w.Close(b.ctx)
	return err
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

// ownThreads measures two threads against one, in elapsed time.
func (b *bench) ownThreads() error {
	t, err := b.opened("cfile")
	if err != nil {
		return err
	}
	for _, n := range []int{1, 2} {
		pool := stoa.NewPool()
		scan := func(of func() error) run {
			return func() (float64, error) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(n))
				return timed(wall, 1, of)()
			}
		}
		spec := stoa.ScanSpec{Alloc: pool, Parallel: n}
		b.runs[fmt.Sprint("threads ", n)] = scan(func() error {
			_, err := count(t.Scan(b.ctx, spec), nil)
			return err
		})
		b.runs[fmt.Sprint("threads each ", n)] = scan(func() error {
			return t.Each(b.ctx, spec, func(int, arrow.RecordBatch) error { return nil })
		})
	}
	return nil
}

func threadLines() [][]line {
	return [][]line{{
		{"CFile scan, two threads, elapsed time", "one thread", "threads 2", "threads 1", "", "1.7×", "1.9×"},
		{"the same by Each", "one thread", "threads each 2", "threads each 1", "", "1.7×", "1.9×"}}}
}
