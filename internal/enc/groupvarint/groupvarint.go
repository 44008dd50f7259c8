// Package groupvarint implements the group-varint encoding of u32 values.
//
// Four values make a group: a tag byte, then the values, each as its 1 to 4 low bytes, little-endian. The top
// two bits of the tag are the length of the first value less one, the lowest two that of the fourth. A sequence
// whose length is not a multiple of 4 ends in a group padded with zeros. Source: the seed document's "Group
// Varint"; the order of the tag's bits and the padding are from Kudu's files (notes, section 5: offsets of
// PLAIN binary blocks, header of PREFIX blocks).
package groupvarint

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"stoa/fault"
)

// lens holds, for each tag, where the second, third and fourth value begin after the tag, and where the group ends.
var lens = func() (t [256][4]uint8) {
	for tag := range t {
		end := 0
		for i := range 4 {
			end += tag>>(6-2*i)&3 + 1
			t[tag][i] = uint8(end)
		}
	}
	return t
}()

// mask keeps the bytes of a value of length i+1.
var mask = [4]uint32{0xff, 0xffff, 0xffffff, 0xffffffff}

// Decode4 decodes the group at the front of src; used is its size in bytes, 5 to 17.
// Error: the input ends inside the group.
func Decode4(src []byte) (v [4]uint32, used int, err error) {
	if len(src) == 0 {
		return v, 0, fault.Rel(0, 1, "group.tag", "the input ends")
	}
	tag := src[0]
	l := &lens[tag]
	used = 1 + int(l[3])
	if used > len(src) {
		return v, 0, fault.Rel(0, used, "group", "%d bytes long, %d are left", used, len(src))
	}
	if len(src) < 17 {
		var b [20]byte
		copy(b[:], src[:used])
		src = b[:]
	}
	v[0], v[1], v[2], v[3] = group(src)
	return v, used, nil
}

// group decodes a group with at least 17 readable bytes.
func group(src []byte) (a, b, c, d uint32) {
	_ = src[16]
	tag := src[0]
	l := &lens[tag]
	a = binary.LittleEndian.Uint32(src[1:]) & mask[tag>>6]
	b = binary.LittleEndian.Uint32(src[1+l[0]&15:]) & mask[tag>>4&3]
	c = binary.LittleEndian.Uint32(src[1+l[1]&15:]) & mask[tag>>2&3]
	d = binary.LittleEndian.Uint32(src[1+l[2]&15:]) & mask[tag&3]
	return
}

// Decode fills dst from groups of four; used is their size in bytes. The last group is consumed whole; its padding is
// ignored.
// Error: the input ends before dst is full (path group[i]).
func Decode(dst []uint32, src []byte) (used int, err error) {
	at, i := 0, 0
	for ; i+4 <= len(dst) && at+17 <= len(src); i += 4 {
		d := dst[i : i+4 : i+4]
		d[0], d[1], d[2], d[3] = group(src[at:])
		at += 1 + int(lens[src[at]][3])
	}
	for ; i < len(dst); i += 4 {
		v, n, err := Decode4(src[at:])
		if err != nil {
			return at, located(err, at, i/4)
		}
		copy(dst[i:], v[:])
		at += n
	}
	return at, nil
}

// located converts the offset and path of one group's error so that they are relative to the whole input.
func located(err error, at, group int) error {
	e := *err.(*fault.Error)
	e.At.Off += int64(at)
	e.Path = "group[" + strconv.Itoa(group) + "]" + e.Path[len("group"):]
	return &e
}

