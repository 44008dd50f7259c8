package carbon

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
)

// fits reports whether values of a field can become those of a column, which decides value by value.
func fits(c *column, f arrow.Field) error {
	var plain columnSchema
	if err := plain.typed(f, c.name); err != nil {
		return err
	}
	t := plain.typ
	ok := t == c.typ
	switch c.typ {
	case typeByte, typeShort, typeInt, typeLong:
		ok = ok || t == typeByte || t == typeShort || t == typeInt || t == typeLong
	case typeFloat, typeDouble, typeDecimal:
		ok = ok || t == typeByte || t == typeShort || t == typeInt || t == typeLong || t == typeFloat || t == typeDouble
	case typeTimestamp:
		ok = ok || t == typeDate
	case typeVarchar:
		ok = ok || t == typeString
	case typeString:
		ok = ok || t == typeVarchar
	}
	if c.typ == typeDecimal && t == typeDecimal && plain.scale > c.scale {
		ok = false
	}
	ok = ok || t == typeString && !c.typ.complex() && c.typ != typeBinary
	if !ok {
		return fault.Invalidf("column %s is %s: values of %s are none", c.name, c.typ, f.Type)
	}
	kids, err := (&planner{}).children(f.Type)
	if err != nil || len(kids) != len(c.kids) && c.typ.complex() {
		return fault.Invalidf("column %s is %s: values of %s are none", c.name, c.typ, f.Type)
	}
	for i, k := range c.kids {
		if err := fits(k, kids[i]); err != nil {
			return err
		}
	}
	return nil
}

// converts reports whether values of an array must be changed to become those of the column.
func converts(c *column, t arrow.DataType) bool {
	plain := writtenAs[t.ID()]
	switch t := t.(type) {
	case arrow.DecimalType:
		return c.typ != typeDecimal || t.GetScale() != c.scale
	case *arrow.NullType:
		return false
	}
	if t.ID() == arrow.UINT64 {
		return c.typ != typeDecimal || c.scale != 0
	}
	return plain != c.typ && !(plain == typeString && c.typ == typeVarchar)
}

// addConverted appends values of another type than the column's: whole numbers that fit, floating ones that come back, texts that
// are read.
func (x *cells) addConverted(c *column, a arrow.Array, from, to int) error {
	text, _ := a.(*array.String)
	quick := c.quick()
	for i := from; i < to; i++ {
		if a.IsNull(i) {
			x.addNull(c)
			continue
		}
		if quick != nil && text != nil {
			if v, ok := quick(text.Value(i)); ok {
				x.n++
				x.ints = append(x.ints, v)
				continue
			}
		}
		v, err := converted(c, a, i)
		if err != nil {
			return &valueError{row: i, err: err}
		}
		x.n++
		switch c.typ {
		case typeFloat, typeDouble:
			x.nums = append(x.nums, v.f)
		case typeDecimal:
			if !v.d.FitsInPrecision(c.precision) {
				return badValue(i, "%s has more than %d digits", v.d.ToString(c.scale), c.precision)
			}
			x.decs = append(x.decs, v.d)
		default:
			x.ints = append(x.ints, v.i)
		}
	}
	return nil
}

// converted is entry i of a as a value of c's type.
func converted(c *column, a arrow.Array, i int) (v constant, err error) {
	switch a := a.(type) {
	case stringer:
		return constantOf(c, a.Value(i))
	case *array.Float32:
		return fromFloat(c, float64(a.Value(i)))
	case *array.Float64:
		return fromFloat(c, a.Value(i))
	case *array.Float16:
		return fromFloat(c, float64(a.Value(i).Float32()))
	}
	plain := &column{columnSchema: &columnSchema{typ: writtenAs[a.DataType().ID()], precision: 38}}
	if d, ok := a.DataType().(arrow.DecimalType); ok {
		plain.scale = d.GetScale()
	}
	y := &cells{}
	if err := y.addValues(plain, a, i, i+1, &writeOptions{}); err != nil {
		return v, err
	}
	if plain.typ == typeDecimal {
		return fromDecimal(c, y.decs[0], plain.scale)
	}
	if plain.typ == typeDate && c.typ == typeTimestamp {
		return constant{i: y.ints[0] * 86_400_000}, nil
	}
	return fromWhole(c, y.ints[0])
}

