package lake

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// orderRow is a row of an int64, a float64 and a string, all of which may be null.
type orderRow struct {
	n *int64
	f *float64
	s *string
}

// rank is the place of a float in Iceberg's order, by the values that a test draws.
func rank(f float64) int {
	all := []float64{math.Copysign(math.NaN(), -1), math.Inf(-1), -1.5, math.Copysign(0, -1), 0, 2.5, math.Inf(1),
		math.NaN()}
	return slices.IndexFunc(all, func(x float64) bool { return math.Float64bits(x) == math.Float64bits(f) })
}

// before orders rows as a test expects it: n and s ascending with nulls first, f descending with nulls last.
func before(a, b orderRow) int {
	num := func(p *int64) float64 {
		if p == nil {
			return math.Inf(-1)
		}
		return float64(*p)
	}
	if d := num(a.n) - num(b.n); d < 0 || d > 0 {
		return int(math.Copysign(1, d))
	}
	place := func(p *float64) int {
		if p == nil {
			return -1
		}
		return rank(*p)
	}
	if d := place(b.f) - place(a.f); d != 0 {
		return d
	}
	text := func(p *string) []byte {
		if p == nil {
			return nil
		}
		return append([]byte{1}, *p...)
	}
	return bytes.Compare(text(a.s), text(b.s))
}

func orderBatch(rows []orderRow) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "f", Type: arrow.PrimitiveTypes.Float64}, {Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil))
	defer b.Release()
	for _, r := range rows {
		if r.f == nil {
			b.Field(0).AppendNull()
		} else {
			b.Field(0).(*array.Float64Builder).Append(*r.f)
		}
		if r.n == nil {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.Int64Builder).Append(*r.n)
		}
		if r.s == nil {
			b.Field(2).AppendNull()
		} else {
			b.Field(2).(*array.StringBuilder).Append(*r.s)
		}
	}
	return b.NewRecordBatch()
}

// TestOrder: a file is said to be in order if and only if it is, however its rows are cut into batches.
func TestOrder(t *testing.T) {
	floats := []float64{math.Copysign(math.NaN(), -1), math.Inf(-1), -1.5, math.Copysign(0, -1), 0, 2.5, math.Inf(1),
		math.NaN()}
	texts := []string{"", "a", "a\x00", "b", "ä"}
	kept := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 9))
		rows := make([]orderRow, 1+r.IntN(12))
		for i := range rows {
			if n := r.Int64N(4) - 1; n < 2 {
				rows[i].n = &n
			}
			if f := r.IntN(len(floats) + 1); f < len(floats) {
				rows[i].f = &floats[f]
			}
			if s := r.IntN(len(texts) + 1); s < len(texts) {
				rows[i].s = &texts[s]
			}
		}
		slices.SortFunc(rows, before)
		if r.IntN(2) == 0 {
			i, j := r.IntN(len(rows)), r.IntN(len(rows))
			rows[i], rows[j] = rows[j], rows[i]
		}
		want := slices.IsSortedFunc(rows, before)
		o := order{by: []SortColumn{{Index: 1}, {Index: 0, Down: true}, {Index: 2}}}
		for from := 0; from < len(rows); {
			to := from + r.IntN(len(rows)-from+1)
			b := orderBatch(rows[from:to])
			o.add(b)
			b.Release()
			from = to
		}
		if got := o.kept(); got != want {
			t.Fatalf("seed %d: got %v, want %v", seed, got, want)
		}
		if want {
			kept++
		}
	}
	if kept < 500 || kept > 1900 {
		t.Errorf("%d of 2000 files were in order", kept)
	}
}
