package lake

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestTruncatedBelowTheLeast: a value that truncation would move out of its type is refused. Wrapped around, as the
// specification's formula does in 64 bits, it would be in a partition where no reader looks for it.
func TestTruncatedBelowTheLeast(t *testing.T) {
	for _, c := range []struct {
		t    arrow.DataType
		json string
		n    int
		ok   bool
	}{
		{arrow.PrimitiveTypes.Int64, `[-9223372036854775808]`, 5, false}, // ...808 - 2
		{arrow.PrimitiveTypes.Int64, `[null, -9223372036854775805, 9223372036854775807, 0]`, 5, true},
		{arrow.PrimitiveTypes.Int64, `[-9223372036854775808]`, 8, true}, // a multiple
		{arrow.PrimitiveTypes.Int32, `[-2147483648]`, 10, false},
		{arrow.PrimitiveTypes.Int32, `[-2147483640, 2147483647]`, 10, true},
	} {
		a, _, err := array.FromJSON(memory.DefaultAllocator, c.t, strings.NewReader(c.json))
		if err != nil {
			t.Fatal(err)
		}
		term := Term{Transform: "truncate", N: c.n, Column: "c", Type: c.t}
		if err := term.Check(a); (err == nil) != c.ok {
			t.Errorf("truncate(%d) of %s: %v", c.n, c.json, err)
		}
	}
}
