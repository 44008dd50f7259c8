package text

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// TestShortDecimals: shortDecimal agrees with parseDecimal on all texts that it accepts, and accepts common numbers.
func TestShortDecimals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const some = "0123456789012345678900..-+e "
	short := 0
	for range 200_000 {
		b := make([]byte, r.IntN(22))
		for i := range b {
			b[i] = some[r.IntN(len(some)-1*r.IntN(4))]
		}
		if r.IntN(2) == 0 && len(b) > 3 {
			b = append(append([]byte{}, b[:3]...), '.', '5')
		}
		scale, precision := r.IntN(12), 1+r.IntN(38)
		n, ok := shortDecimal(b, scale, precision)
		if !ok {
			continue
		}
		short++
		want, err := parseDecimal(b, scale, precision)
		if err != nil || want.Cmp(big.NewInt(n)) != 0 {
			t.Fatalf("%q as decimal(%d,%d): expected %v (%v), computed %d", b, precision, scale, want, err, n)
		}
	}
	if short < 10_000 {
		t.Errorf("expected at least 10000 short decimals, found %d", short)
	}
	for s, want := range map[string]int64{"0": 0, "-1.5": -150, "12345678.90": 1234567890, "7": 700} {
		if n, ok := shortDecimal([]byte(s), 2, 18); !ok || n != want {
			t.Errorf("%s: expected %d, computed %d, %t", s, want, n, ok)
		}
	}
}
