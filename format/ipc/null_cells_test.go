package ipc_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowipc "github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/ipc"
	"stoa/region"
	"stoa/store"
)

// TestNullCells damages the offsets of a text column in one of two batches: if lost cells are read as null, the other
// column keeps its values.
func TestNullCells(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	var file seekable
	w, err := arrowipc.NewFileWriter(&file, arrowipc.WithSchema(sc))
	if err != nil {
		t.Fatal(err)
	}
	for k := range 2 {
		b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
		for i := range 4 {
			b.Field(0).(*array.Int64Builder).Append(int64(4*k + i))
			b.Field(1).(*array.StringBuilder).Append("seven..")
		}
		if err := w.Write(b.NewRecordBatch()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	offsets := []byte{0, 0, 0, 0, 7, 0, 0, 0, 14, 0, 0, 0}
	at := bytes.LastIndex(file.Bytes(), offsets)
	file.Bytes()[at+7] = 0x7f
	tab, err := stoa.Open(context.Background(), "t",
		stoa.OpenOptions{Formats: []format.Format{ipc.Format},
			Tree: store.NewMemory(map[string][]byte{"t": file.Bytes()})})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	var lost []region.Loss
	rows := int64(0)
	for b, err := range tab.Scan(context.Background(),
		stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(l region.Loss) { lost = append(lost, l) }}) {
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(b.NumRows()) {
			n, s := b.Column(0).(*array.Int64), b.Column(1).(*array.String)
			if n.IsNull(i) || n.Value(i) != rows || s.IsNull(i) != (rows >= 4) || rows < 4 && s.Value(i) != "seven.." {
				t.Errorf("row %d: %s, %s", rows, n.ValueStr(i), s.ValueStr(i))
			}
			rows++
		}
	}
	if rows != 8 || len(lost) != 1 || lost[0].Column != "s" || lost[0].Group != 1 || lost[0].Rows != [2]int64{0, 4} {
		t.Errorf("%d rows, lost: %+v", rows, lost)
	}
}
