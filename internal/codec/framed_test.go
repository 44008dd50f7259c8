package codec

import (
	"bytes"
	"testing"
)

func TestCompressFramed(t *testing.T) {
	for _, name := range []string{"none", "snappy", "zstd", "gzip"} {
		for _, n := range []int{0, 1, 1000, 200_000} {
			raw := make([]byte, n)
			for i := range raw {
				raw[i] = byte(i * i >> 7)
			}
			b, ok := CompressFramed(name, []byte("head"), raw)
			if !ok || !bytes.HasPrefix(b, []byte("head")) {
				t.Fatalf("%s of %d bytes: %v, % x", name, n, ok, b[:min(len(b), 8)])
			}
			back, err := Expand(name, b[4:], 1<<20, room)
			if err != nil || !bytes.Equal(back, raw) {
				t.Fatalf("%s of %d bytes: %d bytes back, %v", name, n, len(back), err)
			}
		}
	}
	if _, ok := CompressFramed("lzma", nil, nil); ok {
		t.Error("CompressFramed takes \"lzma\", which is not a method")
	}
}
