package trevni

import (
	"encoding/binary"
	"math/bits"

	"stoa/fault"
)

// The kernels of zig-zag varints. Each decodes len(dst) values from the front of src and says how many bytes they took.

// decodeInts decodes values of 32 bits, at most five bytes each. Over-long forms are taken, as Avro does; a value that has
// more than 32 bits is damage.
func decodeInts(dst []int32, src []byte) (used int, err error) {
	pos, i := 0, 0
	for i < len(dst) && pos+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[pos:])
		if w&0x8080808080808080 == 0 && i+8 <= len(dst) { // eight values of a byte each
			d := (*[8]int32)(dst[i:])
			for k := range d {
				x := uint32(w) & 0x7f
				d[k] = int32(x>>1) ^ -int32(x&1)
				w >>= 8
			}
			i, pos = i+8, pos+8
			continue
		}
		n := bits.TrailingZeros64(^w&0x8080808080808080)>>3 + 1
		x := squeeze(w, n)
		if n > 5 || x > 1<<32-1 {
			return pos, tooWide(src, pos, i, 5)
		}
		dst[i] = int32(uint32(x)>>1) ^ -int32(x&1)
		i, pos = i+1, pos+n
	}
	for ; i < len(dst); i++ {
		v, n := varint(src[pos:])
		if n == 0 {
			return pos, ends(src, i, len(dst))
		}
		if n < 0 || n > 5 || v != int64(int32(v)) {
			return pos, tooWide(src, pos, i, 5)
		}
		dst[i] = int32(v)
		pos += n
	}
	return pos, nil
}

// decodeLongs decodes values of 64 bits, at most ten bytes each.
func decodeLongs(dst []int64, src []byte) (used int, err error) {
	pos, i := 0, 0
	for i < len(dst) && pos+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[pos:])
		stops := ^w & 0x8080808080808080
		if stops == 0x8080808080808080 && i+8 <= len(dst) {
			d := (*[8]int64)(dst[i:])
			for k := range d {
				x := w & 0x7f
				d[k] = int64(x>>1) ^ -int64(x&1)
				w >>= 8
			}
			i, pos = i+8, pos+8
			continue
		}
		if stops == 0 { // nine or ten bytes
			v, n := varint(src[pos:])
			if n <= 0 {
				if n == 0 {
					return pos, ends(src, i, len(dst))
				}
				return pos, tooWide(src, pos, i, 10)
			}
			dst[i] = v
			i, pos = i+1, pos+n
			continue
		}
		n := bits.TrailingZeros64(stops)>>3 + 1
		x := squeeze(w, n)
		dst[i] = int64(x>>1) ^ -int64(x&1)
		i, pos = i+1, pos+n
	}
	for ; i < len(dst); i++ {
		v, n := varint(src[pos:])
		if n <= 0 {
			if n == 0 {
				return pos, ends(src, i, len(dst))
			}
			return pos, tooWide(src, pos, i, 10)
		}
		dst[i] = v
		pos += n
	}
	return pos, nil
}

// squeeze takes the seven low bits of each of the first n bytes of w, 1 to 8, together.
func squeeze(w uint64, n int) uint64 {
	w &= (1<<(8*n-1) - 1) & 0x7f7f7f7f7f7f7f7f
	w = w&0x007f007f007f007f | w&0x7f007f007f007f00>>1
	w = w&0x00003fff00003fff | w&0x3fff00003fff0000>>2
	return w&0x000000000fffffff | w&0x0fffffff00000000>>4
}

func tooWide(src []byte, pos, i, most int) error {
	return fault.Rel(pos, min(most, len(src)-pos), "", "value %d is no varint of at most %d bytes that fits", i, most)
}

func ends(src []byte, i, n int) error {
	return fault.Rel(len(src), 0, "", "the block ends within value %d of %d", i, n)
}

// skipVarints says how many bytes n varints at the front of src take; -1 if src ends before.
func skipVarints(src []byte, n int) int {
	pos := 0
	for n >= 8 && pos+8 <= len(src) {
		k := bits.OnesCount64(^binary.LittleEndian.Uint64(src[pos:]) & 0x8080808080808080)
		n -= k
		pos += 8
	}
	for ; n > 0; n-- {
		for {
			if pos >= len(src) {
				return -1
			}
			pos++
			if src[pos-1] < 0x80 {
				break
			}
		}
	}
	return pos
}
