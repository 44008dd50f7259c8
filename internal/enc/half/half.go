// Package half converts IEEE 754 numbers of 16 bits (binary16: a sign, 5 bits of exponent, 10 of fraction),
// which are passed as their bits.
//
// It is the only conversion in stoa: Arrow's own (float16.Num.Float32 and float16.New, v18) reads a subnormal number
// as one that is 2^112 times smaller, truncates instead of rounding, and turns some NaNs into infinities.
package half

import "math"

const (
	infinity = 0x7c00 // its bits; anything larger, apart from the sign, is NaN
	quiet    = 0x0200 // the bit that makes a NaN a quiet one
)

// Float returns the number with bits h, which is always exactly a float32. A NaN keeps its sign and payload.
func Float(h uint16) float32 {
	sign, rest := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case rest >= infinity:
		return math.Float32frombits(sign | 0x7f800000 | rest<<13)
	case rest < 0x0400: // a multiple of 2^-24, which is a normal number in a float32
		return math.Float32frombits(sign | math.Float32bits(float32(rest)*0x1p-24))
	}
	return math.Float32frombits(sign | (rest<<13 + (127-15)<<23))
}

// Of returns the bits of the number nearest to f; if two are equally near, the one whose last bit is 0. From 65,520 on,
// half-way between the largest number and its hypothetical successor, the result is infinite. A NaN keeps its sign and
// the upper bits of its payload, and becomes a quiet one.
func Of(f float64) uint16 {
	b := math.Float64bits(f)
	sign, mag := uint16(b>>48)&0x8000, math.Abs(f)
	switch {
	case f != f:
		return sign | infinity | quiet | uint16(b>>42)&0x03ff
	case mag >= 65520:
		return sign | infinity
	case mag < 0x1p-14: // a multiple of 2^-24: 0 to 1,024, which is the smallest normal number and has its bits
		return sign | uint16(math.RoundToEven(mag*0x1p24))
	}
	b = math.Float64bits(mag)
	const cut = 52 - 10            // fraction bits to remove
	b += 1<<(cut-1) - 1 + b>>cut&1 // rounds to nearest, ties to even; a carry correctly propagates into the exponent
	return sign | uint16(b>>cut-(1023-15)<<10)
}
