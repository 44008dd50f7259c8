package page

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
)

// whole decodes whole numbers of w bytes, little-endian (three bytes: big-endian), into any numeric type. delta means
// that the values are differences from max.
func (c *Content) whole(dst *vec.Vector, w int, delta bool) error {
	if err := c.setCount(w); err != nil {
		return err
	}
	raw := c.inOrder(w)
	base := c.meta.Max
	if c.meta.Schema == layout.StoreDouble || c.meta.Schema == layout.StoreFloat {
		base = int64(c.meta.Fmax)
	}
	at := dst.Extend(c.N)
	lo, hi := int64(0), int64(0)
	switch dst.Type.ID() {
	case arrow.BOOL:
		if w != 1 {
			return c.unknown(dst)
		}
		boolsInto(dst.Bits(), at, raw)
	case arrow.INT8:
		lo, hi = spread(vec.Fixed[int8](dst, at), raw, w, base, delta)
	case arrow.INT16:
		lo, hi = spread(vec.Fixed[int16](dst, at), raw, w, base, delta)
	case arrow.INT32, arrow.DATE32:
		lo, hi = spread(vec.Fixed[int32](dst, at), raw, w, base, delta)
	case arrow.INT64, arrow.TIMESTAMP:
		lo, hi = spread(vec.Fixed[int64](dst, at), raw, w, base, delta)
	case arrow.FLOAT32:
		scaled(vec.Fixed[float32](dst, at), raw, w, base, delta, 1)
	case arrow.FLOAT64:
		scaled(vec.Fixed[float64](dst, at), raw, w, base, delta, 1)
	case arrow.DECIMAL128:
		return c.smallDecimals(dst, at, raw, w, base, delta)
	default:
		return c.unknown(dst)
	}
	if err := c.checkRange(dst, lo, hi); err != nil {
		return err
	}
	c.setNulls(dst, at)
	return nil
}

// checkRange compares the values of a page, from lo to hi, with min and max in its metadata. A null is stored as 0,
// even if 0 is outside of min and max. Without checksums this is one of the few ways in which damage shows.
func (c *Content) checkRange(dst *vec.Vector, lo, hi int64) error {
	if c.N == 0 { // a page of items of which all lists are empty
		return nil
	}
	bits := 64
	switch t := dst.Type.(type) {
	case *arrow.BooleanType, *arrow.Float32Type, *arrow.Float64Type, *arrow.Decimal128Type:
		return nil
	case arrow.FixedWidthDataType:
		bits = t.BitWidth()
	}
	if lo > hi || lo<<(64-bits)>>(64-bits) != lo || hi<<(64-bits)>>(64-bits) != hi {
		return fault.Rel(0, 0, "", "a value does not fit %s", dst.Type)
	}
	switch c.meta.Schema {
	case layout.StoreByte, layout.StoreShort, layout.StoreInt, layout.StoreLong, layout.StoreTimestamp:
		if c.meta.Min <= c.meta.Max && (lo < min(c.meta.Min, 0) || hi > max(c.meta.Max, 0)) {
			return fault.Rel(0, 0, "", "expected values from %d to %d by encoder_meta, found %d to %d", c.meta.Min,
				c.meta.Max, lo, hi)
		}
	}
	return nil
}

func boolsInto(bits []byte, at int, raw []byte) {
	for i, x := range raw {
		r := at + i
		if x == 1 {
			bits[r>>3] |= 1 << (r & 7)
		} else {
			bits[r>>3] &^= 1 << (r & 7)
		}
	}
}

type integer interface {
	~int8 | ~int16 | ~int32 | ~int64
}

// ints decodes numbers of w bytes; ok is false if one does not fit T.
func ints[T integer](dst []T, raw []byte, w int, base int64, delta bool) (ok bool) {
	lo, hi := spread(dst, raw, w, base, delta)
	return lo > hi || int64(T(lo)) == lo && int64(T(hi)) == hi
}

