// Package dremel decodes and encodes the levels and values of pages as Parquet stores them, as plain functions between
// byte slices and vectors.
//
// A data page of a column consists of the repetition levels of its entries, their definition levels, and the values of
// the entries that have one, in this order. Anything before these (headers, lengths, checksums, compression) is left to
// the format.
//
//	levels      hybrid of runs and bit-packed groups, or BIT_PACKED, which is no longer written
//	PLAIN       values as they are, strings after a u32 of their length
//	dictionary  a byte, the width of the codes in bits; then codes, hybrid
//	RLE         of booleans: u32 of the length; then hybrid, of width 1
//	DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY, BYTE_STREAM_SPLIT: see the functions
//
// Decoders allocate no more than the input can describe, or than the caller allows, and return errors with offsets into
// the input. They append a whole page to a vector or return an error, after which the caller truncates the vector:
// earlier entries are never changed.
//
// Source: apache/parquet-format, Encodings.md.
package dremel

import (
	"encoding/binary"
	"math/bits"

	"stoa/fault"
	"stoa/internal/enc/plain"
	"stoa/internal/enc/rle"
	"stoa/vec"
)

// DecodeLevels fills dst with levels from 0 to max in the hybrid encoding. If max is 0, src is empty and all levels are
// 0.
func DecodeLevels(dst, src []byte, max uint8) error {
	width := bits.Len8(max)
	if width == 0 {
		clear(dst)
		return nil
	}
	if err := rle.DecodeInts(dst, src, width, 0); err != nil {
		return err
	}
	return checkLevels(dst, src, max)
}

func checkLevels(levels, src []byte, max uint8) error {
	if max == 1<<bits.Len8(max)-1 {
		return nil // no other level is possible
	}
	var highest byte
	for _, v := range levels {
		if v > highest {
			highest = v
		}
	}
	if highest > max {
		return fault.Rel(0, len(src), "", "a level %d, the max is %d", highest, max)
	}
	return nil
}

// DecodePackedLevels fills dst with levels in BIT_PACKED, most significant bits first, each with as many bits as max
// has. used is the number of bytes of src that they occupy.
func DecodePackedLevels(dst, src []byte, max uint8) (used int, err error) {
	width := bits.Len8(max)
	need := (int64(len(dst))*int64(width) + 7) / 8
	if need > int64(len(src)) {
		return 0, fault.Rel(0, len(src), "", "%d levels of %d bits need %d bytes, %d are left", len(dst), width,
			need, len(src))
	}
	var acc uint32
	at, have := 0, 0
	for i := range dst {
		if have < width {
			acc, at, have = acc<<8|uint32(src[at]), at+1, have+8
		}
		have -= width
		dst[i] = byte(acc>>have) & (1<<width - 1)
	}
	return int(need), checkLevels(dst, src[:need], max)
}

// DecodeCodes fills dst with codes of a dictionary with size entries; src is one byte with their width in bits,
// followed by the codes.
func DecodeCodes(dst []uint32, src []byte, size int) error {
	if len(dst) == 0 {
		return nil
	}
	if len(src) == 0 {
		return fault.Rel(0, 0, "codes", "there are none for %d values", len(dst))
	}
	width := int(src[0])
	switch {
	case width > 32:
		return fault.Rel(0, 1, "codes.width", "%d bits", width)
	case width == 0:
		clear(dst)
	default:
		if err := rle.DecodeInts(dst, src[1:], width, 0); err != nil {
			return fault.Locate(err, fault.Span{Off: 1, Len: int64(len(src) - 1)}, true, "codes")
		}
	}
	var largest uint32
	for _, c := range dst {
		largest = max(largest, c)
	}
	if int64(largest) >= int64(size) {
		return fault.Rel(0, len(src), "codes", "code %d, the dictionary has %d entries", largest, size)
	}
	return nil
}

// DecodeBools decodes n booleans in RLE to the bits [at, at+n) of dst: u32 of the length, then hybrid.
func DecodeBools(dst []byte, at int, src []byte, n int) error {
	if n == 0 {
		return nil
	}
	if len(src) < 4 {
		return fault.Rel(0, len(src), "length", "4 bytes are needed, %d are left", len(src))
	}
	size := int64(binary.LittleEndian.Uint32(src))
	if size > int64(len(src)-4) {
		return fault.Rel(0, 4, "length", "%d bytes, but only %d are left", size, len(src)-4)
	}
	_, err := rle.DecodeBits(dst, at, src[4:4+size], 0, n)
	return fault.Locate(err, fault.Span{Off: 4, Len: size}, true, "")
}

// Present returns a bitmap of the entries whose level is max, that is, of those with a value.
func Present(def []byte, max uint8, a *vec.Arena) []byte {
	const ones = 0x0101010101010101
	b := a.Bytes((len(def) + 7) / 8)
	i := 0
	for ; 8*i+8 <= len(def); i++ {
		x := binary.LittleEndian.Uint64(def[8*i:]) ^ ones*uint64(max) // a byte is 0 where the level is max
		x = ((x&0x7f7f7f7f7f7f7f7f)+0x7f7f7f7f7f7f7f7f|x)>>7&ones ^ ones
		b[i] = byte(x * 0x0102040810204080 >> 56) // the eight lowest bits, together
	}
	if 8*i < len(def) {
		var x byte
		for j, d := range def[8*i:] {
			if d == max {
				x |= 1 << j
			}
		}
		b[i] = x
	}
	return b
}

// PlaceBits copies booleans, which are the bits of src after the first skip, to the bits of those entries from at on
// that have a value.
func PlaceBits(dst []byte, at int, src []byte, skip int, e Entries) {
	if e.Valid == nil || e.K == e.N {
		plain.CopyBits(dst, at, src, skip, e.N)
		return
	}
	plain.FillBits(dst, at, e.N, false)
	for i := range e.N {
		if e.Valid[i>>3]>>(i&7)&1 == 0 {
			continue
		}
		if src[skip>>3]>>(skip&7)&1 == 1 {
			dst[(at+i)>>3] |= 1 << ((at + i) & 7)
		}
		skip++
	}
}
