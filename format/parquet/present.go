package parquet

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// presented gives an array, which has a type of storedField, the type that it was made of. The caller releases
// the result.
func presented(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	from := a.DataType()
	if arrow.TypeEqual(from, to, arrow.CheckMetadata()) {
		a.Retain()
		return a, nil
	}
	switch t := to.(type) {
	case arrow.ExtensionType:
		storage, err := presented(a, t.StorageType(), mem)
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
	}
	fields, ok := to.(arrow.NestedType)
	if !ok || from.ID() != to.ID() || len(fields.Fields()) != len(a.Data().Children()) {
		return nil, fault.Bugf("no conversion from %s to %s", from, to)
	}
	return presentedChildren(a, to, fields.Fields(), mem)
}

func presentedChildren(a arrow.Array, to arrow.DataType, fields []arrow.Field, mem memory.Allocator) (arrow.Array,
	error) {
	children := make([]arrow.ArrayData, len(fields))
	for i, c := range a.Data().Children() {
		child := array.MakeFromData(c)
		made, err := presented(child, fields[i].Type, mem)
		child.Release()
		if err != nil {
			return nil, err
		}
		defer made.Release()
		children[i] = made.Data()
	}
	return retype(a, to, children), nil
}

// largeOf makes strings with offsets of 64 bits.
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

// viewsOf makes views of strings.
func viewsOf(a arrow.Array, to arrow.DataType, mem memory.Allocator) arrow.Array {
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

// shifted is the bitmap of a's rows.
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

// dictionaryOf makes a dictionary array of strings: each once, in the order in which they come.
func dictionaryOf(a arrow.Array, to *arrow.DictionaryType, mem memory.Allocator) (arrow.Array, error) {
	b := array.NewDictionaryBuilder(mem, to)
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
