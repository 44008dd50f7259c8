package pred

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/internal/civil"
)

// class is how the cells of a column are stored in memory, which determines the kernels that test them.
type class uint8

const (
	classNone  class = iota // cannot be compared: lists, structs …
	classNull               // all cells are null
	classBool               // bits
	classInt                // signed integers of up to 64 bits, and types stored as one
	classUint               // unsigned integers
	classFloat              // floats
	classWide               // decimals of 128 and 256 bits
	classBytes              // strings and binary
)

// meaning is what the numbers or bytes of a column represent, which determines the literals they can be compared with.
type meaning uint8

const (
	meansBool    meaning = iota + 1
	meansNumber          // × 10^-scale
	meansDays            // since 1970-01-01
	meansInstant         // units since 1970, per units a second
	meansTime            // units since midnight
	meansString
	meansBinary
)

// domain describes the values of an Arrow type, whatever their layout. Values of fixed width are treated as nums from
// min to max.
type domain struct {
	class    class
	means    meaning
	bits     int
	scale    int32
	per      int64
	min, max num
}

// domainOf returns the domain of the values of type t; for dictionaries and extensions that of the values they
// represent.
func domainOf(t arrow.DataType) domain {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return domainOf(t.ValueType)
	case arrow.ExtensionType:
		return domainOf(t.StorageType())
	case *arrow.Decimal32Type:
		return ints(32, meansNumber, t.Scale, 0)
	case *arrow.Decimal64Type:
		return ints(64, meansNumber, t.Scale, 0)
	case *arrow.Decimal128Type:
		return wide(128, t.Scale)
	case *arrow.Decimal256Type:
		return wide(256, t.Scale)
	case *arrow.TimestampType:
		return ints(64, meansInstant, 0, perSecond(t.Unit))
	case *arrow.Time32Type:
		return ints(32, meansTime, 0, perSecond(t.Unit))
	case *arrow.Time64Type:
		return ints(64, meansTime, 0, perSecond(t.Unit))
	case nil:
		return domain{}
	}
	return domains[t.ID()]
}

// domains has the types without parameters.
var domains = map[arrow.Type]domain{
	arrow.NULL:              {class: classNull},
	arrow.BOOL:              {class: classBool, means: meansBool, bits: 1, min: numInt(0), max: numInt(1)},
	arrow.INT8:              ints(8, meansNumber, 0, 0),
	arrow.INT16:             ints(16, meansNumber, 0, 0),
	arrow.INT32:             ints(32, meansNumber, 0, 0),
	arrow.INT64:             ints(64, meansNumber, 0, 0),
	arrow.DURATION:          ints(64, meansNumber, 0, 0),
	arrow.DATE32:            ints(32, meansDays, 0, 0),
	arrow.DATE64:            ints(64, meansInstant, 0, 1e3),
	arrow.UINT8:             uints(8),
	arrow.UINT16:            uints(16),
	arrow.UINT32:            uints(32),
	arrow.UINT64:            uints(64),
	arrow.FLOAT16:           floats(16),
	arrow.FLOAT32:           floats(32),
	arrow.FLOAT64:           floats(64),
	arrow.STRING:            {class: classBytes, means: meansString},
	arrow.LARGE_STRING:      {class: classBytes, means: meansString},
	arrow.STRING_VIEW:       {class: classBytes, means: meansString},
	arrow.BINARY:            {class: classBytes, means: meansBinary},
	arrow.LARGE_BINARY:      {class: classBytes, means: meansBinary},
	arrow.BINARY_VIEW:       {class: classBytes, means: meansBinary},
	arrow.FIXED_SIZE_BINARY: {class: classBytes, means: meansBinary},
}

func ints(bits int, m meaning, scale int32, per int64) domain {
	return domain{classInt, m, bits, scale, per, numInt(math.MinInt64 >> (64 - bits)),
		numInt(math.MaxInt64 >> (64 - bits))}
}

func uints(bits int) domain {
	return domain{classUint, meansNumber, bits, 0, 0, numUint(0), numUint(math.MaxUint64 >> (64 - bits))}
}

func floats(bits int) domain {
	inf := infinityKey(bits)
	return domain{classFloat, meansNumber, bits, 0, 0, numInt(-inf), numInt(inf + 1)}
}

func wide(bits int, scale int32) domain {
	d := domain{class: classWide, means: meansNumber, bits: bits, scale: scale,
		max: num{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}}
	if bits == 128 {
		d.min, d.max = num128(math.MinInt64, 0), num128(math.MaxInt64, math.MaxUint64)
	}
	return d
}

