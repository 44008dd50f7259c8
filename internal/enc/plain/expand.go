package plain

import (
	"encoding/binary"
	"math/bits"
)

// ExpandFixed spreads values over rows: the k values of width bytes at the front of data, k being the number of ones among
// bits [at, at+n) of valid, move to the slots of the rows whose bit is 1; the slots of the other rows become zero.
// It works in place, from the back. data must have n·width bytes, valid at+n bits (it panics otherwise).
// Bit order is Arrow's and Kudu's: least significant first, 1 = present.
func ExpandFixed(data []byte, width, n int, valid []byte, at int) {
	if n <= 0 {
		return
	}
	data = data[:n*width]
	k := CountBits(valid, at, n) // values not yet placed; rows [0, n) not yet done
	for n > k && k > 0 {
		m := (at+n-1)&63 + 1 // rows in the last word, which begins at a multiple of 64 bits of valid
		m = min(m, n)
		w := peek(valid, at+n-m, m)
		n -= m
		ones := bits.OnesCount64(w)
		k -= ones
		switch ones {
		case 0:
			clear(data[n*width : (n+m)*width])
		case m:
			copy(data[n*width:(n+m)*width], data[k*width:])
		default:
			spread(data, width, n, k, m, ones, w)
		}
	}
	if k == 0 {
		clear(data[:n*width])
	}
	// Otherwise n == k: the values that are left lie where they belong.
}

// spread places the ones values from k on in the m slots from n on, by the bits of w.
func spread(data []byte, width, n, k, m, ones int, w uint64) {
	dst, src := data[n*width:(n+m)*width], data[k*width:]
	w <<= uint(64 - m) // the last row's bit on top
	switch width {
	case 1:
		spread1(dst, src, ones, w)
	case 2:
		spread2(dst, src, ones, w)
	case 4:
		spread4(dst, src, ones, w)
	case 8:
		spread8(dst, src, ones, w)
	case 16:
		spread16(dst, src, ones, w)
	default:
		spreadAny(dst, src, width, ones, w)
	}
}

// The kernels go from the last slot to the first. The value is always read and masked rather than branched on, since
// the validity of a mixed word is hardly predictable; when no value is left the rest of the slots is cleared, so that
// no read lies before src. dst does not begin before src: a slot is written only after the value in it was taken.

func spread1(dst, src []byte, k int, w uint64) {
	for i := len(dst) - 1; i >= 0; i-- {
		if k == 0 {
			clear(dst[:i+1])
			return
		}
		bit := w >> 63
		dst[i] = src[k-1] & byte(-bit)
		k -= int(bit)
		w <<= 1
	}
}

func spread2(dst, src []byte, k int, w uint64) {
	for i := len(dst) - 2; i >= 0; i -= 2 {
		if k == 0 {
			clear(dst[:i+2])
			return
		}
		bit := w >> 63
		v := binary.LittleEndian.Uint16(src[2*k-2:])
		binary.LittleEndian.PutUint16(dst[i:], v&uint16(-bit))
		k -= int(bit)
		w <<= 1
	}
}

func spread4(dst, src []byte, k int, w uint64) {
	for i := len(dst) - 4; i >= 0; i -= 4 {
		if k == 0 {
			clear(dst[:i+4])
			return
		}
		bit := w >> 63
		v := binary.LittleEndian.Uint32(src[4*k-4:])
		binary.LittleEndian.PutUint32(dst[i:], v&uint32(-bit))
		k -= int(bit)
		w <<= 1
	}
}

func spread8(dst, src []byte, k int, w uint64) {
	for i := len(dst) - 8; i >= 0; i -= 8 {
		if k == 0 {
			clear(dst[:i+8])
			return
		}
		bit := w >> 63
		v := binary.LittleEndian.Uint64(src[8*k-8:])
		binary.LittleEndian.PutUint64(dst[i:], v&-bit)
		k -= int(bit)
		w <<= 1
	}
}

func spread16(dst, src []byte, k int, w uint64) {
	for i := len(dst) - 16; i >= 0; i -= 16 {
		if k == 0 {
			clear(dst[:i+16])
			return
		}
		bit := w >> 63
		s, d := src[16*k-16:16*k], dst[i:i+16]
		a, b := binary.LittleEndian.Uint64(s), binary.LittleEndian.Uint64(s[8:])
		binary.LittleEndian.PutUint64(d, a&-bit)
		binary.LittleEndian.PutUint64(d[8:], b&-bit)
		k -= int(bit)
		w <<= 1
	}
}

func spreadAny(dst, src []byte, width, k int, w uint64) {
	for i := len(dst) - width; i >= 0; i -= width {
		if w>>63 != 0 {
			k--
			copy(dst[i:i+width], src[k*width:(k+1)*width])
		} else {
			clear(dst[i : i+width])
		}
		w <<= 1
	}
}

// ExpandOffsets spreads the offsets of k strings over n rows, k being the number of ones among bits [at, at+n) of valid:
// row i gets string number (ones before i) if its bit is 1, and is empty, at the place where the next one begins, if not.
// The first k+1 places of offs hold the dense offsets; it works in place, from the back. offs must have n+1 places,
// valid at+n bits (it panics otherwise).
func ExpandOffsets(offs []int32, n int, valid []byte, at int) {
	if n <= 0 {
		return
	}
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
