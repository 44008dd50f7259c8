package cli

import (
	"runtime/debug"
	"testing"
)

// TestBudget: --memory bounds the heap to twice its size, but not to less than every scan needs, and not where the
// environment says otherwise.
func TestBudget(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	for _, c := range []struct {
		environment string
		n, want     int64
	}{{"", 1 << 30, 2 << 30}, {"", 1 << 20, leastHeap}, {"3GiB", 1 << 30, before}} {
		debug.SetMemoryLimit(before)
		t.Setenv("GOMEMLIMIT", c.environment)
		Budget(c.n)
		if got := debug.SetMemoryLimit(-1); got != c.want {
			t.Errorf("%d, GOMEMLIMIT=%s: got %d, want %d", c.n, c.environment, got, c.want)
		}
	}
}
