package rle

import (
	"encoding/binary"
	"unsafe"

	"stoa/fault"
)

// littleEndian reports that values in memory look like values in the file, so that they can be copied.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// DecodeInts fills dst with values of width bits, after skip values. width is 1 to the bits of T.
// Errors: the input ends before skip+len(dst) values, a run of no values, a value that has more than width bits
// (path run[i].header, .value, .values); a wrong width or a negative skip (class bug).
func DecodeInts[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst []T, src []byte, width, skip int) error {
	size := int(unsafe.Sizeof(*new(T)))
	if width < 1 || width > 8*size || skip < 0 {
		return fault.Bugf("rle: width %d for values of %d bytes, skip %d", width, size, skip)
	}
	r := reader{src: src, width: width}
	if err := r.skip(skip); err != nil {
		return err
	}
	for len(dst) > 0 {
		if r.left == 0 {
			if err := r.next(); err != nil {
				return err
			}
		}
		m := min(len(dst), r.left)
		switch {
		case !r.packed:
			fill(dst[:m], T(r.value))
		case width == 8*size:
			whole(dst[:m], src[r.bit>>3:], size)
		default:
			unpack(dst[:m], src, r.bit, width)
		}
		r.bit += m * width
		r.left -= m
		dst = dst[m:]
	}
	return nil
}

// fill sets all of dst to v.
func fill[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst []T, v T) {
	n := min(len(dst), 32)
	for i := range dst[:n] {
		dst[i] = v
	}
	for ; n < len(dst); n *= 2 { // copy is faster than a loop
		copy(dst[n:], dst[:n])
	}
}

// whole reads values as wide as T; src must contain them all.
func whole[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst []T, src []byte, size int) {
	src = src[:len(dst)*size]
	if littleEndian {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), len(src)), src)
		return
	}
	for i := range dst {
		dst[i] = T(load(src, i*size, size))
	}
}

// load reads a little-endian number of size bytes, 1 to 8.
func load(src []byte, at, size int) (v uint64) {
	for i := range size {
		v |= uint64(src[at+i]) << (8 * i)
	}
	return v
}

// unpack reads values of width bits, fewer than T has, starting at bit; src must contain them all.
func unpack[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst []T, src []byte, bit, width int) {
	mask := uint64(1)<<width - 1
	i := 0
	if len(dst) >= minFast {
		i = unpackFast(dst, src, bit, width)
		bit += i * width
	}
	if width <= 57 { // a value and the bits before it fit in one word
		for ; i < len(dst) && bit>>3+8 <= len(src); i++ {
			dst[i] = T(binary.LittleEndian.Uint64(src[bit>>3:]) >> (bit & 7) & mask)
			bit += width
		}
	}
	for ; i < len(dst); i++ {
		at, r := bit>>3, bit&7
		size := (r + width + 7) >> 3 // up to 9 bytes
		v := load(src, at, min(size, 8)) >> r
		if size > 8 {
			v |= uint64(src[at+8]) << (64 - r)
		}
		dst[i] = T(v & mask)
		bit += width
	}
}

// Unpack reads len(dst) values of width bits, 0 to the number of bits of T, packed in src from its first bit on, the
// first value in the lowest bits. Errors: src is too short (class corrupt, path values); a width out of range (class
// bug).
func Unpack[T ~uint8 | ~uint16 | ~uint32 | ~uint64](dst []T, src []byte, width int) error {
	size := int(unsafe.Sizeof(*new(T)))
	switch {
	case width < 0 || width > 8*size:
		return fault.Bugf("rle: width %d for values of %d bytes", width, size)
	case int64(len(dst))*int64(width) > 8*int64(len(src)):
		return fault.Rel(0, len(src), "values", "%d values of %d bits in %d bytes", len(dst), width, len(src))
	case width == 0:
		clear(dst)
	case width == 8*size:
		whole(dst, src, size)
	default:
		unpack(dst, src, 0, width)
	}
	return nil
}
