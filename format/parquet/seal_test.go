package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/store"
)

// TestFooterSeal: any flipped bit in a footer that stoa wrote is an error, except in the seal's key and in the writer's
// name; if the footer names a different writer, the seal is ignored, as it was copied with a schema.
func TestFooterSeal(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int64)}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	for i := range 3 {
		b.Field(0).(*array.StringBuilder).Append("x")
		b.Field(1).(*array.ListBuilder).Append(true)
		b.Field(1).(*array.ListBuilder).ValueBuilder().(*array.Int64Builder).Append(int64(i))
	}
	tree := store.NewMemory(nil)
	w, err := Format.Create(t.Context(), tree.Sink("t"), sc, format.WriteOptions{Rows: -1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	intact := tree.Bytes("t")
	opened := func(b []byte) error {
		r, err := openReader(t.Context(), targetOf(b), format.OpenOptions{})
		if err == nil {
			if _, ok := r.Shown.Metadata().GetValue(meta.SealKey); ok {
				t.Fatal("the checksum is among the schema's metadata")
			}
			r.Close()
		}
		return err
	}
	if err := opened(intact); err != nil {
		t.Fatal(err)
	}
	length := int(binary.LittleEndian.Uint32(intact[len(intact)-8:]))
	from := len(intact) - 8 - length
	key, by := bytes.LastIndex(intact, []byte(meta.SealKey)), bytes.LastIndex(intact, []byte("stoa version"))
	if key < from || by < from {
		t.Fatal("no seal in the footer")
	}
	for i := from; i < len(intact)-8; i++ {
		for bit := range 8 {
			b := bytes.Clone(intact)
			b[i] ^= 1 << bit
			excepted := i >= key && i < key+len(meta.SealKey)+2
			if err := opened(b); !excepted && !errors.Is(err, fault.Corrupt) {
				t.Errorf("bit %d of byte %d of the footer flipped: got %v, want class Corrupt", bit, i-from, err)
			}
		}
	}
	b2 := bytes.Clone(intact)
	copy(b2[by:], "other")
	b2[key+len(meta.SealKey)+2] ^= 1
	if err := opened(b2); err != nil {
		t.Errorf("a different writer: got %v, want no error", err)
	}
}
