package trevni_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/trevni"
	"stoa/pred"
)

// nativeFile returns a file of ascending keys, each of which occurs three times, with a nested column beside them.
func nativeFile(t testing.TB, f format.Format, rows int) ([]byte, arrow.RecordBatch) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a.k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(i / 3 * 10))
		l := b.Field(1).(*array.ListBuilder)
		if l.Append(i%5 > 0); i%5 > 0 {
			l.ValueBuilder().(*array.Int32Builder).AppendValues([]int32{int32(i), 7}, []bool{true, i%2 == 0})
		}
	}
	batch := b.NewRecordBatch()
	key := map[string]string{"trevni": "a.k", "trevni-avro": "a_k"}[f.Name]
	return write(t, f, sc, map[string]string{"block-size": "500", "first-values": key}, batch).Bytes("t"), batch
}

// TestNative: rows read from a position on, from a key on, and one at a time, equal the rows that were written.
func TestNative(t *testing.T) {
	for _, f := range []format.Format{trevni.Format, trevni.AvroFormat} {
		b, want := nativeFile(t, f, 3000)
		r, err := trevni.NewReader(bytes.NewReader(b), int64(len(b)), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		formattest.Native(t, r, want)
		all := formattest.RowsOf(t, r.RowsFrom(t.Context(), 0, nil))
		for _, key := range []int64{-1, 0, 1, 5000, 5001, 9990, 9991} {
			from := min(max((key+9)/10*3, 0), 3000)
			if got := formattest.RowsOf(t, r.RowsFromKey(t.Context(), pred.Int(key), nil)); !slices.Equal(got,
				all[from:]) {
				t.Errorf("%s: from key %d on: %d rows, expected %d, or others", f.Name, key, len(got), 3000-from)
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestNoKey: in a file without a declared order, rows cannot be read from a key on.
func TestNoKey(t *testing.T) {
	r, err := trevni.OpenFile(t.Context(), readerFile(t, trevni.Format), "f.trv", format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	found := false
	for range r.RowsFromKey(t.Context(), pred.Int(10), nil) {
		found = true
	}
	if !found {
		t.Error("the file has keys, and no row is given")
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "k", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{3, 1, 2}, nil)
	raw := write(t, trevni.Format, sc, nil, b.NewRecordBatch()).Bytes("t")
	n, err := trevni.NewReader(bytes.NewReader(raw), int64(len(raw)), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	for b, err := range n.RowsFromKey(t.Context(), pred.Int(1), nil) {
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%v, %v, expected an error of class Invalid", b, err)
		}
	}
}

// Reading one file: its rows from a position on, and a single row.
func ExampleNewReader() {
	f, err := os.Open("../../corpus/trevni/v1.12.2/avro_arrays.trv")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		panic(err)
	}
	r, err := trevni.NewReader(f, info.Size(), format.OpenOptions{})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	ctx, n := context.Background(), int64(0)
	for b, err := range r.RowsFrom(ctx, 100, nil) {
		if err != nil {
			panic(err)
		}
		n += b.NumRows()
	}
	row, err := r.Row(ctx, 2, nil)
	if err != nil {
		panic(err)
	}
	defer row.Release()
	fmt.Println(n, "of", r.NumRows(), "rows;", row.Column(2).ValueStr(0))
	// Output:
	// 50 of 150 rows; [{"p":0,"q":"q0"}]
}
