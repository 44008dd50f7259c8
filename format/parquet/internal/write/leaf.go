package write

import (
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/nest"
)

// leafForm is the conversion of a leaf's values to its physical type.
type leafForm uint8

const (
	formSame    leafForm = iota // the bytes in Arrow's buffer
	formNone                    // Arrow's Null: there are no values
	formBool                    // one byte a value
	formWiden                   // 8 or 16 bits to INT32
	formSeconds                 // seconds to milliseconds
	formDays                    // milliseconds to days
	formDecimal                 // two's complement, big-endian, as many bytes as the precision needs
	formBytes                   // BYTE_ARRAY
)

// leafValue describes how the values of one leaf are written.
type leafValue struct {
	form   leafForm
	from   int  // bytes of a value in Arrow's buffer; 0 for BYTE_ARRAY and bits
	to     int  // bytes in the file; 0 for BYTE_ARRAY; 1 for booleans, before they are packed
	signed bool // formWiden
}

// planLeaf returns how values of t are written; ok is false if that is impossible.
func planLeaf(t arrow.DataType) (v leafValue, ok bool) {
	same := func(n int) (leafValue, bool) { return leafValue{form: formSame, from: n, to: n}, true }
	switch t := t.(type) {
	case *arrow.NullType:
		return leafValue{form: formNone, to: 4}, true
	case *arrow.BooleanType:
		return leafValue{form: formBool, to: 1}, true
	case *arrow.Int8Type, *arrow.Int16Type:
		return leafValue{form: formWiden, from: t.(arrow.FixedWidthDataType).Bytes(), to: 4, signed: true}, true
	case *arrow.Uint8Type, *arrow.Uint16Type:
		return leafValue{form: formWiden, from: t.(arrow.FixedWidthDataType).Bytes(), to: 4}, true
	case *arrow.Int32Type, *arrow.Uint32Type, *arrow.Date32Type, *arrow.Float32Type, *arrow.MonthIntervalType:
		return same(4)
	case *arrow.Int64Type, *arrow.Uint64Type, *arrow.Time64Type, *arrow.Float64Type, *arrow.DurationType,
		*arrow.DayTimeIntervalType:
		return same(8)
	case *arrow.MonthDayNanoIntervalType:
		return same(16)
	case *arrow.Float16Type:
		return same(2)
	case *arrow.FixedSizeBinaryType:
		return same(t.ByteWidth)
	case *arrow.Time32Type:
		if t.Unit == arrow.Second {
			return leafValue{form: formSeconds, from: 4, to: 4}, true
		}
		return same(4)
	case *arrow.TimestampType:
		if t.Unit == arrow.Second {
			return leafValue{form: formSeconds, from: 8, to: 8}, true
		}
		return same(8)
	case *arrow.Date64Type:
		return leafValue{form: formDays, from: 8, to: 4}, true
	case arrow.DecimalType:
		return leafValue{form: formDecimal, from: t.BitWidth() / 8, to: decimalBytes(t.GetPrecision())},
			t.GetPrecision() > 0
	case *arrow.StringType, *arrow.BinaryType, *arrow.LargeStringType, *arrow.LargeBinaryType,
		*arrow.StringViewType, *arrow.BinaryViewType:
		return leafValue{form: formBytes}, true
	case *arrow.DictionaryType:
		return planLeaf(t.ValueType)
	case arrow.ExtensionType:
		return planLeaf(t.StorageType())
	}
	return leafValue{}, false
}

// decimalBytes returns the number of bytes that can hold every signed number with the given number of decimal digits.
func decimalBytes(precision int32) int {
	return int(math.Ceil((float64(precision)*math.Log2(10) + 1) / 8))
}

// dense holds the non-null values of a leaf, one after another, in the file's physical type. It is valid as long as the
// array from which it was made, and until the next one is made in the same scratch memory.
type dense struct {
	n     int
	fixed []byte  // n values of fixed size
	offs  []int32 // BYTE_ARRAY: value i is data[offs[i]:offs[i+1]]
	data  []byte
}

