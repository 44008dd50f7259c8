package write

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"stoa/internal/thrift"
)

// LongestBound is how many bytes of a bound are written; longer ones are cut.
const LongestBound = 64

// LeafBounds are the minimum and the maximum of some values, in PLAIN encoding without a length; nil if there are none.
type LeafBounds struct {
	Min, Max []byte
	unknown  bool // there are values, but nothing that could be said of them: nothing but NaN
}

// boundsOf are those of v, of which nothing is kept.
func (o ordering) boundsOf(v dense, width int) (b LeafBounds) {
	if v.n == 0 {
		return b
	}
	switch {
	case o == orderNone:
		b.unknown = true
	case o == orderBool:
		lo, hi := span(v.fixed[:v.n])
		b.Min, b.Max = []byte{lo}, []byte{hi}
	case o == orderSigned && width == 4:
		lo, hi := span(wordsOf[int32](v.fixed))
		b.Min, b.Max = bytes4(uint32(lo)), bytes4(uint32(hi))
	case o == orderUnsigned && width == 4:
		lo, hi := span(wordsOf[uint32](v.fixed))
		b.Min, b.Max = bytes4(lo), bytes4(hi)
	case o == orderSigned:
		lo, hi := span(wordsOf[int64](v.fixed))
		b.Min, b.Max = bytes8(uint64(lo)), bytes8(uint64(hi))
	case o == orderUnsigned:
		lo, hi := span(wordsOf[uint64](v.fixed))
		b.Min, b.Max = bytes8(lo), bytes8(hi)
	case o == orderFloat && width == 4:
		lo, hi, ok := floatSpan(wordsOf[float32](v.fixed))
		if b.unknown = !ok; ok {
			b.Min, b.Max = bytes4(math.Float32bits(lo)), bytes4(math.Float32bits(hi))
		}
	case o == orderFloat:
		lo, hi, ok := floatSpan(wordsOf[float64](v.fixed))
		if b.unknown = !ok; ok {
			b.Min, b.Max = bytes8(math.Float64bits(lo)), bytes8(math.Float64bits(hi))
		}
	case o == orderHalf:
		b = halfSpan(wordsOf[uint16](v.fixed))
	default:
		b = o.byteSpan(v, width)
	}
	return b
}

func bytes4(x uint32) []byte { return binary.LittleEndian.AppendUint32(nil, x) }
func bytes8(x uint64) []byte { return binary.LittleEndian.AppendUint64(nil, x) }

func span[T byte | int32 | int64 | uint32 | uint64](v []T) (lo, hi T) {
	lo, hi = v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo, hi
}

// floatSpan passes over NaN; of zeros, which are equal, the least is -0 and the greatest +0.
func floatSpan[T float32 | float64](v []T) (lo, hi T, ok bool) {
	lo, hi = T(math.Inf(1)), T(math.Inf(-1))
	for _, x := range v {
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
		ok = ok || x == x
	}
	if lo == 0 {
		lo = T(math.Copysign(0, -1))
	}
	if hi == 0 {
		hi = 0
	}
	return lo, hi, ok
}

// halfOrder makes of the bits of a float16 a number that is ordered as they are; NaN have none.
func halfOrder(x uint16) (n int, ok bool) {
	if x&0x7fff > 0x7c00 {
		return 0, false
	}
	if x >= 0x8000 {
		return -int(x & 0x7fff), true
	}
	return int(x), true
}

func halfSpan(v []uint16) (b LeafBounds) {
	var lo, hi uint16
	least, most := math.MaxInt, math.MinInt
	for _, x := range v {
		if n, ok := halfOrder(x); ok {
			if n < least {
				least, lo = n, x
			}
			if n > most {
				most, hi = n, x
			}
		}
	}
	if b.unknown = least > most; b.unknown {
		return b
	}
	if least == 0 {
		lo = 0x8000
	}
	if most == 0 {
		hi = 0
	}
	b.Min, b.Max = binary.LittleEndian.AppendUint16(nil, lo), binary.LittleEndian.AppendUint16(nil, hi)
	return b
}

