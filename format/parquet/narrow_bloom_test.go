package parquet

import (
	"fmt"
	"testing"

	"stoa/format"
	"stoa/pred"
)

// TestBloomFiltersNarrow: present values are never excluded; nearly all absent ones inside the bounds are. The values
// are those of claimed.
func TestBloomFiltersNarrow(t *testing.T) {
	r := readerOf(t, claimed(t))
	group := format.RowGroup{Index: 0}
	left := func(where string) bool {
		e, err := pred.Parse(where)
		if err == nil {
			e, err = pred.Bind(e, r.Decoded)
		}
		if err != nil {
			t.Fatal(where, err)
		}
		rows, err := r.Narrow(t.Context(), group, e)
		if err != nil {
			t.Fatal(where, err)
		}
		return rows.Len() > 0
	}
	passed := 0
	for i := range 400 {
		there, gone := i%50 != 9, []string{fmt.Sprintf("x = %d", 10*i+5), fmt.Sprintf("s = 'k%03d0'", i),
			fmt.Sprintf("x in (%d, %d)", 10*i+1, 10*i+2)}
		for _, where := range []string{fmt.Sprintf("x = %d", 10*i), fmt.Sprintf("u = %d", 1<<31+i),
			fmt.Sprintf("s = 'k%03d'", i),
			fmt.Sprintf("x in (%d, %d)", 10*i, 10*i+1)} {
			if there && !left(where) {
				t.Fatalf("%s: got a present value excluded", where)
			}
		}
		for _, where := range gone {
			if left(where) {
				passed++
			}
		}
	}
	if passed > 60 { // of 1200
		t.Errorf("got %d absent values not excluded", passed)
	}
}
