package codec

import (
	"bytes"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	for i := range codecs {
		c := &codecs[i]
		t.Run(c.Name, func(t *testing.T) {
			for _, raw := range [][]byte{nil, []byte("a"), bytes.Repeat([]byte("stoa "), 1000),
				{0xff, 0, 1, 2, 3, 250}} {
				z := c.Compress([]byte("head"), raw)
				if string(z[:4]) != "head" {
					t.Fatal("Compress does not append")
				}
				got := make([]byte, len(raw))
				if err := c.Decompress(got, z[4:]); err != nil || !bytes.Equal(got, raw) {
					t.Errorf("%d bytes: %v", len(raw), err)
				}
				for _, n := range []int{len(raw) - 1, len(raw) + 1} {
					if n >= 0 && c.Decompress(make([]byte, n), z[4:]) == nil {
						t.Errorf("a block of %d bytes is decompressed to %d without an error", len(raw), n)
					}
				}
			}
		})
	}
}
