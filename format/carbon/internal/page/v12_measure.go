package page

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/vec"
	"stoa/wire"
)

// The encoding of a measure's page is not recorded. The writer chooses it from min and max, and the reader repeats that
// choice by the same rules (ValueCompressionUtil of 1.0.0).

// javaWidth is the Java type in which numbers are stored.
type javaWidth uint8

const (
	javaByte javaWidth = iota
	javaShort
	javaInt
	javaLong64
	javaFloat
	javaDouble
)

func (w javaWidth) size() int {
	switch w {
	case javaByte:
		return 1
	case javaShort:
		return 2
	case javaInt, javaFloat:
		return 4
	}
	return 8
}

// widthFor returns the narrowest type for a number with the given number of digits after the decimal point.
func widthFor(v float64, digits int, selected int8) javaWidth {
	switch {
	case digits == 0:
		switch {
		case v >= math.MinInt8 && v <= math.MaxInt8:
			return javaByte
		case v >= math.MinInt16 && v <= math.MaxInt16:
			return javaShort
		case v >= math.MinInt32 && v <= math.MaxInt32:
			return javaInt
		case v >= math.MinInt64 && v <= math.MaxInt64:
			return javaLong64
		}
	case selected == 1 && v >= math.SmallestNonzeroFloat32 && v <= math.MaxFloat32 && float64(float32(v)) == v:
		return javaFloat
	}
	return javaDouble
}

// measureForm is the encoding of the numbers of a page; digits are those of MeasureMeta.
type measureForm uint8

const (
	asIs        measureForm = iota // v
	fromMax                        // max - v
	scaledUp                       // v·10^digits
	fromMaxTens                    // (max - v)·10^digits
	decimals                       // i32 length, scale, big-endian digits
)

var formNames = [...]string{"plain", "delta from the max", "times a power of ten",
	"delta times a power of ten", "decimals"}

// formOf returns the encoding that the writer chose; bounds that do not fit the kind are an error.
func formOf(m *layout.MeasureMeta) (measureForm, javaWidth, error) {
	bad := func() (measureForm, javaWidth, error) {
		return 0, 0, fault.Rel(0, 0, "encoder_meta", "type %q cannot have the bounds %v and %v", m.Kind, m.Min, m.Max)
	}
	switch m.Kind {
	case 'b':
		return decimals, javaByte, nil
	case 'l':
		return asIs, javaLong64, nil
	case 'd':
		max, ok1 := m.Max.(int64)
		min, ok2 := m.Min.(int64)
		if !ok1 || !ok2 {
			return bad()
		}
		// the difference may overflow here, as it does in the writer
		f, w := narrower(widthFor(float64(max), m.Digits, m.Selected), widthFor(float64(max-min), m.Digits, m.Selected))
		return f, w, nil
	case 'n':
		max, ok1 := m.Max.(float64)
		min, ok2 := m.Min.(float64)
		if !ok1 || !ok2 {
			return bad()
		}
		f, w := floatingForm(m, max, min)
		return f, w, nil
	}
	return bad()
}

// narrower chooses between plain numbers and differences from max: the narrower of the two, or plain numbers if both
// are equally wide.
func narrower(plain, delta javaWidth) (measureForm, javaWidth) {
	switch {
	case plain.size() > delta.size():
		return fromMax, delta
	case plain.size() < delta.size(): // here the writer uses the wider type
		return asIs, delta
	}
	return asIs, plain
}

func floatingForm(m *layout.MeasureMeta, max, min float64) (measureForm, javaWidth) {
	largest := min
	if math.Abs(max) >= math.Abs(min) {
		largest = max
	}
	plain, delta := widthFor(largest, m.Digits, m.Selected), widthFor(max-min, m.Digits, m.Selected)
	if m.Digits == 0 {
		return narrower(plain, delta)
	}
	tens := math.Pow(10, float64(m.Digits))
	form, w := asIs, plain
	for _, c := range []struct { // the narrowest form; the first of several equally narrow ones
		form measureForm
		w    javaWidth
	}{{fromMax, delta}, {scaledUp, widthFor(tens*largest, 0, m.Selected)},
		{fromMaxTens, widthFor(tens*(max-min), 0, m.Selected)}} {
		if c.w.size() < w.size() {
			form, w = c.form, c.w
		}
	}
	return form, w
}

