package fit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestInvalidUTF8: strings that begin or end within a character are found even if their bytes together are UTF-8, also
// in slices, and in all string types.
func TestInvalidUTF8(t *testing.T) {
	words := []string{"", "a", "\u00e9", "\u20ac", "\xe2\x82", "\xac", "\xff", "plain text",
		"\U0001f600", "\xf0\x9f", "\x98\x80"}
	random := rand.New(rand.NewPCG(17, 0))
	found := 0
	for range 20_000 {
		n := random.IntN(5)
		builders := []interface {
			array.Builder
			Append(string)
		}{array.NewStringBuilder(memory.DefaultAllocator), array.NewLargeStringBuilder(memory.DefaultAllocator),
			array.NewStringViewBuilder(memory.DefaultAllocator)}
		var values []string
		for range n {
			v := words[random.IntN(len(words))]
			values = append(values, v)
			for _, b := range builders {
				b.Append(v)
			}
		}
		from := random.IntN(n + 1)
		to := from + random.IntN(n-from+1)
		want := slices.ContainsFunc(values[from:to], func(s string) bool { return !utf8.ValidString(s) })
		for _, b := range builders {
			if got := invalidUTF8(array.NewSlice(b.NewArray(), int64(from), int64(to))); got != want {
				t.Fatalf("%T of %q: invalid %v, expected %v", b, values[from:to], got, want)
			}
		}
		if want {
			found++
		}
	}
	if found < 1000 || found > 19_000 {
		t.Fatalf("%d of 20,000 were invalid, expected 1,000 to 19,000", found)
	}
}
