package ipc_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowipc "github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc"
	"stoa/store"
	"stoa/vec"
)

// threeBatches is a file of arrow-go's writer: three batches of 100 numbers. ends: where each batch ends.
func threeBatches(t *testing.T) (file []byte, ends []int) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	var b seekable
	w, err := arrowipc.NewFileWriter(&b, arrowipc.WithSchema(sc))
	if err != nil {
		t.Fatal(err)
	}
	for k := range 3 {
		rb := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 100 {
			rb.Field(0).(*array.Int64Builder).Append(int64(k*100 + i))
		}
		rec := rb.NewRecordBatch()
		if err := w.Write(rec); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, b.Len())
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), ends
}

type seekable struct{ bytes.Buffer }

func (s *seekable) Seek(int64, int) (int64, error) { return int64(s.Len()), nil }

// TestRecover: a file that is cut anywhere gives the batches that are whole, and says that its footer is gone.
func TestRecover(t *testing.T) {
	file, ends := threeBatches(t)
	for cut := ends[0] - 1; cut < len(file); cut++ {
		want := int64(0)
		for _, e := range ends {
			if cut >= e {
				want += 100
			}
		}
		ctx := context.Background()
		tg := format.Target{Tree: store.NewMemory(map[string][]byte{"f": file[:cut]}), Name: "f"}
		if _, err := ipc.Format.Open(ctx, tg, format.OpenOptions{}); !errors.Is(err, fault.Corrupt) {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		r, found, err := ipc.Format.Recover(ctx, tg, format.OpenOptions{})
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if len(found) != 1 || found[0].Code != "arrow.footer" {
			t.Errorf("cut at %d: %v", cut, found)
		}
		g, err := r.RowGroups(ctx, format.Part{Ref: "f"}, format.Query{})
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		for b, err := range r.(format.Batcher).Batches(ctx, g[0], format.Query{Cols: []int{0}}, vec.Range{}, nil) {
			if err != nil {
				break // the batch that is cut
			}
			for i, v := range b.Column(0).(*array.Int64).Int64Values() {
				if v != rows+int64(i) {
					t.Fatalf("cut at %d: row %d is %d", cut, rows+int64(i), v)
				}
			}
			rows += b.NumRows()
		}
		if rows != want {
			t.Errorf("cut at %d: %d rows, expected %d", cut, rows, want)
		}
		r.Close()
	}
}
