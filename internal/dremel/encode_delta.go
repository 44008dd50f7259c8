package dremel

import (
	"encoding/binary"
	"math/bits"
)

// A block of deltas has four miniblocks of 32.
const (
	deltaBlock = 128
	deltaMinis = 4
	deltaMini  = deltaBlock / deltaMinis
)

// AppendDeltas appends integers in DELTA_BINARY_PACKED. Differences wrap around at the width of T.
func AppendDeltas[T int32 | int64](dst []byte, v []T) []byte {
	dst = binary.AppendUvarint(dst, deltaBlock)
	dst = binary.AppendUvarint(dst, deltaMinis)
	dst = binary.AppendUvarint(dst, uint64(len(v)))
	if len(v) == 0 {
		return append(dst, 0)
	}
	dst = binary.AppendVarint(dst, int64(v[0]))
	var deltas [deltaBlock]T
	last := v[0]
	for v = v[1:]; len(v) > 0; v = v[min(len(v), deltaBlock):] {
		d := deltas[:min(len(v), deltaBlock)]
		minDelta := v[0] - last
		for i, x := range v[:len(d)] {
			d[i] = x - last
			minDelta, last = min(minDelta, d[i]), x
		}
		dst = appendDeltaBlock(dst, d, minDelta)
	}
	return dst
}

func appendDeltaBlock[T int32 | int64](dst []byte, d []T, minDelta T) []byte {
	dst = binary.AppendVarint(dst, int64(minDelta))
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0) // widths of the miniblocks
	var words [deltaMini]uint64
	for m := 0; len(d) > 0; m++ {
		part := d[:min(len(d), deltaMini)]
		d = d[len(part):]
		var all uint64
		for i, x := range part {
			words[i] = unsigned(x - minDelta)
			all |= words[i]
		}
		clear(words[len(part):])
		width := bits.Len64(all)
		dst[at+m] = byte(width)
		to := len(dst)
		dst = extend(dst, deltaMini/8*width+16)
		packWords(dst[to:], &words, width)
		dst = dst[:to+deltaMini/8*width]
	}
	return dst
}

// unsigned is x as an unsigned integer of T's width.
func unsigned[T int32 | int64](x T) uint64 {
	if u := uint64(x); T(1)<<31<<1 != 0 {
		return u
	}
	return uint64(uint32(x))
}

// packWords packs words of width bits, least significant bits first, into dst, which must have 16 bytes more than they
// need.
func packWords(dst []byte, v *[deltaMini]uint64, width int) {
	if width == 0 {
		return
	}
	at, have := 0, 0
	var acc uint64
	for _, x := range v {
		acc |= x << have
		if have += width; have >= 64 {
			binary.LittleEndian.PutUint64(dst[at:], acc)
			at, have = at+8, have-64
			acc = x >> (width - have)
		}
	}
	binary.LittleEndian.PutUint64(dst[at:], acc)
}

// AppendDeltaLengths appends strings in DELTA_LENGTH_BYTE_ARRAY: string i is data[offs[i]:offs[i+1]].
func AppendDeltaLengths(dst []byte, offs []int32, data []byte) []byte {
	lengths := make([]int32, len(offs)-1)
	for i := range lengths {
		lengths[i] = offs[i+1] - offs[i]
	}
	return append(AppendDeltas(dst, lengths), data[offs[0]:offs[len(offs)-1]]...)
}

// AppendDeltaStrings appends strings in DELTA_BYTE_ARRAY: the length of the prefix shared with the previous one, and
// the suffix. Strings are given as in AppendDeltaLengths.
func AppendDeltaStrings(dst []byte, offs []int32, data []byte) []byte {
	n := len(offs) - 1
	shared, rest := make([]int32, n), make([]int32, n+1)
	var suffixes []byte
	var last []byte
	for i := range n {
		s := data[offs[i]:offs[i+1]]
		k := commonPrefix(last, s)
		shared[i] = int32(k)
		suffixes = append(suffixes, s[k:]...)
		rest[i+1], last = int32(len(suffixes)), s
	}
	return AppendDeltaLengths(AppendDeltas(dst, shared), rest, suffixes)
}

// commonPrefix returns the length of the longest common prefix.
func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// AppendPlainStrings appends strings in PLAIN, each preceded by its length as u32. Strings are passed as in
// AppendDeltaLengths.
func AppendPlainStrings(dst []byte, offs []int32, data []byte) []byte {
	n := len(offs) - 1
	at := len(dst)
	dst = extend(dst, int(offs[n]-offs[0])+4*n)
	for i := range n {
		s := data[offs[i]:offs[i+1]]
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(s)))
		at += 4 + copy(dst[at+4:], s)
	}
	return dst
}

// AppendSplit appends values of width bytes in BYTE_STREAM_SPLIT: the first bytes of all of them, then the second, and
// so on.
func AppendSplit(dst, src []byte, width int) []byte {
	n := len(src) / width
	at := len(dst)
	dst = extend(dst, n*width)
	out := dst[at:]
	switch width {
	case 4:
		a, b, c, d := out[:n], out[n:2*n], out[2*n:3*n], out[3*n:4*n]
		for i := range n {
			x := binary.LittleEndian.Uint32(src[4*i:])
			a[i], b[i], c[i], d[i] = byte(x), byte(x>>8), byte(x>>16), byte(x>>24)
		}
	default:
		for k := range width {
			to := out[k*n : (k+1)*n]
			for i := range to {
				to[i] = src[i*width+k]
			}
		}
	}
	return dst
}
