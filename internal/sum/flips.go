package sum

import "hash/crc32"

// Flips says which one bit of a text is another, by what its CRC-32 is and should be. There is at most one such bit in
// a text of up to some 8 KiB, since the CRCs here tell any two of that size that differ in fewer than four bits.
type Flips struct {
	at map[uint32]int // by the difference of two CRCs: the bit, counted from the last byte's first
}

// Castagnoli is the table of CRC-32C.
func Castagnoli() *crc32.Table { return castagnoli }

// NewFlips is for texts of at most so many bytes.
func NewFlips(t *crc32.Table, most int) Flips {
	f := Flips{make(map[uint32]int, 8*most)}
	var diff [8]uint32
	for bit := range diff {
		diff[bit] = t[1<<bit]
	}
	for back := range most {
		for bit, d := range diff {
			f.at[d] = 8*back + bit
			diff[bit] = t[byte(d)] ^ d>>8
		}
	}
	return f
}

// Bit is the bit of a text of size bytes, of byte bit/8, that is another; -1: none alone is. diff is the bits in which
// the CRC of the text is not what it should be.
func (f Flips) Bit(size int, diff uint32) int {
	at, ok := f.at[diff]
	if back := at / 8; ok && back < size {
		return 8*(size-1-back) + at%8
	}
	return -1
}
