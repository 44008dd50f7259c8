package cfile

import (
	"fmt"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/store"
)

// TestRecoveredType: for any flipped bit in a column file's footer, recovery of the table knows from the table's schema
// that the column is text.
func TestRecoveredType(t *testing.T) {
	ctx, tree := t.Context(), store.NewMemory(nil)
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64},
		{Name: "c0", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	w, err := Format.Create(ctx, tree.Sink("d"), sc, format.WriteOptions{Rows: -1})
	if err != nil {
		t.Fatal(err)
	}
	rows := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range 20 {
		rows.Field(0).(*array.Int64Builder).Append(int64(i))
		rows.Field(1).(*array.StringBuilder).Append(fmt.Sprint("text ", i%3))
	}
	if err := w.Write(ctx, rows.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
	whole := tree.Bytes("d/c0.cfile")
	recovered := 0
	for i := len(whole) / 2; i < len(whole); i++ {
		for bit := range 8 {
			b := append([]byte{}, whole...)
			b[i] ^= 1 << bit
			tree.Put("d/c0.cfile", b)
			r, _, err := Format.Recover(ctx, format.Target{Tree: tree, Name: "d"}, format.OpenOptions{})
			if err != nil {
				continue
			}
			if recovered++; r.Schema().Field(1).Type.ID() != arrow.STRING {
				t.Errorf("bit %d of byte %d of %d: %s", bit, i, len(whole), r.Schema().Field(1).Type)
			}
			r.Close()
		}
	}
	if recovered < 4*len(whole)/2 {
		t.Errorf("only %d tables were recovered", recovered)
	}
}
