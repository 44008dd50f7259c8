package lake

import (
	"math"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/enc/half"
	"stoa/vec"
)

// Cast converts a to type to, which must preserve the meaning of every value: wider integers and floats, finer units,
// other layouts of strings, lists and decimals. If the type cannot represent a value, the error is Invalid; if the
// types are not such a pair, it is Unsupported. The caller releases the result.
func Cast(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	if arrow.TypeEqual(a.DataType(), to) {
		a.Retain()
		return a, nil
	}
	if x, ok := a.(array.ExtensionArray); ok {
		return Cast(x.Storage(), to, mem)
	}
	switch t := to.(type) {
	case arrow.ExtensionType:
		s, err := Cast(a, t.StorageType(), mem)
		if err != nil {
			return nil, err
		}
		defer s.Release()
		return array.NewExtensionArrayWithStorage(t, s), nil
	case *arrow.StructType, *arrow.ListType, *arrow.MapType:
		return castNested(a, to, mem)
	case *arrow.StringType, *arrow.BinaryType:
		return castBytes(a, to, mem)
	case *arrow.Decimal128Type:
		return castDecimal(a, t, mem)
	}
	if a.DataType().ID() == arrow.NULL {
		return vec.Nulls(mem, to, a.Len()), nil
	}
	return castNumber(a, to, mem)
}

// refused returns the error for an unsupported pair of types.
func refused(from, to arrow.DataType) error {
	return fault.Unsupportedf(fault.Span{}, "", "values of type %s cannot be read as %s", from, to)
}

// inexact returns the error for a value that cannot be represented.
func inexact(a arrow.Array, i int, to arrow.DataType) error {
	return fault.Invalidf("the value %s of type %s cannot be stored exactly as %s", a.ValueStr(i), a.DataType(), to)
}

// rebuild returns an array of type to with the length and null count of a, but the given buffers and children, which it
// releases.
func rebuild(a arrow.Array, to arrow.DataType, buffers []*memory.Buffer, children []arrow.Array, off int) arrow.Array {
	var data []arrow.ArrayData
	for _, c := range children {
		data = append(data, c.Data())
		defer c.Release()
	}
	d := array.NewData(to, a.Len(), buffers, data, a.NullN(), off)
	defer d.Release()
	return array.MakeFromData(d)
}

// castNested casts the children of structs, lists and maps.
func castNested(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	if a.DataType().ID() == arrow.NULL {
		return vec.Nulls(mem, to, a.Len()), nil
	}
	var types []arrow.DataType
	switch t := to.(type) {
	case *arrow.StructType:
		if a.DataType().ID() != arrow.STRUCT {
			return nil, refused(a.DataType(), to)
		}
		for _, f := range t.Fields() {
			types = append(types, f.Type)
		}
	case *arrow.MapType:
		if a.DataType().ID() != arrow.MAP {
			return nil, refused(a.DataType(), to)
		}
		types = []arrow.DataType{t.Elem()}
	case *arrow.ListType:
		return castList(a, t, mem)
	}
	d := a.Data()
	if len(types) != len(d.Children()) {
		return nil, refused(a.DataType(), to)
	}
	var children []arrow.Array
	for i, c := range d.Children() {
		child := array.MakeFromData(c)
		out, err := Cast(child, types[i], mem)
		child.Release()
		if err != nil {
			for _, x := range children {
				x.Release()
			}
			return nil, err
		}
		children = append(children, out)
	}
	return rebuild(a, to, d.Buffers(), children, d.Offset()), nil
}

// castList converts any list to one with 32-bit offsets.
func castList(a arrow.Array, to *arrow.ListType, mem memory.Allocator) (arrow.Array, error) {
	l, ok := a.(array.ListLike)
	if !ok || a.DataType().ID() == arrow.MAP {
		return nil, refused(a.DataType(), to)
	}
	items, err := Cast(l.ListValues(), to.Elem(), mem)
	if err != nil {
		return nil, err
	}
	if a.DataType().ID() == arrow.LIST {
		return rebuild(a, to, a.Data().Buffers(), []arrow.Array{items}, a.Data().Offset()), nil
	}
	b := arrow.Int32Traits.CastToBytes(make([]int32, a.Len()+1))
	offs := arrow.Int32Traits.CastFromBytes(b)
	var from, next int64
	view := a.DataType().ID() == arrow.LIST_VIEW || a.DataType().ID() == arrow.LARGE_LIST_VIEW
	for i, first := 0, true; i < a.Len(); i++ {
		start, end := l.ValueOffsets(i)
		if view && (a.IsNull(i) || start == end) { // such an offset may be any number
			offs[i+1] = int32(next - from)
			continue
		}
		if first {
			from, next, first = start, start, false
		}
		if start != next {
			items.Release()
			return nil, fault.Unsupportedf(fault.Span{}, "", "lists of type %s whose items do not follow each other",
				a.DataType())
		}
		if next = end; end-from > math.MaxInt32 {
			items.Release()
			return nil, fault.Unsupportedf(fault.Span{}, "", "lists with more than %d items in a batch", math.MaxInt32)
		}
		offs[i+1] = int32(end - from)
	}
	part := array.NewSlice(items, from, next)
	items.Release()
	return rebuild(a, to, []*memory.Buffer{validity(a), memory.NewBufferBytes(b)}, []arrow.Array{part}, 0), nil
}

