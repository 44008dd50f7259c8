package check_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"stoa/internal/check"
	"stoa/region"
)

// TestLostOnce: an incident reports as lost at most the rows that are there, and in each column at most its cells, and
// at least what each finding reports.
func TestLostOnce(t *testing.T) {
	const rows, columns = 50, 3
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		var all []region.Finding
		cells, most := map[[2]int64]bool{}, int64(0)
		for range 1 + r.IntN(12) {
			f := bad("a", r.Int64N(1000), 10, "x.page", "p")
			f.Rows[0] = r.Int64N(rows)
			f.Rows[1] = f.Rows[0] + 1 + r.Int64N(rows-f.Rows[0])
			if f.Lost = f.Rows[1] - f.Rows[0]; r.IntN(3) > 0 {
				f.Column = fmt.Sprint(r.IntN(columns))
			}
			most = max(most, f.Lost)
			for row := f.Rows[0]; row < f.Rows[1]; row++ {
				column := int64(-1)
				if f.Column != "" {
					column = int64(f.Column[0] - '0')
				}
				cells[[2]int64{row, column}] = true
			}
			all = append(all, f)
		}
		var want int64
		for c := range cells {
			if c[1] < 0 || !cells[[2]int64{c[0], -1}] {
				want++
			}
		}
		got := check.Fold(all)
		if len(got) != 1 || got[0].Lost != want || want < most {
			t.Fatalf("seed %d: got %+v, want one incident with %d lost", seed, got, want)
		}
	}
}