// DecodeOffsets decodes len(dst) offsets: dst[i] = base + v[i]. base may be negative. The values v must not decrease
// and must not exceed limit (which applies to v before base is added); base + v must fit in an int32. used is the size
// of the groups read. Errors: the input ends (group[i]); a value is less than the previous one or greater than limit
// (offset[i]).
func DecodeOffsets(dst []int32, src []byte, base int32, limit uint32) (used int, err error) {
	// base + v must fit in an int32, which can lower the limit.
	top := uint64(min(int64(limit), math.MaxInt32-int64(base)))
	at, i := 0, 0
	var last, bad uint64 // bit 63 of bad is set if a value was less than the previous one
	for ; i+4 <= len(dst) && at+17 <= len(src); i += 4 {
		p := src[at : at+17 : at+17]
		var a, b, c, d uint32
		switch p[0] {
		case 0x55: // four values of two bytes, as in nearly every group of a block up to 64 KiB
			w := binary.LittleEndian.Uint64(p[1:])
			a, b, c, d = uint32(w)&0xffff, uint32(w>>16)&0xffff, uint32(w>>32)&0xffff, uint32(w>>48)
			at += 9
		case 0xaa: // four values of three bytes, as in larger blocks
			w, x := binary.LittleEndian.Uint64(p[1:]), binary.LittleEndian.Uint32(p[9:])
			a, b, c, d = uint32(w)&0xffffff, uint32(w>>24)&0xffffff, uint32(w>>48)|x&0xff<<16, x>>8
			at += 13
		default:
			a, b, c, d = group(p)
			at += 1 + int(lens[p[0]][3])
		}
		bad |= (uint64(a) - last) | (uint64(b) - uint64(a)) | (uint64(c) - uint64(b)) | (uint64(d) - uint64(c))
		last = uint64(d)
		o := dst[i : i+4 : i+4]
		o[0], o[1], o[2], o[3] = base+int32(a), base+int32(b), base+int32(c), base+int32(d)
	}
	for ; i < len(dst); i += 4 {
		v, n, err := Decode4(src[at:])
		if err != nil {
			return at, located(err, at, i/4)
		}
		for j := range min(4, len(dst)-i) {
			bad |= uint64(v[j]) - last
			last = uint64(v[j])
			dst[i+j] = base + int32(v[j])
		}
		at += n
	}
	if bad>>63 != 0 || last > top {
		return at, badOffset(src, len(dst), top)
	}
	return at, nil
}

// badOffset locates the offset that DecodeOffsets found wrong. All groups must be complete.
func badOffset(src []byte, n int, top uint64) error {
	last := uint32(0)
	at := 0
	for i := 0; i < n; i += 4 {
		v, size, err := Decode4(src[at:])
		if err != nil {
			return located(err, at, i/4)
		}
		for j := range min(4, n-i) {
			path := "offset[" + strconv.Itoa(i+j) + "]"
			if v[j] < last {
				return fault.Rel(at, size, path, "%d after %d", v[j], last)
			}
			if uint64(v[j]) > top {
				return fault.Rel(at, size, path, "%d is above %d", v[j], top)
			}
			last = v[j]
		}
		at += size
	}
	return fault.Bugf("no wrong offset among %d", n)
}

// Append4 appends one group, 5 to 17 bytes.
func Append4(dst []byte, a, b, c, d uint32) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, 17)...)
	p := dst[at:]
	tag, end := 0, 1
	for _, v := range [4]uint32{a, b, c, d} {
		code := (bits.Len32(v|1) - 1) >> 3
		tag = tag<<2 | code
		binary.LittleEndian.PutUint32(p[end:], v) // the excess bytes are overwritten or cut off
		end += code + 1
	}
	p[0] = byte(tag)
	return dst[:at+end]
}

// Append appends vals in groups of four; the last group is padded with zeros. Without values nothing is appended.
func Append(dst []byte, vals []uint32) []byte {
	for len(vals) >= 4 {
		dst = Append4(dst, vals[0], vals[1], vals[2], vals[3])
		vals = vals[4:]
	}
	if len(vals) > 0 {
		var v [4]uint32
		copy(v[:], vals)
		dst = Append4(dst, v[0], v[1], v[2], v[3])
	}
	return dst
}