func (o ordering) byteSpan(v dense, width int) (b LeafBounds) {
	lo := v.at(0, width)
	hi := lo
	for i := 1; i < v.n; i++ {
		if x := v.at(i, width); o.compare(x, lo, width) < 0 {
			lo = x
		} else if o.compare(x, hi, width) > 0 {
			hi = x
		}
	}
	b.Min, b.Max = append([]byte{}, lo...), append([]byte{}, hi...)
	return b
}

// compare compares two values.
func (o ordering) compare(a, b []byte, width int) int {
	switch {
	case o == orderBytes:
		return bytes.Compare(a, b)
	case o == orderBool:
		return int(a[0]) - int(b[0])
	case o == orderDecimal:
		if s, t := int8(a[0]) < 0, int8(b[0]) < 0; s != t {
			if s {
				return -1
			}
			return 1
		}
		return bytes.Compare(a, b)
	case o == orderHalf:
		x, _ := halfOrder(binary.LittleEndian.Uint16(a))
		y, _ := halfOrder(binary.LittleEndian.Uint16(b))
		return x - y
	case o == orderFloat && width == 4:
		return compareOrdered(math.Float32frombits(binary.LittleEndian.Uint32(a)),
			math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case o == orderFloat:
		return compareOrdered(math.Float64frombits(binary.LittleEndian.Uint64(a)),
			math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case width == 4 && o == orderSigned:
		return compareOrdered(int32(binary.LittleEndian.Uint32(a)), int32(binary.LittleEndian.Uint32(b)))
	case width == 4:
		return compareOrdered(binary.LittleEndian.Uint32(a), binary.LittleEndian.Uint32(b))
	case o == orderSigned:
		return compareOrdered(int64(binary.LittleEndian.Uint64(a)), int64(binary.LittleEndian.Uint64(b)))
	}
	return compareOrdered(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
}

func compareOrdered[T int32 | int64 | uint32 | uint64 | float32 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// join widens b by those of other values.
func (b *LeafBounds) join(c LeafBounds, o ordering, width int) {
	b.unknown = b.unknown || c.unknown
	if c.Min != nil && (b.Min == nil || o.compare(c.Min, b.Min, width) < 0) {
		b.Min = c.Min
	}
	if c.Max != nil && (b.Max == nil || o.compare(c.Max, b.Max, width) > 0) {
		b.Max = c.Max
	}
}

// writtenBounds are bounds as they stand in the file: perhaps cut.
type writtenBounds struct {
	Min, Max           []byte
	MinExact, MaxExact bool
}

// Written cuts strings that are too long. A greatest value that cannot be cut so that it stays above all is nil.
func (b *LeafBounds) Written(variable, text bool) writtenBounds {
	w := writtenBounds{b.Min, b.Max, true, true}
	if !variable {
		return w
	}
	if len(w.Min) > LongestBound {
		w.Min, w.MinExact = cutAt(w.Min, text), false
	}
	if len(w.Max) > LongestBound {
		w.Max, w.MaxExact = above(cutAt(w.Max, text), text), false
	}
	return w
}

// cutAt is the beginning of b, in text whole characters.
func cutAt(b []byte, text bool) []byte {
	n := LongestBound
	for text && n > LongestBound-utf8.UTFMax && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n:n]
}

// above is a string that is greater than all that begin with b, and not longer; nil if there is none.
func above(b []byte, text bool) []byte {
	if !text || !utf8.Valid(b) {
		for n := len(b); n > 0; n-- {
			if b[n-1] < 0xff {
				out := append([]byte{}, b[:n]...)
				out[n-1]++
				return out
			}
		}
		return nil
	}
	for len(b) > 0 {
		r, n := utf8.DecodeLastRune(b)
		b = b[: len(b)-n : len(b)-n]
		if r++; r == 0xd800 {
			r = 0xe000
		}
		if r <= utf8.MaxRune {
			return utf8.AppendRune(b, r)
		}
	}
	return nil
}

// writeStatistics writes a Statistics.
func writeStatistics(w *thrift.Writer, id int16, b writtenBounds, nulls int64) {
	w.Struct(id)
	w.I64(3, nulls)
	if b.Max != nil {
		w.Bytes(5, b.Max)
	}
	if b.Min != nil {
		w.Bytes(6, b.Min)
	}
	if b.Max != nil {
		w.Bool(7, b.MaxExact)
	}
	if b.Min != nil {
		w.Bool(8, b.MinExact)
	}
	w.End()
}
