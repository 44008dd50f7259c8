package parquet

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"stoa/format/parquet/internal/write"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestCutBounds: a truncated bound is still a bound, has at most 64 bytes, and is valid UTF-8 if the values are.
func TestCutBounds(t *testing.T) {
	long := func(s string) []byte { return []byte(strings.Repeat(s, 100)) }
	for _, text := range []bool{true, false} {
		for _, v := range [][]byte{long("a"), long("ä"), long("\u7fff"), long("\U0010ffff"),
			append(long("a")[:63], "\U0010ffffxyz"...), append(long("a")[:62], "\ud7ff\ud7ffxyz"...),
			long("\xff"), append(long("a")[:10], long("\xff")...), []byte("short"), {}} {
			b := write.LeafBounds{Min: v, Max: v}
			w := b.Truncated(true, text)
			if bytes.Compare(w.Min, v) > 0 || w.Max != nil && bytes.Compare(w.Max, v) < 0 {
				t.Errorf("%.20q: got bounds %q, %q", v, w.Min, w.Max)
			}
			if len(w.Min) > write.MaxBound || len(w.Max) > write.MaxBound ||
				w.MinExact != bytes.Equal(w.Min, v) ||
				w.MaxExact != bytes.Equal(w.Max, v) {
				t.Errorf("%.20q: got bounds of %d and %d bytes, exact: %v, %v", v, len(w.Min), len(w.Max), w.MinExact,
					w.MaxExact)
			}
			if text && utf8.Valid(v) && (!utf8.Valid(w.Min) || !utf8.Valid(w.Max)) {
				t.Errorf("%.20q: got bounds %q, %q, want UTF-8", v, w.Min, w.Max)
			}
		}
	}
}

// TestBloomOption: the filters pass all values of their columns, and hardly any others; unknown columns are refused.
func TestBloomOption(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "n", Type: arrow.PrimitiveTypes.Int32}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	for i := range 5000 {
		if b.Field(0).(*array.StringBuilder).Append(strings.Repeat("x", i%90)); i%7 == 0 {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.StringBuilder).Append(string(rune('a' + i%26)))
		}
		b.Field(1).(*array.Int32Builder).AppendValues([]int32{int32(3 * i), int32(-i)}, nil)
	}
	tree := written(t, map[string]string{"bloom": "s, n", "row-group-rows": "3000", "page-size": "500"},
		b.NewRecordBatch())
	for _, f := range findings(tree.Bytes("t")) { // verify asks the filters for every value
		t.Errorf("%+v", f)
	}
	if f := write.FilterOf([]uint64{1 << 60, 5, 1<<40 + 3}); !f.MightContain(5) || f.MightContain(77<<32+12345) {
		t.Error("a filter of three values: got a wrong one passed, or a right one rejected")
	}
	if _, err := write.NewWriter(&bytes.Buffer{}, sc, map[string]string{"bloom": "x"}); err == nil {
		t.Error("an unknown column: got no error, want one")
	}
}
