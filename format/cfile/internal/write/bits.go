package write

import (
	"encoding/binary"
	"math/bits"
)

// BitRuns encodes bits with the RLE of package rle, byte for byte as its Encoder of width 1 does, but accepts whole
// words of bits at a time. It encodes NULL bitmaps and RLE columns of bools.
//
// Bits are grouped by eight. A group of equal bits begins a repeated run, which lasts until the bit changes; any other
// group is added to a packed run of up to 63 groups.
type BitRuns struct {
	Buf   []byte
	N     int   // bits added so far
	group uint8 // bits of the incomplete group
	fill  int   // number of bits in group
	run   int   // length of the open repeated run, else 0
	bit   uint8 // bit of the open repeated run
	lit   int   // groups in the open packed run
	head  int   // offset of the header of the packed run
}

// maxBitRun is the longest repeated run: Kudu keeps its header in an int32.
const maxBitRun = 1<<30 - 1

func (e *BitRuns) reset() { *e = BitRuns{Buf: e.Buf[:0]} }

// Put adds the n bits at bit from of src.
func (e *BitRuns) Put(src []byte, from, n int) {
	for n > 0 {
		k := min(n, 56)
		e.PutWord(loadBits(src, from, k), k)
		from, n = from+k, n-k
	}
}

// PutWord adds the low n bits of w, n ≤ 64; the bits above them are 0.
func (e *BitRuns) PutWord(w uint64, n int) {
	e.N += n
	for n > 0 {
		if e.run > 0 {
			k := min(sameBits(w, e.bit), n, maxBitRun-e.run)
			e.run += k
			w >>= uint(k)
			n -= k
			if n > 0 {
				e.closeRun()
			}
			continue
		}
		k := min(8-e.fill, n)
		e.group |= uint8(w) & (1<<uint(k) - 1) << uint(e.fill)
		e.fill += k
		w >>= uint(k)
		n -= k
		if e.fill == 8 {
			e.closeGroup()
		}
	}
}

// sameBits counts how many bits at the low end of w equal bit.
func sameBits(w uint64, bit uint8) int {
	if bit != 0 {
		w = ^w
	}
	return bits.TrailingZeros64(w)
}

// PutRun adds bit n times.
func (e *BitRuns) PutRun(bit uint8, n int) {
	for n > 0 {
		if e.run > 0 && e.bit == bit {
			k := min(n, maxBitRun-e.run)
			e.run += k
			e.N += k
			n -= k
			if n > 0 {
				e.closeRun()
			}
			continue
		}
		k := min(n, 8)
		e.PutWord(uint64(-int64(bit))&(1<<uint(k)-1), k)
		n -= k
	}
}

func (e *BitRuns) closeGroup() {
	if e.group == 0 || e.group == 0xff {
		e.closePacked()
		e.run, e.bit = 8, e.group&1
	} else {
		e.pack()
		if e.lit == 63 {
			e.closePacked()
		}
	}
	e.group, e.fill = 0, 0
}

func (e *BitRuns) pack() {
	if e.lit == 0 {
		e.head = len(e.Buf)
		e.Buf = append(e.Buf, 0)
	}
	e.lit++
	e.Buf = append(e.Buf, e.group)
}

func (e *BitRuns) closePacked() {
	if e.lit > 0 {
		e.Buf[e.head] = byte(e.lit<<1 | 1)
		e.lit = 0
	}
}

func (e *BitRuns) closeRun() {
	e.Buf = append(binary.AppendUvarint(e.Buf, uint64(e.run)<<1), e.bit)
	e.run = 0
}

// Finish ends the sequence. The result is valid until reset, which must be the next call.
func (e *BitRuns) Finish() []byte {
	switch {
	case e.run > 0:
		e.closeRun()
	case e.fill > 0 && e.lit == 0 && (e.group == 0 || e.group == 1<<uint(e.fill)-1):
		// the last bits are fewer than eight, all equal, and follow no packed run
		e.run, e.bit = e.fill, e.group&1
		e.closeRun()
	case e.fill > 0:
		e.pack()
	}
	e.closePacked()
	return e.Buf
}

// loadBits reads n ≤ 57 bits at bit from of src.
func loadBits(src []byte, from, n int) uint64 {
	i, r := from>>3, uint(from&7)
	var w uint64
	if i+8 <= len(src) {
		w = binary.LittleEndian.Uint64(src[i:])
	} else {
		for j, b := range src[i:] {
			w |= uint64(b) << (8 * j)
		}
	}
	return w >> r & (1<<uint(n) - 1)
}
