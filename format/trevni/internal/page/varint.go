package page

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/enc/zigzag"
)

// The kernels of zig-zag varints. Each decodes len(dst) values from the front of src and returns the bytes they took.

// decodeInts decodes len(dst) values of 32 bits, at most five bytes each, and returns the bytes they took. Over-long
// forms are accepted, as by Avro; a value of more than 32 bits is damage.
func decodeInts(dst []int32, src []byte) (used int, err error) {
	if zigzag.Quick() {
		used, err = withKernel(dst, src, zigzag.Ints, intsOneByOne)
	} else {
		used, err = withTwoStreams(dst, src, intStops, 1<<32-1, intsOneByOne)
	}
	if err != nil {
		return intsOneByOne(dst, src) // its error has the index of the value
	}
	return used, nil
}

// withKernel decodes with kernel, and with one where kernel stops.
func withKernel[T int32 | int64](dst []T, src []byte, kernel func([]T, []byte) (n, used int),
	one func([]T, []byte) (int, error)) (used int, err error) {
	for {
		n, k := kernel(dst, src[used:])
		dst, used = dst[n:], used+k
		if len(dst) == 0 {
			return used, nil
		}
		m := min(len(dst), 64) // more than one value: kernel is unlikely to decode the next ones
		k, err = one(dst[:m], src[used:])
		if err != nil {
			return used, err
		}
		dst, used = dst[m:], used+k
	}
}

// withTwoStreams decodes with decodeTwo, and the remaining values with one.
func withTwoStreams[T int32 | int64](dst []T, src []byte, truncated, most uint64,
	one func([]T, []byte) (int, error)) (used int, err error) {
	h, ok := decodeTwo(dst, src, truncated, most)
	if !ok {
		return one(dst, src)
	}
	if _, err = one(dst[h.a:h.second], src[h.posA:h.border]); err != nil {
		return 0, err
	}
	used, err = one(dst[h.b:], src[h.posB:])
	return h.posB + used, err
}

// Masks of the continuation bits of a word: a clear bit marks the last byte of a varint.
const (
	stops    = 0x8080808080808080
	intStops = 0x0000008080808080
)

// twoStreams is the progress of decodeTwo: values [0, a) and [second, b) of dst are decoded. The first stream ends at
// posA of src; the second begins at border and ends at posB.
type twoStreams struct{ a, second, b, posA, border, posB int }

// decodeTwo decodes from the beginning and from about the middle of src at the same time: each varint must be read to
// find the next, and two such chains hide each other's latency. It ends at the first value that it cannot decode. ok is
// false if src is too short. A varint ends at the byte whose bit of ends is clear.
func decodeTwo[T int32 | int64](dst []T, src []byte, truncated, most uint64) (h twoStreams, ok bool) {
	if len(dst) < 64 || len(src) < 96 {
		return h, false
	}
	for h.border = len(src) / 2; h.border > 0 && src[h.border-1] >= 0x80; {
		h.border--
	}
	h.second = countVarints(src[:h.border])
	n := min(h.second, len(dst)-h.second)
	if n < 32 {
		return h, false
	}
	posA, posB, last, i := 0, h.border, len(src)-8, 0
	in := unsafe.Pointer(unsafe.SliceData(src))
	a, b := dst[:n], dst[h.second:][:n]
	for i < n && posB <= last {
		wa, wb := *(*uint64)(unsafe.Add(in, posA)), *(*uint64)(unsafe.Add(in, posB))
		if (wa|wb)&stops == 0 && i+8 <= n { // eight values of one byte
			oneByte((*[8]T)(a[i:]), wa)
			oneByte((*[8]T)(b[i:]), wb)
			i, posA, posB = i+8, posA+8, posB+8
			continue
		}
		ea, eb := ^wa&truncated, ^wb&truncated
		if ea == 0 || eb == 0 {
			break
		}
		xa, xb := gather7(wa&(ea^(ea-1))), gather7(wb&(eb^(eb-1)))
		if xa > most || xb > most {
			break
		}
		a[i], b[i] = T(xa>>1)^-T(xa&1), T(xb>>1)^-T(xb&1)
		posA += (bits.TrailingZeros64(ea) + 1) >> 3
		posB += (bits.TrailingZeros64(eb) + 1) >> 3
		i++
	}
	h.a, h.b, h.posA, h.posB = i, h.second+i, posA, posB
	return h, true
}

