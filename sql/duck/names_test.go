package duck

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
)

// TestNames: names that differ in case only get a number, and nobody gets a name that another field has of its own: a
// query that names a column means the column of this name.
func TestNames(t *testing.T) {
	for _, c := range []struct{ fields, names []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"a", "A", "A_1"}, []string{"a", "A_2", "A_1"}},
		{[]string{"a_1", "a", "a", "a"}, []string{"a_1", "a", "a_2", "a_3"}},
		{[]string{"", "column0", ""}, []string{"column0_1", "column0", "column2"}},
		{[]string{"x\x00", "x\xff"}, []string{"x\ufffd", "x\ufffd_1"}},
	} {
		var fields []arrow.Field
		for _, name := range c.fields {
			fields = append(fields, arrow.Field{Name: name})
		}
		if got := Names(fields); !slices.Equal(got, c.names) {
			t.Errorf("%q: %q, expected %q", c.fields, got, c.names)
		}
	}
}
