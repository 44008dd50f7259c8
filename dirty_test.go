package stoa_test

import (
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// dirty is an allocator whose memory is not zero, as a pool's is not.
type dirty struct{ memory.Allocator }

func (d dirty) Allocate(n int) []byte {
	b := d.Allocator.Allocate(n)
	for i := range b {
		b[i] = 0xff
	}
	return b
}

// TestDirtyMemory: what is written does not depend on what the allocator's memory held. arrow-go leaves bitmaps
// of arrays that are all null as they were allocated.
func TestDirtyMemory(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
		{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)
	build := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer build.Release()
	build.Field(0).AppendNulls(300)
	build.Field(1).AppendNulls(300)
	rec := build.NewRecordBatch()
	defer rec.Release()
	formats := stoa.Formats
	for _, f := range formats {
		if f.Create == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			place := filepath.Join(t.TempDir(), "x")
			w, err := stoa.Create(t.Context(), place, sc,
				stoa.CreateOptions{Formats: formats, To: f.Name, Alloc: dirty{memory.DefaultAllocator}})
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Write(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			table, err := stoa.Open(t.Context(), place, stoa.OpenOptions{Formats: formats, From: f.Name})
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			nulls := 0
			for b, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
				if err != nil {
					t.Fatal(err)
				}
				nulls += b.Column(0).NullN() + b.Column(1).NullN()
			}
			if nulls != 600 {
				t.Errorf("%d nulls of 600", nulls)
			}
		})
	}
}
