// Package present converts arrays back to the types from which they were written, if a file stores them as other types:
// dictionaries, views, large strings, extensions, shorter floats, decimals of other widths. It is independent of
// formats.
package present

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/enc/half"
	"stoa/vec"
)

// Can reports whether As can convert arrays of type from to type to.
func Can(from, to arrow.DataType) bool {
	if arrow.TypeEqual(from, to) {
		return true
	}
	switch t := to.(type) {
	case arrow.ExtensionType:
		return Can(from, t.StorageType())
	case *arrow.LargeStringType, *arrow.StringViewType:
		return from.ID() == arrow.STRING
	case *arrow.LargeBinaryType, *arrow.BinaryViewType:
		return from.ID() == arrow.BINARY
	case *arrow.FixedSizeBinaryType: // 16 bytes may be kept as an integer
		return from.ID() == arrow.BINARY || from.ID() == arrow.DECIMAL128 && t.ByteWidth == 16
	case *arrow.Float16Type:
		return from.ID() == arrow.FLOAT32
	case *arrow.Date64Type:
		return from.ID() == arrow.DATE32
	case arrow.DecimalType:
		d, ok := from.(*arrow.Decimal128Type)
		return ok && d.Scale == t.GetScale() && d.Precision == t.GetPrecision()
	case *arrow.LargeListType:
		l, ok := from.(*arrow.ListType)
		return ok && Can(l.Elem(), t.Elem())
	case *arrow.ListType:
		l, ok := from.(*arrow.ListType)
		return ok && Can(l.Elem(), t.Elem())
	}
	return false
}

// As converts an array to the type from which it was written: a type for which Can returns true, a dictionary of
// strings, or a nested type with such children. A value that does not exist in the type cannot have been written, and
// is an error of class Corrupt. The caller releases the result.
func As(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	from := a.DataType()
	if arrow.TypeEqual(from, to, arrow.CheckMetadata()) {
		a.Retain()
		return a, nil
	}
	switch t := to.(type) {
	case arrow.ExtensionType:
		storage, err := As(a, t.StorageType(), mem)
		if err != nil {
			return nil, err
		}
		defer storage.Release()
		return array.NewExtensionArrayWithStorage(t, storage), nil
	case *arrow.DictionaryType:
		return dictionaryOf(a, t, mem)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		return largeOf(a, to, mem), nil
	case *arrow.StringViewType, *arrow.BinaryViewType:
		return viewsOf(a, to, mem), nil
	case *arrow.LargeListType:
		if from.ID() == arrow.LIST {
			return largeListOf(a, t, mem)
		}
	}
	if n := widthOf(to); n >= 0 && from.ID() != to.ID() {
		return fixedOf(a, to, n, mem)
	}
	fields, ok := to.(arrow.NestedType)
	if ok && len(fields.Fields()) == 0 && from.ID() == arrow.STRUCT && to.ID() == arrow.STRUCT {
		return retype(a, to, nil), nil // formats without structs of no fields may store them with a field
	}
	if !ok || from.ID() != to.ID() || len(fields.Fields()) != len(a.Data().Children()) {
		return nil, fault.Bugf("no conversion from %s to %s", from, to)
	}
	return children(a, to, fields.Fields(), mem)
}

func children(a arrow.Array, to arrow.DataType, fields []arrow.Field, mem memory.Allocator) (arrow.Array,
	error) {
	children := make([]arrow.ArrayData, len(fields))
	for i, c := range a.Data().Children() {
		child := array.MakeFromData(c)
		made, err := As(child, fields[i].Type, mem)
		child.Release()
		if err != nil {
			return nil, err
		}
		defer made.Release()
		children[i] = made.Data()
	}
	return retype(a, to, children), nil
}

