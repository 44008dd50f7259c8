package verify

import "testing"

// TestVerifyOldBoundsOfBytes: deprecated bounds of bytes are reported if they are wrong in both signed and unsigned
// order.
func TestVerifyOldBoundsOfBytes(t *testing.T) {
	for _, c := range []struct {
		value, low, high string
		want             bool
	}{
		{"b", "a", "c", false}, {"b", "c", "d", true}, {"b", "a", "a", true},
		{"é", "a", "z", true}, // above z unsigned, below a signed
		{"é", "", "z", false},
		{"bé", "a", "ba", false}, {"bé", "a", "b", true}, {"b", "é", "z", false}, {"c", "a", "é", false},
		{"ab\xff", "ac", "z", true},
	} {
		low, high := []byte(c.low), []byte(c.high)
		unsigned := ascii(low) && c.value < c.low || ascii(high) && c.value > c.high // what the predicate tests
		if got := unsigned && decisive([]byte(c.value), low, high); got != c.want {
			t.Errorf("%q in %q to %q: %t, want %t", c.value, c.low, c.high, got, c.want)
		}
	}
}
