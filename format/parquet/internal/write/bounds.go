package write

import (
	"bytes"
	"encoding/binary"
	"math"
	"unicode/utf8"

	"stoa/internal/thrift"
)

// MaxBound is the size in bytes of the longest bound that is written; longer strings are truncated.
const MaxBound = 64

// LeafBounds are the minimum and the maximum of some values in PLAIN encoding, without a length; nil if there are no
// values.
type LeafBounds struct {
	Min, Max []byte
	unknown  bool // there are values, but none of them has an order: only NaN
}

// boundsOf returns the bounds of v. They do not share its memory.
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

// floatSpan ignores NaN. Zeros of different sign are equal, but -0 is returned as the minimum and +0 as the maximum.
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

// halfOrder maps the bits of a float16 to an integer with the same order; ok is false for NaN, which has none.
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
	minKey, maxKey := math.MaxInt, math.MinInt
	for _, x := range v {
		if n, ok := halfOrder(x); ok {
			if n < minKey {
				minKey, lo = n, x
			}
			if n > maxKey {
				maxKey, hi = n, x
			}
		}
	}
	if b.unknown = minKey > maxKey; b.unknown {
		return b
	}
	if minKey == 0 {
		lo = 0x8000
	}
	if maxKey == 0 {
		hi = 0
	}
	b.Min, b.Max = binary.LittleEndian.AppendUint16(nil, lo), binary.LittleEndian.AppendUint16(nil, hi)
	return b
}

func (o ordering) byteSpan(v dense, width int) (b LeafBounds) {
	lo := v.at(0, width)
	hi := lo
	if o != orderBytes && o != orderDecimal {
		for i := 1; i < v.n; i++ {
			if x := v.at(i, width); o.compare(x, lo, width) < 0 {
				lo = x
			} else if o.compare(x, hi, width) > 0 {
				hi = x
			}
		}
	} else {
		lo, hi = o.prefixSpan(v, width)
	}
	b.Min, b.Max = append([]byte{}, lo...), append([]byte{}, hi...)
	return b
}

// prefixSpan is byteSpan for values that compare by their bytes. The first eight bytes suffice to place most values
// between the bounds.
func (o ordering) prefixSpan(v dense, width int) (lo, hi []byte) {
	sign := uint64(0)
	if o == orderDecimal {
		sign = 1 << 63
	}
	lo = v.at(0, width)
	hi = lo
	least := prefix(lo) ^ sign
	most := least
	for i := 1; i < v.n; i++ {
		x := v.at(i, width)
		p := prefix(x) ^ sign
		if p > least && p < most {
			continue
		}
		if p < least || p == least && o.compare(x, lo, width) < 0 {
			lo, least = x, p
		}
		if p > most || p == most && o.compare(x, hi, width) > 0 {
			hi, most = x, p
		}
	}
	return lo, hi
}

// prefix returns the first eight bytes as a number with the same order; shorter values are padded with zeros.
func prefix(x []byte) uint64 {
	if len(x) >= 8 {
		return binary.BigEndian.Uint64(x)
	}
	if cap(x) >= 8 { // bytes beyond the value are masked
		return binary.BigEndian.Uint64(x[:8]) &^ (math.MaxUint64 >> (8 * len(x)))
	}
	n := uint64(0)
	for i, c := range x {
		n |= uint64(c) << (56 - 8*i)
	}
	return n
}

// compare compares two PLAIN values of width bytes.
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

// widen extends b by the bounds of other values.
func (b *LeafBounds) widen(c LeafBounds, o ordering, width int) {
	b.unknown = b.unknown || c.unknown
	if c.Min != nil && (b.Min == nil || o.compare(c.Min, b.Min, width) < 0) {
		b.Min = c.Min
	}
	if c.Max != nil && (b.Max == nil || o.compare(c.Max, b.Max, width) > 0) {
		b.Max = c.Max
	}
}

// writtenBounds are bounds as they are stored, with long ones truncated.
type writtenBounds struct {
	Min, Max           []byte
	MinExact, MaxExact bool
}

// Truncated truncates long strings. A maximum is nil if no truncated string is greater than it.
func (b *LeafBounds) Truncated(variable, text bool) writtenBounds {
	w := writtenBounds{b.Min, b.Max, true, true}
	if !variable {
		return w
	}
	if len(w.Min) > MaxBound {
		w.Min, w.MinExact = boundPrefix(w.Min, text), false
	}
	if len(w.Max) > MaxBound {
		w.Max, w.MaxExact = upperBound(boundPrefix(w.Max, text), text), false
	}
	return w
}

// boundPrefix returns the beginning of b; if it is text, only whole characters.
func boundPrefix(b []byte, text bool) []byte {
	n := MaxBound
	for text && n > MaxBound-utf8.UTFMax && !utf8.RuneStart(b[n]) {
		n--
	}
	return b[:n:n]
}

// upperBound returns a string that is greater than all strings with the prefix b, and no longer than b; nil if there is
// none.
func upperBound(b []byte, text bool) []byte {
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

// nans counts the values that are NaN.
func (o ordering) nans(v dense, width int) (n int64) {
	switch {
	case o != orderFloat:
	case width == 4:
		for _, x := range wordsOf[float32](v.fixed) {
			if x != x {
				n++
			}
		}
	default:
		for _, x := range wordsOf[float64](v.fixed) {
			if x != x {
				n++
			}
		}
	}
	return n
}
