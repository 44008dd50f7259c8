package parquet

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestCutBounds: a bound that is cut stays a bound, is not longer than 64 bytes, and is text where the values are.
func TestCutBounds(t *testing.T) {
	long := func(s string) []byte { return []byte(strings.Repeat(s, 100)) }
	for _, text := range []bool{true, false} {
		for _, v := range [][]byte{long("a"), long("ä"), long("\u7fff"), long("\U0010ffff"),
			append(long("a")[:63], "\U0010ffffxyz"...), append(long("a")[:62], "\ud7ff\ud7ffxyz"...),
			long("\xff"), append(long("a")[:10], long("\xff")...), []byte("short"), {}} {
			b := leafBounds{min: v, max: v}
			w := b.written(true, text)
			if bytes.Compare(w.min, v) > 0 || w.max != nil && bytes.Compare(w.max, v) < 0 {
				t.Errorf("%.20q: bounds %q, %q", v, w.min, w.max)
			}
			if len(w.min) > longestBound || len(w.max) > longestBound || w.minExact != bytes.Equal(w.min, v) ||
				w.maxExact != bytes.Equal(w.max, v) {
				t.Errorf("%.20q: bounds of %d and %d bytes, exact: %v, %v", v, len(w.min), len(w.max), w.minExact,
					w.maxExact)
			}
			if text && utf8.Valid(v) && (!utf8.Valid(w.min) || !utf8.Valid(w.max)) {
				t.Errorf("%.20q: bounds %q, %q are no text", v, w.min, w.max)
			}
		}
	}
}

// TestBloomOption: the filters have every value of their columns, and next to no other; a column that is not
// there is refused.
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
	tree := write(t, map[string]string{"bloom": "s, n", "row-group-rows": "3000", "page-size": "500"},
		b.NewRecordBatch())
	for _, f := range findings(tree.Bytes("t")) { // verify asks the filters for every value
		t.Errorf("%+v", f)
	}
	if c := (&chunkWriter{hashes: []uint64{1 << 60, 5, 1<<40 + 3}}); !c.filter().may(5) ||
		c.filter().may(77<<32+12345) {
		t.Error("a filter of three values has another one, or not all")
	}
	if _, err := NewWriter(&bytes.Buffer{}, sc, map[string]string{"bloom": "x"}); err == nil {
		t.Error("a filter of no column")
	}
}