// denseScratch is memory for converted values.
type denseScratch struct {
	fixed []byte
	offs  []int32
	data  []byte
}

func (s *denseScratch) room(n int) []byte {
	if cap(s.fixed) < n {
		s.fixed = make([]byte, n+n/4)
	}
	return s.fixed[:n]
}

// presentValues returns the non-null values as an array, which the caller releases. A dictionary is decoded. Nulls
// among a dictionary's values become nulls of the leaf in s, provided that the leaf is nullable.
func presentValues(s *nest.Shredded, nullable bool, mem memory.Allocator) (arrow.Array, error) {
	a, err := s.Dense(mem)
	if err != nil {
		return nil, err
	}
	d, ok := a.(*array.Dictionary)
	if !ok {
		return a, nil
	}
	defer d.Release()
	if a, err = nest.Decoded(d, mem); err != nil || a.NullN() == 0 {
		return a, err
	}
	defer a.Release()
	if !nullable {
		return nil, fault.Invalidf("column %s: a dictionary has a null among its values, the column has none", s.Name)
	}
	def, present := make([]byte, s.Entries), make([]int32, 0, a.Len())
	k := int32(0)
	for i := range def {
		if def[i] = s.Def[i]; def[i] != s.MaxDef {
			continue
		}
		if a.IsNull(int(k)) {
			def[i]--
		} else {
			present = append(present, k)
		}
		k++
	}
	s.Def = def
	some := nest.Shredded{Leaf: s.Leaf, Values: a, Present: present}
	return some.Dense(mem)
}

// of returns the physical values of a, which has no nulls.
func (v leafValue) of(a arrow.Array, s *denseScratch) (dense, error) {
	if x, ok := a.(array.ExtensionArray); ok {
		return v.of(x.Storage(), s)
	}
	out := dense{n: a.Len()}
	if a.Len() == 0 {
		out.offs = []int32{0}
		return out, nil
	}
	var err error
	switch v.form {
	case formBool:
		out.fixed = s.room(a.Len())
		b := a.(*array.Boolean)
		for i := range out.fixed {
			out.fixed[i] = 0
			if b.Value(i) {
				out.fixed[i] = 1
			}
		}
		return out, nil
	case formBytes:
		return stringsOf(a, s)
	}
	d := a.Data()
	if len(d.Buffers()) < 2 || d.Buffers()[1] == nil || len(d.Buffers()[1].Bytes()) < (d.Offset()+d.Len())*v.from {
		return out, fault.Bugf("parquet: an array of type %s without its values", a.DataType())
	}
	raw := d.Buffers()[1].Bytes()[d.Offset()*v.from : (d.Offset()+d.Len())*v.from]
	switch v.form {
	case formSame:
		out.fixed = raw
		return out, nil
	case formWiden:
		out.fixed = s.room(4 * out.n)
		v.widen(out.fixed, raw)
	case formSeconds:
		out.fixed = s.room(len(raw))
		err = millis(out.fixed, raw, v.from)
	case formDays:
		out.fixed = s.room(4 * out.n)
		err = days(out.fixed, raw)
	case formDecimal:
		out.fixed = s.room(v.to * out.n)
		err = v.decimals(out.fixed, raw)
	default:
		err = fault.Bugf("parquet: values of type %s", a.DataType())
	}
	return out, err
}

// wordsOf views b as values of T.
func wordsOf[T any](b []byte) []T {
	var t T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(t)))
}

func (v leafValue) widen(dst, src []byte) {
	out := wordsOf[int32](dst)
	switch {
	case v.from == 1 && v.signed:
		for i, x := range src {
			out[i] = int32(int8(x))
		}
	case v.from == 1:
		for i, x := range src {
			out[i] = int32(x)
		}
	case v.signed:
		for i, x := range wordsOf[int16](src) {
			out[i] = int32(x)
		}
	default:
		for i, x := range wordsOf[uint16](src) {
			out[i] = int32(x)
		}
	}
}

