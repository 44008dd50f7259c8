package file

import (
	"testing"

	"stoa/format/parquet/internal/meta"
)

// TestOffsetsAreBounded: how many offset indexes are kept is bounded, and they are of this footer.
func TestOffsetsAreBounded(t *testing.T) {
	var o offsets
	o.keep(ChunkKey{9, 9}, &meta.OffsetIndex{Offsets: make([]int64, keptPages+1)})
	if o.get(ChunkKey{9, 9}) != nil {
		t.Error("more pages are kept than may be")
	}
	o.keep(ChunkKey{9, 9}, &meta.OffsetIndex{Offsets: make([]int64, keptPages)})
	if n := len(o.kept); n != 1 || o.pages != keptPages {
		t.Errorf("%d indexes of %d pages are kept", n, o.pages)
	}
	if o.forget(); o.get(ChunkKey{9, 9}) != nil {
		t.Error("an index of another footer")
	}
}
