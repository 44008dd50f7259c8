package ipc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

// TestBatchWithoutArrays: if damaged metadata give a file a schema without fields, a batch whose arrays are all missing
// is damaged, not empty.
func TestBatchWithoutArrays(t *testing.T) {
	whole := write(t, nil, sampleBatch(true)).Bytes("t")
	reported := 0
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			r, err := openReader(t.Context(), format.Target{Tree: store.NewMemory(map[string][]byte{"t": b}),
				Name: "t"},
				format.OpenOptions{})
			if err != nil {
				reported++
				continue
			}
			if rows, err := r.batchRows(t.Context()); err != nil || len(rows) != 1 || rows[0] == 0 {
				t.Errorf("bit %d of byte %d flipped: got %v rows, %v", bit, i, rows, err)
			}
			r.Close()
		}
	}
	if reported == 0 {
		t.Error("nothing was damaged")
	}
}

// sampleBatch is a batch of three columns of three rows; the second column has a null in its second row.
func sampleBatch(nullable bool) arrow.RecordBatch {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
		{Name: "b", Type: arrow.PrimitiveTypes.Int64, Nullable: nullable},
		{Name: "c", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	b.Field(0).(*array.Int64Builder).AppendValues([]int64{1, 2, 3}, nil)
	b.Field(1).(*array.Int64Builder).AppendValues([]int64{4, 0, 6}, []bool{true, false, true})
	b.Field(2).(*array.StringBuilder).AppendValues([]string{"x", "y", "z"}, nil)
	return b.NewRecordBatch()
}

// TestContradictions: redundant facts within a batch, and between schema and batch, are compared: a batch with no rows
// or too few, a column whose null count is zero while its bitmap has nulls, and a column with nulls that the schema
// declares non-nullable.
func TestContradictions(t *testing.T) {
	node := func(rows, nulls int64) []byte {
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(rows)), uint64(nulls))
	}
	nodes := slices.Concat(node(3, 0), node(3, 1), node(3, 0))
	for _, opts := range []map[string]string{{}, {"stream": "true"}, {"compression": "lz4"}, {"compression": "zstd"}} {
		whole := write(t, opts, sampleBatch(true)).Bytes("t")
		if bytes.Count(whole, nodes) != 1 {
			t.Fatal("not the expected file")
		}
		for what, other := range map[string][]byte{
			"no nulls by the number": slices.Concat(node(3, 0), node(3, 0), node(3, 0)),
			"a row less in the last": slices.Concat(node(3, 0), node(3, 1), node(2, 0)),
			"no row in the first":    slices.Concat(node(0, 0), node(3, 1), node(3, 0)),
		} {
			b := bytes.Replace(whole, nodes, other, 1)
			got, err := readAll(store.NewMemory(map[string][]byte{"t": b}), nil, vec.Range{})
			if !errors.Is(err, fault.Corrupt) {
				t.Errorf("%v, %s: %v, %v", opts, what, got, err)
			}
		}
		if _, err := readAll(write(t, opts, sampleBatch(true)), nil, vec.Range{}); err != nil {
			t.Errorf("%v, whole: %v", opts, err)
		}
	}
	for _, nullable := range []bool{true, false} {
		var b bytes.Buffer
		rec := sampleBatch(nullable)
		w := NewStreamWriter(&b, rec.Schema())
		if err := errors.Join(w.Write(rec), w.Close()); err != nil {
			t.Fatal(err)
		}
		_, err := readAll(store.NewMemory(map[string][]byte{"t": b.Bytes()}), nil, vec.Range{})
		if nullable != (err == nil) || !nullable && !errors.Is(err, fault.Corrupt) {
			t.Errorf("a null in a column that may have some: %v: %v", nullable, err)
		}
	}
}
