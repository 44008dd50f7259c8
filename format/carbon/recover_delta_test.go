package carbon_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
	"stoa/store"
)

// TestRecoverDeltas: if any delete delta is truncated, with or without older ones beside it, recovery returns every
// live row, and exactly as many deleted rows as it reports.
func TestRecoverDeltas(t *testing.T) {
	whole := managedDel(t)
	_, right, err := read(t, "t", stoa.OpenOptions{Tree: whole}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	var deltas []string
	for _, n := range whole.Names() {
		if strings.HasSuffix(n, ".deletedelta") {
			deltas = append(deltas, n)
		}
	}
	reported, back := 0, 0
	for _, d := range deltas {
		for _, alone := range []bool{false, true} {
			files := map[string][]byte{}
			for _, n := range whole.Names() {
				if b := whole.Bytes(n); n == d {
					files[n] = b[:len(b)/2]
				} else if !alone || !slices.Contains(deltas, n) || strings.HasSuffix(n, "2958.deletedelta") ||
					strings.HasSuffix(n, "1724.deletedelta") { // the deltas in effect
					files[n] = b
				}
			}
			rows, found, err := recovered(t, store.NewMemory(files), "t")
			if err != nil {
				t.Fatal(d, err)
			}
			come := comeBack(found)
			if has(found, "carbon.delete.damaged") {
				reported++
			}
			back += come
			if len(rows) != len(right)+come {
				t.Errorf("%s, alone %v: expected %d rows and %d that are reported to come back, found %d", d,
					alone, len(right), come, len(rows))
			}
			for _, l := range right {
				if !slices.ContainsFunc(rows, func(x line) bool { return fmt.Sprint(x) == fmt.Sprint(l) }) {
					t.Errorf("%s, alone %v: got no row %v", d, alone, l)
				}
			}
		}
	}
	if reported != 4 || back != 26 {
		t.Errorf("%d findings of %d rows that come back; the two deltas in force, of 15 and 11 rows, are each cut "+
			"twice",
			reported, back)
	}
}

// comeBack returns the number of deleted rows that the findings report as reappearing.
func comeBack(found []region.Finding) (n int) {
	for _, f := range found {
		var some, of int
		if i := strings.Index(f.Message, "applied, and "); i >= 0 {
			fmt.Sscanf(f.Message[i:], "applied, and %d of the %d deleted rows", &some, &of)
			n += some
		}
	}
	return n
}
