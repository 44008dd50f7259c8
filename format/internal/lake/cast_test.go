package lake

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// TestCast: values are converted to JSON of the wanted type, or refused if they would change.
func TestCast(t *testing.T) {
	list := arrow.ListOf(arrow.PrimitiveTypes.Int32)
	for _, c := range []struct {
		from     arrow.DataType
		in       string
		to       arrow.DataType
		want     string // "": refused
		refusing fault.Class
	}{
		{arrow.PrimitiveTypes.Int8, `[-128,null,127]`, arrow.PrimitiveTypes.Int64, `[-128,null,127]`, 0},
		{arrow.PrimitiveTypes.Uint32, `[4294967295]`, arrow.PrimitiveTypes.Int64, `[4294967295]`, 0},
		{arrow.PrimitiveTypes.Uint32, `[2147483648]`, arrow.PrimitiveTypes.Int32, "", fault.Invalid},
		{arrow.PrimitiveTypes.Int64, `[-129]`, arrow.PrimitiveTypes.Int8, "", fault.Invalid},
		{arrow.PrimitiveTypes.Int64, `[9007199254740992,-9007199254740992]`, arrow.PrimitiveTypes.Float64,
			`[9007199254740992,-9007199254740992]`, 0},
		{arrow.PrimitiveTypes.Int64, `[9007199254740993]`, arrow.PrimitiveTypes.Float64, "", fault.Invalid},
		{arrow.PrimitiveTypes.Int64, `[9223372036854775807]`, arrow.PrimitiveTypes.Float64, "", fault.Invalid},
		{arrow.PrimitiveTypes.Float64, `[1]`, arrow.PrimitiveTypes.Float32, "", fault.Unsupported},
		{arrow.FixedWidthTypes.Date32, `["1970-01-02"]`, &arrow.Decimal128Type{Precision: 10}, "", fault.Unsupported},
		{arrow.PrimitiveTypes.Int32, `[12]`, &arrow.Decimal128Type{Precision: 5, Scale: 2}, `["12"]`, 0},
		{arrow.PrimitiveTypes.Int32, `[1000]`, &arrow.Decimal128Type{Precision: 5, Scale: 2}, "", fault.Invalid},
		{arrow.ListViewOf(arrow.PrimitiveTypes.Int32), `[[1,2],null,[],[3]]`, list, `[[1,2],null,[],[3]]`, 0},
		{arrow.FixedSizeListOf(1, arrow.PrimitiveTypes.Int32), `[[1],null,[3]]`, list, `[[1],null,[3]]`, 0},
	} {
		a, _, err := array.FromJSON(memory.DefaultAllocator, c.from, strings.NewReader(c.in))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Cast(a, c.to, memory.DefaultAllocator)
		if c.want == "" {
			if !errors.Is(err, c.refusing) {
				t.Errorf("%s %s as %s: %v, %v, want an error of class %v", c.from, c.in, c.to, got, err, c.refusing)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %s as %s: %v", c.from, c.in, c.to, err)
			continue
		}
		want, _, err := array.FromJSON(memory.DefaultAllocator, c.to, strings.NewReader(c.want))
		if err != nil {
			t.Fatal(err)
		}
		if !array.Equal(got, want) {
			t.Errorf("%s %s as %s: %v, want %v", c.from, c.in, c.to, got, want)
		}
	}
}

// TestListViews: offsets of null and of empty lists are meaningless, and may lie anywhere.
func TestListViews(t *testing.T) {
	items := array.NewInt32Builder(memory.DefaultAllocator)
	items.AppendValues([]int32{0, 1, 2, 3, 4, 5, 6}, nil)
	ints := func(v ...int32) *memory.Buffer { return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(v)) }
	d := array.NewData(arrow.ListViewOf(arrow.PrimitiveTypes.Int32), 4, []*memory.Buffer{
		memory.NewBufferBytes([]byte{0b1101}), ints(5, 0, math.MaxInt16, 6), ints(1, 0, 0, 1)},
		[]arrow.ArrayData{items.NewArray().Data()}, 1, 0)
	got, err := Cast(array.MakeFromData(d), arrow.ListOf(arrow.PrimitiveTypes.Int32), memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	if text := got.String(); text != "[[5] (null) [] [6]]" {
		t.Error(text)
	}
}
