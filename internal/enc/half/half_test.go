package half

import (
	"math"
	"math/big"
	"testing"
)

// exact computes the number with bits h as defined by the standard: sign · fraction · 2^exponent; nil if it is infinite
// or NaN.
func exact(h uint16) *big.Float {
	exponent, fraction := int(h>>10&31), int64(h&1023)
	switch exponent {
	case 31:
		return nil
	case 0:
		exponent = 1
	default:
		fraction += 1024
	}
	x := new(big.Float).SetMantExp(new(big.Float).SetInt64(fraction), exponent-25)
	if h>>15 == 1 {
		x.Neg(x)
	}
	return x
}

func TestEveryNumber(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := Float(h)
		switch want := exact(h); {
		case want != nil:
			if new(big.Float).SetFloat64(float64(f)).Cmp(want) != 0 || math.Signbit(float64(f)) != (h>>15 == 1) {
				t.Fatalf("%#04x: %g, want %s", h, f, want)
			}
		case h&1023 == 0:
			if !math.IsInf(float64(f), 1-2*int(h>>15)) {
				t.Fatalf("%#04x: %g, want an infinity", h, f)
			}
		default:
			if f == f || math.Signbit(float64(f)) != (h>>15 == 1) {
				t.Fatalf("%#04x: %g, want NaN", h, f)
			}
			if back := Of(float64(f)); back != h|quiet {
				t.Fatalf("%#04x: a NaN converts back to %#04x, want %#04x", h, back, h|quiet)
			}
			continue
		}
		if back := Of(float64(f)); back != h {
			t.Fatalf("%#04x: %g converts back to %#04x", h, f, back)
		}
	}
}

// nearest finds the number nearest to f by search, the even one on a tie. Between the largest number and 2^16 it is
// the nearer of the two, and 2^16 stands for infinity.
func nearest(f float64) uint16 {
	x := new(big.Float).SetFloat64(math.Abs(f))
	value := func(h uint16) *big.Float {
		if h == infinity {
			return big.NewFloat(0x1p16)
		}
		return exact(h)
	}
	lo, hi := uint16(0), uint16(infinity) // value(lo) <= x < value(hi), unless x is too large
	if x.Cmp(value(hi)) >= 0 {
		lo = hi
	}
	for hi-lo > 1 && lo < hi {
		if mid := lo + (hi-lo)/2; value(mid).Cmp(x) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo < infinity {
		below := new(big.Float).SetPrec(3000).Sub(x, value(lo))
		above := new(big.Float).SetPrec(3000).Sub(value(lo+1), x)
		if c := below.Cmp(above); c > 0 || c == 0 && lo&1 == 1 {
			lo++
		}
	}
	if math.Signbit(f) {
		lo |= 0x8000
	}
	return lo
}

// TestRounding: every number, the midpoint of every two neighbours, and the values next to them, of both signs.
func TestRounding(t *testing.T) {
	try := func(f float64) {
		for _, f := range []float64{f, -f} {
			if got, want := Of(f), nearest(f); got != want {
				t.Fatalf("%g: %#04x, want %#04x", f, got, want)
			}
		}
	}
	for h := uint16(0); h < infinity; h++ {
		low, _ := exact(h).Float64()
		high := 0x1p16
		if h+1 < infinity {
			high, _ = exact(h + 1).Float64()
		}
		middle := low + (high-low)/2
		for _, f := range []float64{low, middle} {
			for _, g := range []float64{f, math.Nextafter(f, math.Inf(1)), math.Abs(math.Nextafter(f, -1)),
				float64(math.Nextafter32(float32(f), 1e9))} {
				try(g)
			}
		}
	}
	for _, f := range []float64{math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat32, 65504, 65519.9, 65520,
		65536, 1e6, math.MaxFloat32, math.MaxFloat64, math.Inf(1)} {
		try(f)
	}
}

func TestNaN(t *testing.T) {
	for _, b := range []uint64{0x7ff0000000000001, 0x7ff8000000000000, 0xfff0000000000001, 0xffffffffffffffff} {
		if h := Of(math.Float64frombits(b)); h&0x7fff <= infinity || h>>15 != uint16(b>>63) {
			t.Errorf("%#x: %#04x, want a NaN of the same sign", b, h)
		}
	}
}
