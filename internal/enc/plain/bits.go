package plain

import (
	"encoding/binary"
	"math/bits"
)

// CopyBits copies bits [from, from+n) of src to bits [at, at+n) of dst and returns how many of them are 1. Bits count
// from the least significant bit of a byte up, as in Arrow and in Kudu's PLAIN bool blocks. Other bits of dst are not
// changed. dst and src must contain these bits (it panics otherwise) and must not overlap.
func CopyBits(dst []byte, at int, src []byte, from, n int) (ones int) {
	if n <= 0 {
		return 0
	}
	_, _ = dst[(at+n-1)>>3], src[(from+n-1)>>3] // slicing goes up to the capacity, so check the length
	dst, src = dst[:(at+n+7)>>3], src[:(from+n+7)>>3]
	if sh := at & 7; sh != 0 { // up to the first whole byte of dst
		m := min(8-sh, n)
		v := byte(peek(src, from, m))
		d := &dst[at>>3]
		*d = *d&^((1<<m-1)<<sh) | v<<sh
		ones = bits.OnesCount8(v)
		at, from, n = at+m, from+m, n-m
	}
	d, s := dst[at>>3:], src[from>>3:]
	r := uint(from & 7)
	if r == 0 {
		for ; n >= 64; n -= 64 {
			w := binary.LittleEndian.Uint64(s)
			binary.LittleEndian.PutUint64(d, w)
			ones += bits.OnesCount64(w)
			d, s = d[8:], s[8:]
		}
	} else {
		for ; n >= 64; n -= 64 {
			w := binary.LittleEndian.Uint64(s)>>r | uint64(s[8])<<(64-r)
			binary.LittleEndian.PutUint64(d, w)
			ones += bits.OnesCount64(w)
			d, s = d[8:], s[8:]
		}
	}
	if n == 0 {
		return ones
	}
	w := peek(s, int(r), n)
	ones += bits.OnesCount64(w)
	for ; n >= 8; n -= 8 {
		d[0] = byte(w)
		d, w = d[1:], w>>8
	}
	if n > 0 {
		d[0] = d[0]&^(1<<n-1) | byte(w)
	}
	return ones
}

// CountBits returns how many of the bits [from, from+n) of src are 1. src must hold them (it panics otherwise).
func CountBits(src []byte, from, n int) (ones int) {
	if n <= 0 {
		return 0
	}
	_ = src[(from+n-1)>>3]
	src = src[from>>3 : (from+n+7)>>3]
	if from &= 7; from != 0 {
		m := min(8-from, n)
		ones = bits.OnesCount64(peek(src, from, m))
		src, n = src[1:], n-m
	}
	for ; n >= 256; n -= 256 {
		s := (*[32]byte)(src)
		a, b := binary.LittleEndian.Uint64(s[:]), binary.LittleEndian.Uint64(s[8:])
		c, d := binary.LittleEndian.Uint64(s[16:]), binary.LittleEndian.Uint64(s[24:])
		ones += bits.OnesCount64(a) + bits.OnesCount64(b) + bits.OnesCount64(c) + bits.OnesCount64(d)
		src = src[32:]
	}
	for ; n >= 64; n -= 64 {
		ones += bits.OnesCount64(binary.LittleEndian.Uint64(src))
		src = src[8:]
	}
	if n > 0 {
		ones += bits.OnesCount64(peek(src, 0, n))
	}
	return ones
}

// FillBits sets bits [at, at+n) of dst to 1 (one) or 0. Other bits are not changed. dst must contain them (it panics
// otherwise).
func FillBits(dst []byte, at, n int, one bool) {
	if n <= 0 {
		return
	}
	i, r := at>>3, uint(at&7)
	if int(r)+n <= 64 && i+8 <= len(dst) { // one word: the usual case in a bitmap of short runs
		m := (uint64(1)<<uint(n) - 1) << r
		w := binary.LittleEndian.Uint64(dst[i:])
		if one {
			w |= m
		} else {
			w &^= m
		}
		binary.LittleEndian.PutUint64(dst[i:], w)
		return
	}
	_ = dst[(at+n-1)>>3]
	fillLong(dst[i:(at+n+7)>>3], r, n, one)
}

// fillLong is FillBits from bit r of the first byte of d to its end; r + n bits reach into the last byte.
func fillLong(d []byte, r uint, n int, one bool) {
	first, last := byte(0xff)<<r, byte(0xff)>>(-(int(r)+n)&7)
	if len(d) == 1 {
		setMask(&d[0], first&last, one)
		return
	}
	setMask(&d[0], first, one)
	setMask(&d[len(d)-1], last, one)
	d = d[1 : len(d)-1]
	if !one {
		clear(d)
		return
	}
	for len(d) >= 8 {
		binary.LittleEndian.PutUint64(d, ^uint64(0))
		d = d[8:]
	}
	for i := range d {
		d[i] = 0xff
	}
}

func setMask(b *byte, m byte, one bool) {
	if one {
		*b |= m
	} else {
		*b &^= m
	}
}

// peek reads n bits, 1 to 64, at bit from of src.
func peek(src []byte, from, n int) uint64 {
	i, r := from>>3, uint(from&7)
	var w uint64
	if i+8 <= len(src) {
		w = binary.LittleEndian.Uint64(src[i:]) >> r
		if int(r)+n > 64 {
			w |= uint64(src[i+8]) << (64 - r)
		}
	} else {
		for j, b := range src[i:] { // fewer than 8 bytes
			w |= uint64(b) << (8 * j)
		}
		w >>= r
	}
	return w & (1<<uint(n) - 1)
}
