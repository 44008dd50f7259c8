package parquet

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format"
	"stoa/store"
	"stoa/vec"
)

// TestOffsetIndexIsReadOnce: an offset index is read once, however often scans use it.
func TestOffsetIndexIsReadOnce(t *testing.T) {
	r := readerOf(t, golden(t, "testdata/order.v2.parquet").Bytes("t"))
	source := &countedSource{Source: r.Src, reads: map[[2]int64]int{}}
	r.Src = source
	for range 3 { // two row groups of four columns
		for g := range r.Footer.RowGroups {
			for _, err := range batchesOf(t.Context(), r, format.RowGroup{Index: g}, format.Query{Cols: r.tops()},
				vec.Range{From: 1, To: 60}, memory.NewGoAllocator()) {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for g, rg := range r.Footer.RowGroups {
		for k, c := range rg.Columns {
			x, err := r.OffsetIndex(t.Context(), g, k)
			if y, again := r.OffsetIndex(t.Context(), g, k); err != nil || again != nil || x == nil || x != y {
				t.Fatalf("%v, %v", err, again)
			}
			if n := source.reads[[2]int64{*c.OffsetIndexOffset, int64(*c.OffsetIndexLength)}]; n != 1 {
				t.Errorf("row_groups[%d].columns[%d]: got %d reads of the offset index, want 1", g, k, n)
			}
		}
	}
}

// countedSource counts reads by offset and length.
type countedSource struct {
	store.Source
	reads map[[2]int64]int
}

func (s *countedSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	s.reads[[2]int64{off, int64(len(p))}]++
	return s.Source.ReadAt(ctx, p, off)
}
