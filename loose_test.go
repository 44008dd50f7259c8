package stoa_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/pred"
)

// TestLoose: a scan that may pass on rows for which the filter is not true gives all those for which it is, in order,
// and gives others only where most rows pass.
func TestLoose(t *testing.T) {
	const n = 150_000
	for _, name := range []string{"x.cfiles/", "x.trv", "x.red", "x.parquet", "x.carbondata", "x.arrow"} {
		t.Run(name, func(t *testing.T) {
			table := looseTable(t, name, n)
			given := map[string]int{}
			for _, filter := range []string{"b < 90", "b < 10", "b < 90 and a >= 100000", "b is null", "a < 0"} {
				e, err := pred.Parse(filter)
				if err != nil {
					t.Fatal(err)
				}
				for _, columns := range [][]string{{"a", "s", "b"}, {"a", "b"}} {
					for _, workers := range []int{1, 3} {
						spec := stoa.ScanSpec{Columns: columns, Filter: e, Parallel: workers}
						exact := firstColumn(t, table, spec)
						spec.Loose = true
						loose := firstColumn(t, table, spec)
						if given[filter] = len(loose); !within(exact, loose) {
							t.Errorf("%s: of %d rows, some are not among the %d of a loose scan, or in another order",
								filter, len(exact), len(loose))
						}
						spec.Limit = 7
						if got := firstColumn(t, table, spec); !within(got, exact) || len(got) > 7 {
							t.Errorf("%s: with a limit: %v", filter, got)
						}
					}
				}
			}
			if given["b < 10"] != n/10 || given["a < 0"] != 0 || given["b is null"] != 0 {
				t.Errorf("rows that should have been left out are given: %v", given)
			}
			if name == "x.cfiles/" && given["b < 90"] != n {
				t.Errorf("expected that all rows are given where most pass, found %d", given["b < 90"])
			}
		})
	}
}

// looseTable has the columns a, which counts, b, a modulo 100, and s, texts.
func looseTable(t *testing.T, name string, n int) *stoa.Table {
	t.Helper()
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.PrimitiveTypes.Int32}, {Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		b.Field(1).(*array.Int32Builder).Append(int32(i % 100))
		b.Field(2).(*array.StringBuilder).Append("text " + strconv.Itoa(i%1000))
	}
	rows := b.NewRecordBatch()
	defer rows.Release()
	place := filepath.Join(t.TempDir(), filepath.Clean(name))
	o := stoa.CreateOptions{}
	if name == "x.cfiles/" {
		place, o.To = place+"/", "cfile"
	}
	w, err := stoa.Create(t.Context(), place, sc, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	table, err := stoa.Open(t.Context(), place, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

func firstColumn(t *testing.T, table *stoa.Table, spec stoa.ScanSpec) (out []int64) {
	t.Helper()
	for b, err := range table.Scan(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Column(0).(*array.Int64).Int64Values()...)
	}
	return out
}

// within reports whether the numbers of a part are among those of a whole, in the same order.
func within(part, whole []int64) bool {
	i := 0
	for _, v := range whole {
		if i < len(part) && part[i] == v {
			i++
		}
	}
	return i == len(part)
}