// oneByte decodes eight values of one byte.
func oneByte[T int32 | int64](dst *[8]T, w uint64) {
	for k := range dst {
		x := w & 0x7f
		dst[k] = T(x>>1) ^ -T(x&1)
		w >>= 8
	}
}

// countVarints returns the number of varints that end in src.
func countVarints(src []byte) (n int) {
	for len(src) >= 8 {
		n += bits.OnesCount64(^binary.LittleEndian.Uint64(src) & stops)
		src = src[8:]
	}
	for _, b := range src {
		if b < 0x80 {
			n++
		}
	}
	return n
}

func intsOneByOne(dst []int32, src []byte) (used int, err error) {
	pos, i := 0, 0
	for i < len(dst) && pos+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[pos:])
		if w&stops == 0 && i+8 <= len(dst) {
			oneByte((*[8]int32)(dst[i:]), w)
			i, pos = i+8, pos+8
			continue
		}
		end := ^w & intStops
		if end == 0 {
			return pos, tooWide(src, pos, i, 5)
		}
		x := gather7(w & (end ^ (end - 1)))
		if x > 1<<32-1 {
			return pos, tooWide(src, pos, i, 5)
		}
		dst[i] = int32(x>>1) ^ -int32(x&1)
		i, pos = i+1, pos+(bits.TrailingZeros64(end)+1)>>3
	}
	for ; i < len(dst); i++ {
		v, n := layout.Varint(src[pos:])
		if n == 0 {
			return pos, truncated(src, i, len(dst))
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
	if zigzag.Quick() {
		used, err = withKernel(dst, src, zigzag.Longs, longsOneByOne)
	} else {
		used, err = withTwoStreams(dst, src, stops, math.MaxUint64, longsOneByOne)
	}
	if err != nil {
		return longsOneByOne(dst, src)
	}
	return used, nil
}

func longsOneByOne(dst []int64, src []byte) (used int, err error) {
	pos, i := 0, 0
	for i < len(dst) && pos+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[pos:])
		end := ^w & stops
		if end == stops && i+8 <= len(dst) {
			oneByte((*[8]int64)(dst[i:]), w)
			i, pos = i+8, pos+8
			continue
		}
		if end == 0 { // nine or ten bytes
			v, n := layout.Varint(src[pos:])
			if n <= 0 {
				if n == 0 {
					return pos, truncated(src, i, len(dst))
				}
				return pos, tooWide(src, pos, i, 10)
			}
			dst[i] = v
			i, pos = i+1, pos+n
			continue
		}
		x := gather7(w & (end ^ (end - 1)))
		dst[i] = int64(x>>1) ^ -int64(x&1)
		i, pos = i+1, pos+(bits.TrailingZeros64(end)+1)>>3
	}
	for ; i < len(dst); i++ {
		v, n := layout.Varint(src[pos:])
		if n <= 0 {
			if n == 0 {
				return pos, truncated(src, i, len(dst))
			}
			return pos, tooWide(src, pos, i, 10)
		}
		dst[i] = v
		pos += n
	}
	return pos, nil
}

// gather7 concatenates the seven low bits of each byte of w.
func gather7(w uint64) uint64 {
	w &= 0x7f7f7f7f7f7f7f7f
	w -= w & 0x7f007f007f007f00 >> 1
	w = w&0x00003fff00003fff | w&0x3fff00003fff0000>>2
	return w&0x000000000fffffff | w&0x0fffffff00000000>>4
}

func tooWide(src []byte, pos, i, most int) error {
	return fault.Rel(pos, min(most, len(src)-pos), "", "value %d: expected a varint of at most %d bytes that fits "+
		"its type", i, most)
}

func truncated(src []byte, i, n int) error {
	return fault.Rel(len(src), 0, "", "the block ends within value %d of %d", i, n)
}

// skipVarints returns the size in bytes of n varints at the front of src; -1 if src is too short.
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
