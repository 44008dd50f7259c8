package main

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// sumOf is the checksum of rows of JSON as a schema has them.
func sumOf(t *testing.T, sc *arrow.Schema, rows ...string) string {
	t.Helper()
	b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader("["+strings.Join(rows, ",")+"]"))
	if err != nil {
		t.Fatal(err)
	}
	var s checksum
	s.add(b)
	return s.String()
}

func column(dt arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{{Name: "c", Type: dt, Nullable: true}}, nil)
}

// TestChecksumKnowsValues: the same values in other types or in another order have the same sum; other values another.
func TestChecksumKnowsValues(t *testing.T) {
	list, wide := arrow.ListOf(arrow.PrimitiveTypes.Int8), arrow.LargeListOf(arrow.PrimitiveTypes.Int64)
	same := []struct {
		a, b arrow.DataType
		rows []string
		bs   []string // nil: rows, backwards
	}{
		{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int64, []string{`{"c":-1}`, `{"c":null}`, `{"c":7}`}, nil},
		{arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint64, []string{`{"c":65535}`, `{"c":0}`}, nil},
		{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, []string{`{"c":1.5}`, `{"c":-0.25}`}, nil},
		{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, []string{`{"c":""}`, `{"c":"x"}`, `{"c":null}`}, nil},
		{arrow.FixedWidthTypes.Timestamp_s, arrow.FixedWidthTypes.Timestamp_ns, []string{`{"c":"1969-12-31T23:59:59Z"}`}, nil},
		{arrow.FixedWidthTypes.Timestamp_ms, arrow.FixedWidthTypes.Timestamp_us, []string{`{"c":"1969-12-31T23:59:59.123Z"}`, `{"c":"2024-02-29T00:00:00Z"}`}, nil},
		{arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64, []string{`{"c":"1969-12-31"}`, `{"c":"2024-02-29"}`}, nil},
		{&arrow.Decimal64Type{Precision: 18, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 2}, []string{`{"c":"-1.25"}`, `{"c":"3.00"}`}, nil},
		{&arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 50, Scale: 2}, []string{`{"c":"-1.25"}`, `{"c":"3.00"}`}, nil},
		{list, wide, []string{`{"c":[1,null]}`, `{"c":[]}`, `{"c":null}`}, nil},
	}
	for _, x := range same {
		bs := x.bs
		if bs == nil {
			for i := range x.rows {
				bs = append(bs, x.rows[len(x.rows)-1-i])
			}
		}
		if a, b := sumOf(t, column(x.a), x.rows...), sumOf(t, column(x.b), bs...); a != b {
			t.Errorf("%s as %s: %s, as %s: %s", x.rows, x.a, a, x.b, b)
		}
		if a, b := shape(column(x.a)), shape(column(x.b)); a != b {
			t.Errorf("%s is %s, %s is %s", x.a, a, x.b, b)
		}
	}
	two := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}, {Name: "b", Type: list, Nullable: true}}, nil)
	seen := map[string]string{}
	for _, rows := range [][]string{
		{`{"a":1,"b":[2]}`, `{"a":2,"b":[1]}`}, {`{"a":1,"b":[1]}`, `{"a":2,"b":[2]}`}, {`{"a":1,"b":[2]}`}, {`{"a":1,"b":[2]}`, `{"a":1,"b":[2]}`}, {`{"a":1,"b":[2,2]}`},
		{`{"a":null,"b":[0]}`}, {`{"a":0,"b":[0]}`}, {`{"a":0,"b":null}`}, {`{"a":0,"b":[]}`}, {`{"a":0,"b":[null]}`}, {},
	} {
		s, text := sumOf(t, two, rows...), strings.Join(rows, " ")
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s have the same sum", text, other)
		}
		seen[s] = text
	}
}