// spread decodes numbers of w bytes and returns min and max; lo > hi if there are none, or if one does not fit 64 bits.
func spread[T integer](dst []T, raw []byte, w int, base int64, delta bool) (lo, hi int64) {
	lo, hi = math.MaxInt64, math.MinInt64
	switch w {
	case 1:
		raw = raw[:len(dst)]
		for i := range dst {
			s := int64(int8(raw[i]))
			lo, hi, dst[i] = min(lo, s), max(hi, s), T(s)
		}
	case 2:
		raw = raw[:2*len(dst)]
		for i := range dst {
			s := int64(int16(binary.LittleEndian.Uint16(raw[2*i:])))
			lo, hi, dst[i] = min(lo, s), max(hi, s), T(s)
		}
	case 3:
		raw = raw[:3*len(dst)]
		for i := range dst {
			s := int64(int24(raw[3*i:]))
			lo, hi, dst[i] = min(lo, s), max(hi, s), T(s)
		}
	case 4:
		raw = raw[:4*len(dst)]
		for i := range dst {
			s := int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
			lo, hi, dst[i] = min(lo, s), max(hi, s), T(s)
		}
	case 8:
		raw = raw[:8*len(dst)]
		for i := range dst {
			s := int64(binary.LittleEndian.Uint64(raw[8*i:]))
			lo, hi = min(lo, s), max(hi, s)
			if !delta {
				dst[i] = T(s)
			} else {
				dst[i] = T(base - s)
			}
		}
	}
	if !delta {
		return lo, hi
	}
	if w < 8 {
		b := T(base)
		for i := range dst {
			dst[i] = b - dst[i]
		}
	}
	return base - hi, base - lo
}

// int24 reads a signed number of three bytes, big-endian.
func int24(b []byte) int32 { return int32(uint32(b[0])<<24|uint32(b[1])<<16|uint32(b[2])<<8) >> 8 }

// intAt is the i-th number of w bytes.
func intAt(raw []byte, i, w int) int64 {
	switch w {
	case 1:
		return int64(int8(raw[i]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(raw[2*i:])))
	case 3:
		return int64(int24(raw[3*i:]))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return int64(binary.LittleEndian.Uint64(raw[8*i:]))
}

// scaled decodes numbers that were multiplied by factor. The division uses double precision for floats, too, as in
// CarbonData's row reader.
func scaled[T float32 | float64](dst []T, raw []byte, w int, base int64, delta bool, factor float64) {
	for i := range dst {
		v := intAt(raw, i, w)
		if delta {
			v = base - v
		}
		dst[i] = T(float64(v) / factor)
	}
}

// floating decodes floating-point numbers, stored as such or as whole numbers.
func (c *Content) floating(dst *vec.Vector, delta bool) error {
	w := c.meta.Store.Width()
	if w == 0 {
		return c.unknown(dst)
	}
	if err := c.setCount(w); err != nil {
		return err
	}
	if c.meta.Decimals < -1 || c.meta.Decimals > 400 {
		return fault.Rel(0, 0, "encoder_meta.decimal", "expected -1 to 400 digits, found %d", c.meta.Decimals)
	}
	raw := c.inOrder(w)
	factor := math.Pow(10, float64(c.meta.Decimals))
	base := c.floatBase(factor)
	at := dst.Extend(c.N)
	plain := c.meta.Store == layout.StoreFloat || c.meta.Store == layout.StoreDouble
	switch dst.Type.ID() {
	case arrow.FLOAT32:
		if d := vec.Fixed[float32](dst, at); plain {
			floats(d, raw, w)
		} else {
			scaled(d, raw, w, base, delta, factor)
		}
	case arrow.FLOAT64:
		if d := vec.Fixed[float64](dst, at); plain {
			floats(d, raw, w)
		} else {
			scaled(d, raw, w, base, delta, factor)
		}
	default:
		return c.unknown(dst)
	}
	c.setNulls(dst, at)
	return nil
}

// floatBase is the number from which the writer subtracted floating-point values: max·factor, rounded as the writer
// does.
func (c *Content) floatBase(factor float64) int64 {
	if c.meta.Schema == layout.StoreFloat {
		return toLong(float64(float32(int64(factor)) * float32(c.meta.Fmax)))
	}
	return toLong(float64(int64(factor)) * c.meta.Fmax)
}

// toLong is Java's cast to long: NaN becomes 0, other values the nearest long.
func toLong(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

func floats[T float32 | float64](dst []T, raw []byte, w int) {
	for i := range dst {
		if w == 4 {
			dst[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
		} else {
			dst[i] = T(math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:])))
		}
	}
}

