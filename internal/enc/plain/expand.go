package plain

import (
	"math/bits"
	"unsafe"
)

// ExpandFixed spreads values over rows. The k values of width bytes at the front of data, where k is the number of ones
// among bits [at, at+n) of valid, move to the slots of the rows whose bit is 1; the slots of the other rows become
// zero. It works in place, from the back. data must have n·width bytes, valid at+n bits (it panics otherwise). Bit
// order is Arrow's and Kudu's: least significant first, 1 = present.
func ExpandFixed(data []byte, width, n int, valid []byte, at int) {
	if n <= 0 {
		return
	}
	if n*width > len(data) {
		panic("plain: data too short")
	}
	data = data[:n*width]
	switch width {
	case 1:
		expand(data, n, valid, at)
	case 2:
		expand(cast[uint16](data), n, valid, at)
	case 4:
		expand(cast[uint32](data), n, valid, at)
	case 8:
		expand(cast[uint64](data), n, valid, at)
	case 16:
		expandWide(cast[[2]uint64](data), n, valid, at)
	default:
		expandAny(data, width, n, valid, at)
	}
}

// cast views data as values. They are only moved as a whole, so their byte order does not matter. They may be
// unaligned, which requires a machine with unaligned loads.
func cast[T any](data []byte) []T {
	var t T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(t)))
}

// lastWord cuts the last word off rows [0, n) of a bitmap, at a multiple of 64 bits of it: m rows, their bits
// on top of w.
func lastWord(valid []byte, at, n int) (m int, w uint64) {
	m = min((at+n-1)&63+1, n)
	return m, peek(valid, at+n-m, m) << uint(64-m)
}

// expand goes from the last word of rows to the first. k values are not placed yet.
func expand[T uint8 | uint16 | uint32 | uint64](data []T, n int, valid []byte, at int) {
	for k := CountBits(valid, at, n); n > k; { // when n == k, all remaining values are in their places
		if k == 0 {
			clear(data[:n])
			return
		}
		m, w := lastWord(valid, at, n)
		ones := bits.OnesCount64(w)
		n, k = n-m, k-ones
		dst := data[n : n+m]
		switch {
		case ones == 0:
			clear(dst)
		case ones == m:
			copy(dst, data[k:])
		case m == 64 && spreads[unsafe.Sizeof(dst[0])] != nil:
			spreads[unsafe.Sizeof(dst[0])]((*byte)(unsafe.Pointer(&dst[0])), (*byte)(unsafe.Pointer(&data[k])), w)
		case bits.OnesCount64(w^w<<1) <= fewRuns:
			spreadRuns(dst, data[k:], ones, w)
		case m == 64 && k > 0:
			spreadWord((*[64]T)(dst), data[k-1:k+64], ones, w)
		default:
			spread(dst, data[k:], ones, w)
		}
	}
}

// spreader is a kernel in assembly: see gen/main.go.
type spreader = func(dst, src *byte, w uint64)

// spreaders are those for one level of instructions, by the width of values in bytes.
type spreaders struct {
	name string
	by   [9]spreader
}

// levels are the kernels that this machine supports, best first; spreads are those in use, the best for each width.
var (
	levels  []*spreaders
	spreads [9]spreader
)

// use sets spreads to the best kernel for each width; levels are best first.
func use(levels []*spreaders) {
	clear(spreads[:])
	for _, s := range levels {
		for width, f := range s.by {
			if spreads[width] == nil {
				spreads[width] = f
			}
		}
	}
}

// fewRuns is the largest number of runs in a word for which it is faster to move whole runs than values.
const fewRuns = 6

// The spread functions put the k values of src, which may overlap dst but not begin after it, into the slots of dst
// whose bits in w are set, the highest bit being the last slot's. They go from the back, so a slot is written only
// after its value has been read.

// spreadRuns moves run by run.
func spreadRuns[T any](dst, src []T, k int, w uint64) {
	for n := len(dst); n > 0; {
		if zeros := min(bits.LeadingZeros64(w), n); zeros > 0 {
			clear(dst[n-zeros : n])
			n -= zeros
			w <<= uint(zeros)
		}
		ones := bits.LeadingZeros64(^w)
		copy(dst[n-ones:n], src[k-ones:k])
		n, k = n-ones, k-ones
		w <<= uint(ones)
	}
}

