package cfile_test

import (
	"encoding/binary"
	"testing"

	"stoa/internal/kudugen"
)

// TestOrdinalBesideIndex changes the ordinal in a data block that has no checksum, and the index, which states it as
// well. No more rows are told as lost than there were; and none if the blocks that are found have as many rows as the
// footer states.
func TestOrdinalBesideIndex(t *testing.T) {
	tried, last := 0, 0
	forGoldenFiles(t, func(t *testing.T, b block, whole []byte, l *kudugen.Layout, x expected) {
		if l.Checksums || b.Kind != "column" {
			return
		}
		var data []kudugen.Block
		for _, at := range l.Blocks {
			if at.Kind == "data" {
				data = append(data, at)
			}
		}
		for i, at := range data {
			if i > 2 && i < len(data)-1 {
				continue
			}
			for off := at.Off; off < at.Off+12; off += 4 {
				if binary.LittleEndian.Uint32(whole[off:]) != uint32(at.First) {
					continue
				}
				harmed := append([]byte(nil), whole...)
				binary.LittleEndian.PutUint32(harmed[off:], uint32(at.First)+2048)
				for _, other := range l.Blocks {
					if other.Kind == "posidx" {
						hit(harmed, other)
					}
				}
				lost := lostOutside(t, harmed, x, map[string]string{"kind": "column"})
				if tried++; lost > int64(len(x.cells)) {
					t.Errorf("block %d of %d: %d rows are lost of %d", i, len(data), lost, len(x.cells))
				}
				if i == len(data)-1 && lost >= 0 {
					if last++; lost > 0 {
						t.Errorf("the last of %d blocks: %d rows are lost of %d", i+1, lost, len(x.cells))
					}
				}
			}
		}
	})
	if t.Logf("%d tried, %d of last blocks", tried, last); tried < 20 || last < 4 {
		t.Error("too little was tried")
	}
}
