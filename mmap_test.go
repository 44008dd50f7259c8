package stoa_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/fault"
	"stoa/store"
)

// numbered returns a batch of a number, whose values are known, and a string made of it.
func numbered(n int) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i) * 2654435761)
		b.Field(1).(*array.StringBuilder).Append(fmt.Sprint("value ", i*7919))
	}
	return b.NewRecordBatch()
}

// writeNumbered writes numbered(n) to a file or directory, without compression where the format lets one choose.
func writeNumbered(t *testing.T, name, format string, n int, opts map[string]string) {
	t.Helper()
	b := numbered(n)
	defer b.Release()
	w, err := stoa.Create(t.Context(), name, b.Schema(), stoa.CreateOptions{To: format, Opts: opts, NoCheck: true})
	if err == nil {
		err = w.Write(t.Context(), b)
	}
	if err == nil {
		_, err = w.Close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// checkNumbered reads a table that writeNumbered wrote, and returns how many of its rows were right before an error.
func checkNumbered(t *testing.T, table *stoa.Table, spec stoa.ScanSpec, after func()) (rows int, err error) {
	t.Helper()
	for b, err := range table.Scan(t.Context(), spec) {
		if err != nil {
			return rows, err
		}
		k, s := b.Column(0).(*array.Int64), b.Column(1).(*array.String)
		for i := range int(b.NumRows()) {
			if k.Value(i) != int64(rows)*2654435761 || s.Value(i) != fmt.Sprint("value ", rows*7919) {
				t.Fatalf("row %d: %d, %q", rows, k.Value(i), s.Value(i))
			}
			rows++
		}
		if after != nil {
			after()
			after = nil
		}
	}
	return rows, nil
}

var mappedFormats = []struct {
	format, name string
	opts         map[string]string
}{
	{"cfile", "set/", nil},
	{"trevni", "t.trv", map[string]string{"codec": "null"}},
	{"trevni", "t.trv", map[string]string{"codec": "snappy"}},
	{"redfile", "r.red", map[string]string{"compression": "none"}},
	{"parquet", "p.parquet", map[string]string{"compression": "none"}},
	{"parquet", "p.parquet", map[string]string{"compression": "zstd"}},
	{"carbon", "c/", nil},
}

// TestMappedFiles reads files of all formats of pages mapped, with any number of workers.
func TestMappedFiles(t *testing.T) {
	for _, f := range mappedFormats {
		t.Run(f.format+fmt.Sprint(f.opts), func(t *testing.T) {
			name := filepath.Join(t.TempDir(), f.name)
			writeNumbered(t, name, f.format, 40_000, f.opts)
			table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Mmap: true})
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			for _, workers := range []int{1, 3} {
				n, err := checkNumbered(t, table, stoa.ScanSpec{Parallel: workers, Batch: 5000}, nil)
				if n != 40_000 || err != nil {
					t.Fatalf("%d workers: %d rows, %v", workers, n, err)
				}
			}
		})
	}
}

// TestMappedFileIsCut cuts files off while they are mapped: that is told as it is of files that are read, as a change,
// under every damage policy, and what came before is right.
func TestMappedFileIsCut(t *testing.T) {
	const rows = 60_000
	for _, f := range mappedFormats {
		from := t.TempDir()
		writeNumbered(t, filepath.Join(from, f.name), f.format, rows, f.opts)
		for _, damaged := range []stoa.Damaged{stoa.Fail, stoa.SkipRows, stoa.NullCells} {
			if testing.Short() && damaged == stoa.NullCells {
				continue
			}
			for _, mapped := range []bool{true, false} {
				dir := t.TempDir()
				if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				name := filepath.Join(dir, f.name)
				n, err := readWhileCut(t, name, mapped, stoa.ScanSpec{Batch: 1000, Damaged: damaged})
				if !errors.Is(err, store.ErrChanged) || errors.Is(err, fault.Bug) {
					t.Errorf("%s %v, %d, mapped %v: after %d rows: expected a change, found %v", f.format, f.opts,
						damaged, mapped, n, err)
				}
			}
		}
	}
}

// readWhileCut reads a table, and cuts its files after the first batch.
func readWhileCut(t *testing.T, name string, mapped bool, spec stoa.ScanSpec) (rows int, err error) {
	t.Helper()
	table, err := stoa.Open(t.Context(), name, stoa.OpenOptions{Mmap: mapped})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	if spec.Damaged == stoa.Fail {
		return checkNumbered(t, table, spec, func() { cutAll(t, name) })
	}
	for b, err := range table.Scan(t.Context(), spec) { // lost rows are not counted
		if err != nil {
			return rows, err
		}
		if rows == 0 {
			cutAll(t, name)
		}
		rows += int(b.NumRows())
		if rows > 60_000 {
			return rows, nil
		}
	}
	return -1, nil
}

// cutAll cuts every file at a place to its first 4,096 bytes.
func cutAll(t *testing.T, name string) {
	t.Helper()
	err := filepath.Walk(name, func(p string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		return os.Truncate(p, min(info.Size(), 4096))
	})
	if err != nil {
		t.Fatal(err)
	}
}
