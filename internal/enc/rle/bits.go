package rle

import (
	"encoding/binary"
	"math/bits"

	"stoa/fault"
	"stoa/internal/enc/plain"
)

// DecodeBits decodes values of width 1 (the bitmap of presence of a nullable block, RLE bool): after skip
// values, n bits are written to bits [at, at+n) of dst, least significant bit of a byte first. The other bits
// of dst stay as they are. ones is the number of ones among the n. dst must hold at+n bits. Errors: the input
// ends before skip+n values, a run of no values, a value other than 0 and 1 (path run[i].header, .value,
// .values); dst too short or a negative number (class bug).
func DecodeBits(dst []byte, at int, src []byte, skip, n int) (ones int, err error) {
	if at < 0 || skip < 0 || n < 0 || n > len(dst)*8-at {
		return 0, fault.Bugf("rle: bits [%d,%d+%d) of %d", at, at, n, len(dst)*8)
	}
	r := reader{src: src, width: 1}
	if err := r.skip(skip); err != nil {
		return 0, err
	}
	end := at + n
	for bit := at; bit < end; {
		if r.left == 0 {
			var k int
			bit, k = r.shortRuns(dst, bit, end)
			ones += k
			if err := r.next(); err != nil {
				return ones, err
			}
		}
		m := min(end-bit, r.left)
		if r.packed {
			ones += plain.CopyBits(dst, bit, src, r.bit, m)
			r.bit += m
		} else {
			plain.FillBits(dst, bit, m, r.value != 0)
			ones += m * int(r.value)
		}
		r.left -= m
		bit += m
	}
	return ones, nil
}

// shortRuns decodes runs of up to 56 bits, as long as they follow one another and there is room for a word on both
// sides. It returns where it stopped and the number of ones. A bitmap with occasional nulls has thousands of short runs
// whose kinds and lengths are unpredictable, so there are no branches on these: for either kind, up to 7 bytes are
// loaded, masked, shifted into position and stored with the preceding bits. A stored word may extend beyond the known
// bits, but never past end.
func (r *reader) shortRuns(dst []byte, bit, end int) (stop, ones int) {
	src, at := r.src, r.at
	pos, fill := bit>>3, uint(bit&7)
	acc := uint64(0) // the fill bits of the byte at pos that are known
	if fill > 0 {
		acc = uint64(dst[pos]) & (1<<fill - 1)
	}
	for pos<<3+64 <= end && at+9 <= len(src) {
		h, w := uint64(src[at]), binary.LittleEndian.Uint64(src[at+1:])
		packed := -(h & 1) // all ones or none
		m := h >> 1 << (3 & packed & 63)
		if m-1 >= 56 || w&0xfe&^packed != 0 {
			break // a long run, one without values, or a value other than 0 and 1
		}
		w = (w&packed | -(w&1)&^packed) & (1<<(m&63) - 1)
		ones += bits.OnesCount64(w)
		acc |= w << (fill & 7)
		binary.LittleEndian.PutUint64(dst[pos:], acc)
		fill += uint(m)
		pos += int(fill >> 3)
		acc >>= fill & 56
		fill &= 7
		at += 2 + int((h>>1-1)&packed)
		r.run++
	}
	if fill > 0 { // whole bytes are already in place; of this one, write only the known bits
		dst[pos] = dst[pos]&^(1<<fill-1) | byte(acc)
	}
	r.at = at
	return pos<<3 + int(fill), ones
}

// CountBits returns how many of n values of width 1, after the first skip, are 1. Errors as for DecodeBits.
func CountBits(src []byte, skip, n int) (ones int, err error) {
	if skip < 0 || n < 0 {
		return 0, fault.Bugf("rle: skip %d, count %d", skip, n)
	}
	r := reader{src: src, width: 1}
	if err := r.skip(skip); err != nil {
		return 0, err
	}
	for n > 0 {
		if r.left == 0 {
			if err := r.next(); err != nil {
				return ones, err
			}
		}
		m := min(n, r.left)
		if r.packed {
			ones += plain.CountBits(src, r.bit, m)
			r.bit += m
		} else {
			ones += m * int(r.value)
		}
		r.left -= m
		n -= m
	}
	return ones, nil
}