// largeOf converts strings to 64-bit offsets.
func largeOf(a arrow.Array, to arrow.DataType, mem memory.Allocator) arrow.Array {
	d := a.Data()
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(8 * (d.Len() + 1))
	defer buf.Release()
	wide := arrow.Int64Traits.CastFromBytes(buf.Bytes())
	clear(wide)
	if offs := d.Buffers()[1]; offs != nil && offs.Len() > 0 {
		for i, x := range arrow.Int32Traits.CastFromBytes(offs.Bytes())[d.Offset():][:d.Len()+1] {
			wide[i] = int64(x)
		}
	}
	valid := d.Buffers()[0]
	if d.Offset() > 0 && valid != nil { // the offsets begin at 0 now, the bitmap does not
		valid = shifted(a, mem)
		defer valid.Release()
	}
	out := array.NewData(to, d.Len(), []*memory.Buffer{valid, buf, d.Buffers()[2]}, nil, d.NullN(), 0)
	defer out.Release()
	return array.MakeFromData(out)
}

// viewsOf converts strings to views. Unused bytes of a view must be 0, and the builder does not clear them.
func viewsOf(a arrow.Array, to arrow.DataType, mem memory.Allocator) arrow.Array {
	mem = vec.Zeroed{Allocator: mem}
	if to.ID() == arrow.STRING_VIEW {
		b := array.NewStringViewBuilder(mem)
		defer b.Release()
		return viewed(a, b, a.(*array.String).Value, b.Append)
	}
	b := array.NewBinaryViewBuilder(mem)
	defer b.Release()
	return viewed(a, b, a.(*array.Binary).Value, b.Append)
}

// viewed appends each value of a to b.
func viewed[T any](a arrow.Array, b array.Builder, value func(int) T, put func(T)) arrow.Array {
	b.Reserve(a.Len())
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
		} else {
			put(value(i))
		}
	}
	return b.NewArray()
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

// shifted returns the validity bitmap of a's rows, with the offset removed.
func shifted(a arrow.Array, mem memory.Allocator) *memory.Buffer {
	b := memory.NewResizableBuffer(mem)
	b.Resize((a.Len() + 7) / 8)
	bits := b.Bytes()
	clear(bits)
	for i := range a.Len() {
		if a.IsValid(i) {
			bits[i>>3] |= 1 << (i & 7)
		}
	}
	return b
}

// dictionaryOf makes a dictionary array of strings, with distinct values in order of appearance.
func dictionaryOf(a arrow.Array, to *arrow.DictionaryType, mem memory.Allocator) (arrow.Array, error) {
	b := array.NewDictionaryBuilder(vec.Zeroed{Allocator: mem}, to)
	defer b.Release()
	b.Reserve(a.Len())
	var put func(i int) error
	switch x := a.(type) {
	case *array.String:
		s, ok := b.(*array.BinaryDictionaryBuilder)
		if !ok {
			return nil, fault.Bugf("no dictionary of type %s", to)
		}
		put = func(i int) error { return s.AppendString(x.Value(i)) }
	case *array.Binary:
		s, ok := b.(*array.BinaryDictionaryBuilder)
		if !ok {
			return nil, fault.Bugf("no dictionary of type %s", to)
		}
		put = func(i int) error { return s.Append(x.Value(i)) }
	default:
		return nil, fault.Bugf("no dictionary of type %s", to)
	}
	for i := range a.Len() {
		if a.IsNull(i) {
			b.AppendNull()
			continue
		}
		if err := put(i); err != nil {
			return nil, fault.Limitf(fault.Span{}, "", "%s",
				fmt.Sprintf("a batch has more different values than %s can number: %v", to.IndexType, err))
		}
	}
	return b.NewArray(), nil
}

// widthOf returns the size in bytes of a value of the types that fixedOf makes; -1 for others.
func widthOf(t arrow.DataType) int {
	switch t := t.(type) {
	case *arrow.FixedSizeBinaryType:
		return t.ByteWidth
	case *arrow.Float16Type, *arrow.Date64Type, arrow.DecimalType:
		return t.(arrow.FixedWidthDataType).BitWidth() / 8
	}
	return -1
}

