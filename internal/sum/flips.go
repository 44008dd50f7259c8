package sum

import "hash/crc32"

// Flips finds the single flipped bit of a text from the difference between its stored and its computed CRC-32. In a
// text of up to some 8 KiB there is at most one such bit, because the CRCs here distinguish any two texts of that size
// that differ in fewer than four bits.
type Flips struct {
	at map[uint32]int // key: the XOR of two CRCs; value: the bit, counted from the last byte's lowest bit
}

// Castagnoli is the table of CRC-32C.
func Castagnoli() *crc32.Table { return castagnoli }

// NewFlips returns a Flips for texts of at most most bytes.
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

// Bit returns the flipped bit of a text of size bytes, as byte*8 + bit; -1: no single bit explains it. diff is the XOR
// of the stored and the computed CRC.
func (f Flips) Bit(size int, diff uint32) int {
	at, ok := f.at[diff]
	if back := at / 8; ok && back < size {
		return 8*(size-1-back) + at%8
	}
	return -1
}
