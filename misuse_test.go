package stoa_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"testing"

	"stoa"
	"stoa/fault"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestMisuse: what a program gets wrong is an error of class Invalid, neither a panic nor a table without rows.
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

// scanned is how many rows a scan gives.
func scanned(scan iter.Seq2[arrow.RecordBatch, error]) (n int64, err error) {
	for b, err := range scan {
		if err != nil {
			return n, err
		}
		n += b.NumRows()
	}
	return n, nil
}