// validity returns the validity bitmap of an array, beginning with its first value; nil if there are no nulls.
func validity(a arrow.Array) *memory.Buffer {
	if a.NullN() == 0 {
		return nil
	}
	bits := make([]byte, (a.Len()+7)/8)
	for i := range a.Len() {
		if a.IsValid(i) {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	return memory.NewBufferBytes(bits)
}

// bytesOf returns a function that returns the bytes of value i; nil if the values are neither strings nor bytes.
func bytesOf(a arrow.Array) func(i int) []byte {
	switch a := a.(type) {
	case *array.Binary:
		return a.Value
	case *array.LargeBinary:
		return a.Value
	case *array.BinaryView:
		return a.Value
	case array.StringLike:
		return func(i int) []byte { return []byte(a.Value(i)) }
	case *array.FixedSizeBinary:
		return a.Value
	}
	return nil
}

// appendEach appends a null to b for each null of a, and calls add for every other value i.
func appendEach(b array.Builder, a arrow.Array, add func(i int) error) error {
	b.Reserve(a.Len())
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else if err := add(i); err != nil {
			return err
		}
	}
	return nil
}

// castBytes converts strings and bytes to 32-bit offsets.
func castBytes(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	if a.DataType().ID() == arrow.NULL {
		return vec.Nulls(mem, to, a.Len()), nil
	}
	get := bytesOf(a)
	if get == nil {
		return nil, refused(a.DataType(), to)
	}
	b := array.NewBinaryBuilder(mem, arrow.BinaryTypes.Binary)
	defer b.Release()
	err := appendEach(b, a, func(i int) error {
		v := get(i)
		if b.DataLen()+len(v) > math.MaxInt32 {
			return fault.Unsupportedf(fault.Span{}, "", "more than %d bytes of values in a batch", math.MaxInt32)
		}
		b.Append(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := b.NewBinaryArray()
	defer out.Release()
	d := array.NewData(to, out.Len(), out.Data().Buffers(), nil, out.NullN(), 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// castDecimal converts any decimal, or integers, to decimals of 128 bits.
func castDecimal(a arrow.Array, to *arrow.Decimal128Type, mem memory.Allocator) (arrow.Array, error) {
	var get func(i int) *big.Int
	scale := int32(0)
	switch x := a.(type) {
	case *array.Decimal32:
		get = func(i int) *big.Int { return big.NewInt(int64(x.Value(i))) }
	case *array.Decimal64:
		get = func(i int) *big.Int { return big.NewInt(int64(x.Value(i))) }
	case *array.Decimal128:
		get = func(i int) *big.Int { return x.Value(i).BigInt() }
	case *array.Decimal256:
		get = func(i int) *big.Int { return x.Value(i).BigInt() }
	case *array.Uint64:
		get = func(i int) *big.Int { return new(big.Int).SetUint64(x.Value(i)) }
	case *array.Null:
		return vec.Nulls(mem, to, a.Len()), nil
	default:
		ints, ok := integers(a)
		if !ok || perDay(a.DataType()) > 0 {
			return nil, refused(a.DataType(), to)
		}
		get = func(i int) *big.Int { return big.NewInt(ints(i)) }
	}
	if t, ok := a.DataType().(arrow.DecimalType); ok {
		scale = t.GetScale()
	}
	if to.Scale < scale {
		return nil, refused(a.DataType(), to)
	}
	up := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(to.Scale-scale)), nil)
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(to.Precision)), nil)
	b := array.NewDecimal128Builder(mem, to)
	defer b.Release()
	err := appendEach(b, a, func(i int) error {
		v := new(big.Int).Mul(get(i), up)
		if v.CmpAbs(limit) >= 0 {
			return inexact(a, i, to)
		}
		b.Append(decimal128.FromBigInt(v))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.NewArray(), nil
}

// integer are the Go types of integers, dates and times.
type integer interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32
}

// widened returns values of another type as int64.
func widened[T integer](value func(i int) T) func(i int) int64 {
	return func(i int) int64 { return int64(value(i)) }
}

// integers returns the values of an array of integers, dates or times; ok is false for other types, and for uint64,
// whose values may not fit.
func integers(a arrow.Array) (value func(i int) int64, ok bool) {
	switch x := a.(type) {
	case *array.Int8:
		return widened(x.Value), true
	case *array.Int16:
		return widened(x.Value), true
	case *array.Int32:
		return widened(x.Value), true
	case *array.Int64:
		return x.Value, true
	case *array.Uint8:
		return widened(x.Value), true
	case *array.Uint16:
		return widened(x.Value), true
	case *array.Uint32:
		return widened(x.Value), true
	case *array.Date32:
		return widened(x.Value), true
	case *array.Date64:
		return widened(x.Value), true
	case *array.Time32:
		return widened(x.Value), true
	case *array.Time64:
		return widened(x.Value), true
	case *array.Timestamp:
		return widened(x.Value), true
	}
	return nil, false
}

// perDay returns the number of units in a day for a date, time or timestamp type; 0 for other types.
func perDay(t arrow.DataType) int64 {
	const day = 86400
	unit := func(u arrow.TimeUnit) int64 { return day * perSecond(u) }
	switch t := t.(type) {
	case *arrow.Date32Type:
		return 1
	case *arrow.Date64Type:
		return day * 1000
	case *arrow.TimestampType:
		return unit(t.Unit)
	case *arrow.Time32Type:
		return unit(t.Unit)
	case *arrow.Time64Type:
		return unit(t.Unit)
	}
	return 0
}

func perSecond(u arrow.TimeUnit) int64 {
	return map[arrow.TimeUnit]int64{arrow.Second: 1, arrow.Millisecond: 1e3, arrow.Microsecond: 1e6,
		arrow.Nanosecond: 1e9}[u]
}

// isClock reports whether values of a type are times of day.
func isClock(t arrow.DataType) bool { return t.ID() == arrow.TIME32 || t.ID() == arrow.TIME64 }

// castNumber casts integers, floats, dates, times and timestamps.
func castNumber(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	from := a.DataType()
	if to.ID() == arrow.FLOAT32 || to.ID() == arrow.FLOAT64 {
		return castFloat(a, to, mem)
	}
	get, ok := integers(a)
	b := array.NewBuilder(mem, to)
	defer b.Release()
	put := appender(b)
	p, q := perDay(from), perDay(to)
	if !ok || put == nil || (p == 0) != (q == 0) || isClock(from) != isClock(to) {
		return nil, refused(from, to)
	}
	up, down := int64(1), int64(1)
	if p > 0 && q >= p {
		up = q / p
	} else if p > 0 {
		down = p / q
	}
	err := appendEach(b, a, func(i int) error {
		v := get(i)
		if v%down != 0 || v > math.MaxInt64/up || v < math.MinInt64/up || !put(v/down*up) {
			return inexact(a, i, to)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.NewArray(), nil
}

// narrowed returns a function that appends an int64 as another type, and returns false if that type cannot represent
// it.
func narrowed[T integer](add func(T)) func(v int64) bool {
	return func(v int64) bool {
		if int64(T(v)) != v {
			return false
		}
		add(T(v))
		return true
	}
}

// appender returns a function that appends integers to a builder and returns false if one does not fit; nil if the
// builder does not accept integers.
func appender(b array.Builder) func(v int64) bool {
	switch b := b.(type) {
	case *array.Int8Builder:
		return narrowed(b.Append)
	case *array.Int16Builder:
		return narrowed(b.Append)
	case *array.Int32Builder:
		return narrowed(b.Append)
	case *array.Int64Builder:
		return narrowed(b.Append)
	case *array.Date32Builder:
		return narrowed(b.Append)
	case *array.Time64Builder:
		return narrowed(b.Append)
	case *array.TimestampBuilder:
		return narrowed(b.Append)
	}
	return nil
}

// castFloat converts floats to wider ones, or integers to float64, which must represent them exactly.
func castFloat(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	var get func(i int) (v float64, exact bool)
	switch x := a.(type) {
	case *array.Float16:
		get = func(i int) (float64, bool) { return float64(half.Float(x.Value(i).Uint16())), true }
	case *array.Float32:
		get = func(i int) (float64, bool) { return float64(x.Value(i)), true }
	default:
		ints, ok := integers(a)
		if !ok || perDay(a.DataType()) > 0 || to.ID() == arrow.FLOAT32 {
			return nil, refused(a.DataType(), to)
		}
		get = func(i int) (float64, bool) {
			v := ints(i)
			f := float64(v)
			return f, f < 1<<63 && int64(f) == v
		}
	}
	b := array.NewBuilder(mem, to)
	defer b.Release()
	var put func(v float64)
	switch b := b.(type) {
	case *array.Float32Builder:
		put = func(v float64) { b.Append(float32(v)) }
	case *array.Float64Builder:
		put = b.Append
	}
	err := appendEach(b, a, func(i int) error {
		v, exact := get(i)
		if !exact {
			return inexact(a, i, to)
		}
		put(v)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b.NewArray(), nil
}
