package sum

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestFlips: a CRC locates any single flipped bit of a text, and locates none if two bits are flipped.
func TestFlips(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, table := range []*crc32.Table{Castagnoli(), crc32.IEEETable} {
		flips := NewFlips(table, 300)
		for _, size := range []int{1, 2, 77, 300} {
			text := make([]byte, size)
			for i := range text {
				text[i] = byte(r.Uint32())
			}
			want := crc32.Checksum(text, table)
			if bit := flips.Bit(size, 0); bit >= 0 {
				t.Errorf("%d bytes as they were: bit %d", size, bit)
			}
			for bit := range 8 * size {
				text[bit/8] ^= 1 << (bit % 8)
				if got := flips.Bit(size, want^crc32.Checksum(text, table)); got != bit {
					t.Fatalf("bit %d of %d bytes: %d", bit, size, got)
				}
				if other := r.IntN(8 * size); other != bit {
					text[other/8] ^= 1 << (other % 8)
					if got := flips.Bit(size, want^crc32.Checksum(text, table)); got >= 0 {
						t.Fatalf("bits %d and %d of %d bytes: %d", bit, other, size, got)
					}
					text[other/8] ^= 1 << (other % 8)
				}
				text[bit/8] ^= 1 << (bit % 8)
			}
		}
	}
}
