package page

import (
	"math"
	"math/bits"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/enc/half"
)

// CheckFits returns an error if no value of field f can be converted to the column's type. Whether a single value can
// is decided when it is added.
func CheckFits(c *schema.Column, f arrow.Field) error {
	var plain layout.ColumnSchema
	if err := schema.SetType(&plain, f, c.Name); err != nil {
		return err
	}
	t := plain.Type
	ok := t == c.Type
	switch c.Type {
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		ok = ok || t == layout.TypeByte || t == layout.TypeShort || t == layout.TypeInt || t == layout.TypeLong
	case layout.TypeFloat, layout.TypeDouble, layout.TypeDecimal:
		ok = ok || t == layout.TypeByte || t == layout.TypeShort || t == layout.TypeInt || t == layout.TypeLong ||
			t == layout.TypeFloat || t == layout.TypeDouble
	case layout.TypeTimestamp:
		ok = ok || t == layout.TypeDate
	case layout.TypeVarchar:
		ok = ok || t == layout.TypeString
	case layout.TypeString:
		ok = ok || t == layout.TypeVarchar
	}
	if c.Type == layout.TypeDecimal && t == layout.TypeDecimal && plain.Scale > c.Scale {
		ok = false
	}
	ok = ok || t == layout.TypeString && !c.Type.Complex() && c.Type != layout.TypeBinary
	if !ok {
		return fault.Invalidf("column %s is %s, as which values of type %s cannot be stored", c.Name, c.Type, f.Type)
	}
	children, err := (&schema.Planner{}).Children(f.Type)
	if err != nil || len(children) != len(c.Children) && c.Type.Complex() {
		return fault.Invalidf("column %s is %s, as which values of type %s cannot be stored", c.Name, c.Type, f.Type)
	}
	for i, k := range c.Children {
		if err := CheckFits(k, children[i]); err != nil {
			return err
		}
	}
	return nil
}

// NeedsConversion reports whether values of an array of type t must be converted to the column's type.
func NeedsConversion(c *schema.Column, t arrow.DataType) bool {
	plain := schema.WrittenAs[t.ID()]
	switch t := t.(type) {
	case arrow.DecimalType:
		return c.Type != layout.TypeDecimal || t.GetScale() != c.Scale
	case *arrow.NullType:
		return false
	}
	if t.ID() == arrow.UINT64 {
		return c.Type != layout.TypeDecimal || c.Scale != 0
	}
	return plain != c.Type && !(plain == layout.TypeString && c.Type == layout.TypeVarchar)
}

// AddConverted appends values of a type other than the column's: whole numbers that fit, floating-point numbers that
// survive a round trip, and parsed texts.
func (x *Cells) AddConverted(c *schema.Column, a arrow.Array, from, to int) error {
	text, _ := a.(*array.String)
	quick := fastParser(c)
	for i := from; i < to; i++ {
		if a.IsNull(i) {
			x.AddNull(c)
			continue
		}
		if quick != nil && text != nil {
			if v, ok := quick(text.Value(i)); ok {
				x.N++
				x.Ints = append(x.Ints, v)
				continue
			}
		}
		v, err := Convert(c, a, i)
		if err != nil {
			return &ValueError{Row: i, Err: err}
		}
		x.N++
		switch c.Type {
		case layout.TypeFloat, layout.TypeDouble:
			x.Nums = append(x.Nums, v.F)
		case layout.TypeDecimal:
			if !v.D.FitsInPrecision(c.Precision) {
				return ValueErrorf(i, "%s has more than %d digits", v.D.ToString(c.Scale), c.Precision)
			}
			x.Decs = append(x.Decs, v.D)
		default:
			x.Ints = append(x.Ints, v.I)
		}
	}
	return nil
}

// Convert returns entry i of a as a value of c's type.
func Convert(c *schema.Column, a arrow.Array, i int) (v schema.Constant, err error) {
	switch a := a.(type) {
	case StringArray:
		return ParseConstant(c, a.Value(i))
	case *array.Float32:
		return fromFloat(c, float64(a.Value(i)))
	case *array.Float64:
		return fromFloat(c, a.Value(i))
	case *array.Float16:
		return fromFloat(c, float64(half.Float(a.Value(i).Uint16())))
	}
	plain := &schema.Column{ColumnSchema: &layout.ColumnSchema{Type: schema.WrittenAs[a.DataType().ID()],
		Precision: 38}}
	if d, ok := a.DataType().(arrow.DecimalType); ok {
		plain.Scale = d.GetScale()
	}
	y := &Cells{}
	if err := y.addValues(plain, a, i, i+1, &schema.WriteOptions{}); err != nil {
		return v, err
	}
	if plain.Type == layout.TypeDecimal {
		return fromDecimal(c, y.Decs[0], plain.Scale)
	}
	if plain.Type == layout.TypeDate && c.Type == layout.TypeTimestamp {
		return schema.Constant{I: y.Ints[0] * 86_400_000}, nil
	}
	return fromWhole(c, y.Ints[0])
}

func fromWhole(c *schema.Column, n int64) (v schema.Constant, err error) {
	switch c.Type {
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		w := 8 * storeTypes[c.Type].Width()
		if n<<(64-w)>>(64-w) != n {
			return v, fault.Invalidf("%d is not a value of type %s", n, c.Type)
		}
		v.I = n
	case layout.TypeFloat:
		if v.F = float64(float32(n)); int64(v.F) != n || bits.Len64(uint64(max(n, -n))) > 62 {
			return v, fault.Invalidf("%d is not a float", n)
		}
	case layout.TypeDouble:
		if v.F = float64(n); int64(v.F) != n || bits.Len64(uint64(max(n, -n))) > 62 {
			return v, fault.Invalidf("%d is not a double", n)
		}
	case layout.TypeDecimal:
		return fromDecimal(c, decimal128.FromI64(n), 0)
	}
	return v, nil
}

func fromFloat(c *schema.Column, f float64) (v schema.Constant, err error) {
	switch c.Type {
	case layout.TypeDouble:
		v.F = f
	case layout.TypeFloat:
		// The same text means the same number: a 0.1 that was read from a text file arrives as a double.
		if v.F = float64(float32(f)); v.F != f && f == f &&
			strconv.FormatFloat(v.F, 'g', -1, 32) != strconv.FormatFloat(f, 'g', -1, 64) {
			return v, fault.Invalidf("%v is not a float", f)
		}
	case layout.TypeDecimal:
		d, err := decimal128.FromFloat64(f, 38, c.Scale)
		if err != nil || d.ToFloat64(c.Scale) != f || math.IsInf(f, 0) {
			return v, fault.Invalidf("%v is not a decimal with %d digits after the decimal point", f, c.Scale)
		}
		v.D = d
	}
	return v, nil
}

func fromDecimal(c *schema.Column, d decimal128.Num, scale int32) (v schema.Constant, err error) {
	if c.Type != layout.TypeDecimal || scale > c.Scale {
		return v, fault.Invalidf("%s is not a value of type %s", d.ToString(scale), c.Type)
	}
	if !d.FitsInPrecision(38 - (c.Scale - scale)) {
		return v, fault.Invalidf("%s has more than %d digits", d.ToString(scale), c.Precision)
	}
	v.D = d.Mul(decimal128.GetScaleMultiplier(int(c.Scale - scale)))
	return v, nil
}
