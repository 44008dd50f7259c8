package page

import (
	"encoding/binary"
	"strconv"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/coerce"
	"stoa/vec"
)

// convert appends n values of p, decoded from src, to dst. It is used where the stored form differs from Arrow's.
type convert func(p *Physical, dst *vec.Vector, src []byte, n int, d *decoding) (used int, err error)

// as returns the first n values of T in b without copying.
func as[T any](b []byte, n int) []T {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Enums decodes ordinals to their symbols.
func Enums(p *Physical, dst *vec.Vector, src []byte, n int, d *decoding) (used int, err error) {
	ordinals := as[int32](d.scratch.Bytes(4*n), n)
	if used, err = decodeInts(ordinals, src); err != nil {
		return used, err
	}
	var total int64
	for i, o := range ordinals {
		if o < 0 || int(o) >= len(p.Enum) {
			return used, fault.Rel(0, used, "value["+strconv.Itoa(i)+"]", "ordinal %d of an enum of %d symbols", o,
				len(p.Enum))
		}
		total += int64(len(p.Enum[o]))
	}
	if total > d.limit {
		return used, fault.Limitf(fault.Span{}, "",
			"%d bytes of symbols are more than a page may have (page limit or memory limit)", total)
	}
	offs := dst.Offsets(dst.Extend(n))
	out, err := dst.Bytes(offs[0], total)
	if err != nil {
		return used, err
	}
	pos := 0
	for i, o := range ordinals {
		pos += copy(out[pos:], p.Enum[o])
		offs[i+1] = offs[0] + int32(pos)
	}
	return used, nil
}

// fixeds decodes binary values of a fixed size, which are stored with their length.
func fixeds(p *Physical, dst *vec.Vector, src []byte, n int, d *decoding) (used int, err error) {
	if int64(n)*int64(p.Size+1) > int64(len(src)) {
		return 0, fault.Rel(0, len(src), "", "%s of %d bytes do not fit %d bytes", fault.Count(n, "value"), p.Size,
			len(src))
	}
	out := dst.Data(dst.Extend(n))
	return eachFixed(p.Size, src, n, func(i int, v []byte) { copy(out[i*p.Size:], v) })
}

// eachFixed calls f with each of n values of size bytes.
func eachFixed(size int, src []byte, n int, f func(i int, v []byte)) (pos int, err error) {
	for i := range n {
		l, k := layout.Varint(src[pos:])
		if k <= 0 || l != int64(size) || len(src)-pos-k < size {
			return pos, fault.Rel(pos, max(k, 0), "value["+strconv.Itoa(i)+"]",
				"expected a length of %d, found %d", size, l)
		}
		pos += k
		f(i, src[pos:pos+size])
		pos += size
	}
	return pos, nil
}

// decimals decodes decimals, which are stored as their unscaled values: up to 16 bytes, big-endian, two's complement.
func decimals(_ *Physical, dst *vec.Vector, src []byte, n int, _ *decoding) (pos int, err error) {
	at := dst.Extend(n)
	out := vec.Fixed[decimal128.Num](dst, at)
	for i := 0; i < len(out); i++ {
		k, used := shortDecimals(out[i:], src[pos:])
		if i, pos = i+k, pos+used; i == len(out) {
			break
		}
		l, k := layout.Varint(src[pos:])
		if k <= 0 || l < 0 || l > int64(len(src)-pos-k) {
			return pos, fault.Rel(pos, max(k, 0), "value["+strconv.Itoa(i)+"]", "a length of %d, %d bytes are left",
				l, len(src)-pos-max(k, 0))
		}
		pos += k
		v := src[pos : pos+int(l)]
		pos += int(l)
		var ok bool
		if out[i], ok = coerce.OfBigEndian(v); !ok {
			return pos, fault.Rel(pos-len(v), len(v), "value["+strconv.Itoa(i)+"]", "a decimal of more than 128 bits")
		}
	}
	if i := dst.TooManyDigits(at); i >= 0 {
		return pos, fault.Rel(0, pos, "value["+strconv.Itoa(i-at)+"]", "it has more digits than %s", dst.Type)
	}
	return pos, nil
}

// shortDecimals decodes decimals of one to eight bytes. It stops at the first with another length and near the end of
// src. It returns their number and the bytes they took.
func shortDecimals(out []decimal128.Num, src []byte) (n, used int) {
	prev, step, shift := byte(0), 0, 0
	for n < len(out) && used+9 <= len(src) {
		l := src[used]
		if l != prev { // rare: the processor predicts the same length
			if l&1 != 0 || l == 0 || l > 16 {
				return n, used
			}
			prev, step, shift = l, int(l>>1)+1, 64-8*int(l>>1)
		}
		v := int64(binary.BigEndian.Uint64(src[used+1:])) >> (shift & 63)
		out[n] = decimal128.New(v>>63, uint64(v))
		n, used = n+1, used+step
	}
	return n, used
}

// narrow decodes ints or longs to a type of fewer bits.
func narrow[T int8 | int16 | uint8 | uint16 | uint32 | uint64](p *Physical, dst *vec.Vector, src []byte, n int,
	d *decoding) (used int, err error) {
	wide := as[int64](d.scratch.Bytes(8*n), n)
	if p.StoredType == layout.Int {
		ints := as[int32](d.scratch.Bytes(4*n), n)
		if used, err = decodeInts(ints, src); err != nil {
			return used, err
		}
		for i, v := range ints {
			wide[i] = int64(v)
		}
	} else if used, err = decodeLongs(wide, src); err != nil {
		return used, err
	}
	out := vec.Fixed[T](dst, dst.Extend(n))
	for i, v := range wide {
		out[i] = T(v)
		if int64(out[i]) != v || v < 0 && out[i] > 0 { // for uint64, out[i] always equals v
			return used, fault.Rel(0, used, "value["+strconv.Itoa(i)+"]", "expected a value of type %s, found %d",
				dst.Type, v)
		}
	}
	return used, nil
}

// ConvertTo returns the conversion from a stored type to an Arrow type, nil if the stored form is Arrow's, and the size
// of fixed-size values in bytes; ok is false if there is no conversion.
func ConvertTo(s layout.Type, t arrow.DataType) (c convert, size int, ok bool) {
	if arrow.TypeEqual(layout.Types[s].Arrow, t) {
		return nil, 0, true
	}
	switch s {
	case layout.Fixed8, layout.Fixed16, layout.Fixed32, layout.Fixed64, layout.Int, layout.Long:
		return convertInt(s, t)
	case layout.Bytes:
		switch t := t.(type) {
		case *arrow.FixedSizeBinaryType:
			return fixeds, t.ByteWidth, true
		case *arrow.Decimal128Type:
			return decimals, 0, true
		}
	}
	return nil, 0, false
}

// convertInt is ConvertTo for integers: to types of the same bits and, from varints, to narrower ones.
func convertInt(s layout.Type, t arrow.DataType) (c convert, size int, ok bool) {
	f, isFixed := t.(arrow.FixedWidthDataType)
	if !isFixed {
		return nil, 0, false
	}
	switch t.ID() {
	case arrow.DATE32, arrow.TIME32, arrow.DATE64, arrow.TIME64, arrow.TIMESTAMP, arrow.DURATION:
		return nil, 0, f.BitWidth() == layout.Types[s].Arrow.(arrow.FixedWidthDataType).BitWidth()
	case arrow.UINT32:
		if s == layout.Fixed32 {
			return nil, 0, true
		}
		return narrow[uint32], 0, s == layout.Long
	case arrow.UINT64:
		if s == layout.Fixed64 {
			return nil, 0, true
		}
		return narrow[uint64], 0, s == layout.Long
	case arrow.INT8:
		return narrow[int8], 0, s == layout.Int
	case arrow.INT16:
		return narrow[int16], 0, s == layout.Int
	case arrow.UINT8:
		return narrow[uint8], 0, s == layout.Int
	case arrow.UINT16:
		return narrow[uint16], 0, s == layout.Int
	}
	return nil, 0, false
}
