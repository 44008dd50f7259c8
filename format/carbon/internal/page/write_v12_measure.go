package page

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// Measures of formats 1 and 2; v12_measure.go has the reader. The form is chosen as CarbonData 1.0.0 does
// (CarbonFactDataHandlerColumnar, ValueCompressionUtil), with two exceptions. One is a form that would not reproduce
// the numbers, which CarbonData's writer does not check. The other is a form that CarbonData 1.2 to 1.6 would misread,
// because these releases derive the form by other rules; they misread some of CarbonData's own files, too. In both
// cases all bytes of the numbers are written, in a way that all releases can read.

// exactDigits is a number of digits after the decimal point with which no number is ever narrowed: 10^400 is infinite.
const exactDigits = 400

// exactWhole is the bound up to which release 1.0, which computes with doubles, subtracts whole numbers exactly.
const exactWhole = 1 << 53

// v12Measure returns the bytes of a measure's page and the metadata with which it was encoded. With as10, numbers are
// narrowed wherever release 1.0 does so.
func v12Measure(c *schema.Column, x *Cells, as10 bool) ([]byte, layout.MeasureMeta) {
	switch c.Type {
	case layout.TypeDecimal:
		return v12Decimals(c, x)
	case layout.TypeDouble:
		return v12Doubles(x, as10)
	}
	return v12Integers(x, as10)
}

// v12Integers narrows whole numbers. A null is stored as 0 and does not count for the bounds.
func v12Integers(x *Cells, as10 bool) ([]byte, layout.MeasureMeta) {
	hi, lo := int64(math.MinInt64), int64(math.MaxInt64)
	for i, v := range x.Ints {
		if !x.Null(i) {
			hi, lo = max(hi, v), min(lo, v)
		}
	}
	m := layout.MeasureMeta{Kind: 'd', Max: hi, Min: lo}
	form, w, _ := formOf(&m)
	lost := form == fromMax && lo <= hi && (hi-lo < 0 || hi >= exactWhole || hi <= -exactWhole)
	if lost || !as10 && !(wholeForm(&m) == v12Form{form, w.size()}) {
		m.Kind = 'l'
		form, w, _ = formOf(&m)
	}
	raw := make([]byte, 0, len(x.Ints)*w.size())
	for _, v := range x.Ints {
		if form == fromMax {
			v = hi - v
		}
		raw = appendWhole(raw, v, w.size())
	}
	return raw, m
}

// v12Form is a form and the bytes per number.
type v12Form struct {
	form measureForm
	size int
}

// wholeForm returns the form that CarbonData 1.2 to 1.6 assume for a page of whole numbers
// (EncodingFactory.createDecoderLegacy).
func wholeForm(m *layout.MeasureMeta) v12Form {
	hi, lo := m.Max.(int64), m.Min.(int64)
	plain, delta := narrowest(lo, hi).Width(), 8
	if d := hi - lo; (hi^lo)&(hi^d) >= 0 { // otherwise the difference overflowed
		delta = narrowest(d, d).Width()
	}
	if plain <= delta {
		return v12Form{asIs, plain}
	}
	return v12Form{fromMax, delta}
}

// doubleForm is wholeForm for floating-point numbers. These releases cannot read narrowed numbers that have no digits
// after the decimal point.
func doubleForm(m *layout.MeasureMeta) v12Form {
	hi, lo := m.Max.(float64), m.Min.(float64)
	direct := v12Form{asIs, 8}
	if m.Digits == 0 {
		if a, z := toLong(lo), toLong(hi); narrowest(a, z).Width() == 8 {
			return direct
		}
		return v12Form{}
	}
	tens, most := math.Pow(10, float64(m.Digits)), max(math.Abs(hi), math.Abs(lo))
	if tens*most > math.MaxInt64 {
		return direct
	}
	d := toLong(tens * (hi - lo))
	plain, delta := narrowest(0, toLong(tens*most)).Width(), narrowest(d, d).Width()
	switch {
	case plain > delta:
		return v12Form{fromMaxTens, delta}
	case plain < 8:
		return v12Form{scaledUp, plain}
	}
	return direct
}

// v12Doubles narrows floating-point numbers if that reproduces them bit for bit.
func v12Doubles(x *Cells, as10 bool) ([]byte, layout.MeasureMeta) {
	hi, lo := -math.MaxFloat64, math.MaxFloat64
	digits := 0
	for i, v := range x.Nums {
		if x.Null(i) {
			continue
		}
		if v > hi {
			hi = v
		}
		if v < lo {
			lo = v
		}
		digits = max(digits, plainDigits(v))
	}
	m := layout.MeasureMeta{Kind: 'n', Max: hi, Min: lo, Digits: digits}
	form, w, _ := formOf(&m)
	known := as10 || doubleForm(&m) == v12Form{form, w.size()} && (form != asIs || w == javaDouble)
	if known && (digits <= 22 || form == asIs) { // 10^22 is the last power of ten that a double holds
		if raw, ok := smallDoubles(x, &m, form, w, as10); ok {
			return raw, m
		}
	}
	// if all numbers are 0, or there are none, they would be narrowed nevertheless
	if m.Digits = exactDigits; hi <= 0 && lo >= 0 {
		m.Max, m.Min = 1.0, 0.0
	}
	raw, _ := smallDoubles(x, &m, asIs, javaDouble, true)
	return raw, m
}