// scaleUp is the power of ten from the file's scale to that of dst.
func (c *Content) scaleUp(dst *vec.Vector, scale int32) (decimal128.Num, error) {
	want := dst.Type.(*arrow.Decimal128Type).Scale
	if scale < 0 || scale > want || want > 38 {
		return decimal128.Num{}, fault.Rel(0, 0, "encoder_meta.scale",
			"expected a scale of 0 to %d, found %d", want, scale)
	}
	return decimal128.GetScaleMultiplier(int(want - scale)), nil
}

// smallDecimals decodes decimals that are stored as whole numbers.
func (c *Content) smallDecimals(dst *vec.Vector, at int, raw []byte, w int, base int64, delta bool) error {
	up, err := c.scaleUp(dst, c.meta.Scale)
	if err != nil {
		return err
	}
	one := up == decimal128.FromU64(1)
	d := vec.Fixed[decimal128.Num](dst, at)
	for i := range d {
		v := intAt(raw, i, w)
		if delta {
			v = base - v
		}
		d[i] = decimal128.FromI64(v)
		if !one {
			d[i] = d[i].Mul(up)
		}
	}
	c.setNulls(dst, at)
	return nil
}

// minBytes is the width in bytes of decimals of a precision: the smallest n with 2^(8n-1) ≥ 10^precision.
func minBytes(precision int32) int {
	n := 1
	for math.Pow(2, float64(8*n-1)) < math.Pow(10, float64(precision)) {
		n++
	}
	return n
}

// wideDecimals decodes decimals stored as big-endian numbers. The precision determines their width; without a precision
// each has its own length and scale.
func (c *Content) wideDecimals(dst *vec.Vector) error {
	if dst.Type.ID() != arrow.DECIMAL128 {
		return c.unknown(dst)
	}
	switch p := c.meta.Precision; {
	case p < 0:
		return c.leaves(dst, 4)
	case p > 38:
		return fault.Rel(0, 0, "encoder_meta.precision", "expected at most 38 digits, found %d", p)
	case p <= 9:
		return c.bigEndian(dst, 4)
	case p <= 18:
		return c.bigEndian(dst, 8)
	default:
		return c.bigEndian(dst, minBytes(p))
	}
}

func (c *Content) bigEndian(dst *vec.Vector, w int) error {
	if err := c.setCount(w); err != nil {
		return err
	}
	up, err := c.scaleUp(dst, c.meta.Scale)
	if err != nil {
		return err
	}
	raw := c.inOrder(w)
	at := dst.Extend(c.N)
	d := vec.Fixed[decimal128.Num](dst, at)
	one := up == decimal128.FromU64(1)
	for i := range d {
		d[i] = schema.ParseDecimal(raw[i*w : (i+1)*w])
		if !one {
			d[i] = d[i].Mul(up)
		}
	}
	c.setNulls(dst, at)
	return nil
}

// leaves decodes values other than strings that are each preceded by a length of lv bytes: dates (big-endian, the sign
// bit inverted) and decimals (scale, then a big-endian number) in lists and structs, decimals of formats 1 and 2. An
// empty value is null.
func (c *Content) leaves(dst *vec.Vector, lv int) error {
	starts, err := c.Lengths(lv)
	if err != nil {
		return err
	}
	at := dst.Extend(c.N)
	clear(dst.Data(at))
	nulls := 0
	var valid []byte
	isNull := c.nullRule()
	for i := range c.N {
		v := c.Raw[starts[2*i]:starts[2*i+1]]
		if len(v) == 0 || isNull(i, v) {
			if valid == nil {
				valid = dst.Validity()
			}
			schema.SetNull(valid, at+i)
			nulls++
			continue
		}
		if err := c.leaf(dst, at+i, v); err != nil {
			return err
		}
	}
	dst.AddNulls(nulls)
	return nil
}

