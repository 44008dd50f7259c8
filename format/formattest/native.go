package formattest

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/pred"
)

// NativeReader is the shape of the readers that formats have for programs that use one of them by itself. Of
// files that promise no order RowsFromKey is an error of class Invalid. NewReader of each takes an io.ReaderAt and the
// size.
type NativeReader interface {
	Schema() *arrow.Schema
	NumRows() int64
	Row(ctx context.Context, n int64, mem memory.Allocator) (arrow.RecordBatch, error)
	RowsFrom(ctx context.Context, n int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error]
	RowsFromKey(ctx context.Context, key pred.Value, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error]
	Close() error
}

// Native compares a reader of the rows of want with them, from some positions on and one by one.
func Native(t *testing.T, r NativeReader, want arrow.RecordBatch) {
	ctx, n := t.Context(), want.NumRows()
	if r.NumRows() != n || len(r.Schema().Fields()) != int(want.NumCols()) {
		t.Fatalf("%d rows, expected %d, of %s", r.NumRows(), n, r.Schema())
	}
	all := rowsAsText(want)
	for _, from := range []int64{0, 1, n / 3, n / 2, n - 1, n} {
		if got := RowsOf(t, r.RowsFrom(ctx, from, nil)); !slices.Equal(got, all[from:]) {
			t.Errorf("from row %d on: %d rows, expected %d, or others", from, len(got), n-from)
		}
		if from == n {
			break
		}
		mem := memory.NewCheckedAllocator(memory.DefaultAllocator)
		b, err := r.Row(ctx, from, mem)
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsAsText(b); !slices.Equal(got, all[from:from+1]) {
			t.Errorf("row %d: %s, expected %s", from, got, all[from])
		}
		b.Release()
		mem.AssertSize(t, 0)
	}
	for _, none := range []int64{-1, n, n + 1} {
		if _, err := r.Row(ctx, none, nil); !errors.Is(err, fault.Invalid) {
			t.Errorf("row %d: %v, expected an error of class Invalid", none, err)
		}
	}
	for b, err := range r.RowsFrom(ctx, n+1, nil) {
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("from row %d on: %v, %v, expected an error of class Invalid", n+1, b, err)
		}
	}
}

// RowsOf is the rows of batches as text.
func RowsOf(t *testing.T, batches iter.Seq2[arrow.RecordBatch, error]) (out []string) {
	t.Helper()
	for b, err := range batches {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, rowsAsText(b)...)
	}
	return out
}
