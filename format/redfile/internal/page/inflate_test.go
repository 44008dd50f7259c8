package page

import (
	"errors"
	"testing"

	"stoa/fault"
	"stoa/format/redfile/internal/layout"
)

// TestImpossibleSizes: a size that the stored bytes cannot expand to is damage; only a possible size can exceed the
// limit.
func TestImpossibleSizes(t *testing.T) {
	stored := make([]byte, 100)
	for raw, want := range map[int64]error{1 << 28: fault.Corrupt, 50_000: fault.Limit} {
		_, _, err := Inflate(stored, raw, layout.Gzip, 10_000, Alloc)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes of %d: %v, want %v", raw, len(stored), err, want)
		}
	}
}
