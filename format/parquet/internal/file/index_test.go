package file

import (
	"testing"

	"stoa/format/parquet/internal/meta"
)

// TestOffsetsAreBounded: the cache of offset indexes is bounded, and has only indexes of the current footer.
func TestOffsetsAreBounded(t *testing.T) {
	var o offsetIndexCache
	o.keep(ChunkKey{9, 9}, &meta.OffsetIndex{Offsets: make([]int64, maxCachedPages+1)})
	if o.get(ChunkKey{9, 9}) != nil {
		t.Error("more pages are kept than may be")
	}
	o.keep(ChunkKey{9, 9}, &meta.OffsetIndex{Offsets: make([]int64, maxCachedPages)})
	if n := len(o.kept); n != 1 || o.pages != maxCachedPages {
		t.Errorf("%d indexes of %d pages are kept", n, o.pages)
	}
	if o.clear(); o.get(ChunkKey{9, 9}) != nil {
		t.Error("an index of another footer")
	}
}
