package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format/ipc/sample"
)

// TestTypes: values of every type of Arrow's come through DuckDB as they were, or as text where it has no type for
// them; values that it cannot have are an error that names the column.
func TestTypes(t *testing.T) {
	types := slices.Concat(sample.Scalars(), sample.Rare(), sample.Nested(), sample.NestedRare())
	q := newAsked(t, flagsFor(t))
	refused := 0
	for i, typ := range types {
		sc := sample.Schema(typ)
		file := filepath.Join(t.TempDir(), "in.arrow")
		write(t, file, sc, rand.New(rand.NewPCG(uint64(i), 1)))
		what := fmt.Sprintf("%d %s", i, typ)
		out := filepath.Join(t.TempDir(), "out.arrow")
		if err := q.to(out, "FROM "+quoteName(file)); err != nil {
			refused++
			t.Logf("%s: refused: %v", what, err)
			continue
		}
		want, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if id := typ.ID(); id == arrow.INTERVAL_MONTHS || id == arrow.INTERVAL_DAY_TIME {
			intervals(t, what, want, out) // the comparison of tables knows none of another kind
		} else {
			alike(t, what, want, out)
		}
		want.Close()
	}
	t.Logf("%d types, %d refused", len(types), refused)
	if refused > 3 { // durations of seconds and of nanoseconds, and intervals with nanoseconds, beyond microseconds
		t.Errorf("expected 3 types with values that DuckDB cannot have, found %d", refused)
	}
}

func write(t *testing.T, file string, sc *arrow.Schema, r *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	w, err := stoa.Create(ctx, file, sc, stoa.CreateOptions{NoCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b := sample.Batch(r, sc, 1500, 0.1)
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// intervals compares intervals of months, or of days and milliseconds, with those of all three.
func intervals(t *testing.T, what string, want *stoa.Table, file string) {
	t.Helper()
	got, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	a, b := spans(t, want), spans(t, got)
	if !slices.Equal(a, b) || len(a) < 4000 {
		t.Errorf("%s: %d cells, expected %d, or others", what, len(b), len(a))
	}
}

// spans are the cells of a table's only column, an interval.
func spans(t *testing.T, table *stoa.Table) (out []string) {
	t.Helper()
	for batch, err := range table.Scan(context.Background(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		c := batch.Column(0)
		for i := range c.Len() {
			v := arrow.MonthDayNanoInterval{}
			switch c := c.(type) {
			case *array.MonthInterval:
				v.Months = int32(c.Value(i))
			case *array.DayTimeInterval:
				v.Days, v.Nanoseconds = c.Value(i).Days, int64(c.Value(i).Milliseconds)*1_000_000
			case *array.MonthDayNanoInterval:
				v = c.Value(i)
			}
			if c.IsNull(i) {
				out = append(out, "null")
			} else {
				out = append(out, fmt.Sprint(v))
			}
		}
	}
	return out
}
