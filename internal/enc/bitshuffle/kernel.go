package bitshuffle

import (
	"encoding/binary"
	"unsafe"
)

// The kernels access memory without a check for each word: the accessible ranges are checked once at the beginning, and
// the words are still read and written as little-endian on every machine.

func get(p unsafe.Pointer, off int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, off))[:])
}

func put(p unsafe.Pointer, off int, v uint64) {
	binary.LittleEndian.PutUint64((*[8]byte)(unsafe.Add(p, off))[:], v)
}

func put32(p unsafe.Pointer, off int, v uint64) {
	binary.LittleEndian.PutUint32((*[4]byte)(unsafe.Add(p, off))[:], uint32(v))
}

// The masks of the exchanges: in a pair of words, the bits of a under m<<s change places with the bits of b under m.
const (
	bit1, bit2, bit4    = 0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f
	byte1, byte2, byte4 = 0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff
)

func swap(a, b, m uint64, s uint) (uint64, uint64) {
	t := (a>>s ^ b) & m
	b ^= t // before t is shifted: one register less
	a ^= t << s
	return a, b
}

// bitsFromRows is step one of Untranspose for one byte of the elements: it takes a word of each of the 8 rows
// of width bytes at src, exchanges the number of the row for the lowest 3 bits of the position, and stores the words
// in w.
func bitsFromRows(w *[8]uint64, src []byte, width int) {
	_ = src[7*width+7]
	p := unsafe.Pointer(unsafe.SliceData(src))
	a, b := get(p, 0), get(p, width)
	c, d := get(p, 2*width), get(p, 3*width)
	p = unsafe.Add(p, 4*width)
	e, f := get(p, 0), get(p, width)
	g, h := get(p, 2*width), get(p, 3*width)
	a, b = swap(a, b, bit1, 1)
	c, d = swap(c, d, bit1, 1)
	e, f = swap(e, f, bit1, 1)
	g, h = swap(g, h, bit1, 1)
	a, c = swap(a, c, bit2, 2)
	b, d = swap(b, d, bit2, 2)
	e, g = swap(e, g, bit2, 2)
	f, h = swap(f, h, bit2, 2)
	a, e = swap(a, e, bit4, 4)
	b, f = swap(b, f, bit4, 4)
	c, g = swap(c, g, bit4, 4)
	d, h = swap(d, h, bit4, 4)
	w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7] = a, b, c, d, e, f, g, h
}

// bytesToElems is step two of Untranspose for one group of words: it takes 8 words of t, exchanges the number
// of the word for the number of the byte, and stores the words in dst, stride bytes apart. The exchange of 4
// bytes is done by storing halves.
func bytesToElems(dst []byte, stride int, t *words, at uint8, step *[3]uint8) {
	_ = dst[7*stride+7]
	q := unsafe.Pointer(unsafe.SliceData(dst))
	s0, s1, s2 := step[0], step[1], step[2]
	a, b := t[at&127], t[(at+s0)&127]
	c, d := t[(at+s1)&127], t[(at+s1+s0)&127]
	at += s2
	e, f := t[at&127], t[(at+s0)&127]
	g, h := t[(at+s1)&127], t[(at+s1+s0)&127]
	a, b = swap(a, b, byte1, 8)
	c, d = swap(c, d, byte1, 8)
	e, f = swap(e, f, byte1, 8)
	g, h = swap(g, h, byte1, 8)
	a, c = swap(a, c, byte2, 16)
	b, d = swap(b, d, byte2, 16)
	e, g = swap(e, g, byte2, 16)
	f, h = swap(f, h, byte2, 16)
	put32(q, 0, a)
	put32(q, 4, e)
	put32(q, stride, b)
	put32(q, stride+4, f)
	put32(q, 2*stride, c)
	put32(q, 2*stride+4, g)
	put32(q, 3*stride, d)
	put32(q, 3*stride+4, h)
	q = unsafe.Add(q, 4*stride)
	put32(q, 0, a>>32)
	put32(q, 4, e>>32)
	put32(q, stride, b>>32)
	put32(q, stride+4, f>>32)
	put32(q, 2*stride, c>>32)
	put32(q, 2*stride+4, g>>32)
	put32(q, 3*stride, d>>32)
	put32(q, 3*stride+4, h>>32)
}

// bytesFromElems is the inverse of bytesToElems.
func bytesFromElems(t *words, at uint8, step *[3]uint8, src []byte, stride int) {
	_ = src[7*stride+7]
	p := unsafe.Pointer(unsafe.SliceData(src))
	a, b := get(p, 0), get(p, stride)
	c, d := get(p, 2*stride), get(p, 3*stride)
	p = unsafe.Add(p, 4*stride)
	e, f := get(p, 0), get(p, stride)
	g, h := get(p, 2*stride), get(p, 3*stride)
	a, b = swap(a, b, byte1, 8)
	c, d = swap(c, d, byte1, 8)
	e, f = swap(e, f, byte1, 8)
	g, h = swap(g, h, byte1, 8)
	a, c = swap(a, c, byte2, 16)
	b, d = swap(b, d, byte2, 16)
	e, g = swap(e, g, byte2, 16)
	f, h = swap(f, h, byte2, 16)
	a, e = swap(a, e, byte4, 32)
	b, f = swap(b, f, byte4, 32)
	c, g = swap(c, g, byte4, 32)
	d, h = swap(d, h, byte4, 32)
	s0, s1, s2 := step[0], step[1], step[2]
	t[at&127], t[(at+s0)&127] = a, b
	t[(at+s1)&127], t[(at+s1+s0)&127] = c, d
	at += s2
	t[at&127], t[(at+s0)&127] = e, f
	t[(at+s1)&127], t[(at+s1+s0)&127] = g, h
}

// bitsToRows is the inverse of bitsFromRows.
func bitsToRows(dst []byte, width int, w *[8]uint64) {
	_ = dst[7*width+7]
	q := unsafe.Pointer(unsafe.SliceData(dst))
	a, b, c, d, e, f, g, h := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
	a, b = swap(a, b, bit1, 1)
	c, d = swap(c, d, bit1, 1)
	e, f = swap(e, f, bit1, 1)
	g, h = swap(g, h, bit1, 1)
	a, c = swap(a, c, bit2, 2)
	b, d = swap(b, d, bit2, 2)
	e, g = swap(e, g, bit2, 2)
	f, h = swap(f, h, bit2, 2)
	a, e = swap(a, e, bit4, 4)
	b, f = swap(b, f, bit4, 4)
	c, g = swap(c, g, bit4, 4)
	d, h = swap(d, h, bit4, 4)
	put(q, 0, a)
	put(q, width, b)
	put(q, 2*width, c)
	put(q, 3*width, d)
	q = unsafe.Add(q, 4*width)
	put(q, 0, e)
	put(q, width, f)
	put(q, 2*width, g)
	put(q, 3*width, h)
}
