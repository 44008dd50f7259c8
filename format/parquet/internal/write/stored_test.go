package write

import (
	"testing"

	"stoa/format/parquet/internal/meta"
)

// TestCodecsOfCutPages: a page that is cut has its codec again; of LZO and the old LZ4, which are 3 and 5, none is
// written.
func TestCodecsOfCutPages(t *testing.T) {
	for c := meta.CodecNone; c <= meta.CodecLZ4Raw; c++ {
		if _, ok := CompressorOf(c); ok != (c != 3 && c != 5) {
			t.Errorf("%s: %v", c, ok)
		}
	}
}