// millis converts seconds, a unit that Parquet lacks, to milliseconds.
func millis(dst, src []byte, width int) error {
	if width == 4 {
		out := wordsOf[int32](dst)
		for i, x := range wordsOf[int32](src) {
			if out[i] = x * 1000; out[i]/1000 != x {
				return fault.Invalidf("%d seconds are too many for milliseconds of 32 bits, which Parquet has", x)
			}
		}
		return nil
	}
	out := wordsOf[int64](dst)
	for i, x := range wordsOf[int64](src) {
		if out[i] = x * 1000; out[i]/1000 != x {
			return fault.Invalidf("%d seconds are too many for milliseconds of 64 bits, which Parquet has", x)
		}
	}
	return nil
}

// days converts milliseconds to days.
func days(dst, src []byte) error {
	const day = 86_400_000
	out := wordsOf[int32](dst)
	for i, x := range wordsOf[int64](src) {
		if out[i] = int32(x / day); int64(out[i])*day != x {
			return fault.Invalidf("date64 %d ms is not the beginning of a day that Parquet can hold", x)
		}
	}
	return nil
}

// decimals converts little-endian integers to big-endian ones, omitting bytes that only extend the sign.
func (v leafValue) decimals(dst, src []byte) error {
	for at, to := 0, 0; at < len(src); at, to = at+v.from, to+v.to {
		x, out := src[at:at+v.from], dst[to:to+v.to]
		sign := byte(int8(x[v.from-1]) >> 7)
		for i := range out {
			if k := v.to - 1 - i; k < v.from {
				out[i] = x[k]
			} else {
				out[i] = sign
			}
		}
		for _, b := range x[min(v.to, v.from):] {
			if b != sign || (out[0]^sign)&0x80 != 0 {
				return fault.Invalidf("a decimal has more digits than its type's precision")
			}
		}
	}
	return nil
}

// stringsOf returns strings or binaries with 32-bit offsets.
func stringsOf(a arrow.Array, s *denseScratch) (dense, error) {
	out := dense{n: a.Len()}
	switch a := a.(type) {
	case *array.String:
		out.offs, out.data = a.ValueOffsets(), wholeBytes(a.Data())
		return out, nil
	case *array.Binary:
		out.offs, out.data = a.ValueOffsets(), wholeBytes(a.Data())
		return out, nil
	case *array.LargeString:
		return large(a.ValueOffsets(), wholeBytes(a.Data()), s)
	case *array.LargeBinary:
		return large(a.ValueOffsets(), wholeBytes(a.Data()), s)
	case *array.StringView:
		return views(a.Len(), func(i int) string { return a.Value(i) }, s)
	case *array.BinaryView:
		return views(a.Len(), func(i int) string {
			b := a.Value(i)
			return unsafe.String(unsafe.SliceData(b),
				len(b))
		}, s)
	}
	return out, fault.Bugf("parquet: bytes of type %s", a.DataType())
}

func wholeBytes(d arrow.ArrayData) []byte {
	if b := d.Buffers()[2]; b != nil {
		return b.Bytes()
	}
	return nil
}

func large(offs []int64, data []byte, s *denseScratch) (dense, error) {
	first, last := offs[0], offs[len(offs)-1]
	if last-first > math.MaxInt32 {
		return dense{}, fault.Limitf(fault.Span{}, "", "%d bytes of strings in so few rows that they are not cut",
			last-first)
	}
	s.offs = s.offs[:0]
	for _, o := range offs {
		s.offs = append(s.offs, int32(o-first))
	}
	return dense{n: len(offs) - 1, offs: s.offs, data: data[first:last]}, nil
}

func views(n int, value func(int) string, s *denseScratch) (dense, error) {
	s.offs, s.data = append(s.offs[:0], 0), s.data[:0]
	for i := range n {
		x := value(i)
		if len(s.data)+len(x) > math.MaxInt32 {
			return dense{}, fault.Limitf(fault.Span{}, "",
				"more than 2 GiB of strings in so few rows that they are not cut")
		}
		s.data = append(s.data, x...)
		s.offs = append(s.offs, int32(len(s.data)))
	}
	return dense{n: n, offs: s.offs, data: s.data}, nil
}
