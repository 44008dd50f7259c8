package order

import (
	"bytes"
	"cmp"
	"math"

	"stoa/internal/enc/half"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
)

// SortKey is a column by which the rows of a row group are sorted.
type SortKey struct {
	Leaf                   LeafField
	Name                   string
	Descending, NullsFirst bool
}

func (k *SortKey) String() string {
	return map[bool]string{true: "descending", false: "ascending"}[k.Descending] +
		map[bool]string{true: ", nulls first", false: ", nulls last"}[k.NullsFirst]
}

// OutOfOrder returns the key that is violated because row j of b comes after row i of a; nil if the rows are in order.
func OutOfOrder(keys []SortKey, a []*View, i int, b []*View, j int) *SortKey {
	for k := range keys {
		x, y := a[k].Has(i), b[k].Has(j)
		switch {
		case !x && !y:
			continue
		case !x || !y:
			if y == keys[k].NullsFirst {
				return nil
			}
			return &keys[k]
		}
		c, known := compareValues(a[k].Leaf, i, b[k].Leaf, j)
		if keys[k].Descending {
			c = -c
		}
		switch {
		case !known || c < 0:
			return nil
		case c > 0:
			return &keys[k]
		}
	}
	return nil
}

// valuesOf is an array of values of type T.
type valuesOf[T any] interface{ Value(int) T }

// compareValues compares two values in the order of their type; known is false if the type has no order. Writers do not
// agree on NaN, nor on zeros of different sign: those comparisons are not known either.
func compareValues(a arrow.Array, i int, b arrow.Array, j int) (c int, known bool) {
	switch x := a.(type) {
	case *array.Dictionary:
		y, ok := b.(*array.Dictionary)
		if !ok {
			return 0, false
		}
		return compareValues(x.Dictionary(), x.GetValueIndex(i), y.Dictionary(), y.GetValueIndex(j))
	case valuesOf[bool]:
		return compareBy(x, i, b, j, func(x, y bool) int { return int(BoolInt(x) - BoolInt(y)) })
	case valuesOf[string]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[[]byte]:
		return compareBy(x, i, b, j, bytes.Compare)
	case valuesOf[decimal.Decimal32]:
		return compareBy(x, i, b, j, decimal.Decimal32.Cmp)
	case valuesOf[decimal.Decimal64]:
		return compareBy(x, i, b, j, decimal.Decimal64.Cmp)
	case valuesOf[decimal128.Num]:
		return compareBy(x, i, b, j, decimal128.Num.Cmp)
	case valuesOf[decimal256.Num]:
		return compareBy(x, i, b, j, decimal256.Num.Cmp)
	case valuesOf[float16.Num]:
		y, ok := b.(valuesOf[float16.Num])
		return compareFloats(float64(half.Float(x.Value(i).Uint16())),
			func() float64 { return float64(half.Float(y.Value(j).Uint16())) }, ok)
	case valuesOf[float32]:
		y, ok := b.(valuesOf[float32])
		return compareFloats(float64(x.Value(i)), func() float64 { return float64(y.Value(j)) }, ok)
	case valuesOf[float64]:
		y, ok := b.(valuesOf[float64])
		return compareFloats(x.Value(i), func() float64 { return y.Value(j) }, ok)
	}
	return compareIntegers(a, i, b, j)
}

// compareIntegers compares two integers, dates or times.
func compareIntegers(a arrow.Array, i int, b arrow.Array, j int) (c int, known bool) {
	switch x := a.(type) {
	case valuesOf[int8]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[int16]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[int32]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[int64]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[uint8]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[uint16]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[uint32]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[uint64]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[arrow.Date32]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[arrow.Date64]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[arrow.Time32]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[arrow.Time64]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[arrow.Timestamp]:
		return compareBy(x, i, b, j, cmp.Compare)
	case valuesOf[arrow.Duration]:
		return compareBy(x, i, b, j, cmp.Compare)
	}
	return 0, false
}

func compareBy[T any](a valuesOf[T], i int, b arrow.Array, j int, compare func(x, y T) int) (int, bool) {
	y, ok := b.(valuesOf[T])
	if !ok {
		return 0, false
	}
	return compare(a.Value(i), y.Value(j)), true
}

func compareFloats(x float64, second func() float64, ok bool) (int, bool) {
	if !ok {
		return 0, false
	}
	y := second()
	if math.IsNaN(x) || math.IsNaN(y) || x == y && math.Signbit(x) != math.Signbit(y) {
		return 0, false
	}
	return cmp.Compare(x, y), true
}

// LeafField is a column as its values are compared: its path, and the type that Parquet's schema alone implies for its
// values.
type LeafField struct {
	Path   []int // child indices from the schema's root, counted as in package nest
	Column int
	Typ    arrow.DataType
}