func fromWhole(c *column, n int64) (v constant, err error) {
	switch c.typ {
	case typeByte, typeShort, typeInt, typeLong:
		w := 8 * storeTypes[c.typ].width()
		if n<<(64-w)>>(64-w) != n {
			return v, fault.Invalidf("%d is no %s", n, c.typ)
		}
		v.i = n
	case typeFloat:
		if v.f = float64(float32(n)); int64(v.f) != n || bits.Len64(uint64(max(n, -n))) > 62 {
			return v, fault.Invalidf("%d is no float", n)
		}
	case typeDouble:
		if v.f = float64(n); int64(v.f) != n || bits.Len64(uint64(max(n, -n))) > 62 {
			return v, fault.Invalidf("%d is no double", n)
		}
	case typeDecimal:
		return fromDecimal(c, decimal128.FromI64(n), 0)
	}
	return v, nil
}

func fromFloat(c *column, f float64) (v constant, err error) {
	switch c.typ {
	case typeDouble:
		v.f = f
	case typeFloat:
		// The same text means the same number: 0.1 of a file of texts comes as a double.
		if v.f = float64(float32(f)); v.f != f && f == f && strconv.FormatFloat(v.f, 'g', -1, 32) != strconv.FormatFloat(f, 'g', -1, 64) {
			return v, fault.Invalidf("%v is no float", f)
		}
	case typeDecimal:
		d, err := decimal128.FromFloat64(f, 38, c.scale)
		if err != nil || d.ToFloat64(c.scale) != f || math.IsInf(f, 0) {
			return v, fault.Invalidf("%v is no decimal with %d digits behind the point", f, c.scale)
		}
		v.d = d
	}
	return v, nil
}

func fromDecimal(c *column, d decimal128.Num, scale int32) (v constant, err error) {
	if c.typ != typeDecimal || scale > c.scale {
		return v, fault.Invalidf("%s is no %s", d.ToString(scale), c.typ)
	}
	if !d.FitsInPrecision(38 - (c.scale - scale)) {
		return v, fault.Invalidf("%s has more than %d digits", d.ToString(scale), c.precision)
	}
	v.d = d.Mul(decimal128.GetScaleMultiplier(int(c.scale - scale)))
	return v, nil
}

// bucketHash is Spark's hash of a value, by which rows come into buckets.
func (l *Load) bucketHash(b arrow.RecordBatch, i int, c *columnSchema) (int32, error) {
	a := l.fieldOf(b, c)
	if a == nil || a.IsNull(i) {
		return hashSeed, nil
	}
	x := &cells{}
	if err := x.add(&column{columnSchema: c}, a, i, i+1, &l.wo); err != nil {
		return 0, err
	}
	switch c.typ {
	case typeLong:
		return murmurLong(uint64(x.ints[0])), nil
	case typeTimestamp:
		return murmurLong(uint64(x.ints[0] * 1000)), nil
	case typeDouble:
		return murmurLong(math.Float64bits(x.nums[0])), nil
	case typeFloat:
		return murmurInt(math.Float32bits(float32(x.nums[0]))), nil
	case typeDate:
		return murmurInt(uint32(x.ints[0])), nil
	case typeShort, typeInt, typeBoolean:
		return murmurInt(uint32(x.ints[0])), nil
	case typeString, typeVarchar:
		return murmurText(x.text(0)), nil
	}
	return 0, fault.Unsupportedf(fault.Span{Object: l.dir}, c.name, "buckets by a column of type %s", c.typ)
}

// Spark's hash is MurmurHash3 of 32 bits with this seed.
const hashSeed = 42

func mix(h, k uint32) uint32 {
	k = bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
	return bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
}

func last(h, n uint32) int32 {
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return int32(h ^ h>>16)
}

func murmurInt(v uint32) int32 { return last(mix(hashSeed, v), 4) }

func murmurLong(v uint64) int32 { return last(mix(mix(hashSeed, uint32(v)), uint32(v>>32)), 8) }

// murmurText hashes words of four bytes, little-endian, then each byte that is left, as Spark does and MurmurHash3 does not.
func murmurText(b []byte) int32 {
	h, n := uint32(hashSeed), uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h = mix(h, binary.LittleEndian.Uint32(b))
	}
	for _, c := range b {
		h = mix(h, uint32(int32(int8(c))))
	}
	return last(h, n)
}
