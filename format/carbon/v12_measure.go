package carbon

import (
	"encoding/binary"
	"math"
	"math/big"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/vec"
	"stoa/wire"
)

// How a page of a measure is stored does not stand in the file: it follows from the greatest and the least value, as the writer
// chose it, and so it must be found again by the same rules (ValueCompressionUtil of 1.0.0).

// javaWidth is a type that the writer stores numbers as.
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

// widthFor is the smallest type for a number. digits are those behind the point.
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

// measureForm is how the numbers of a page were made small.
type measureForm uint8

const (
	asIs        measureForm = iota // v
	fromMax                        // max - v
	scaledUp                       // v·10^digits
	fromMaxTens                    // (max - v)·10^digits
	decimals                       // i32 length, scale, big-endian digits
)

var formNames = [...]string{"as they are", "delta from the greatest", "times a power of ten", "delta times a power of ten", "decimals"}

// form finds how the numbers were stored.
func (m *measureMeta) form() (measureForm, javaWidth, error) {
	bad := func() (measureForm, javaWidth, error) {
		return 0, 0, fault.Rel(0, 0, "encoder_meta", "type %q with bounds %v and %v", m.kind, m.min, m.max)
	}
	switch m.kind {
	case 'b':
		return decimals, javaByte, nil
	case 'l':
		return asIs, javaLong64, nil
	case 'd':
		max, ok1 := m.max.(int64)
		min, ok2 := m.min.(int64)
		if !ok1 || !ok2 {
			return bad()
		}
		f, w := smaller(widthFor(float64(max), m.digits, m.selected), widthFor(float64(max-min), m.digits, m.selected)) // the difference may wrap, as it did
		return f, w, nil
	case 'n':
		max, ok1 := m.max.(float64)
		min, ok2 := m.min.(float64)
		if !ok1 || !ok2 {
			return bad()
		}
		f, w := m.floating(max, min)
		return f, w, nil
	}
	return bad()
}

// smaller prefers the numbers as they are, unless the differences are narrower.
func smaller(plain, delta javaWidth) (measureForm, javaWidth) {
	switch {
	case plain.size() > delta.size():
		return fromMax, delta
	case plain.size() < delta.size(): // the writer takes the wider type here
		return asIs, delta
	}
	return asIs, plain
}

func (m *measureMeta) floating(max, min float64) (measureForm, javaWidth) {
	greatest := min
	if math.Abs(max) >= math.Abs(min) {
		greatest = max
	}
	plain, delta := widthFor(greatest, m.digits, m.selected), widthFor(max-min, m.digits, m.selected)
	if m.digits == 0 {
		return smaller(plain, delta)
	}
	tens := math.Pow(10, float64(m.digits))
	form, w := asIs, plain
	for _, c := range []struct { // the narrowest; of equal ones the first
		form measureForm
		w    javaWidth
	}{{fromMax, delta}, {scaledUp, widthFor(tens*greatest, 0, m.selected)}, {fromMaxTens, widthFor(tens*(max-min), 0, m.selected)}} {
		if c.w.size() < w.size() {
			form, w = c.form, c.w
		}
	}
	return form, w
}

// oldMeasure reports whether a page is one of a measure as CarbonData wrote them up to 1.1: in formats 1 and 2, and in format 3 with
// the same numbers in its metadata, but not as a Java object.
func (p *storedPage) oldMeasure() bool {
	return !p.col.dimension && p.col.parent == nil && (p.version < 3 || p.encoders.has(encDelta))
}

// parseMeasureMeta3 reads the metadata of a measure's page of format 3 as 1.1 wrote it (big-endian):
//
//	type           u16, a letter
//	max, min, unused   f64 ('n') or i64 ('d') each; nothing ('b')
//	digits         i32
//	selected       u8
func parseMeasureMeta3(c be) (m measureMeta) {
	m.kind = byte(c.u16("type"))
	switch m.kind {
	case 'n':
		m.max, m.min = math.Float64frombits(uint64(c.i64("maxValue"))), math.Float64frombits(uint64(c.i64("minValue")))
		c.i64("uniqueValue")
	case 'd':
		m.max, m.min = c.i64("maxValue"), c.i64("minValue")
		c.i64("uniqueValue")
	case 'b':
	default:
		c.Fail(0, 2, "type", "%q", m.kind)
	}
	m.digits, m.selected = int(c.i32("decimal")), int8(c.U8("dataTypeSelected"))
	if c.Err() == nil && (m.digits < 0 || m.digits > 400) {
		c.Fail(c.Pos()-5, 4, "decimal", "%d digits behind the point", m.digits)
	}
	return m
}

