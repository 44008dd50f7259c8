package parquet

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// canConvert reports whether convert has a rule for two types that are not nested, in either direction of storedType,
// and for what the library itself reads back in another type than it was given.
func canConvert(from, to arrow.DataType) bool {
	if sameBits(from, to) {
		return true
	}
	switch to.ID() {
	case arrow.DATE64:
		return from.ID() == arrow.DATE32
	case arrow.TIME32, arrow.TIMESTAMP:
		return scaled(from, to)
	case arrow.STRING, arrow.STRING_VIEW:
		return from.ID() == arrow.STRING || from.ID() == arrow.STRING_VIEW
	case arrow.BINARY, arrow.BINARY_VIEW:
		return from.ID() == arrow.BINARY || from.ID() == arrow.BINARY_VIEW
	case arrow.DECIMAL32, arrow.DECIMAL64:
		return from.ID() == arrow.DECIMAL128 && sameDecimal(from, to)
	case arrow.DECIMAL128:
		return (from.ID() == arrow.DECIMAL32 || from.ID() == arrow.DECIMAL64) && sameDecimal(from, to)
	}
	return false
}

func sameDecimal(a, b arrow.DataType) bool {
	x, y := a.(arrow.DecimalType), b.(arrow.DecimalType)
	return x.GetScale() == y.GetScale() && x.GetPrecision() == y.GetPrecision()
}

// sameBits reports whether the buffers can stay and only the type's name changes.
func sameBits(from, to arrow.DataType) bool {
	for range 2 {
		switch from.ID() {
		case arrow.INT64:
			if to.ID() == arrow.DURATION {
				return true
			}
		case arrow.INT32:
			if to.ID() == arrow.INTERVAL_MONTHS {
				return true
			}
		case arrow.FIXED_SIZE_BINARY:
			width := from.(*arrow.FixedSizeBinaryType).ByteWidth
			if to.ID() == arrow.INTERVAL_DAY_TIME && width == 8 || to.ID() == arrow.INTERVAL_MONTH_DAY_NANO && width == 16 {
				return true
			}
		}
		from, to = to, from
	}
	return false
}

// scaled reports whether from is in milliseconds what to is in seconds: Parquet has no seconds.
func scaled(from, to arrow.DataType) bool {
	switch f := from.(type) {
	case *arrow.Time32Type:
		t, ok := to.(*arrow.Time32Type)
		return ok && f.Unit == arrow.Millisecond && t.Unit == arrow.Second
	case *arrow.TimestampType:
		t, ok := to.(*arrow.TimestampType)
		return ok && f.Unit == arrow.Millisecond && t.Unit == arrow.Second && f.TimeZone == t.TimeZone
	}
	return false
}

// convert makes a into type to, of which mergeType or storedType said that it can be done. The caller releases the result.
func convert(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	from := a.DataType()
	if l, ok := a.(*array.List); ok && looseNulls(l) {
		return convertInto(tight(l, from, mem))(to, mem)
	}
	switch {
	case arrow.TypeEqual(from, to, arrow.CheckMetadata()):
		a.Retain()
		return a, nil
	case sameBits(from, to):
		return retype(a, to, a.Data().Children()), nil
	case canConvert(from, to):
		return values(a, to, mem)
	case to.ID() == arrow.LIST && from.ID() == arrow.FIXED_SIZE_LIST:
		return convertInto(listOfFixed(a.(*array.FixedSizeList), mem))(to, mem)
	case to.ID() == arrow.FIXED_SIZE_LIST && from.ID() == arrow.LIST:
		return convertInto(fixedOfList(a.(*array.List), to.(*arrow.FixedSizeListType), mem))(to, mem)
	case from.ID() != to.ID():
		return nil, fault.Bugf("no conversion from %s to %s", from, to)
	}
	nested, ok := to.(arrow.NestedType)
	if !ok {
		if !arrow.TypeEqual(from, to) {
			return nil, fault.Bugf("no conversion from %s to %s", from, to)
		}
		return retype(a, to, nil), nil
	}
	fields := nested.Fields()
	children := make([]arrow.ArrayData, len(a.Data().Children()))
	for i, c := range a.Data().Children() {
		child := array.MakeFromData(c)
		made, err := convert(child, fields[i].Type, mem)
		child.Release()
		if err != nil {
			return nil, err
		}
		defer made.Release()
		children[i] = made.Data()
	}
	return retype(a, to, children), nil
}

// convertInto goes on converting an array that was just made.
func convertInto(a arrow.Array, err error) func(arrow.DataType, memory.Allocator) (arrow.Array, error) {
	return func(to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
		if err != nil {
			return nil, err
		}
		defer a.Release()
		return convert(a, to, mem)
	}
}

// retype makes an array of type to with a's buffers.
func retype(a arrow.Array, to arrow.DataType, children []arrow.ArrayData) arrow.Array {
	d := a.Data()
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		data := array.NewDataWithDictionary(to, d.Len(), d.Buffers(), d.NullN(), d.Offset(), dict)
		defer data.Release()
		return array.MakeFromData(data)
	}
	data := array.NewData(to, d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	defer data.Release()
	return array.MakeFromData(data)
}

// values makes an array value by value.
func values(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	b := array.NewBuilder(mem, to)
	defer b.Release()
	b.Reserve(a.Len())
	put := putter(a, b)
	if put == nil {
		return nil, fault.Bugf("no conversion from %s to %s", a.DataType(), to)
	}
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			put(i)
		}
	}
	return b.NewArray(), nil
}

// putter appends row i of a to b.
func putter(a arrow.Array, b array.Builder) func(i int) {
	switch b := b.(type) {
	case *array.Date64Builder:
		d := a.(*array.Date32)
		return func(i int) { b.Append(arrow.Date64(int64(d.Value(i)) * 86_400_000)) }
	case *array.Time32Builder:
		t := a.(*array.Time32)
		return func(i int) { b.Append(t.Value(i) / 1000) }
	case *array.TimestampBuilder:
		t := a.(*array.Timestamp)
		return func(i int) { b.Append(t.Value(i) / 1000) }
	case *array.StringBuilder:
		s := a.(*array.StringView)
		return func(i int) { b.Append(s.Value(i)) }
	case *array.StringViewBuilder:
		s := a.(*array.String)
		return func(i int) { b.Append(s.Value(i)) }
	case *array.BinaryViewBuilder:
		s := a.(*array.Binary)
		return func(i int) { b.Append(s.Value(i)) }
	case *array.BinaryBuilder:
		s := a.(*array.BinaryView)
		return func(i int) { b.Append(s.Value(i)) }
	case *array.Decimal32Builder:
		d := a.(*array.Decimal128)
		return func(i int) { b.Append(decimal.Decimal32(int64(d.Value(i).LowBits()))) }
	case *array.Decimal64Builder:
		d := a.(*array.Decimal128)
		return func(i int) { b.Append(decimal.Decimal64(int64(d.Value(i).LowBits()))) }
	case *array.Decimal128Builder:
		switch d := a.(type) {
		case *array.Decimal32:
			return func(i int) { b.Append(decimal128.FromI64(int64(d.Value(i)))) }
		case *array.Decimal64:
			return func(i int) { b.Append(decimal128.FromI64(int64(d.Value(i)))) }
		}
	}
	return nil
}
