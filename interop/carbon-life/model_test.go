//go:build interop

package carbonlife

import "testing"

// TestEqual: the model compares values, not the constants of SQL, in which a type stands. In life 730211 a column
// became a bigint, and the model did not count the nulls that it had as an int.
func TestEqual(t *testing.T) {
	for _, x := range []struct {
		a, b cell
		want bool
	}{
		{null("int"), null("bigint"), true},
		{cell{5, "cast(5 as int)"}, cell{int64(5), "cast(5 as bigint)"}, true},
		{cell{"1.50", "cast(1.50 as decimal(4,2))"}, cell{"1.50", "cast(1.50 as decimal(8,2))"}, true},
		{cell{5, "cast(5 as int)"}, null("int"), false},
		{cell{"5", "'5'"}, cell{"6", "'6'"}, false},
	} {
		if got := equal(x.a, x.b); got != x.want {
			t.Errorf("equal(%v, %v) = %v", x.a, x.b, got)
		}
	}
}
