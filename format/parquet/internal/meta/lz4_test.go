package meta

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"stoa/internal/codec"
)

// TestOldLZ4: codec LZ4 is Hadoop's framing, of one or more blocks, or a bare block; truncated input and wrong sizes
// are refused.
func TestOldLZ4(t *testing.T) {
	var raw []byte
	for i := range 3000 {
		raw = fmt.Appendf(raw, "row %d, ", i%700)
	}
	z, _ := codec.ByName("lz4")
	framed := func(sizes ...int) (out []byte) {
		at := 0
		for _, n := range sizes {
			block := z.Compress(nil, raw[at:at+n])
			out = binary.BigEndian.AppendUint32(out, uint32(n))
			out = binary.BigEndian.AppendUint32(out, uint32(len(block)))
			out, at = append(out, block...), at+n
		}
		return out
	}
	all := len(raw)
	for name, b := range map[string][]byte{"one block": framed(all), "three": framed(5000, 1, all-5001),
		"bare": z.Compress(nil, raw)} {
		got, err := CodecLZ4.Decompress(b, int64(all), 1<<20, Alloc)
		if err != nil || !bytes.Equal(got, raw) {
			t.Errorf("%s: %v, %d bytes of %d", name, err, len(got), all)
		}
		for _, n := range []int64{int64(all) - 1, int64(all) + 1} {
			if _, err := CodecLZ4.Decompress(b, n, 1<<20, Alloc); err == nil {
				t.Errorf("%s: it is read as %d bytes", name, n)
			}
		}
		for _, cut := range []int{1, 7, 100, len(b) / 2} {
			if _, err := CodecLZ4.Decompress(b[:len(b)-cut], int64(all), 1<<20, Alloc); err == nil {
				t.Errorf("%s: %d bytes are cut, and it is read", name, cut)
			}
		}
		if _, err := CodecLZ4.Decompress(append(bytes.Clone(b), 0), int64(all), 1<<20, Alloc); err == nil {
			t.Errorf("%s: a byte behind its end is taken for nothing", name)
		}
	}
	if _, err := CodecLZ4Raw.Decompress(framed(all), int64(all), 1<<20, Alloc); err == nil {
		t.Error("LZ4_RAW is read with Hadoop's framing")
	}
}
