package lake

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
)

// SortColumn is a column of a sort order, in which nulls are first, or last if it is descending.
type SortColumn struct {
	Index int // in the schema of the files
	Down  bool
}

// ParseOrder parses the columns of a sort order: "region", "ts desc".
func ParseOrder(list []string, sc *arrow.Schema) (out []SortColumn, err error) {
	for _, s := range list {
		name, down := strings.CutSuffix(strings.TrimSpace(s), " desc")
		at := sc.FieldIndices(strings.TrimSpace(name))
		if len(at) == 0 {
			return nil, fault.Invalidf("sort-order: there is no column %q", name)
		}
		if !Sortable(sc.Field(at[0]).Type) {
			return nil, fault.Invalidf("sort-order: values of column %s of type %s have no order", name,
				sc.Field(at[0]).Type)
		}
		out = append(out, SortColumn{at[0], down})
	}
	return out, nil
}

// Sortable reports whether values of a type, as files have it, have an order.
func Sortable(t arrow.DataType) bool {
	if x, ok := t.(arrow.ExtensionType); ok {
		t = x.StorageType()
	}
	_, nested := t.(arrow.NestedType)
	return !nested && t.ID() != arrow.NULL
}

// order follows the rows of a file, and says whether they are in an order.
type order struct {
	by     []SortColumn
	last   []arrow.Array // the last row so far, column by column
	broken bool
}

// kept reports whether all rows were in order. It ends the file.
func (o *order) kept() bool {
	o.drop()
	return len(o.by) > 0 && !o.broken
}

func (o *order) drop() {
	for _, a := range o.last {
		a.Release()
	}
	o.last = nil
}

func (o *order) add(b arrow.RecordBatch) {
	n := int(b.NumRows())
	if o.broken || len(o.by) == 0 || n == 0 {
		return
	}
	cols := make([]arrow.Array, len(o.by))
	for k, c := range o.by {
		cols[k] = b.Column(c.Index)
	}
	o.broken = o.last != nil && o.after(o.last, 0, cols, 0)
	for i := 1; i < n && !o.broken; i++ {
		o.broken = o.after(cols, i-1, cols, i)
	}
	o.drop()
	for _, a := range cols {
		o.last = append(o.last, array.NewSlice(a, int64(n-1), int64(n)))
	}
}

// after reports whether row i of a comes after row j of b.
func (o *order) after(a []arrow.Array, i int, b []arrow.Array, j int) bool {
	for k, c := range o.by {
		x := compareNulls(a[k], i, b[k], j)
		if c.Down {
			x = -x
		}
		if x != 0 {
			return x > 0
		}
	}
	return false
}

func compareNulls(a arrow.Array, i int, b arrow.Array, j int) int {
	switch x, y := a.IsNull(i), b.IsNull(j); {
	case x && y:
		return 0
	case x:
		return -1
	case y:
		return 1
	}
	return compareValues(a, i, b, j)
}

// compareValues compares values that are not null, in the order of Iceberg's specification: texts by their bytes,
// floating-point numbers from -NaN through -0 and 0 to NaN.
func compareValues(a arrow.Array, i int, b arrow.Array, j int) int {
	switch x := a.(type) {
	case *array.Boolean:
		y := b.(*array.Boolean).Value(j)
		switch {
		case x.Value(i) == y:
			return 0
		case y:
			return -1
		}
		return 1
	case *array.Float32:
		return cmp.Compare(totalOrder(uint64(math.Float32bits(x.Value(i)))<<32),
			totalOrder(uint64(math.Float32bits(b.(*array.Float32).Value(j)))<<32))
	case *array.Float64:
		return cmp.Compare(totalOrder(math.Float64bits(x.Value(i))),
			totalOrder(math.Float64bits(b.(*array.Float64).Value(j))))
	case *array.String:
		return cmp.Compare(x.Value(i), b.(*array.String).Value(j))
	case *array.Binary:
		return bytes.Compare(x.Value(i), b.(*array.Binary).Value(j))
	case *array.FixedSizeBinary:
		return bytes.Compare(x.Value(i), b.(*array.FixedSizeBinary).Value(j))
	case *array.Decimal128:
		return x.Value(i).Cmp(b.(*array.Decimal128).Value(j))
	case array.ExtensionArray:
		return compareValues(x.Storage(), i, b.(array.ExtensionArray).Storage(), j)
	}
	return cmp.Compare(wholeValue(a, i), wholeValue(b, j))
}

// totalOrder maps the bits of a floating-point number to an integer of the same order.
func totalOrder(bits uint64) int64 {
	if n := int64(bits); n < 0 {
		return n ^ math.MaxInt64
	}
	return int64(bits)
}

// wholeValue returns an integer, a date, a time or a timestamp.
func wholeValue(a arrow.Array, i int) int64 {
	switch x := plainValue(a, i).(type) {
	case int32:
		return int64(x)
	case int64:
		return x
	}
	return 0
}
