package ipc_test

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowipc "github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/format/ipc"
	"stoa/store"
	"stoa/vec"
)

// TestMovedBytes: bytes inserted into a file, or removed from it, anywhere, never produce a value that was not there:
// neither when it is opened normally, nor by recovery. They cost no batch before that place, except one that ends
// there.
func TestMovedBytes(t *testing.T) {
	file, ends := threeBatches(t)
	given := 0
	for at := 8; at < len(file)-10; at += 3 {
		for _, n := range []int{-69, -8, -4, -1, 1, 4, 8, 64, 69} {
			if end := ends[2]; n < 0 && at < end && at-n > end {
				continue // the evidence is removed too: the end mark, which a file may lack
			}
			b := bytes.Clone(file)
			if n > 0 {
				b = slices.Insert(b, at, bytes.Repeat([]byte{1}, n)...)
			} else {
				b = slices.Delete(b, at, min(at-n, len(b)))
			}
			tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
			if r, err := ipc.Format.Open(context.Background(), tg, format.OpenOptions{}); err == nil {
				got := batchesOf(t, "file", r, at, n)
				given += len(got)
				for k := range ends { // if the prefix is missing, it is unknown whose end was removed
					if ends[k]+8 <= at && !slices.Contains(got, k) {
						t.Fatalf("%d bytes at %d: batch %d, which ends at %d, is not read: %v", n, at, k, ends[k], got)
					}
				}
			}
			if r, _, err := ipc.Format.Recover(context.Background(), tg, format.OpenOptions{}); err == nil {
				given += len(batchesOf(t, "file", r, at, n))
			}
		}
	}
	if given < 1000 {
		t.Errorf("%d batches were read: nothing was tested", given)
	}
}

// batchesOf returns which of the batches a reader returns; their values must be unchanged.
func batchesOf(t *testing.T, what string, r format.Reader, at, n int) (out []int) {
	t.Helper()
	defer r.Close()
	if f := r.Schema().Fields(); len(f) != 1 || f[0].Type.ID() != arrow.INT64 {
		return nil // the place is in the schema: that is reported, and does not concern values
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
				t.Fatalf("%s, %d bytes at %d: values that were not there: %v", what, n, at, got)
			}
			out = append(out, k)
		}
	}
	return out
}

// TestMovedStream is TestMovedBytes for streams, of stoa's writer and of another, compressed and not.
func TestMovedStream(t *testing.T) {
	given := 0
	for name, stream := range threeStreams(t) {
		for at := 8; at < len(stream)-10; at += 3 {
			for _, n := range []int{-640, -137, -69, -13, -8, -4, -1, 1, 4, 8, 64, 69} {
				if testing.Short() && (at/3+n)%5 != 0 {
					continue
				}
				mark := len(stream) - 8
				if n == -8 && at < mark && at+8 > mark {
					continue // as long as the end mark, which a stream may lack, and it is the rest of it
				}
				b := bytes.Clone(stream)
				if n > 0 {
					b = slices.Insert(b, at, bytes.Repeat([]byte{1}, n)...)
				} else {
					b = slices.Delete(b, at, min(at-n, len(b)))
				}
				tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": b}), Name: "f"}
				if r, err := ipc.Format.Open(t.Context(), tg, format.OpenOptions{}); err == nil {
					given += len(batchesOf(t, name, r, at, n))
				}
			}
		}
	}
	if given < 1000 && !testing.Short() || given < 200 {
		t.Errorf("%d batches were read: nothing was tested", given)
	}
}

// threeStreams returns streams of three batches of a hundred numbers.
func threeStreams(t *testing.T) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for codec, opt := range map[string]arrowipc.Option{"none": nil, "lz4": arrowipc.WithLZ4(),
		"zstd": arrowipc.WithZstd()} {
		out["arrow-go, "+codec], _ = streamOf(t, 3, opt)
		sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
		mem := store.NewMemory(nil)
		w, err := ipc.Format.Create(t.Context(), mem.Sink("f"), sc, format.WriteOptions{Rows: -1,
			Opts: map[string]string{"stream": "true", "compression": codec}})
		for k := range 3 {
			rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
			rb.Field(0).(*array.Int64Builder).AppendValues(hundred(int64(k)), nil)
			if err == nil {
				err = w.Write(t.Context(), rb.NewRecordBatch())
			}
		}
		if err == nil {
			_, err = w.Close(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		out["stoa, "+codec] = mem.Bytes("f")
	}
	return out
}