// spreadWord is for a word whose bits are hard to predict: every slot gets a value, masked to zero if its bit is 0.
// src[0] is the value before those of the word; it is read and masked for slots before the first value.
func spreadWord[T uint8 | uint16 | uint32 | uint64](dst *[64]T, src []T, k int, w uint64) {
	_ = src[64]
	p := unsafe.Pointer(unsafe.SliceData(src))
	size := int(unsafe.Sizeof(dst[0]))
	q := unsafe.Add(p, k*size) // k is at most 64
	for i := 60; i >= 0; i -= 4 {
		d := (*[4]T)(dst[i : i+4])
		m3 := int64(w) >> 63
		d[3] = *(*T)(q) & T(m3)
		q = unsafe.Add(q, int(m3)*size)
		m2 := int64(w<<1) >> 63
		d[2] = *(*T)(q) & T(m2)
		q = unsafe.Add(q, int(m2)*size)
		m1 := int64(w<<2) >> 63
		d[1] = *(*T)(q) & T(m1)
		q = unsafe.Add(q, int(m1)*size)
		m0 := int64(w<<3) >> 63
		d[0] = *(*T)(q) & T(m0)
		q = unsafe.Add(q, int(m0)*size)
		w <<= 4
	}
}

// spread is for the few rows at either end.
func spread[T any](dst, src []T, k int, w uint64) {
	var zero T
	for i := len(dst) - 1; i >= 0; i-- {
		if w>>63 != 0 {
			k--
			dst[i] = src[k]
		} else {
			dst[i] = zero
		}
		w <<= 1
	}
}

// expandWide is expand for values of 16 bytes.
func expandWide(data [][2]uint64, n int, valid []byte, at int) {
	for k := CountBits(valid, at, n); n > k; {
		if k == 0 {
			clear(data[:n])
			return
		}
		m, w := lastWord(valid, at, n)
		ones := bits.OnesCount64(w)
		n, k = n-m, k-ones
		dst := data[n : n+m]
		switch {
		case ones == m:
			copy(dst, data[k:])
		case bits.OnesCount64(w^w<<1) <= fewRuns:
			spreadRuns(dst, data[k:], ones, w)
		case k > 0:
			src := data[k-1:][:ones+1]
			for i := m - 1; i >= 0; i-- {
				mask := -(w >> 63)
				v := &src[ones]
				dst[i] = [2]uint64{v[0] & mask, v[1] & mask}
				ones += int(mask)
				w <<= 1
			}
		default:
			spread(dst, data[k:], ones, w)
		}
	}
}

// expandAny is expand for values of any size, one by one.
func expandAny(data []byte, width, n int, valid []byte, at int) {
	k := CountBits(valid, at, n)
	for i := n - 1; i >= k; i-- {
		slot := data[i*width : (i+1)*width]
		if valid[(at+i)>>3]>>((at+i)&7)&1 != 0 {
			k--
			copy(slot, data[k*width:])
		} else {
			clear(slot)
		}
	}
}

// ExpandOffsets spreads the offsets of k strings over n rows, where k is the number of ones among bits [at, at+n) of
// valid: row i gets string number (ones before i) if its bit is 1; otherwise it is empty, at the offset where the next
// one begins. The first k+1 elements of offs hold the dense offsets; it works in place, from the back. offs must have
// n+1 elements, valid at+n bits (it panics otherwise).
func ExpandOffsets(offs []int32, n int, valid []byte, at int) {
	if n <= 0 {
		return
	}
	_ = offs[n]
	offs = offs[:n+1]
	k := CountBits(valid, at, n)
	offs[n] = offs[k]
	for n > k && k > 0 {
		m := min((at+n-1)&63+1, n)
		w := peek(valid, at+n-m, m)
		n -= m
		ones := bits.OnesCount64(w)
		if ones == m {
			k -= ones
			copy(offs[n:n+m], offs[k:])
			continue
		}
		w <<= uint(64 - m)
		for i := n + m - 1; i >= n; i-- {
			k -= int(w >> 63)
			offs[i] = offs[k]
			w <<= 1
		}
	}
	if k == 0 {
		for i := range offs[:n] {
			offs[i] = offs[0]
		}
	}
}
