package columnfile

import (
	"errors"
	"testing"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
)

// TestBlocksWithoutChecksum: a block that is smaller than its checksum is damaged, even if checksums are not compared,
// as in recovery.
func TestBlocksWithoutChecksum(t *testing.T) {
	f := &File{Footer: block.Footer{Incompatible: block.FeatureChecksums}}
	for n := range 4 {
		for _, noVerify := range []bool{false, true} {
			_, err := f.OpenBlock(make([]byte, n), fault.Span{Len: int64(n)}, nil, noVerify)
			if !errors.Is(err, fault.Corrupt) {
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
}