// measure12 decodes a page of a measure of formats 1 and 2.
func (c *content) measure12(dst *vec.Vector) error {
	if len(c.p.meta) != 1 {
		return fault.Rel(0, 0, "encoder_meta", "%d of them, a measure has one", len(c.p.meta))
	}
	cur := wire.NewInnerCursor(c.p.meta[0], fault.Span{}, "encoder_meta")
	parse := parseMeasureMeta
	if c.p.version == 3 {
		parse = parseMeasureMeta3
	}
	m := parse(be{cur})
	if cur.Err() != nil {
		return relative(cur.Err())
	}
	form, w, err := m.form()
	if err != nil {
		return err
	}
	if form == decimals {
		if dst.Type.ID() != arrow.DECIMAL128 {
			return c.unknownMeasure(form, w, dst)
		}
		return c.leaves(dst, 4)
	}
	if err := c.settle(w.size()); err != nil {
		return err
	}
	at := dst.Extend(c.n)
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

func (c *content) unknownMeasure(form measureForm, w javaWidth, dst *vec.Vector) error {
	return fault.Unsupportedf(fault.Span{}, "encoder_meta", "numbers of %d bytes, %s, for a column of type %s", w.size(), formNames[form], dst.Type)
}

// isNull says whether entry i is null by the bits.
func (c *content) isNull(i int) bool { return i>>3 < len(c.nulls) && c.nulls[i>>3]>>(i&7)&1 != 0 }

// wholes decodes whole numbers. What stands for a null is not looked at: it may be anything, because it is not among the bounds.
func wholes[T integer](c *content, dst []T, m *measureMeta, form measureForm, w javaWidth) error {
	if w >= javaFloat || form != asIs && form != fromMax {
		return fault.Unsupportedf(fault.Span{}, "encoder_meta", "numbers of %d bytes, %s, for whole numbers", w.size(), formNames[form])
	}
	var base int64
	switch max := m.max.(type) {
	case int64:
		base = max
	case float64:
		base = int64(max)
	}
	if ints(dst, c.raw, w.size(), base, form == fromMax) {
		return checkWhole(c, dst, m)
	}
	for i := range dst {
		v := number(c.raw, i, w.size())
		if form == fromMax {
			v = base - v
		}
		if int64(T(v)) != v && !c.isNull(i) {
			return fault.Rel(i*w.size(), w.size(), "", "entry %d, %d, does not fit the column's type", i, v)
		}
	}
	return checkWhole(c, dst, m)
}

// doubles decodes floating numbers.
func (c *content) doubles(dst []float64, m *measureMeta, form measureForm, w javaWidth) error {
	get := func(i int) float64 { return float64(number(c.raw, i, w.size())) }
	if w == javaFloat {
		return fault.Unsupportedf(fault.Span{}, "encoder_meta", "numbers stored as floats") // the real reader cannot read these either
	}
	if w == javaDouble {
		get = func(i int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(c.raw[8*i:])) }
	}
	max, _ := m.max.(float64)
	if n, ok := m.max.(int64); ok {
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
		tens := math.Pow(10, float64(m.digits))
		for i := range dst {
			dst[i] = get(i) / tens
		}
	case fromMaxTens:
		d := newTens(max, m.digits)
		for i := range dst {
			dst[i] = d.from(get(i))
		}
	}
	return c.checkFloats(dst, m)
}

// tensDelta is (max - v)·10^digits turned back. The writer subtracts decimals, not binary numbers, and so does this.
type tensDelta struct {
	digits int
	tens   float64
	max    float64
	scaled float64 // max·10^digits, a whole number below 2^53; NaN: it is none
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

// from is max - v/10^digits, both taken for the shortest decimals that mean them.
func (d *tensDelta) from(v float64) float64 {
	if k := d.scaled - v; math.Abs(k) < 1<<53 && math.Abs(v) < 1e15 { // both are decimals of so many digits: exact but for the division
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