// v12Measure reports whether a page is a measure's page as CarbonData wrote it up to 1.1: in formats 1 and 2, and also
// in format 3, where the metadata has the same numbers but is not a Java object.
func (p *StoredPage) v12Measure() bool {
	return !p.Col.Dimension && p.Col.Parent == nil && (p.Version < 3 || p.Encoders.Has(layout.EncDelta))
}

// parseMeasureMeta3 reads the metadata of a measure's page of format 3 as 1.1 wrote it (big-endian):
//
//	type           u16, a letter
//	max, min, unused   f64 ('n') or i64 ('d') each; nothing ('b')
//	digits         i32
//	selected       u8
func parseMeasureMeta3(c layout.BigEndian) (m layout.MeasureMeta) {
	m.Kind = byte(c.U16("type"))
	switch m.Kind {
	case 'n':
		m.Max, m.Min = math.Float64frombits(uint64(c.I64("maxValue"))), math.Float64frombits(uint64(c.I64("minValue")))
		c.I64("uniqueValue")
	case 'd':
		m.Max, m.Min = c.I64("maxValue"), c.I64("minValue")
		c.I64("uniqueValue")
	case 'b':
	default:
		c.Fail(0, 2, "type", "expected n, d or b, found %q", m.Kind)
	}
	m.Digits, m.Selected = int(c.I32("decimal")), int8(c.U8("dataTypeSelected"))
	if c.Err() == nil && (m.Digits < 0 || m.Digits > 400) {
		c.Fail(c.Pos()-5, 4, "decimal", "%d digits after the decimal point", m.Digits)
	}
	return m
}

// measure12 decodes a page for which v12Measure is true.
func (c *Content) measure12(dst *vec.Vector) error {
	if len(c.P.Meta) != 1 {
		return fault.Rel(0, 0, "encoder_meta", "expected one, found %d", len(c.P.Meta))
	}
	cur := wire.NewInnerCursor(c.P.Meta[0], fault.Span{}, "encoder_meta")
	parse := layout.ParseMeasureMeta
	if c.P.Version == 3 {
		parse = parseMeasureMeta3
	}
	m := parse(layout.BigEndian{Cursor: cur})
	if cur.Err() != nil {
		return Relative(cur.Err())
	}
	form, w, err := formOf(&m)
	if err != nil {
		return err
	}
	if form == decimals {
		if dst.Type.ID() != arrow.DECIMAL128 {
			return c.unknownMeasure(form, w, dst)
		}
		return c.leaves(dst, 4)
	}
	if err := c.setCount(w.size()); err != nil {
		return err
	}
	at := dst.Extend(c.N)
	switch dst.Type.ID() {
	case arrow.FLOAT64:
		err = c.doubles(vec.Fixed[float64](dst, at), &m, form, w)
	case arrow.INT8:
		err = wholes(c, vec.Fixed[int8](dst, at), &m, form, w)
	case arrow.INT16:
		err = wholes(c, vec.Fixed[int16](dst, at), &m, form, w)
	case arrow.INT32:
		err = wholes(c, vec.Fixed[int32](dst, at), &m, form, w)
	case arrow.INT64:
		err = wholes(c, vec.Fixed[int64](dst, at), &m, form, w)
	default:
		err = c.unknownMeasure(form, w, dst)
	}
	if err != nil {
		return err
	}
	c.setNulls(dst, at)
	return nil
}

