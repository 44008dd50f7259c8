package stoa_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/store"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestMisuse: programming mistakes give an error of class Invalid, neither a panic nor a table without rows.
func TestMisuse(t *testing.T) {
	ctx := t.Context()
	const name = "corpus/kudu/1.18.1/key_string/k.ck.cfile"
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{-1, -int64(len(file))} {
		if _, err := stoa.OpenReaderAt(ctx, bytes.NewReader(file), size, "k.cfile",
			stoa.OpenOptions{}); !errors.Is(err, fault.Invalid) {
			t.Errorf("size %d: got %v, want class Invalid", size, err)
		}
	}
	if _, err := stoa.OpenReaderAt(ctx, nil, 1, "k.cfile", stoa.OpenOptions{}); !errors.Is(err, fault.Invalid) {
		t.Errorf("no reader: got %v, want class Invalid", err)
	}
	table, err := stoa.Open(ctx, name, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := scanned(table.Row(ctx, 375, stoa.ScanSpec{})); n != 1 || err != nil {
		t.Errorf("the last row: got %d rows, %v, want 1", n, err)
	}
	if n, err := scanned(table.Row(ctx, 376, stoa.ScanSpec{})); n != 0 || err != nil {
		t.Errorf("the row after the last: got %d rows, %v, want none", n, err)
	}
	if _, err := scanned(table.Row(ctx, -1, stoa.ScanSpec{})); !errors.Is(err, fault.Invalid) {
		t.Errorf("row -1: got %v, want class Invalid", err)
	}
	if err := table.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := scanned(table.Scan(context.Background(), stoa.ScanSpec{})); n != 0 || !errors.Is(err, fault.Invalid) {
		t.Errorf("a closed table: got %d rows, %v, want class Invalid", n, err)
	}
}

// scanned returns the number of rows that a scan yields.
func scanned(scan iter.Seq2[arrow.RecordBatch, error]) (n int64, err error) {
	for b, err := range scan {
		if err != nil {
			return n, err
		}
		n += b.NumRows()
	}
	return n, nil
}

// TestChangesAreLocal: a table in a tree other than the local file system is not changed, nor is the local table of the
// same name.
func TestChangesAreLocal(t *testing.T) {
	ctx := t.Context()
	const place = "corpus/carbon/2.3.0/managed/managed_gsort"
	dir := t.TempDir()
	for _, name := range []string{"t", "other/t"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(place)); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	other := stoa.OpenOptions{Tree: store.FS(os.DirFS("other"))}
	if c, err := stoa.OpenChanger(ctx, "t", other); !errors.Is(err, fault.Unsupported) {
		t.Errorf("got %v, %v, want class Unsupported", c, err)
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	if err := stoa.CreateTable(ctx, "new", sc, stoa.CreateTableOptions{}, other); !errors.Is(err, fault.Unsupported) {
		t.Errorf("a new table: got %v, want class Unsupported", err)
	}
	c, err := stoa.OpenChanger(ctx, "t", stoa.OpenOptions{Tree: store.Roots(store.Local{})}) // wrapped, and local
	if err != nil {
		t.Fatal(err)
	}
	if n, err := c.Delete(ctx, stoa.DeleteOptions{Where: "true"}); n != 500 || err != nil {
		t.Errorf("got %d rows deleted, %v, want 500", n, err)
	}
}
