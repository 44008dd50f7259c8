package dremel

import (
	"encoding/binary"
	"unsafe"

	"stoa/fault"
	"stoa/internal/enc/rle"
)

// DELTA_BINARY_PACKED:
//
//	values of a block (a multiple of 128), miniblocks of a block, number of values: ULEB128 each; first value: zigzag
//	block: min delta (zigzag), width of each miniblock in bits (a byte each), miniblocks: deltas less the min, packed
//	from the lowest bit on
//
// The last miniblock is as long as the others; unused miniblocks after it have a width but no bytes. Sums are modulo
// 2^32 or 2^64, so a delta of 32-bit values may have up to 64 bits, of which only the lowest count (DuckDB writes such
// deltas).

// DecodeDeltas fills dst with all values of src. used is the number of bytes of src that they occupy.
func DecodeDeltas[T ~int32 | ~int64](dst []T, src []byte) (used int, err error) {
	h, err := deltaHeader(src, len(dst))
	if err != nil || len(dst) == 0 {
		return h.pos, err
	}
	value := T(h.first)
	dst[0] = value
	for rest := dst[1:]; len(rest) > 0; {
		low, n := binary.Varint(src[h.pos:])
		if n <= 0 || h.minis > len(src)-h.pos-n {
			return 0, fault.Rel(h.pos, len(src)-h.pos, "deltas", "a block is cut")
		}
		widths := src[h.pos+n:][:h.minis]
		h.pos += n + h.minis
		for len(widths) > 0 && len(rest) > 0 {
			same := 1 // miniblocks that can be unpacked at once
			for same < len(widths) && widths[same] == widths[0] {
				same++
			}
			width, k := int(widths[0]), min(same*h.per, len(rest))
			same = (k + h.per - 1) / h.per
			size := same * h.per * width / 8
			if left := len(src) - h.pos; size > left { // some writers omit the padding after the last value
				size = left
			}
			if width > 64 || 8*size < k*width {
				return 0, fault.Rel(h.pos, len(src)-h.pos, "deltas", "%d deltas of %d bits are cut", k, width)
			}
			if err := unpackDeltas(rest[:k], src[h.pos:h.pos+size], width); err != nil {
				return 0, err
			}
			value = sums(rest[:k], value, T(low))
			rest, widths, h.pos = rest[k:], widths[same:], h.pos+size
		}
	}
	return h.pos, nil
}

type deltaBlocks struct {
	pos   int // offset of the first block, after the header
	minis int // miniblocks in a block
	per   int // values in a miniblock
	first int64
}

// deltaHeader parses the header of n values.
func deltaHeader(src []byte, n int) (h deltaBlocks, err error) {
	var v [3]uint64
	for i := range v {
		x, used := binary.Uvarint(src[h.pos:])
		if used <= 0 {
			return h, fault.Rel(0, len(src), "deltas", "the header is cut")
		}
		v[i], h.pos = x, h.pos+used
	}
	first, used := binary.Varint(src[h.pos:])
	block, minis, count := v[0], v[1], v[2]
	switch {
	case used <= 0:
		return h, fault.Rel(0, len(src), "deltas", "the header is cut")
	case block == 0 || block%128 != 0 || block > 1<<24 || minis == 0 || block%minis != 0 || block/minis%32 != 0:
		return h, fault.Rel(0, h.pos, "deltas", "blocks of %d in %d miniblocks", block, minis)
	case count != uint64(n):
		return h, fault.Rel(0, h.pos, "deltas", "%d values, there should be %d", count, n)
	}
	h.pos += used
	h.minis, h.per, h.first = int(minis), int(block/minis), first
	return h, nil
}

// HasDeltas reports whether src begins with a header of n values.
func HasDeltas(src []byte, n int) bool {
	_, err := deltaHeader(src, n)
	return err == nil
}

// unpackDeltas unpacks deltas of width bits and truncates them to T.
func unpackDeltas[T ~int32 | ~int64](dst []T, src []byte, width int) error {
	if unsafe.Sizeof(dst[0]) == 8 {
		return rle.Unpack(unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)), src, width)
	}
	if width <= 32 {
		return rle.Unpack(unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(dst))), len(dst)), src, width)
	}
	var wide [64]uint64
	for len(dst) > 0 {
		k := min(len(dst), len(wide)) // whole bytes
		if err := rle.Unpack(wide[:k], src, width); err != nil {
			return err
		}
		for i, x := range wide[:k] {
			dst[i] = T(x)
		}
		dst, src = dst[k:], src[min(k*width/8, len(src)):]
	}
	return nil
}

// sums turns deltas into values and returns the last one.
func sums[T ~int32 | ~int64](d []T, value, low T) T {
	for i, x := range d {
		value += x + low
		d[i] = value
	}
	return value
}
