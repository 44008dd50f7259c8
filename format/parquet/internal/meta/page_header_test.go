package meta

import (
	"testing"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// headerBytes returns a PageHeader in the compact protocol whose own header has the fields from 1 to n except without;
// 0: all.
func headerBytes(kind int32, own, n, without int) []byte {
	i32 := func(b []byte, last *int, id int, v int32) []byte {
		b, *last = append(b, byte(id-*last)<<4|5, byte(v<<1)), id
		return b
	}
	last := 0
	b := i32(nil, &last, 1, kind)
	b = i32(b, &last, 2, 10)
	b = i32(b, &last, 3, 10)
	if own == 0 {
		return append(b, 0)
	}
	b = append(b, byte(own-last)<<4|12)
	last = 0
	for id := 1; id <= n; id++ {
		if id != without {
			b = i32(b, &last, id, 3)
		}
	}
	return append(b, 0, 0)
}

// TestRequiredFieldsOfHeaders: each field of a page header that parquet.thrift requires is reported by its name if it
// is missing.
func TestRequiredFieldsOfHeaders(t *testing.T) {
	lacks := func(b []byte) string {
		c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "")
		p := ParsePageHeader(thrift.NewReader(c, thrift.Compact))
		if c.Err() != nil {
			t.Fatal(c.Err())
		}
		return p.MissingField
	}
	for _, x := range []struct {
		kind   int32
		own    int
		name   string
		fields []string
	}{
		{0, 5, "data_page_header", []string{"num_values", "encoding", "definition_level_encoding",
			"repetition_level_encoding"}},
		{2, 7, "dictionary_page_header", []string{"num_values", "encoding"}},
		{3, 8, "data_page_header_v2", []string{"num_values", "num_nulls", "num_rows", "encoding",
			"definition_levels_byte_length", "repetition_levels_byte_length"}},
	} {
		if got := lacks(headerBytes(x.kind, x.own, len(x.fields), 0)); got != "" {
			t.Errorf("a whole header of type %d lacks %s", x.kind, got)
		}
		for i, f := range x.fields {
			if got := lacks(headerBytes(x.kind, x.own, len(x.fields), i+1)); got != x.name+"."+f {
				t.Errorf("type %d without %s: it lacks %q", x.kind, f, got)
			}
		}
		for _, own := range []int{0, 5, 7, 8} { // none, and that of another type
			n := map[int]int{0: 0, 5: 4, 7: 2, 8: 6}[own]
			if got := lacks(headerBytes(x.kind, own, n, 0)); own != x.own && got != x.name {
				t.Errorf("type %d with the header of field %d: it lacks %q", x.kind, own, got)
			}
		}
	}
}
