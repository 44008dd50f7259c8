package dremel

import (
	"encoding/binary"
	"unsafe"

	"stoa/fault"
)

// DecodeSplit decodes BYTE_STREAM_SPLIT: the first bytes of all n values of width bytes, then all second bytes, and so
// on. dst and src have n·width bytes and must not overlap.
func DecodeSplit(dst, src []byte, width int) error {
	if len(src) != len(dst) || width <= 0 || len(dst)%width != 0 {
		return fault.Rel(0, len(src), "values", "%d bytes where values of %d bytes have %d", len(src), width, len(dst))
	}
	n := len(dst) / width
	switch {
	case n == 0:
	case width == 4:
		split4(cast[uint32](dst, n), src)
	case width == 8:
		split8(cast[uint64](dst, n), src)
	default:
		for j := range width {
			s, d := src[j*n:][:n], dst[j:]
			for i, x := range s {
				d[i*width] = x
			}
		}
	}
	return nil
}

func split4(dst []uint32, src []byte) {
	n := len(dst)
	a, b, c, d := src[:n], src[n:][:n], src[2*n:][:n], src[3*n:][:n]
	for i := range dst {
		dst[i] = uint32(a[i]) | uint32(b[i])<<8 | uint32(c[i])<<16 | uint32(d[i])<<24
	}
}

// split8 decodes eight values at a time, as a matrix of bytes that is transposed.
func split8(dst []uint64, src []byte) {
	n := len(dst)
	i := 0
	for ; i+8 <= n; i += 8 {
		var w [8]uint64
		for j := range w {
			w[j] = binary.LittleEndian.Uint64(src[j*n+i:])
		}
		transpose(&w)
		copy(dst[i:i+8], w[:])
	}
	for ; i < n; i++ {
		var v uint64
		for j := range 8 {
			v |= uint64(src[j*n+i]) << (8 * j)
		}
		dst[i] = v
	}
}

// transpose transposes a matrix of 8 by 8 bytes: byte j of word i becomes byte i of word j.
func transpose(w *[8]uint64) {
	swap := func(a, b *uint64, shift uint, mask uint64) {
		t := (*a>>shift ^ *b) & mask
		*a ^= t << shift
		*b ^= t
	}
	for i := range 4 {
		swap(&w[i], &w[i+4], 32, 0x00000000ffffffff)
	}
	for _, i := range [...]int{0, 1, 4, 5} {
		swap(&w[i], &w[i+2], 16, 0x0000ffff0000ffff)
	}
	for i := 0; i < 8; i += 2 {
		swap(&w[i], &w[i+1], 8, 0x00ff00ff00ff00ff)
	}
}

// cast views the first n values of b as T.
func cast[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	_ = b[n*int(unsafe.Sizeof(*new(T)))-1]
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
