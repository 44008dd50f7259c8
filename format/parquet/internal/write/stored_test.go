package write

import (
	"bytes"
	"testing"

	"stoa/format/parquet/internal/meta"
)

// TestCodecsOfCutPages: a cut page keeps its codec, the old LZ4 with its framing; LZO, which is 3, is neither read nor
// written.
func TestCodecsOfCutPages(t *testing.T) {
	src := make([]byte, 300_000)
	for i := range src {
		src[i] = byte(i >> 7 * i)
	}
	for c := meta.CodecNone; c <= meta.CodecLZ4Raw; c++ {
		for _, framed := range []bool{false, true} {
			compress, ok := CompressorOf(c, framed)
			if ok != (c != 3) {
				t.Errorf("%s: %v", c, ok)
			}
			if compress == nil {
				continue
			}
			b, err := compress(nil, src)
			if err != nil {
				t.Fatal(c, err)
			}
			raw, err := c.Decompress(b, int64(len(src)), 1<<20, func(n int) []byte { return make([]byte, n) })
			if err != nil || !bytes.Equal(raw, src) {
				t.Errorf("%s, framed %t: other bytes, %v", c, framed, err)
			}
			if c == meta.CodecLZ4 && meta.Framed(b, int64(len(src))) != framed {
				t.Errorf("%s: framed is not %t", c, framed)
			}
		}
	}
}
