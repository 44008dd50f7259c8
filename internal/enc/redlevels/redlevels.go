// Package redlevels packs and unpacks the levels of RedFile's pages, as redelm wrote them in February 2013, the
// only program that wrote RED1:
//
//	repetition levels   w bits each, the most significant first, bytes filled from the top; no length in front
//	definition levels   u32 big-endian: bytes that follow; then bits, the least significant of a byte first:
//	                    1, value (w bits), count (ULEB128, its bytes in 8 bits each)   a run
//	                    0, value (w bits)                                              one value
//
// w is the length of the maximum in bits; if that is 0 nothing is stored. A run is written from (w+9)/(w+1) equal
// values on: from there it is shorter.
package redlevels

import (
	"encoding/binary"
	"math/bits"

	"stoa/fault"
)

// UnpackRep decodes len(dst) of the page's n repetition levels, starting at level skip, and returns the number of bytes
// of all n. skip+len(dst) must be at most n. Errors: src ends before n levels; a level above max.
func UnpackRep(dst []byte, src []byte, skip, n int, max uint8) (used int, err error) {
	w := bits.Len8(max)
	used64 := (int64(n)*int64(w) + 7) / 8
	if used64 > int64(len(src)) {
		return 0, fault.Rel(0, len(src), "repetition_levels", "%d levels of %d bits need %d bytes, %d are left", n,
			w, used64, len(src))
	}
	over := byte(0)
	bit := skip * w
	for i := range dst {
		v, k := uint(src[bit>>3]), bit&7
		if k+w > 8 {
			v = v<<8 | uint(src[bit>>3+1])
			v >>= uint(16 - k - w)
		} else {
			v >>= uint(8 - k - w)
		}
		dst[i] = byte(v) & (1<<w - 1)
		if dst[i] > max {
			over = dst[i]
		}
		bit += w
	}
	if over > 0 {
		return 0, fault.Rel(0, int(used64), "repetition_levels", "level %d is above the maximum, %d", over, max)
	}
	return int(used64), nil
}

// PackRep appends repetition levels, each at most max.
func PackRep(dst []byte, levels []byte, max uint8) []byte {
	w := bits.Len8(max)
	var acc uint32
	have := 0
	for _, v := range levels {
		acc = acc<<w | uint32(v)
		for have += w; have >= 8; have -= 8 {
			dst = append(dst, byte(acc>>(have-8)))
		}
	}
	if have > 0 {
		dst = append(dst, byte(acc<<(8-have)))
	}
	return dst
}

// DefReader reads definition levels in order. A copy of a DefReader reads independently.
type DefReader struct {
	src  []byte // the bits
	bit  int
	w    int
	max  byte
	run  int // number of levels, still to be returned, that equal val
	val  byte
	fail string
}

// NewDefReader returns a reader at the first level; used is the number of bytes of src that the levels and their length
// occupy. Error: src ends before the length or before the levels.
func NewDefReader(src []byte, max uint8) (r DefReader, used int, err error) {
	if len(src) < 4 {
		return r, 0, fault.Rel(0, len(src), "definition_levels.length", "4 bytes are needed, %d are left", len(src))
	}
	n := int64(binary.BigEndian.Uint32(src))
	if n > int64(len(src)-4) {
		return r, 0, fault.Rel(0, 4, "definition_levels.length", "%d bytes, but only %d are left", n, len(src)-4)
	}
	return DefReader{src: src[4 : 4+n], w: bits.Len8(max), max: max}, int(4 + n), nil
}

// Move makes r continue with a copy of its bytes, which must be at the end of b.
func (r *DefReader) Move(b []byte) {
	if n := len(r.src); n > 0 {
		r.src = b[len(b)-n:]
	}
}

// take reads k ≤ 8 bits.
func (r *DefReader) take(k int) byte {
	i := r.bit >> 3
	if r.bit+k > 8*len(r.src) {
		r.fail = "the bits end"
		r.bit = 8 * len(r.src)
		return 0
	}
	v := uint(r.src[i])
	if i+1 < len(r.src) {
		v |= uint(r.src[i+1]) << 8
	}
	v >>= uint(r.bit & 7)
	r.bit += k
	return byte(v) & byte(1<<k-1)
}

// next begins the next run or single value.
func (r *DefReader) next() {
	if i := r.bit >> 3; i+8 <= len(r.src) {
		word := binary.LittleEndian.Uint64(r.src[i:]) >> (r.bit & 7) // 57 of its bits are valid
		val := byte(word>>1) & byte(1<<r.w-1)
		if word&1 == 0 && val <= r.max {
			r.val, r.run = val, 1
			r.bit += 1 + r.w
			return
		}
		if length := word >> (1 + r.w); val <= r.max && length&0x80 == 0 && length&0x7f != 0 {
			r.val, r.run = val, int(length&0x7f)
			r.bit += 9 + r.w
			return
		}
	}
	r.nextSlow()
}

