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

// NativeReader is the interface that the native readers of all formats share, for programs that use a single format.
// NewReader of each takes an io.ReaderAt and the size. RowsFromKey yields an error of class Invalid for files without a
// declared order.
type NativeReader interface {
	Schema() *arrow.Schema
	NumRows() int64
	Row(ctx context.Context, n int64, mem memory.Allocator) (arrow.RecordBatch, error)
	RowsFrom(ctx context.Context, n int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error]
	RowsFromKey(ctx context.Context, key pred.Value, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error]
	Close() error
}

// Native checks a reader of the rows of want: rows from some positions on, and single ones.
func Native(t *testing.T, r NativeReader, want arrow.RecordBatch) {
	ctx, n := t.Context(), want.NumRows()
	if r.NumRows() != n || len(r.Schema().Fields()) != int(want.NumCols()) {
		t.Fatalf("got %d rows of %s, want %d of %s", r.NumRows(), r.Schema(), n, want.Schema())
	}
	all := rowsAsText(want)
	for _, from := range []int64{0, 1, n / 3, n / 2, n - 1, n} {
		if got := RowsOf(t, r.RowsFrom(ctx, from, nil)); !slices.Equal(got, all[from:]) {
			t.Errorf("rows from %d on: got %d rows\n%s\nwant %d\n%s", from, len(got), got, n-from, all[from:])
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
			t.Errorf("row %d: got %s, want %s", from, got, all[from])
		}
		b.Release()
		mem.AssertSize(t, 0)
	}
	for _, outside := range []int64{-1, n, n + 1} {
		if _, err := r.Row(ctx, outside, nil); !errors.Is(err, fault.Invalid) {
			t.Errorf("row %d: got %v, want an error of class Invalid", outside, err)
		}
	}
	for b, err := range r.RowsFrom(ctx, n+1, nil) {
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("rows from %d on: got %v, %v, want an error of class Invalid", n+1, b, err)
		}
	}
}

// RowsOf reads all rows of batches as text.
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
