package ipc_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	lib "github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/format/ipc"
	"stoa/vec"
)

// TestAlikeDictionaries: each batch of a stream keeps its own dictionary, even if the library takes it for the previous
// one: it compares floats approximately, and strings without the zero bytes at their end.
func TestAlikeDictionaries(t *testing.T) {
	strings := func(of arrow.DataType, values ...string) arrow.Array {
		b := array.NewBuilder(memory.DefaultAllocator, of)
		for _, v := range values {
			if err := b.AppendValueFromString(v); err != nil {
				t.Fatal(err)
			}
		}
		return b.NewArray()
	}
	floats := func(values ...float64) arrow.Array {
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		b.AppendValues(values, nil)
		return b.NewArray()
	}
	text := func(values ...string) arrow.Array { return strings(arrow.BinaryTypes.String, values...) }
	for name, dicts := range map[string][]arrow.Array{
		"text":         {text("ab"), text("ab\x00"), text("ab\x00\x00"), text("ab")},
		"prefix":       {text("ab"), text("ab\x00", "c"), text("ab", "c", "d"), text("ab", "c", "d", "e")},
		"large text":   {strings(arrow.BinaryTypes.LargeString, "x"), strings(arrow.BinaryTypes.LargeString, "x\x00")},
		"floats":       {floats(1), floats(1 + 1e-9), floats(1+1e-9, 2), floats(1, 2+1e-12, 3)},
		"zeros":        {floats(0), floats(math.Copysign(0, -1)), floats(0, 1)},
		"same, longer": {floats(math.NaN()), floats(math.NaN(), 1), floats(math.NaN(), 1, 2)},
	} {
		for _, nested := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", in a list: ", nested), func(t *testing.T) { alike(t, dicts, nested) })
		}
	}
}

func alike(t *testing.T, dicts []arrow.Array, nested bool) {
	typ := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: dicts[0].DataType()}
	field := arrow.Field{Name: "d", Type: typ, Nullable: true}
	siblings := []arrow.Field{{Name: "n", Type: arrow.Null, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.LargeString), Nullable: true},
		{Name: "f", Type: arrow.FixedSizeListOf(2, arrow.FixedWidthTypes.Boolean), Nullable: true}}
	if nested {
		field.Type = arrow.ListOf(typ)
	}
	sc := arrow.NewSchema(append([]arrow.Field{field}, siblings...), nil)
	var out bytes.Buffer
	w := ipc.NewStreamWriter(&out, sc)
	var want []string
	for _, dict := range dicts {
		codes := array.NewInt8Builder(memory.DefaultAllocator)
		for k := range dict.Len() {
			codes.Append(int8(k))
			want = append(want, cell(dict, k))
		}
		var col arrow.Array = array.NewDictionaryArray(typ, codes.NewArray(), dict)
		if nested {
			offsets := memory.NewBufferBytes(arrow.Int32Traits.CastToBytes([]int32{0, int32(dict.Len())}))
			col = array.MakeFromData(array.NewData(field.Type, 1, []*memory.Buffer{nil, offsets},
				[]arrow.ArrayData{col.Data()}, 0, 0))
		}
		cols := []arrow.Array{col}
		for _, f := range siblings {
			cols = append(cols, vec.Nulls(memory.DefaultAllocator, f.Type, col.Len()))
		}
		if err := w.Write(array.NewRecordBatch(sc, cols, int64(col.Len()))); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := lib.NewReader(&out)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for r.Next() {
		col := r.RecordBatch().Column(0)
		if l, ok := col.(*array.List); ok {
			col = l.ListValues()
		}
		d := col.(*array.Dictionary)
		for i := range d.Len() {
			got = append(got, cell(d.Dictionary(), d.GetValueIndex(i)))
		}
	}
	if err := r.Err(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// cell returns a value of a dictionary, bit by bit.
func cell(a arrow.Array, i int) string {
	if f, ok := a.(*array.Float64); ok {
		return fmt.Sprintf("%x", math.Float64bits(f.Value(i)))
	}
	return a.ValueStr(i)
}
