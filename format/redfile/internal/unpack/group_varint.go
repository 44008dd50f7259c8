package unpack

import (
	"encoding/binary"
	"math/bits"

	"stoa/fault"
)

// GROUP_VAR_INT of INT64: five numbers make a group. It begins with two bytes, big-endian, of lengths: bit 15 is
// unused, bits 14 to 12 are the length of the first number minus one, bits 2 to 0 that of the fifth. The numbers
// follow, each as its 1 to 8 low bytes, little-endian; negative ones take 8. The last group is padded with zeros, or
// ends with its last number (schema.decodeGroups). No program of 2013 is known to have written it. Source:
// Encodings.txt of January 10, 2013; the order of bytes and bits follows its example for INT32.

// DecodeGroups64 decodes len(dst) numbers; used is the number of bytes of their groups. Input that ends within a group
// is an error of class Corrupt.
func DecodeGroups64(dst []uint64, src []byte) (used int, err error) {
	at := 0
	for i := 0; i < len(dst); i += 5 {
		if at+2 > len(src) {
			return at, fault.Rel(at, len(src)-at, "group", "the input ends")
		}
		tag := uint(src[at])<<8 | uint(src[at+1])
		p := at + 2
		for j := range 5 {
			n := int(tag>>(12-3*j)&7) + 1
			if p+n > len(src) {
				return at, fault.Rel(at, len(src)-at, "group", "the input ends inside a group")
			}
			if i+j < len(dst) {
				if p+8 <= len(src) {
					dst[i+j] = binary.LittleEndian.Uint64(src[p:]) & (^uint64(0) >> (64 - 8*n))
				} else {
					var v uint64
					for k := range n {
						v |= uint64(src[p+k]) << (8 * k)
					}
					dst[i+j] = v
				}
			}
			p += n
		}
		at = p
	}
	return at, nil
}

// AppendGroups64 appends vals in groups of five.
func AppendGroups64(dst []byte, vals []uint64) []byte {
	for i := 0; i < len(vals); i += 5 {
		var g [5]uint64
		copy(g[:], vals[i:])
		var b [50]byte
		tag, end := uint(0), 2
		for _, v := range g {
			n := (bits.Len64(v|1) + 7) / 8
			tag = tag<<3 | uint(n-1)
			binary.LittleEndian.PutUint64(b[end:], v)
			end += n
		}
		b[0], b[1] = byte(tag>>8), byte(tag)
		dst = append(dst, b[:end]...)
	}
	return dst
}