// point is the position of a literal among the values of a domain.
type point struct {
	at    num  // the largest value that is not greater than the literal
	exact bool // at equals the literal
	side  int8 // -1: below all values, 1: above all; at is then meaningless
}

// errMismatch means that a literal cannot be compared with a domain.
var errMismatch = fault.Invalidf("not comparable")

// place returns the position of v, which is not null, in a domain of fixed width.
func (d domain) place(v Value) (point, error) {
	v, err := d.read(v)
	if err != nil {
		return point{}, err
	}
	switch d.means {
	case meansBool:
		return point{at: numInt(v.Int), exact: true}, nil
	case meansNumber:
		if d.class == classFloat {
			return d.placeFloat(v), nil
		}
		return d.placeNumber(v)
	case meansTime:
		return d.clamp(d.units(0, v.Int, d.per)), nil
	case meansInstant:
		sec, nanos := v.seconds()
		return d.clamp(d.units(sec, int64(nanos), d.per)), nil
	case meansDays:
		sec, nanos := v.seconds()
		days := civil.FloorDiv(sec, daySeconds)
		return d.clamp(point{at: numInt(days), exact: days*daySeconds == sec && nanos == 0}), nil
	}
	return point{}, errMismatch
}

// read converts a string to a date, time or timestamp where the domain requires one, and refuses values that cannot be
// compared.
func (d domain) read(v Value) (Value, error) {
	ok := false
	switch d.means {
	case meansBool:
		ok = v.Kind == KindBool
	case meansNumber:
		ok = v.isNumber()
	case meansTime:
		if v.Kind == KindString {
			if t, ok := parseTime(v.Text); ok {
				return Time(t), nil
			}
			return v, fault.Invalidf("%s is not a time like '03:04:05'", v)
		}
		ok = v.Kind == KindTime
	case meansDays, meansInstant:
		if v.Kind == KindString {
			if days, ok := parseDate(v.Text); ok {
				return Date(days), nil
			}
			if sec, nanos, ok := parseTimestamp(v.Text); ok {
				return Timestamp(sec, nanos), nil
			}
			return v, fault.Invalidf("%s is neither a date like '2020-01-02' nor a timestamp like "+
				"'2020-01-02T03:04:05Z'", v)
		}
		ok = v.isInstant()
	case meansString, meansBinary:
		ok = v.isText()
	}
	if !ok {
		return v, errMismatch
	}
	return v, nil
}

// units converts sec seconds and nanos nanoseconds to units of 1/per second, rounding down.
func (d domain) units(sec, nanos, per int64) point {
	whole, rest := nanos/(1e9/per), nanos%(1e9/per)
	if lim := math.MaxInt64/per - 2; sec <= lim && sec >= -lim && whole <= math.MaxInt64-sec*per {
		return point{at: numInt(sec*per + whole), exact: rest == 0}
	}
	b := new(big.Int).Mul(big.NewInt(sec), big.NewInt(per))
	return point{at: numBig(b.Add(b, big.NewInt(whole))), exact: rest == 0}
}

// clamp marks p as below or above all values if it lies outside of the domain.
func (d domain) clamp(p point) point {
	switch c := p.at.cmp(d.max); {
	case p.at.cmp(d.min) < 0:
		return point{side: -1}
	case c > 0 || c == 0 && !p.exact:
		return point{side: 1}
	}
	return p
}

// placeNumber returns the position of a number in a domain of integers or decimals.
func (d domain) placeNumber(v Value) (point, error) {
	switch {
	case v.rank() != 0:
		return point{side: int8(min(v.rank(), 1))}, nil
	case v.Kind == KindInt && d.scale == 0:
		return d.clamp(point{at: numInt(v.Int), exact: true}), nil
	case v.Kind == KindDecimal && v.Scale == d.scale:
		return d.clamp(point{at: num128(v.Dec.HighBits(), v.Dec.LowBits()), exact: true}), nil
	case d.scale > maxScale || d.scale < -maxScale:
		return point{}, fault.Unsupportedf(fault.Span{}, "", "comparing decimals of scale %d", d.scale)
	}
	r := v.rat()
	if d.scale >= 0 {
		r.Mul(r, new(big.Rat).SetInt(pow10(d.scale)))
	} else {
		r.Quo(r, new(big.Rat).SetInt(pow10(-d.scale)))
	}
	floor := new(big.Int).Div(r.Num(), r.Denom()) // Euclidean, and the denominator is positive: rounds down
	if d.class == classWide && d.bits == 256 && floor.BitLen() > 255 {
		return point{side: int8(floor.Sign())}, nil
	}
	return d.clamp(point{at: numBig(floor), exact: r.IsInt()}), nil
}

