package ipc_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/format"
	"stoa/format/ipc"
	"stoa/store"
	"stoa/vec"
)

// TestMovedBytes: bytes that are put into a file, or taken out of it, wherever that is, give no value that was not
// there: not when it is read as it is, and not by recovery. And it costs no batch in front of the
// place, but for the one that ends there.
func TestMovedBytes(t *testing.T) {
	file, ends := threeBatches(t)
	given := 0
	for at := 8; at < len(file)-10; at += 3 {
		for _, n := range []int{-69, -8, -4, -1, 1, 4, 8, 64, 69} {
			if end := ends[2]; n < 0 && at < end && at-n > end {
				continue // what shows it is gone, too: the end mark, which a file may lack
			}
			b := bytes.Clone(file)
			if n > 0 {
				b = slices.Insert(b, at, bytes.Repeat([]byte{1}, n)...)
			} else {
				b = slices.Delete(b, at, min(at-n, len(b)))
			}
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
			if r, err := ipc.Format.Open(context.Background(), tg, format.OpenOptions{}); err == nil {
				got := batchesOf(t, r, at, n)
				given += len(got)
				for k := range ends { // a prefix that is not there does not say whose end is gone
					if ends[k]+8 <= at && !slices.Contains(got, k) {
						t.Fatalf("%d bytes at %d: batch %d, which ends at %d, is not given: %v", n, at, k, ends[k], got)
					}
				}
			}
			if r, _, err := ipc.Format.Recover(context.Background(), tg, format.OpenOptions{}); err == nil {
				given += len(batchesOf(t, r, at, n))
			}
		}
	}
	if given < 1000 {
		t.Errorf("%d batches were given: nothing was tried", given)
	}
}

// batchesOf is which of the batches a reader gives: they must be as they were.
func batchesOf(t *testing.T, r format.Reader, at, n int) (out []int) {
	t.Helper()
	defer r.Close()
	if f := r.Schema().Fields(); len(f) != 1 || f[0].Type.ID() != arrow.INT64 {
		return nil // the place is in the schema: that is reported, and is no matter of values
	}
	groups, err := r.RowGroups(t.Context(), format.Part{Ref: "f"}, format.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups {
		for b, err := range r.(format.Batcher).Batches(t.Context(), g, format.Query{Cols: []int{0}}, vec.Range{}, nil) {
			if err != nil {
				continue
			}
			got := b.Column(0).(*array.Int64).Int64Values()
			k := int(got[0] / 100)
			if k < 0 || k > 2 || !slices.Equal(got, hundred(int64(k))) {
				t.Fatalf("%d bytes at %d: values that were not there: %v", n, at, got)
			}
			out = append(out, k)
		}
	}
	return out
}
