package meta

import (
	"errors"
	"testing"

	"stoa/fault"
)

// TestImpossibleSizes: a size that the stored bytes cannot expand to is damage; only a possible size can exceed the
// limit.
func TestImpossibleSizes(t *testing.T) {
	stored := make([]byte, 100)
	for raw, want := range map[int64]error{1 << 28: fault.Corrupt, 50_000: fault.Limit} {
		_, err := CodecSnappy.Decompress(stored, raw, 10_000, func(n int) []byte { return make([]byte, n) })
		if !errors.Is(err, want) {
			t.Errorf("%d bytes of %d: %v, want %v", raw, len(stored), err, want)
		}
	}
}