// fixedOf makes values of width bytes.
func fixedOf(a arrow.Array, to arrow.DataType, width int, mem memory.Allocator) (arrow.Array, error) {
	put, why := converter(a, to)
	if put == nil {
		return nil, fault.Bugf("no conversion from %s to %s", a.DataType(), to)
	}
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(a.Len() * width)
	defer buf.Release()
	out := buf.Bytes()
	clear(out)
	for i := range a.Len() {
		if a.IsValid(i) && !put(out[i*width:][:width], i) {
			return nil, fault.Corruptf(fault.Span{}, "", "%s %s: no %s was stored so", a.ValueStr(i), why, to)
		}
	}
	var valid *memory.Buffer
	if a.NullN() > 0 {
		valid = shifted(a, mem)
		defer valid.Release()
	}
	d := array.NewData(to, a.Len(), []*memory.Buffer{valid, buf}, nil, a.NullN(), 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}

// converter returns a function that stores value i of a as type to, and returns false if the type cannot represent the
// value; why completes the error message.
func converter(a arrow.Array, to arrow.DataType) (put func(dst []byte, i int) bool, why string) {
	le := binary.LittleEndian
	switch x := a.(type) {
	case *array.Float32:
		return func(dst []byte, i int) bool {
			h, ok := halfOf(x.Value(i))
			le.PutUint16(dst, h)
			return ok
		}, "is none of 16 bits"
	case *array.Date32:
		return func(dst []byte, i int) bool {
			le.PutUint64(dst, uint64(x.Value(i).ToTime().UnixMilli()))
			return true
		}, ""
	case *array.Binary:
		return func(dst []byte, i int) bool {
			v := x.Value(i)
			copy(dst, v)
			return len(v) == len(dst)
		}, "is of another length"
	case *array.Decimal128:
		return func(dst []byte, i int) bool {
			var wide [32]byte
			v := x.Value(i)
			le.PutUint64(wide[:], v.LowBits())
			for k := 8; k < len(wide); k += 8 { // extend the sign
				le.PutUint64(wide[k:], uint64(v.HighBits()>>63))
			}
			le.PutUint64(wide[8:], uint64(v.HighBits()))
			copy(dst, wide[:])
			sign := byte(int8(dst[len(dst)-1]) >> 7)
			return !slices.ContainsFunc(wide[len(dst):], func(b byte) bool { return b != sign })
		}, "has more digits"
	}
	return nil, ""
}

// halfOf returns the float16 that was widened to f; false if there is none.
func halfOf(f float32) (uint16, bool) {
	b := math.Float32bits(f)
	if f != f { // keep the payload
		return uint16(b>>16)&0x8000 | 0x7c00 | uint16(b>>13)&0x03ff, b&0x1fff == 0
	}
	h := half.Of(float64(f))
	return h, math.Float32bits(half.Float(h)) == b
}

// largeListOf converts lists to 64-bit offsets.
func largeListOf(a arrow.Array, to *arrow.LargeListType, mem memory.Allocator) (arrow.Array, error) {
	l, ok := a.(*array.List)
	if !ok {
		return nil, fault.Bugf("no conversion from %s to %s", a.DataType(), to)
	}
	items, err := As(l.ListValues(), to.Elem(), mem)
	if err != nil {
		return nil, err
	}
	defer items.Release()
	buf := memory.NewResizableBuffer(mem)
	buf.Resize(8 * (l.Len() + 1))
	defer buf.Release()
	wide := arrow.Int64Traits.CastFromBytes(buf.Bytes())
	clear(wide)
	for i := range l.Len() {
		wide[i], wide[i+1] = l.ValueOffsets(i)
	}
	var valid *memory.Buffer
	if l.NullN() > 0 {
		valid = shifted(a, mem)
		defer valid.Release()
	}
	d := array.NewData(to, l.Len(), []*memory.Buffer{valid, buf}, []arrow.ArrayData{items.Data()}, l.NullN(), 0)
	defer d.Release()
	return array.MakeFromData(d), nil
}
