package page

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// Measures of formats 1 and 2: see v12_measure.go for how they are read. The form is chosen as CarbonData 1.0.0
// does (CarbonFactDataHandlerColumnar, ValueCompressionUtil), but not where that would not give the numbers
// back, which the real writer does not look at; nor where CarbonData 1.2 to 1.6 would read something else,
// because they find the form by other rules (of real files, too). Then all bytes of the numbers are written, in
// a way that all releases read.

// exactDigits after the decimal point make no number small, whatever it is: 10^400 is infinite.
const exactDigits = 400

// exactWhole is the largest whole number up to which 1.0, which computes with doubles, subtracts rightly.
const exactWhole = 1 << 53

// v12Measure gives the bytes of a page of a measure, and the numbers from which it was made small. as10: small
// wherever 1.0 does.
func v12Measure(c *schema.Column, x *Cells, as10 bool) ([]byte, layout.MeasureMeta) {
	switch c.Type {
	case layout.TypeDecimal:
		return v12Decimals(c, x)
	case layout.TypeDouble:
		return v12Doubles(x, as10)
	}
	return v12Integers(x, as10)
}

// v12Integers makes whole numbers small. A null is 0 and has no part in the bounds.
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

// v12Form is a form and its bytes a number.
type v12Form struct {
	form measureForm
	size int
}

// wholeForm is the form that CarbonData 1.2 to 1.6 take for that of a page of whole numbers
// (EncodingFactory.createDecoderLegacy).
func wholeForm(m *layout.MeasureMeta) v12Form {
	hi, lo := m.Max.(int64), m.Min.(int64)
	plain, delta := narrowest(lo, hi).Width(), 8
	if d := hi - lo; (hi^lo)&(hi^d) >= 0 { // else it overflowed
		delta = narrowest(d, d).Width()
	}
	if plain <= delta {
		return v12Form{asIs, plain}
	}
	return v12Form{fromMax, delta}
}

// doubleForm is wholeForm for floating-point numbers. They cannot read numbers without digits after the decimal point
// that were made small.
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

// v12Doubles makes floating numbers small, if they come back bit for bit.
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
	// bounds of nothing but 0, or of nothing, would be small nevertheless
	if m.Digits = exactDigits; hi <= 0 && lo >= 0 {
		m.Max, m.Min = 1.0, 0.0
	}
	raw, _ := smallDoubles(x, &m, asIs, javaDouble, true)
	return raw, m
}

// smallDoubles encodes numbers in a form. ok is false if some of them would come back as others: to readers of
// 1.0, and of later releases unless as10.
func smallDoubles(x *Cells, m *layout.MeasureMeta, form measureForm, w javaWidth, as10 bool) (raw []byte, ok bool) {
	raw = make([]byte, 0, len(x.Nums)*w.size())
	max := m.Max.(float64)
	d := newTens(max, m.Digits)
	later := float64(toLong(d.tens * max)) // what later releases subtract from
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

// decode is what a reader makes of a number.
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

// deltaOf is max - v, both taken for the shortest decimals that mean them.
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

// javaRound is Math.round: halves go up.
func javaRound(v float64) float64 {
	f := math.Floor(v)
	if v-f >= 0.5 {
		f++
	}
	return f
}

// javaWhole is how Java makes a whole number of a floating one: through int if the type is narrower, and never
// beyond the type's bounds, but with its highest bits lost. What is lost is only ever the 0 of a null.
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

// plainDigits is how many digits after the decimal point Java writes of a number: at least one, but of those that it
// writes with an exponent (from 10^7, and below 10^-3) only those that are left without it.
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

// v12Decimals gives each decimal its length, its digits after the decimal point and its number; a null is 0 without
// digits after the decimal point.
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
