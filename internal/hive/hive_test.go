package hive

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestThereAndBack: every value that can be a directory's name is read back from it.
func TestThereAndBack(t *testing.T) {
	for _, c := range []struct {
		t    arrow.DataType
		json string
		want []string
	}{
		{arrow.PrimitiveTypes.Int8, `[-128, null]`, []string{"-128", Null}},
		{arrow.PrimitiveTypes.Uint64, `[18446744073709551615]`, []string{"18446744073709551615"}},
		{arrow.PrimitiveTypes.Float64, `[0.1, -0.0]`, []string{"0.1", "-0"}},
		{arrow.FixedWidthTypes.Boolean, `[true]`, []string{"true"}},
		{arrow.FixedWidthTypes.Date32, `["1969-12-31"]`, []string{"1969-12-31"}},
		{arrow.BinaryTypes.String, `["a/b=%", ".x", "ä", "'"]`, []string{"a%2Fb%3D%25", "%2Ex", "ä", "%27"}},
		{&arrow.Decimal128Type{Precision: 38, Scale: 8},
			`["-0.00000003", "123456789012345678901234567890.00000001"]`,
			[]string{"-0.00000003", "123456789012345678901234567890.00000001"}},
		{&arrow.TimestampType{Unit: arrow.Microsecond}, `["1969-12-31 23:59:59.999999"]`,
			[]string{"1969-12-31 23%3A59%3A59.999999"}},
	} {
		a, _, err := array.FromJSON(memory.DefaultAllocator, c.t, strings.NewReader(c.json))
		if err != nil {
			t.Fatal(err)
		}
		var texts []string
		for i := range a.Len() {
			s, err := Text(a, i)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, s)
			back, err := Parse(c.t, s)
			if err != nil || !array.Equal(back, array.NewSlice(a, int64(i), int64(i+1))) {
				t.Errorf("%s: %v, %v", s, back, err)
			}
		}
		if !slices.Equal(texts, c.want) {
			t.Errorf("%s: %v, want %v", c.t, texts, c.want)
		}
	}
}

// TestNoName: values that would be read as null, and types without a text, are refused.
func TestNoName(t *testing.T) {
	for _, c := range []struct {
		t    arrow.DataType
		json string
	}{{arrow.BinaryTypes.String, `[""]`}, {arrow.BinaryTypes.String, `["` + Null + `"]`},
		{arrow.ListOf(arrow.PrimitiveTypes.Int8), `[[1]]`}} {
		a, _, err := array.FromJSON(memory.DefaultAllocator, c.t, strings.NewReader(c.json))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := Text(a, 0); err == nil {
			t.Errorf("%s: %q, want an error", c.json, s)
		}
	}
}

// FuzzDecode: any bytes as the schema's file give a schema or an error.
func FuzzDecode(f *testing.F) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "y", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b, err := Encode(sc, []string{"y"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got, _, err := Decode(b); err == nil && got == nil {
			t.Error("no schema and no error")
		}
	})
}
