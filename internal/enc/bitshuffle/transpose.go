package bitshuffle

import "encoding/binary"

// How the fast kernels work. Take 64 elements of E bytes: 8·E rows of 64 bits. Number a bit by the byte j of the element it is in,
// its place k (3 bits) in that byte, and its element e (6 bits: the upper three g, the lower three i). In the rows a word is
// chosen by (j,k), and the place in the word is (g,i). In the elements a word is chosen by the upper bits of (e,j), and the
// place in it is (the lower bits of (e,j), k). Both sides are the same bits in another order, so eight words at a time
// can change three bits of their number for three bits of the place: an exchange of 1, 2 and 4 bits between pairs of words.
//
// Step one does this for each j with k and i: the words become (j,i), the places (g,k). Step two
// exchanges bytes only: three of the bits that choose the word for g.
//
// Both steps are their own inverse, so the way back is the same in the opposite order.

// swap exchanges the bits of a under m<<s for the bits of b under m.
func swap(a, b, m uint64, s uint) (uint64, uint64) {
	t := (a>>s ^ b) & m
	return a ^ t<<s, b ^ t
}

// exchangeBits exchanges the number of a word (3 bits) for the lowest 3 bits of the place.
func exchangeBits(w *[8]uint64) {
	const m1, m2, m4 = 0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f
	a, b, c, d, e, f, g, h := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
	a, b = swap(a, b, m1, 1)
	c, d = swap(c, d, m1, 1)
	e, f = swap(e, f, m1, 1)
	g, h = swap(g, h, m1, 1)
	a, c = swap(a, c, m2, 2)
	b, d = swap(b, d, m2, 2)
	e, g = swap(e, g, m2, 2)
	f, h = swap(f, h, m2, 2)
	a, e = swap(a, e, m4, 4)
	b, f = swap(b, f, m4, 4)
	c, g = swap(c, g, m4, 4)
	d, h = swap(d, h, m4, 4)
	w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7] = a, b, c, d, e, f, g, h
}

// exchangeBytes exchanges the number of a word (3 bits) for the number of the byte.
func exchangeBytes(w *[8]uint64) {
	const m1, m2, m4 = 0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff
	a, b, c, d, e, f, g, h := w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
	a, b = swap(a, b, m1, 8)
	c, d = swap(c, d, m1, 8)
	e, f = swap(e, f, m1, 8)
	g, h = swap(g, h, m1, 8)
	a, c = swap(a, c, m2, 16)
	b, d = swap(b, d, m2, 16)
	e, g = swap(e, g, m2, 16)
	f, h = swap(f, h, m2, 16)
	a, e = swap(a, e, m4, 32)
	b, f = swap(b, f, m4, 32)
	c, g = swap(c, g, m4, 32)
	d, h = swap(d, h, m4, 32)
	w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7] = a, b, c, d, e, f, g, h
}

// Untranspose turns rows of bits into elements: dst gets the elements, src has the rows. Both are n·elem bytes long, n being a
// multiple of 8; they must not overlap.
func Untranspose(dst, src []byte, elem int) {
	naiveUntranspose(dst, src, elem)
}

// Transpose turns elements into rows of bits; the inverse of Untranspose, with the same rules.
func Transpose(dst, src []byte, elem int) {
	naiveTranspose(dst, src, elem)
}

func le64(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }
