package page

import (
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// Span is the entries [From, To) of one of several arrays. Array -1 stands for that many nulls.
type Span struct{ Array, From, To int32 }

// errTooLong is returned for more bytes or items than the 32-bit offsets of an array can address.
var errTooLong = fault.Limitf(fault.Span{}, "", "more than 2 GiB of a column in one batch")

// GatherArrays copies entries of several arrays of the same type to one array; dictionaries are decoded. Types without
// a kernel here are sliced and concatenated.
func GatherArrays(in []arrow.Array, spans []Span) (arrow.Array, error) {
	n := 0
	for _, s := range spans {
		n += int(s.To - s.From)
	}
	valid, nulls := gatherValid(in, spans, n)
	made := func(t arrow.DataType, bufs []*memory.Buffer, arrays ...arrow.Array) arrow.Array {
		var children []arrow.ArrayData
		for _, k := range arrays {
			children = append(children, k.Data())
			defer k.Release()
		}
		d := array.NewData(t, n, append([]*memory.Buffer{valid}, bufs...), children, nulls, 0)
		defer d.Release()
		return array.MakeFromData(d)
	}
	switch t := in[0].DataType().(type) {
	case *arrow.NullType:
		return array.NewNull(n), nil
	case *arrow.BooleanType:
		return made(t, []*memory.Buffer{gatherBits(in, spans, n)}), nil
	case *arrow.StringType, *arrow.BinaryType:
		offsets, data, err := gatherBytes(in, spans, n)
		if err != nil {
			return nil, err
		}
		return made(t, []*memory.Buffer{offsets, data}), nil
	case *arrow.DictionaryType:
		values, inner := gatherCodes(in, spans)
		return GatherArrays(values, inner)
	case *arrow.StructType:
		fields, err := gatherFields(in, spans, t.NumFields())
		if err != nil {
			return nil, err
		}
		return made(t, nil, fields...), nil
	case *arrow.ListType, *arrow.MapType:
		offsets, inner, err := gatherLists(in, spans, n)
		if err != nil {
			return nil, err
		}
		items, err := GatherArrays(partsOf(in, func(a arrow.Array) arrow.Array {
			return a.(array.ListLike).ListValues()
		}), inner)
		if err != nil {
			return nil, err
		}
		return made(t, []*memory.Buffer{offsets}, items), nil
	case arrow.FixedWidthDataType:
		if b := gatherFixed(in, spans, n, t.BitWidth()); b != nil {
			return made(t, []*memory.Buffer{b}), nil
		}
	}
	return gatherSlices(in, spans)
}

// gatherFields gathers each of the n fields of structs.
func gatherFields(in []arrow.Array, spans []Span, n int) ([]arrow.Array, error) {
	fields := make([]arrow.Array, n)
	for k := range fields {
		var err error
		fields[k], err = GatherArrays(partsOf(in, func(a arrow.Array) arrow.Array {
			return a.(*array.Struct).Field(k)
		}), spans)
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// partsOf returns the same part of each array: a field, or the items.
func partsOf(in []arrow.Array, part func(arrow.Array) arrow.Array) []arrow.Array {
	out := make([]arrow.Array, len(in))
	for i, a := range in {
		out[i] = part(a)
	}
	return out
}

// gatherValid returns the validity bitmap, nil if no entry is null, and the number of nulls.
func gatherValid(in []arrow.Array, spans []Span, n int) (*memory.Buffer, int) {
	some := false
	for _, a := range in {
		some = some || a.NullN() > 0
	}
	for _, s := range spans {
		some = some || s.Array < 0
	}
	if !some {
		return nil, 0
	}
	b, k, nulls := make([]byte, bitutil.BytesForBits(int64(n))), 0, 0
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			if s.Array >= 0 && in[s.Array].IsValid(int(i)) {
				bitutil.SetBit(b, k)
			} else {
				nulls++
			}
			k++
		}
	}
	return memory.NewBufferBytes(b), nulls
}

func gatherBits(in []arrow.Array, spans []Span, n int) *memory.Buffer {
	b, k := make([]byte, bitutil.BytesForBits(int64(n))), 0
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			if s.Array >= 0 && in[s.Array].(*array.Boolean).Value(int(i)) {
				bitutil.SetBit(b, k)
			}
			k++
		}
	}
	return memory.NewBufferBytes(b)
}

// gatherFixed copies values of width bits; nil if there is no kernel for that width.
func gatherFixed(in []arrow.Array, spans []Span, n, width int) *memory.Buffer {
	if width%8 != 0 {
		return nil
	}
	width /= 8
	out := make([]byte, n*width)
	from := make([][]byte, len(in))
	for i, a := range in {
		if b := a.Data().Buffers()[1]; b != nil {
			from[i] = b.Bytes()[a.Data().Offset()*width:]
		}
	}
	switch width {
	case 4:
		gatherValues(arrow.Uint32Traits.CastFromBytes, out, from, spans)
	case 8:
		gatherValues(arrow.Uint64Traits.CastFromBytes, out, from, spans)
	case 16:
		gatherValues(arrow.Decimal128Traits.CastFromBytes, out, from, spans)
	default:
		at := out
		for _, s := range spans {
			k := int(s.To-s.From) * width
			if s.Array >= 0 {
				copy(at[:k], from[s.Array][int(s.From)*width:])
			}
			at = at[k:]
		}
	}
	return memory.NewBufferBytes(out)
}

func gatherValues[T any](cast func([]byte) []T, out []byte, from [][]byte, spans []Span) {
	dst, src := cast(out), make([][]T, len(from))
	for i := range from {
		src[i] = cast(from[i])
	}
	for _, s := range spans {
		k := int(s.To - s.From)
		switch {
		case s.Array < 0:
		case k == 1:
			dst[0] = src[s.Array][s.From]
		default:
			copy(dst[:k], src[s.Array][s.From:])
		}
		dst = dst[k:]
	}
}

func gatherBytes(in []arrow.Array, spans []Span, n int) (offsets, data *memory.Buffer, err error) {
	ends, text := make([][]int32, len(in)), make([][]byte, len(in))
	for i, a := range in {
		if a.Len() == 0 { // it may have no offsets at all
			continue
		}
		switch a := a.(type) {
		case *array.String:
			ends[i], text[i] = a.ValueOffsets(), a.ValueBytes()
		case *array.Binary:
			ends[i], text[i] = a.ValueOffsets(), a.ValueBytes()
		}
	}
	b := make([]byte, 4*(n+1))
	to, k, total := arrow.Int32Traits.CastFromBytes(b), 0, int64(0)
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			if s.Array >= 0 {
				total += int64(ends[s.Array][i+1] - ends[s.Array][i])
			}
			if k++; total > math.MaxInt32 {
				return nil, nil, errTooLong
			}
			to[k] = int32(total)
		}
	}
	out, at := make([]byte, total), 0
	for _, s := range spans {
		if s.Array >= 0 && s.To > s.From {
			e := ends[s.Array]
			at += copy(out[at:], text[s.Array][e[s.From]-e[0]:e[s.To]-e[0]])
		}
	}
	return memory.NewBufferBytes(b), memory.NewBufferBytes(out), nil
}

// gatherLists returns the offsets of the lists, and the spans of their items.
func gatherLists(in []arrow.Array, spans []Span, n int) (*memory.Buffer, []Span, error) {
	b := make([]byte, 4*(n+1))
	to, k, total := arrow.Int32Traits.CastFromBytes(b), 0, int64(0)
	var inner []Span
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			if s.Array >= 0 && in[s.Array].IsValid(int(i)) {
				from, end := in[s.Array].(array.ListLike).ValueOffsets(int(i))
				inner = append(inner, Span{s.Array, int32(from), int32(end)})
				total += end - from
			}
			if k++; total > math.MaxInt32 {
				return nil, nil, errTooLong
			}
			to[k] = int32(total)
		}
	}
	return memory.NewBufferBytes(b), inner, nil
}

// gatherCodes returns the dictionaries of the arrays, and the position of each entry in them.
func gatherCodes(in []arrow.Array, spans []Span) (values []arrow.Array, inner []Span) {
	for _, a := range in {
		values = append(values, a.(*array.Dictionary).Dictionary())
	}
	for _, s := range spans {
		for i := s.From; i < s.To; i++ {
			if s.Array < 0 || in[s.Array].IsNull(int(i)) {
				inner = append(inner, Span{-1, 0, 1})
				continue
			}
			k := int32(in[s.Array].(*array.Dictionary).GetValueIndex(int(i)))
			inner = append(inner, Span{s.Array, k, k + 1})
		}
	}
	return values, inner
}

// gatherSlices is GatherArrays for types without a kernel.
func gatherSlices(in []arrow.Array, spans []Span) (arrow.Array, error) {
	var parts []arrow.Array
	defer func() {
		for _, p := range parts {
			p.Release()
		}
	}()
	for _, s := range spans {
		if s.Array < 0 {
			parts = append(parts, array.MakeArrayOfNull(memory.DefaultAllocator, in[0].DataType(), int(s.To-s.From)))
		} else {
			parts = append(parts, array.NewSlice(in[s.Array], int64(s.From), int64(s.To)))
		}
	}
	if len(parts) == 0 {
		return array.NewSlice(in[0], 0, 0), nil
	}
	return array.Concatenate(parts, memory.DefaultAllocator)
}

// plainType is the type of the array that GatherArrays returns.
func plainType(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return plainType(t.ValueType)
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			fields[i].Type = plainType(fields[i].Type)
		}
		return arrow.StructOf(fields...)
	case *arrow.MapType:
		m := arrow.MapOfFields(PlainField(t.KeyField()), PlainField(t.ItemField()))
		m.KeysSorted = t.KeysSorted
		return m
	case *arrow.ListType:
		return arrow.ListOfField(PlainField(t.ElemField()))
	}
	return t
}

func PlainField(f arrow.Field) arrow.Field {
	f.Type = plainType(f.Type)
	return f
}
