package bitshuffle

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// Most chunks of wide elements contain numbers that are small or close together: their upper bytes are the same
// throughout the chunk, and each row of such a byte is all zeros or all ones. It is then cheaper to untranspose the
// lower bytes as narrower elements and to widen these.

// upper is the value of the bytes of an element that are the same in all elements, the others being 0.
type upper [16]byte

// words returns upper as numbers: the element itself, or its lower and upper halves.
func (u *upper) words() (lo, hi uint64) {
	return binary.LittleEndian.Uint64(u[:]), binary.LittleEndian.Uint64(u[8:])
}

// narrowKernel looks for a kernel for narrower elements that also works for rows of width bytes of elements of elem
// bytes. It is nil if there is none.
func narrowKernel(src []byte, width, elem int) (k *kernel, top upper) {
	j := elem // bytes from j on are the same in all elements
	for ; j > 1; j-- {
		v, ok := constant(src[8*(j-1)*width:][:8*width], width)
		if !ok {
			break
		}
		top[j-1] = v
	}
	// j bytes have to be untransposed: find the smallest kernel for at least that many
	for i := range kernels {
		if k = &kernels[i]; k.elem >= j {
			break
		}
	}
	if k.elem >= elem {
		return nil, top
	}
	clear(top[:k.elem])
	return k, top
}

// constant returns the byte that all elements have, if its 8 rows, of width bytes each, show that there is one.
func constant(plane []byte, width int) (v byte, ok bool) {
	for bit := range 8 {
		row := plane[bit*width:][:width]
		if b := row[0]; b != 0 && b != 0xff || !bytes.Equal(row[1:], row[:width-1]) {
			return 0, false
		}
		v |= row[0] & (1 << bit)
	}
	return v, true
}

// littleEndian reports that numbers in memory look like elements, which widening relies on.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// untransposeNarrow is Untranspose of n elements, at least 64, with kernel k for their lower bytes.
func untransposeNarrow(k *kernel, top *upper, dst, src []byte, elem, n int) {
	var t words
	var low [8 * block]byte // k is for at most half an element
	for e := 0; e < n; e += block {
		e = min(e, n-block)
		k.fromRows(&t, low[:k.elem*block], src[e/8:], n/8)
		widen(dst[e*elem:][:block*elem], &low, elem, k.elem, top)
	}
}

// widen makes 64 elements of elem bytes; low contains their lower from bytes.
func widen(dst []byte, low *[8 * block]byte, elem, from int, top *upper) {
	d, s := unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(low)
	lo, hi := top.words()
	switch elem<<8 | from {
	case 4<<8 | 1:
		widenTo[uint32, uint8](d, s, uint32(lo))
	case 4<<8 | 2:
		widenTo[uint32, uint16](d, s, uint32(lo))
	case 8<<8 | 1:
		widenTo[uint64, uint8](d, s, lo)
	case 8<<8 | 2:
		widenTo[uint64, uint16](d, s, lo)
	case 8<<8 | 4:
		widenTo[uint64, uint32](d, s, lo)
	case 16<<8 | 1:
		widenTo16[uint8](d, s, lo, hi)
	case 16<<8 | 2:
		widenTo16[uint16](d, s, lo, hi)
	case 16<<8 | 4:
		widenTo16[uint32](d, s, lo, hi)
	case 16<<8 | 8:
		widenTo16[uint64](d, s, lo, hi)
	}
}

func widenTo[D, S uint8 | uint16 | uint32 | uint64](dst, src unsafe.Pointer, top D) {
	d, s := (*[block]D)(dst), (*[block]S)(src)
	for i, v := range s {
		d[i] = D(v) | top
	}
}

func widenTo16[S uint8 | uint16 | uint32 | uint64](dst, src unsafe.Pointer, lo, hi uint64) {
	d, s := (*[block][2]uint64)(dst), (*[block]S)(src)
	for i, v := range s {
		d[i] = [2]uint64{uint64(v) | lo, hi}
	}
}
