// Package extremes finds the minimum and the maximum of columns of any type that has an order.
package extremes

import (
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/vec"
)

// Value is the min or max value so far.
type Value struct {
	Set  bool
	i    int64
	u    uint64
	f    float64
	d    decimal128.Num
	s    string
	Text string
}

// Lower replaces v by o if o is lower, or if v is not set.
func (v *Value) Lower(o Value) {
	if o.Set && (!v.Set || o.less(v)) {
		*v = o
	}
}

// Higher replaces v by o if o is higher, or if v is not set.
func (v *Value) Higher(o Value) {
	if o.Set && (!v.Set || v.less(&o)) {
		*v = o
	}
}

// OfVector updates lo and hi with the values of a vector.
func OfVector(v *vec.Vector, lo, hi *Value) error {
	if v.Len() == 0 || v.Items != nil {
		return nil
	}
	a, err := v.View(v.Len())
	if err != nil {
		return err
	}
	defer a.Release()
	if d, ok := a.(*array.Dictionary); ok { // the dictionary may contain values that are not used here
		for i := range d.Len() {
			if d.IsValid(i) {
				At(d.Dictionary(), d.GetValueIndex(i), lo, hi)
			}
		}
		return nil
	}
	OfArray(a, lo, hi)
	return nil
}

// OfArray updates lo and hi with the values of an array.
func OfArray(a arrow.Array, lo, hi *Value) {
	for i := range a.Len() {
		if a.IsValid(i) {
			At(a, i, lo, hi)
		}
	}
}

// At updates lo and hi with one value, and reports which of them it became. Types without an order, and NaN, are
// ignored.
func At(a arrow.Array, i int, lo, hi *Value) (lower, higher bool) {
	x, ordered := valueOf(a, i)
	if !ordered || math.IsNaN(x.f) {
		return false, false
	}
	x.Set = true
	lower, higher = !lo.Set || x.less(lo), !hi.Set || hi.less(&x)
	for _, e := range []struct {
		to   *Value
		take bool
	}{{lo, lower}, {hi, higher}} {
		if e.take {
			if x.Text == "" {
				x.s, x.Text = strings.Clone(x.s), textOf(a, i)
			}
			*e.to = x
		}
	}
	return lower, higher
}

// textOf returns a value as cat shows it, decimals with all digits of their scale.
func textOf(a arrow.Array, i int) string {
	if d, ok := a.(*array.Decimal128); ok {
		return d.Value(i).ToString(d.DataType().(arrow.DecimalType).GetScale())
	}
	return strings.Clone(a.ValueStr(i))
}

// valueOf returns a value without its text; false: its type has no order.
func valueOf(a arrow.Array, i int) (x Value, ordered bool) {
	switch a := a.(type) {
	case *array.Int8:
		x.i = int64(a.Value(i))
	case *array.Int16:
		x.i = int64(a.Value(i))
	case *array.Int32:
		x.i = int64(a.Value(i))
	case *array.Int64:
		x.i = a.Value(i)
	case *array.Date32:
		x.i = int64(a.Value(i))
	case *array.Timestamp:
		x.i = int64(a.Value(i))
	case *array.Time32:
		x.i = int64(a.Value(i))
	case *array.Time64:
		x.i = int64(a.Value(i))
	case *array.Duration:
		x.i = int64(a.Value(i))
	case *array.Uint8:
		x.u = uint64(a.Value(i))
	case *array.Uint16:
		x.u = uint64(a.Value(i))
	case *array.Uint32:
		x.u = uint64(a.Value(i))
	case *array.Uint64:
		x.u = a.Value(i)
	case *array.Float32:
		x.f = float64(a.Value(i))
	case *array.Float64:
		x.f = a.Value(i)
	case *array.Boolean:
		if a.Value(i) {
			x.i = 1
		}
	case *array.Decimal128:
		x.d = a.Value(i)
	case *array.String:
		x.s = a.Value(i) // in the page's buffer: cloned if it is kept
	case *array.LargeString:
		x.s = a.Value(i)
	case *array.Binary:
		x.s = string(a.Value(i))
	case *array.LargeBinary:
		x.s = string(a.Value(i))
	case *array.FixedSizeBinary:
		x.s = string(a.Value(i))
	default:
		return x, false
	}
	return x, true
}

// Under reports whether v is less than o. Both are set, and of one column.
func (v *Value) Under(o *Value) bool { return v.less(o) }

// less compares the one field that a column uses; the others are zero in both.
func (p *Value) less(q *Value) bool {
	switch {
	case p.i != q.i:
		return p.i < q.i
	case p.u != q.u:
		return p.u < q.u
	case p.f != q.f:
		return p.f < q.f
	case p.d != q.d:
		return p.d.Less(q.d)
	}
	return p.s < q.s
}
