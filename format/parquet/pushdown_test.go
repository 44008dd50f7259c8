package parquet_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/pred"
	"stoa/store"
)

// TestDictionariesAreTestedOnce: a filter on a column with a dictionary compares codes, whatever its type, and reads no
// pages if no dictionary value passes. The rows are those of the formula.
func TestDictionariesAreTestedOnce(t *testing.T) {
	const rows = 3000
	const codes, none = "codes compared, the dictionary tested once", "no value of the dictionary passes"
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "x", Type: arrow.PrimitiveTypes.Float64}, {Name: "d", Type: &arrow.Decimal128Type{Precision: 20}},
		{Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "i", Type: arrow.PrimitiveTypes.Int64}}, nil)
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	n := func(i int) (v int32, ok bool) { return int32(i * 7 % 10 * 1_000_003), i%4 != 1 }
	for i := range rows {
		v, ok := n(i)
		if ok {
			b.Field(0).(*array.Int32Builder).Append(v)
			b.Field(3).(*array.StringBuilder).Append(strings.Repeat("x", int(v%5)))
		} else {
			b.Field(0).AppendNull()
			b.Field(3).AppendNull()
		}
		b.Field(1).(*array.Float64Builder).Append(float64(i % 8))
		if err := b.Field(2).AppendValueFromString([]string{"5", "-12345678901234567890", "77"}[i%3]); err != nil {
			t.Fatal(err)
		}
		b.Field(4).(*array.Int64Builder).Append(int64(i))
	}
	mem := store.NewMemory(nil)
	w, err := parquet.Format.Create(t.Context(), mem.Sink("t"), sc, format.WriteOptions{Rows: -1,
		Opts: map[string]string{"page-rows": "700", "page-index": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), b.NewRecordBatch()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	table, err := stoa.Open(t.Context(), "t", stoa.OpenOptions{Tree: mem, Formats: []format.Format{parquet.Format}})
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	is := func(v int32) func(i int) bool {
		return func(i int) bool { got, ok := n(i); return ok && got == v }
	}
	for _, x := range []struct {
		where, column, means string
		row                  func(i int) bool
	}{
		{"n = 3000009", "n", codes, is(3_000_009)},
		{"n = 3000008", "n", none, is(-1)},
		{"n is null", "n", codes, func(i int) bool { _, ok := n(i); return !ok }},
		{"n is null or n = 3000009", "n", codes, func(i int) bool { _, ok := n(i); return !ok || is(3_000_009)(i) }},
		{"n != 3000009", "n", codes, func(i int) bool { v, ok := n(i); return ok && v != 3_000_009 }},
		{"x = 5", "x", codes, func(i int) bool { return i%8 == 5 }},
		{"x = 5 and n = 3000009", "n", codes, func(i int) bool { return i%8 == 5 && is(3_000_009)(i) }},
		{"d < 0", "d", codes, func(i int) bool { return i%3 == 1 }},
		{"s = 'xxx'", "s", codes, func(i int) bool { v, ok := n(i); return ok && v%5 == 3 }},
	} {
		e, err := pred.Parse(x.where)
		if err != nil {
			t.Fatal(err)
		}
		var got, want []int64
		for b, err := range table.Scan(t.Context(), stoa.ScanSpec{Filter: e, Columns: []string{"i"}, Batch: 1000}) {
			if err != nil {
				t.Fatal(x.where, err)
			}
			got = append(got, b.Column(0).(*array.Int64).Int64Values()...)
		}
		for i := range rows {
			if x.row(i) {
				want = append(want, int64(i))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %d rows, want %d", x.where, len(got), len(want))
		}
		explained, err := table.Explain(t.Context(), stoa.ScanSpec{Filter: e}, true)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(explained.Levels, func(l stoa.ExplainLevel) bool {
			has := func(r stoa.Reason) bool { return r.Why == x.means && r.N > 0 }
			return l.Column == x.column && (slices.ContainsFunc(l.Used, has) || slices.ContainsFunc(l.Skipped, has))
		}) {
			t.Errorf("%s: got %+v, want %q", x.where, explained.Levels, x.means)
		}
	}
}