// smallDoubles encodes numbers in a form. ok is false if some of them would be decoded to other numbers by release 1.0
// or, unless as10 is set, by later releases.
func smallDoubles(x *Cells, m *layout.MeasureMeta, form measureForm, w javaWidth, as10 bool) (raw []byte, ok bool) {
	raw = make([]byte, 0, len(x.Nums)*w.size())
	max := m.Max.(float64)
	d := newTens(max, m.Digits)
	later := float64(toLong(d.tens * max)) // the number from which later releases subtract
	for i, v := range x.Nums {
		small := v
		switch form {
		case fromMax:
			small = max - v
		case scaledUp:
			small = javaRound(d.tens * v)
		case fromMaxTens:
			small = javaRound(d.deltaOf(v) * d.tens)
		}
		if w == javaDouble {
			raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(small))
		} else {
			raw = appendWhole(raw, javaWhole(small, w), w.size())
		}
		if x.Null(i) {
			continue
		}
		if math.Float64bits(d.decode(form, w, small)) != math.Float64bits(v) || !as10 && form == fromMaxTens &&
			(later-small)/d.tens != v {
			return nil, false
		}
	}
	return raw, true
}

// decode decodes a number as readers do.
func (d *tensDelta) decode(form measureForm, w javaWidth, small float64) float64 {
	if w != javaDouble {
		if small != math.Trunc(small) || math.Abs(small) >= 1<<63 {
			return math.NaN()
		}
		small = float64(int64(small)) // -0 is 0
	}
	switch form {
	case fromMax:
		return d.max - small
	case scaledUp:
		return small / d.tens
	case fromMaxTens:
		return d.from(small)
	}
	return small
}

// deltaOf returns max - v, computed with the shortest decimals that round to these two doubles.
func (d *tensDelta) deltaOf(v float64) float64 {
	if s := math.Round(v * d.tens); math.Abs(s) < 1<<53 && s/d.tens == v && math.Abs(d.scaled-s) < 1<<53 {
		return (d.scaled - s) / d.tens
	}
	a, ok1 := shortest(d.max)
	b, ok2 := shortest(v)
	if !ok1 || !ok2 {
		return d.max - v
	}
	f, _ := a.Sub(a, b).Float64()
	return f
}

// javaRound is Java's Math.round: halves are rounded up.
func javaRound(v float64) float64 {
	f := math.Floor(v)
	if v-f >= 0.5 {
		f++
	}
	return f
}

// javaWhole converts a floating-point number to a whole number as Java does: saturating at the bounds of long, or of
// int if the type is narrower than long; for types narrower than int the caller then drops the high bits. Only the 0 of
// a null ever loses bits.
func javaWhole(v float64, w javaWidth) int64 {
	lo, hi := math.MinInt64, math.MaxInt64
	if w < javaLong64 {
		lo, hi = math.MinInt32, math.MaxInt32
	}
	switch {
	case v != v:
		return 0
	case v <= float64(lo):
		return int64(lo)
	case v >= float64(hi):
		return int64(hi)
	}
	return int64(v)
}

// plainDigits returns the number of digits after the decimal point in Java's text of a number, which is at least one.
// For numbers that Java writes with an exponent (at least 10^7, or less than 10^-3) it counts the digits that remain
// after the exponent is applied, which may be none.
func plainDigits(v float64) int {
	v = math.Abs(v)
	if v != v || math.IsInf(v, 0) {
		return 1
	}
	s := strconv.FormatFloat(v, 'e', -1, 64)
	mantissa, exp, _ := strings.Cut(s, "e")
	_, fraction, _ := strings.Cut(mantissa, ".")
	e, _ := strconv.Atoi(exp)
	if v == 0 || v >= 1e-3 && v < 1e7 {
		return max(1, len(fraction)-e)
	}
	return max(0, max(1, len(fraction))-e)
}

// v12Decimals encodes each decimal as length, scale and number; a null is 0 with scale 0.
func v12Decimals(c *schema.Column, x *Cells) (raw []byte, m layout.MeasureMeta) {
	m.Kind = 'b'
	for i, d := range x.Decs {
		scale := c.Scale
		if x.Null(i) {
			scale = 0
		} else {
			m.Digits = int(c.Scale)
		}
		v := DecimalBytes(d, scale)
		raw = append(binary.BigEndian.AppendUint32(raw, uint32(len(v))), v...)
	}
	return raw, m
}
