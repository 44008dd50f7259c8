package bitshuffle

import "unsafe"

// How the fast kernels work. Take 64 elements of E bytes: 8·E rows of 64 bits. Number a bit by the byte j of
// the element it is in, its position k (3 bits) in that byte, and its element e (6 bits: the upper three g, the
// lower three i). In the rows a word is chosen by (j,k), and the position in the word is (g,i). In the elements a
// word is chosen by the upper bits of (e,j), and the position in it is (the lower bits of (e,j), k). Both sides
// are the same bits in another order, so eight words at a time can exchange three bits of their number for three
// bits of the position: an exchange of 1, 2 and 4 bits between pairs of words.
//
// Step one does this for each j with k and i: the words become (j,i), the positions (g,k). Step two exchanges
// bytes only: three of the bits that choose the word for g. For elements of 1, 2, 4, 8 and 16 bytes these are
//
//	1: i2 i1 i0   2: i1 i0 j0   4: i0 j1 j0   8 and 16: j2 j1 j0
//
// Both steps are their own inverse, so the way back is the same in the opposite order.

// block is the number of elements that the fast kernels take at once.
const block = 64

// kernel locates the words of step two for one size of element.
type kernel struct {
	elem int
	// pick[b] locates the first word of group b of eight words between the steps, as word j·8+i. step holds the
	// distances to the others, one for each bit of the number of a word in the group.
	pick [16]uint8
	step [3]uint8
}

var kernels = [...]kernel{
	{elem: 1, pick: [16]uint8{0}, step: [3]uint8{1, 2, 4}},
	{elem: 2, pick: [16]uint8{0, 4}, step: [3]uint8{8, 1, 2}},
	{elem: 4, pick: [16]uint8{0, 2, 4, 6}, step: [3]uint8{8, 16, 1}},
	{elem: 8, pick: [16]uint8{0, 1, 2, 3, 4, 5, 6, 7}, step: [3]uint8{8, 16, 32}},
	{elem: 16, pick: [16]uint8{0, 64, 1, 65, 2, 66, 3, 67, 4, 68, 5, 69, 6, 70, 7, 71}, step: [3]uint8{8, 16, 32}},
}

// words is the state between the steps: word j·8+i. It is made once per chunk, because clearing it costs as much as a
// block.
type words [8 * 16]uint64

// kernelFor returns the kernel for a size of element, or nil.
func kernelFor(elem int) *kernel {
	for i := range kernels {
		if kernels[i].elem == elem {
			return &kernels[i]
		}
	}
	return nil
}

// Untranspose converts rows of bits in src to elements in dst. Both must be n·elem bytes long, where n is a multiple of
// 8 (it panics otherwise); they must not overlap.
func Untranspose(dst, src []byte, elem int) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.untranspose(dst, src, elem)
}

// Transpose converts elements to rows of bits; it is the inverse of Untranspose, with the same rules.
func Transpose(dst, src []byte, elem int) {
	s := scratches.Get().(*scratch)
	defer scratches.Put(s)
	s.transpose(dst, src, elem)
}

func (s *scratch) untranspose(dst, src []byte, elem int) {
	n := elems(dst, src, elem)
	if f := assembly(elem, n); f != nil {
		f.un(unsafe.SliceData(dst), unsafe.SliceData(src), n, &s.tmp)
		return
	}
	untranspose(dst, src, elem, n)
}

func (s *scratch) transpose(dst, src []byte, elem int) {
	n := elems(dst, src, elem)
	if f := assembly(elem, n); f != nil {
		f.to(unsafe.SliceData(dst), unsafe.SliceData(src), n, &s.tmp)
		return
	}
	transpose(dst, src, elem, n)
}

// pair is a kernel in assembly, in both directions, for minElems or more elements of elem bytes: see gen/main.go.
type pair struct {
	elem, minElems int
	un, to         func(dst, src *byte, n int, tmp *[8192]byte)
}

// pairs are the kernels that this machine supports, fastest first.
var pairs []pair

// assembly returns the kernel for n elements; nil if there is none.
func assembly(elem, n int) *pair {
	for i := range pairs {
		if p := &pairs[i]; p.elem == elem && n >= p.minElems {
			return p
		}
	}
	return nil
}

// untranspose is Untranspose in Go.
func untranspose(dst, src []byte, elem, n int) {
	k := kernelFor(elem)
	if k != nil && elem >= 4 && n >= 2*block && littleEndian { // for 2 bytes it gains nothing
		if low, top := narrowKernel(src, n/8, elem); low != nil {
			untransposeNarrow(low, &top, dst, src, elem, n)
			return
		}
	}
	var t words
	switch {
	case k == nil:
		naiveUntranspose(dst, src, elem)
	case n >= block:
		for e := 0; e < n; e += block {
			e = min(e, n-block) // the last block may overlap the one before it, and writes the same bytes again
			k.fromRows(&t, dst[e*elem:][:block*elem], src[e/8:], n/8)
		}
	case n > 0:
		var rows, out [block * 16]byte
		narrow(rows[:], block/8, src, n/8, n/8, 8*elem)
		k.fromRows(&t, out[:block*elem], rows[:], block/8)
		copy(dst, out[:])
	}
}

// transpose is Transpose in Go.
func transpose(dst, src []byte, elem, n int) {
	k := kernelFor(elem)
	var t words
	switch {
	case k == nil:
		naiveTranspose(dst, src, elem)
	case n >= block:
		for e := 0; e < n; e += block {
			e = min(e, n-block)
			k.toRows(&t, dst[e/8:], n/8, src[e*elem:][:block*elem])
		}
	case n > 0:
		var in, rows [block * 16]byte
		copy(in[:], src)
		k.toRows(&t, rows[:], block/8, in[:block*elem])
		narrow(dst, n/8, rows[:], block/8, n/8, 8*elem)
	}
}

// elems checks the lengths and returns the number of elements.
func elems(dst, src []byte, elem int) int {
	if elem < 1 || len(dst) != len(src) || len(dst)%(8*elem) != 0 {
		panic("bitshuffle: wrong lengths")
	}
	return len(dst) / elem
}

// narrow copies n bytes of each row from a layout of one width to another.
func narrow(dst []byte, dstWidth int, src []byte, srcWidth, n, rows int) {
	for r := range rows {
		copy(dst[r*dstWidth:][:n], src[r*srcWidth:])
	}
}

// fromRows makes 64 elements from 8 bytes of each row; a row is width bytes long.
func (k *kernel) fromRows(t *words, dst, src []byte, width int) {
	for j := range k.elem {
		bitsFromRows((*[8]uint64)(t[8*j:]), src[8*j*width:], width)
	}
	for b := range k.elem {
		bytesToElems(dst[8*b:], 8*k.elem, t, k.pick[b], &k.step)
	}
}

// toRows makes 8 bytes of each row from 64 elements.
func (k *kernel) toRows(t *words, dst []byte, width int, src []byte) {
	for b := range k.elem {
		bytesFromElems(t, k.pick[b], &k.step, src[8*b:], 8*k.elem)
	}
	for j := range k.elem {
		bitsToRows(dst[8*j*width:], width, (*[8]uint64)(t[8*j:]))
	}
}
