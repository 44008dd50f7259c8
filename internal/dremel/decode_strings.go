package dremel

import (
	"encoding/binary"

	"stoa/fault"
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// Entries are the entries of a page and which of them have a value: all N, or the K whose bit in Valid is 1.
type Entries struct {
	N, K  int
	Valid []byte // nil if all
}

// extend makes room for the entries in dst.
func (e *Entries) extend(dst *vec.Vector) (at int) {
	at = dst.Extend(e.N)
	e.Mark(dst, at)
	return at
}

// Mark marks the null entries in dst, from position at on; their validity bits must be set.
func (e *Entries) Mark(dst *vec.Vector, at int) {
	if e.Valid == nil || e.K == e.N {
		return
	}
	plain.CopyBits(dst.Validity(), at, e.Valid, 0, e.N)
	dst.AddNulls(e.N - e.K)
}

// DecodeStrings appends strings in PLAIN, u32 length and bytes, which take all of src.
func DecodeStrings(dst *vec.Vector, src []byte, e Entries) error {
	if int64(len(src)) < 4*int64(e.K) {
		return fault.Rel(0, len(src), "values", "%d strings in %d bytes", e.K, len(src))
	}
	return DecodeSomeStrings(dst, src, 0, e.K, e)
}

// DecodeSomeStrings appends e.K of the total strings in PLAIN, after the first skip. The strings must occupy all of
// src.
func DecodeSomeStrings(dst *vec.Vector, src []byte, skip, total int, e Entries) error {
	pos, err := skipStrings(src, 0, skip, 0)
	if err != nil {
		return err
	}
	end := len(src)
	if e.K < total-skip {
		if end, err = skipStrings(src, pos, e.K, skip); err != nil {
			return err
		}
	}
	if end-pos < 4*e.K {
		return stringEnds(src, pos, skip)
	}
	at := e.extend(dst)
	offs := dst.Offsets(at)
	out, err := dst.Bytes(offs[0], int64(end-pos-4*e.K))
	if err != nil {
		return err
	}
	if err := copyStrings(offs[:e.K+1], out, src[:end], pos, skip); err != nil {
		return err
	}
	spreadOffsets(offs, e)
	return nil
}

// skipStrings skips k strings from pos on; first is the number of the first of these, for errors.
func skipStrings(src []byte, pos, k, first int) (int, error) {
	for i := range k {
		if pos+4 > len(src) {
			return 0, stringEnds(src, pos, first+i)
		}
		l := int(binary.LittleEndian.Uint32(src[pos:]))
		if pos += 4; l > len(src)-pos {
			return 0, stringEnds(src, pos-4, first+i)
		}
		pos += l
	}
	return pos, nil
}

func spreadOffsets(offs []int32, e Entries) {
	if e.K < e.N {
		plain.ExpandOffsets(offs, e.N, e.Valid, 0)
	}
}

// copyStrings copies strings of src from pos on, one fewer than len(offs), to out, which must have room for them and
// for vec.Slack more bytes. first is the number of the first string in its page.
func copyStrings(offs []int32, out, src []byte, pos, first int) error {
	base, to := offs[0], 0
	ends := offs[1:]
	for i := range ends {
		if pos+4 > len(src) {
			return stringEnds(src, pos, first+i)
		}
		l := int(binary.LittleEndian.Uint32(src[pos:]))
		pos += 4
		if l > len(src)-pos || l > len(out)-to-vec.Slack { // it would leave too few bytes for the others
			return stringEnds(src, pos-4, first+i)
		}
		if l <= 32 && pos+32 <= len(src) {
			// copy four words whatever the length; excess bytes are overwritten by the next string or are in the slack
			*(*[16]byte)(out[to:]) = *(*[16]byte)(src[pos:])
			*(*[16]byte)(out[to+16:]) = *(*[16]byte)(src[pos+16:])
		} else {
			copy(out[to:], src[pos:pos+l])
		}
		pos += l
		to += l
		ends[i] = base + int32(to)
	}
	if pos != len(src) {
		return fault.Rel(pos, len(src)-pos, "values", "%d bytes after the last value", len(src)-pos)
	}
	return nil
}

func stringEnds(src []byte, pos, i int) error {
	return fault.Rel(pos, len(src)-pos, "values", "value %d reaches past the end", i)
}

// DecodeLengthStrings appends strings in DELTA_LENGTH_BYTE_ARRAY: their lengths in DELTA_BINARY_PACKED, then their
// bytes, which take all of src.
func DecodeLengthStrings(dst *vec.Vector, src []byte, e Entries) error {
	at := e.extend(dst)
	offs := dst.Offsets(at)
	used, err := DecodeDeltas(offs[1:e.K+1], src)
	if err != nil {
		return err
	}
	src = src[used:]
	end, left := int64(offs[0]), int64(len(src))
	for i, l := range offs[1 : e.K+1] {
		if l < 0 || int64(l) > left {
			return fault.Rel(used, len(src), "lengths", "string %d has %d bytes, %d are left", i, l, left)
		}
		left -= int64(l)
		end += int64(l)
		offs[i+1] = int32(end) // Bytes limits the total
	}
	if left != 0 {
		return fault.Rel(used+len(src)-int(left), int(left), "values", "%d bytes after the last value", left)
	}
	out, err := dst.Bytes(offs[0], int64(len(src)))
	if err != nil {
		return err
	}
	copy(out, src)
	spreadOffsets(offs, e)
	return nil
}

// DecodeDeltaStrings appends strings in DELTA_BYTE_ARRAY: the length of the prefix that each shares with the previous
// one, in DELTA_BINARY_PACKED, then the suffixes in DELTA_LENGTH_BYTE_ARRAY. If the strings exceed limit bytes, the
// error is of class Limit.
func DecodeDeltaStrings(dst *vec.Vector, src []byte, e Entries, limit int64, a *vec.Arena) error {
	shared, rests, bytes, err := prefixes(src, e.K, a)
	if err != nil {
		return err
	}
	var total int64
	for i, p := range shared {
		total += int64(p) + int64(rests[i])
	}
	if total > limit {
		return fault.Limitf(fault.Span{Len: int64(len(src))}, "values", "%d bytes of strings, %d are allowed",
			total, limit)
	}
	at := e.extend(dst)
	offs := dst.Offsets(at)
	out, err := dst.Bytes(offs[0], total)
	if err != nil {
		return err
	}
	begin, to := 0, 0 // of the previous string
	for i, p := range shared {
		l := int(p)
		if l > to-begin {
			return fault.Rel(0, len(src)-len(bytes), "prefixes",
				"string %d has %d bytes of the one before, which has %d", i, l, to-begin)
		}
		if l <= 32 { // copy words whatever the length, as in copyStrings: at most l bytes precede to
			*(*[16]byte)(out[to:]) = *(*[16]byte)(out[begin:])
			*(*[16]byte)(out[to+16:]) = *(*[16]byte)(out[begin+16:])
		} else {
			copy(out[to:], out[begin:begin+l])
		}
		begin, to = to, to+l
		if l = int(rests[i]); l <= 32 && len(bytes) >= 32 {
			*(*[16]byte)(out[to:]) = *(*[16]byte)(bytes)
			*(*[16]byte)(out[to+16:]) = *(*[16]byte)(bytes[16:])
		} else {
			copy(out[to:], bytes[:l])
		}
		bytes, to = bytes[l:], to+l
		offs[i+1] = offs[0] + int32(to)
	}
	spreadOffsets(offs, e)
	return nil
}

// DecodeDeltaFixed is DecodeDeltaStrings for k values of width bytes each, which are written to dst.
func DecodeDeltaFixed(dst, src []byte, width, k int, a *vec.Arena) error {
	shared, rests, bytes, err := prefixes(src, k, a)
	if err != nil {
		return err
	}
	for i, p := range shared {
		n := int(rests[i])
		if int(p)+n != width || p > 0 && i == 0 {
			return fault.Rel(0, len(src)-len(bytes), "values",
				"value %d: %d bytes of the one before and %d more; it has %d", i, p, n, width)
		}
		v := dst[i*width:][:width]
		if p > 0 {
			copy(v, dst[(i-1)*width:][:p])
		}
		copy(v[p:], bytes[:n])
		bytes = bytes[n:]
	}
	return nil
}

// prefixes decodes the two lists of lengths, and checks that the rest of src is exactly the suffixes.
func prefixes(src []byte, k int, a *vec.Arena) (shared, rests []int32, bytes []byte, err error) {
	shared, rests = int32s(a, k), int32s(a, k)
	at, err := DecodeDeltas(shared, src)
	if err != nil {
		return nil, nil, nil, fault.Locate(err, fault.Span{Len: int64(len(src))}, true, "prefixes")
	}
	n, err := DecodeDeltas(rests, src[at:])
	if err != nil {
		return nil, nil, nil, fault.Locate(err, fault.Span{Off: int64(at), Len: int64(len(src) - at)}, true, "suffixes")
	}
	bytes = src[at+n:]
	var total int64
	var negative int32
	for i, r := range rests {
		negative |= r | shared[i]
		total += int64(r)
	}
	if negative < 0 || total != int64(len(bytes)) {
		return nil, nil, nil, fault.Rel(at+n, len(bytes), "suffixes",
			"they have %d bytes, or some have fewer than none; %d are there", total, len(bytes))
	}
	return shared, rests, bytes, nil
}

func int32s(a *vec.Arena, n int) []int32 {
	b := a.Bytes(4 * n)
	return cast[int32](b, n)
}