// placeFloat returns the position of a number in a domain of floats. Integers are placed exactly. Other numbers are
// rounded to the nearest float, unless only the result would be zero or infinite.
func (d domain) placeFloat(v Value) point {
	inf := infinityKey(d.bits)
	switch v.rank() {
	case -1:
		return point{at: numInt(-inf), exact: true}
	case 1:
		return point{at: numInt(inf), exact: true}
	case 2:
		return point{at: numInt(inf + 1), exact: true}
	}
	r := v.rat()
	if r.Sign() == 0 {
		return point{at: numInt(0), exact: true}
	}
	k, sure := d.guessFloat(v, r)
	if !sure {
		k = searchFloat(r, d.bits)
	}
	switch c := floatRat(k, d.bits).Cmp(r); {
	case c == 0 && k > -inf:
		return point{at: numInt(k), exact: true}
	case v.Kind == KindInt || v.Kind == KindUint:
		return point{at: numInt(k), exact: false}
	case sure:
		return point{at: numInt(k), exact: true}
	}
	return d.nearest(r, k)
}

// guessFloat returns the key of the nearest float, if the library computes it and it is an ordinary number; for
// integers only where the float is exact.
func (d domain) guessFloat(v Value, r *big.Rat) (key int64, sure bool) {
	var b uint64
	exact := false
	switch d.bits {
	case 64:
		var f float64
		f, exact = r.Float64()
		b = math.Float64bits(f)
	case 32:
		var f float32
		f, exact = r.Float32()
		b = uint64(math.Float32bits(f))
	default:
		return 0, false
	}
	k := floatKey(b, d.bits)
	inf := infinityKey(d.bits)
	plain := k != 0 && k < inf && k > -inf
	return k, plain && (exact || v.Kind == KindFloat || v.Kind == KindDecimal)
}

// searchFloat returns the key of the largest float that is not greater than r, from -Infinity to the largest finite
// one.
func searchFloat(r *big.Rat, bits int) int64 {
	lo, hi := -infinityKey(bits), infinityKey(bits) // lo is not above r, hi is
	for uint64(hi-lo) > 1 {
		mid := lo + int64(uint64(hi-lo)/2)
		if floatRat(mid, bits).Cmp(r) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// floatRat returns the exact value of the float with key k. For an infinite one it is the next power of two: numbers
// from half-way to it on are rounded to infinity.
func floatRat(k int64, bits int) *big.Rat {
	if r := new(big.Rat).SetFloat64(keyFloat(k, bits)); r != nil {
		return r
	}
	exp := map[int]uint{16: 16, 32: 128, 64: 1024}[bits]
	r := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), exp))
	if k < 0 {
		r.Neg(r)
	}
	return r
}

// nearest returns the position of the float nearest to r, which lies between those with keys k and k+1. If that float
// is zero or infinite, r keeps its position between the two.
func (d domain) nearest(r *big.Rat, k int64) point {
	below := new(big.Rat).Sub(r, floatRat(k, d.bits))
	above := new(big.Rat).Sub(floatRat(k+1, d.bits), r)
	near := k
	if c := below.Cmp(above); c > 0 || c == 0 && k&1 != 0 {
		near++
	}
	if inf := infinityKey(d.bits); near == 0 || near == inf || near == -inf {
		return point{at: numInt(k)}
	}
	return point{at: numInt(near), exact: true}
}

// value returns the literal for the value n of a domain of fixed width; false if no Value can represent it.
func (d domain) value(n num) (Value, bool) {
	low := int64(n[3])
	switch {
	case d.class == classFloat:
		return Float(keyFloat(low, d.bits)), true
	case d.class == classUint:
		return Uint(n[3]), true
	case d.means == meansBool:
		return Bool(low != 0), true
	case d.means == meansDays:
		return Date(low), true
	case d.means == meansInstant:
		return instant(low, d.per), true
	case d.means == meansTime:
		v := timeOfDay(low, d.per)
		return v, v.Kind != KindNull
	case d.scale == 0 && d.class == classInt && d.means == meansNumber:
		return Int(low), true
	case n.cmp(num128(math.MinInt64, 0)) <= 0 || n.cmp(num128(math.MaxInt64, math.MaxUint64)) > 0 ||
		d.scale > maxScale || d.scale < -maxScale:
		return Null(), false
	}
	return Decimal(newDecimal(n), d.scale), true
}