func (c *Content) leaf(dst *vec.Vector, i int, v []byte) error {
	bad := func(want string) error {
		return fault.Rel(0, 0, "", "entry %d: expected %s, found %d", i, want, len(v))
	}
	if c.P.keepsText(dst.Type) {
		return c.textLeaf(dst, i, v)
	}
	switch dst.Type.ID() {
	case arrow.DATE32:
		if len(v) != 4 {
			return bad("a date of 4 bytes")
		}
		code := int64(int32(binary.BigEndian.Uint32(v) ^ 1<<31))
		if err := checkDirect(code, i); err != nil {
			return err
		}
		vec.Fixed[int32](dst, i)[0] = int32(code - schema.DateOffset)
	case arrow.DECIMAL128:
		if len(v) < 2 || len(v) > 17 {
			return bad("a decimal of 2 to 17 bytes")
		}
		up, err := c.scaleUp(dst, int32(v[0]))
		if err != nil {
			return err
		}
		vec.Fixed[decimal128.Num](dst, i)[0] = schema.ParseDecimal(v[1:]).Mul(up)
	case arrow.TIMESTAMP, arrow.INT64:
		if len(v) != 8 {
			return bad("a number of 8 bytes")
		}
		vec.Fixed[int64](dst, i)[0] = int64(binary.BigEndian.Uint64(v) ^ 1<<63)
	default:
		return c.unknown(dst)
	}
	return nil
}

// DateRule maps codes of direct dictionaries to timestamps. It stands for the properties carbon.cutOffTimestamp and
// carbon.timegranularity.
type DateRule struct {
	Cutoff int64 // of code 2, in milliseconds since 1970
	Unit   int64 // from one code to the next, in milliseconds
}

// checkDirect returns an error if no date or time has the code. Codes of direct dictionaries are positive Java ints,
// and 1 is null; codes outside that range would wrap around in 32 bits.
func checkDirect(code int64, i int) error {
	if code < schema.NullCode || code > math.MaxInt32 {
		return fault.Rel(0, 0, "", "entry %d: expected a code of a date or time from %d to %d, found %d", i,
			schema.NullCode, math.MaxInt32, code)
	}
	return nil
}

// surrogates decodes codes of direct dictionaries, dates and timestamps: big-endian, four bytes each.
func (c *Content) surrogates(dst *vec.Vector) error {
	const w = 4
	if c.N <= 0 || len(c.Raw) != c.N*w {
		return fault.Rel(0, 0, "", "expected %d bytes for each of %d codes, found %d", w, c.N, len(c.Raw))
	}
	raw := c.inOrder(w)
	at := dst.Extend(c.N)
	nulls := 0
	var valid []byte
	id := dst.Type.ID()
	if id != arrow.DATE32 && id != arrow.TIMESTAMP {
		return c.unknown(dst)
	}
	for i := range c.N {
		var v int64
		for _, x := range raw[i*w : (i+1)*w] {
			v = v<<8 | int64(x)
		}
		if err := checkDirect(v, i); err != nil {
			return err
		}
		if v == schema.NullCode {
			if valid == nil {
				valid = dst.Validity()
			}
			schema.SetNull(valid, at+i)
			nulls++
			v = 0
		}
		if id == arrow.DATE32 {
			vec.Fixed[int32](dst, at+i)[0] = int32(v - schema.DateOffset)
		} else {
			vec.Fixed[int64](dst, at+i)[0] = (v-2)*c.P.Dates.Unit + c.P.Dates.Cutoff
		}
	}
	dst.AddNulls(nulls)
	return nil
}
