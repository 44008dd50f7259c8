package dremel

import (
	"encoding/binary"
	"math/bits"
)

// AppendLevels appends levels from 0 to max in the hybrid encoding; nothing if max is 0.
func AppendLevels(dst, levels []byte, max uint8) []byte {
	if max == 0 {
		return dst
	}
	return appendHybrid(dst, levels, bits.Len8(max))
}

// AppendPackedLevels appends levels from 0 to max in BIT_PACKED; nothing if max is 0.
func AppendPackedLevels(dst, levels []byte, max uint8) []byte {
	width := bits.Len8(max)
	acc, have := uint32(0), 0
	for _, l := range levels {
		if acc, have = acc<<width|uint32(l), have+width; have >= 8 {
			have -= 8
			dst = append(dst, byte(acc>>have))
		}
	}
	if have > 0 {
		dst = append(dst, byte(acc<<(8-have)))
	}
	return dst
}

// AppendCodes appends codes of a dictionary: one byte with the width of the largest in bits, then the codes in the
// hybrid encoding. largest must be the largest code.
func AppendCodes(dst []byte, codes []uint32, largest uint32) []byte {
	width := bits.Len32(largest)
	dst = append(dst, byte(width))
	if width == 0 { // readers expect the number of codes even then
		if len(codes) > 0 {
			dst = binary.AppendUvarint(dst, uint64(len(codes))<<1)
		}
		return dst
	}
	return appendHybrid(dst, codes, width)
}

// AppendBools appends booleans, given as one byte each, in RLE: u32 of the length, then hybrid of width 1.
func AppendBools(dst, bools []byte) []byte {
	at := len(dst)
	dst = appendHybrid(append(dst, 0, 0, 0, 0), bools, 1)
	binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	return dst
}

// AppendBits appends booleans, given as one byte each, as bits, least significant first.
func AppendBits(dst, bools []byte) []byte {
	for ; len(bools) >= 8; bools = bools[8:] {
		dst = append(dst, byte(binary.LittleEndian.Uint64(bools)*0x0102040810204080>>56))
	}
	var last byte
	for i, b := range bools {
		last |= b << i
	}
	if len(bools) > 0 {
		dst = append(dst, last)
	}
	return dst
}

// appendHybrid appends values of width bits as runs and bit-packed groups. A run is used only if it saves more bytes
// than its headers cost.
func appendHybrid[T byte | uint32](dst []byte, v []T, width int) []byte {
	worth := max(8, (8*(3+(width+7)/8)/width+7)&^7)
	from, i := 0, 0 // the values from index from on have not been written yet
	for i < len(v) {
		j := i + runLength(v[i:])
		if j-i < worth {
			i = j
			continue
		}
		// Packed groups have 8 values, so the run gives up values to fill the last one.
		begin := i
		if k := (i - from) & 7; k > 0 {
			begin += 8 - k
		}
		if j-begin >= worth || j == len(v) && j > begin && begin == from {
			dst = appendPacked(dst, v[from:begin], width)
			dst = appendRun(dst, v[i], j-begin, width)
			from = j
		}
		i = j
	}
	if rest := v[from:]; len(rest) > 0 {
		if runLength(rest) == len(rest) {
			return appendRun(dst, rest[0], len(rest), width)
		}
		dst = appendPacked(dst, rest, width)
	}
	return dst
}

// runLength returns the number of equal values at the start of v.
func runLength[T byte | uint32](v []T) int {
	x := v[0]
	n := 1
	for ; n+8 <= len(v); n += 8 {
		w := v[n : n+8 : n+8]
		if (w[0]^x)|(w[1]^x)|(w[2]^x)|(w[3]^x)|(w[4]^x)|(w[5]^x)|(w[6]^x)|(w[7]^x) != 0 {
			break
		}
	}
	for n < len(v) && v[n] == x {
		n++
	}
	return n
}

// maxRun and maxGroups keep the header of a run in 32 bits.
const (
	// maxRun and maxGroups keep the header of a run within 32 bits.
	maxRun    = 1<<30 - 1
	maxGroups = 1 << 20
)

func appendRun[T byte | uint32](dst []byte, x T, n, width int) []byte {
	for ; n > 0; n -= min(n, maxRun) {
		dst = binary.AppendUvarint(dst, uint64(min(n, maxRun))<<1)
		for k := 0; k < width; k += 8 {
			dst = append(dst, byte(uint32(x)>>k))
		}
	}
	return dst
}

// appendPacked appends groups of 8 values, the last one padded with zeros.
func appendPacked[T byte | uint32](dst []byte, v []T, width int) []byte {
	for len(v) > 0 {
		part := v[:min(len(v), 8*maxGroups)]
		v = v[len(part):]
		groups := (len(part) + 7) / 8
		dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
		at := len(dst)
		dst = extend(dst, groups*width+8) // words are written, beyond the last value
		packGroups(dst[at:], part, width)
		dst = dst[:at+groups*width]
	}
	return dst
}

// extend makes dst n bytes longer; the new bytes are undefined.
func extend(dst []byte, n int) []byte {
	if cap(dst)-len(dst) < n {
		grown := make([]byte, len(dst), 2*cap(dst)+n)
		copy(grown, dst)
		dst = grown
	}
	return dst[:len(dst)+n]
}

// packGroups packs values of at most 32 bits, least significant bits first, into dst, which must have 8 bytes more than
// they need.
func packGroups[T byte | uint32](dst []byte, v []T, width int) {
	at, have := 0, 0
	var acc uint64
	for _, x := range v {
		acc |= uint64(x) << have
		if have += width; have >= 32 {
			binary.LittleEndian.PutUint32(dst[at:], uint32(acc))
			at, acc, have = at+4, acc>>32, have-32
		}
	}
	binary.LittleEndian.PutUint64(dst[at:], acc)
	clear(dst[min(at+8, len(dst)):])
}
