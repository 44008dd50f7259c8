package look

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// numbers yields the rows 0 to n-1 in batches of random sizes.
func numbers(r *rand.Rand, mem memory.Allocator, n int) iter.Seq2[arrow.RecordBatch, error] {
	sc := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	return func(yield func(arrow.RecordBatch, error) bool) {
		for at := 0; at < n; {
			b := array.NewRecordBuilder(mem, sc)
			for end := min(n, at+1+r.IntN(300)); at < end; at++ {
				b.Field(0).(*array.Int64Builder).Append(int64(at))
				b.Field(1).(*array.StringBuilder).Append(fmt.Sprint(at))
			}
			batch := b.NewRecordBatch()
			b.Release()
			ok := yield(batch, nil)
			batch.Release()
			if !ok {
				return
			}
		}
	}
}

// sample returns the rows that f chooses of n.
func sample(t *testing.T, f sampleFlags, n int) (out []int64) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	r := rand.New(rand.NewPCG(f.seed, 7))
	f.choose(numbers(r, mem, n), func(b arrow.RecordBatch, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range b.Column(0).(*array.Int64).Int64Values() {
			if s := b.Column(1).(*array.String).Value(i); s != fmt.Sprint(v) {
				t.Fatalf("row %d: got the text %s", v, s)
			}
			out = append(out, v)
		}
		return true
	})
	return out
}

// TestSample: a sample has the number of rows that is asked for, in order, none twice, and all rows have the same
// chance.
func TestSample(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000, 5000} {
		for _, size := range []int64{0, 1, 7, 999, 1000, 1001} {
			got := sample(t, sampleFlags{rows: size, seed: 3}, n)
			if size == 0 { // the scan has no rows then
				continue
			}
			if want := min(int(size), n); len(got) != want || !slices.IsSorted(got) ||
				len(slices.Compact(slices.Clone(got))) != want {
				t.Errorf("%d of %d rows: got %d: %v", size, n, len(got), got[:min(len(got), 20)])
			}
		}
	}
	const runs, rows, size, groups = 400, 1000, 50, 10
	var count [groups]int
	for seed := range uint64(runs) {
		for _, v := range sample(t, sampleFlags{rows: size, seed: seed}, rows) {
			count[v*groups/rows]++
		}
	}
	chi := 0.0
	for _, c := range count {
		want := float64(runs*size) / groups
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	if chi > 27.9 { // 9 degrees of freedom: one in a thousand
		t.Errorf("got %v rows of each tenth, chi square %.1f", count, chi)
	}
}

// TestSampleIsBounded: the rows that are kept do not grow with the input.
func TestSampleIsBounded(t *testing.T) {
	r := &reservoir{size: 10, chance: rand.New(rand.NewPCG(1, 1))}
	defer r.release()
	for b := range numbers(rand.New(rand.NewPCG(1, 2)), memory.NewGoAllocator(), 300_000) {
		if err := r.add(b); err != nil {
			t.Fatal(err)
		}
		if r.held > 4*r.size+4096+300 {
			t.Fatalf("got %d rows in memory", r.held)
		}
	}
}