func (c *Content) unknownMeasure(form measureForm, w javaWidth, dst *vec.Vector) error {
	return fault.Unsupportedf(fault.Span{}, "encoder_meta", "numbers of %d bytes, %s, for a column of type %s",
		w.size(), formNames[form], dst.Type)
}

// isNull reports whether the null bits mark entry i.
func (c *Content) isNull(i int) bool { return i>>3 < len(c.Nulls) && c.Nulls[i>>3]>>(i&7)&1 != 0 }

// wholes decodes whole numbers. The values stored for nulls are not checked, because min and max do not cover them.
func wholes[T integer](c *Content, dst []T, m *layout.MeasureMeta, form measureForm, w javaWidth) error {
	if w >= javaFloat || form != asIs && form != fromMax {
		return fault.Unsupportedf(fault.Span{}, "encoder_meta", "numbers of %d bytes, %s, for whole numbers",
			w.size(), formNames[form])
	}
	var base int64
	switch max := m.Max.(type) {
	case int64:
		base = max
	case float64:
		base = int64(max)
	}
	if ints(dst, c.Raw, w.size(), base, form == fromMax) {
		return checkWhole(c, dst, m)
	}
	for i := range dst {
		v := intAt(c.Raw, i, w.size())
		if form == fromMax {
			v = base - v
		}
		if int64(T(v)) != v && !c.isNull(i) {
			return fault.Rel(i*w.size(), w.size(), "", "entry %d: %d does not fit type %s", i, v, c.P.Col.Type)
		}
	}
	return checkWhole(c, dst, m)
}

// doubles decodes floating-point numbers.
func (c *Content) doubles(dst []float64, m *layout.MeasureMeta, form measureForm, w javaWidth) error {
	get := func(i int) float64 { return float64(intAt(c.Raw, i, w.size())) }
	if w == javaFloat {
		// CarbonData's reader cannot read these either
		return fault.Unsupportedf(fault.Span{}, "encoder_meta", "numbers stored as floats")
	}
	if w == javaDouble {
		get = func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(c.Raw[8*i:])) }
	}
	max, _ := m.Max.(float64)
	if n, ok := m.Max.(int64); ok {
		max = float64(n)
	}
	switch form {
	case asIs:
		for i := range dst {
			dst[i] = get(i)
		}
	case fromMax:
		for i := range dst {
			dst[i] = max - get(i)
		}
	case scaledUp:
		tens := math.Pow(10, float64(m.Digits))
		for i := range dst {
			dst[i] = get(i) / tens
		}
	case fromMaxTens:
		d := newTens(max, m.Digits)
		for i := range dst {
			dst[i] = d.from(get(i))
		}
	}
	return c.checkFloats(dst, m)
}

// tensDelta decodes (max - v)·10^digits. Like the writer, which uses BigDecimal, it subtracts decimals and not binary
// numbers.
type tensDelta struct {
	digits int
	tens   float64
	max    float64
	scaled float64 // max·10^digits if that is a whole number less than 2^53, else NaN
}

func newTens(max float64, digits int) tensDelta {
	d := tensDelta{digits: digits, tens: math.Pow(10, float64(digits)), max: max, scaled: math.NaN()}
	if digits <= 22 { // 10^22 is the last power of ten that a double holds
		if s := math.Round(max * d.tens); math.Abs(s) < 1<<53 && s/d.tens == max {
			d.scaled = s
		}
	}
	return d
}

// from returns max - v/10^digits, computed with the shortest decimals that round to these two doubles.
func (d *tensDelta) from(v float64) float64 {
	// both are decimals with d's number of digits, so the difference is exact
	if k := d.scaled - v; math.Abs(k) < 1<<53 && math.Abs(v) < 1e15 {
		return k / d.tens
	}
	rest := d.max
	a, ok1 := shortest(d.max)
	b, ok2 := shortest(v / d.tens)
	if ok1 && ok2 {
		rest, _ = a.Sub(a, b).Float64()
	}
	return rest
}

func shortest(f float64) (*big.Rat, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	return new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
}