// nextSlow is next for long runs, errors, and the last bytes.
func (r *DefReader) nextSlow() {
	isRun := r.take(1) == 1
	r.val, r.run = r.take(r.w), 1
	if r.val > r.max && r.fail == "" {
		r.fail = "a level above the maximum"
	}
	if !isRun {
		return
	}
	r.run = 0
	for shift := 0; r.fail == ""; shift += 7 {
		b := r.take(8)
		if shift > 28 || shift == 28 && b > 7 {
			r.fail = "a run of more than 31 bits"
			return
		}
		if r.run |= int(b&127) << shift; b < 128 {
			break
		}
	}
	if r.run == 0 && r.fail == "" {
		r.fail = "a run of no values"
	}
}

// End returns an error if more levels, or whole unused bytes, follow the last level that was read.
func (r *DefReader) End() error {
	if left := 8*len(r.src) - r.bit; r.run > 0 || left >= 8 {
		return fault.Rel(4+r.bit/8, 1, "definition_levels", "%d levels of a run, and %d bits, are left after the last",
			r.run, left)
	}
	return nil
}

// Read fills dst and returns how many levels equal the maximum. Errors: the bits end; a level above the maximum; a run
// of no levels, or of more than 31 bits.
func (r *DefReader) Read(dst []byte) (present int, err error) {
	for i := 0; i < len(dst); {
		if r.run == 0 {
			if n, there := r.singles(dst[i:]); n > 0 {
				i, present = i+n, present+there
				continue
			}
			if r.next(); r.fail != "" {
				return present, fault.Rel(4+r.bit/8, 1, "definition_levels", "%s", r.fail)
			}
		}
		part := dst[i : i+min(len(dst)-i, r.run)]
		for j := range part {
			part[j] = r.val
		}
		if r.val == r.max {
			present += len(part)
		}
		r.run -= len(part)
		i += len(part)
	}
	return present, nil
}

// singles reads the single values that come next, until too close to the end of the bits.
func (r *DefReader) singles(dst []byte) (n, present int) {
	step, mask := 1+r.w, byte(1<<r.w-1)
	for n < len(dst) && r.bit>>3+8 <= len(r.src) {
		word := binary.LittleEndian.Uint64(r.src[r.bit>>3:]) >> (r.bit & 7)
		for have := 56; have >= step && n < len(dst); have -= step {
			v := byte(word>>1) & mask
			if word&1 == 1 || v > r.max {
				return n, present
			}
			dst[n] = v
			n++
			if v == r.max {
				present++
			}
			word >>= step
			r.bit += step
		}
	}
	return n, present
}

// Skip skips n levels and returns how many of them equal the maximum. It has the errors of Read.
func (r *DefReader) Skip(n int) (present int, err error) {
	for n > 0 {
		if r.run == 0 {
			if r.next(); r.fail != "" {
				return present, fault.Rel(4+r.bit/8, 1, "definition_levels", "%s", r.fail)
			}
		}
		k := min(n, r.run)
		if r.val == r.max {
			present += k
		}
		r.run -= k
		n -= k
	}
	return present, nil
}

// bitWriter appends bits, the least significant of a byte first.
type bitWriter struct {
	dst  []byte
	acc  uint64
	have int
}

func (w *bitWriter) put(v uint64, k int) {
	w.acc |= v << w.have
	for w.have += k; w.have >= 8; w.have -= 8 {
		w.dst = append(w.dst, byte(w.acc))
		w.acc >>= 8
	}
}

// PackDef appends definition levels, each at most max, preceded by their length.
func PackDef(dst []byte, levels []byte, max uint8) []byte {
	width := bits.Len8(max)
	minRun := (width + 9) / (width + 1)
	at := len(dst)
	w := bitWriter{dst: append(dst, 0, 0, 0, 0)}
	for i := 0; i < len(levels); {
		v, j := levels[i], i+1
		for j < len(levels) && levels[j] == v {
			j++
		}
		n := j - i
		i = j
		if n < minRun {
			for range n {
				w.put(uint64(v)<<1, 1+width)
			}
			continue
		}
		w.put(uint64(v)<<1|1, 1+width)
		for ; n >= 128; n >>= 7 {
			w.put(uint64(n&127|128), 8)
		}
		w.put(uint64(n), 8)
	}
	if w.have > 0 {
		w.dst = append(w.dst, byte(w.acc))
	}
	binary.BigEndian.PutUint32(w.dst[at:], uint32(len(w.dst)-at-4))
	return w.dst
}
