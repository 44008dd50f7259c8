package status

import (
	"testing"
)

// TestCompareNames: numbers compare by value, and the order is total: of any two different names one comes first, and
// sorting any permutation yields the same result.
func TestCompareNames(t *testing.T) {
	sorted := []string{"", "-", "001", "01", "1", "1-", "1-1", "2", "00010", "10", "10a", "99999999999999999999",
		"100000000000000000000", "a", "part-0-0_batchno0-0-null-1", "part-0-0_batchno0-0-null-2",
		"part-0-1_batchno0-0-null-1", "part-1-0_batchno0-0-null-1", "part-2", "part-010", "part-10", "q"}
	for i, a := range sorted {
		for j, b := range sorted {
			if c := CompareNames(a, b); (c < 0) != (i < j) || (c == 0) != (i == j) {
				t.Errorf("%q and %q: %d", a, b, c)
			}
		}
	}
}
