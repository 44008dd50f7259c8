package pred

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/internal/enc/half"
)

// num is an integer of 256 bits, the most significant word first, plus 2^255, so that comparing the words in turn
// compares the numbers. Every column of fixed width is compared as if its cells were such integers (floats: see
// floatKey).
type num [4]uint64

const signBit = 1 << 63

func numInt(v int64) num {
	fill := uint64(v >> 63)
	return num{fill ^ signBit, fill, fill, uint64(v)}
}

func numUint(v uint64) num { return num{signBit, 0, 0, v} }

// num128 returns the signed integer hi × 2^64 + lo.
func num128(hi int64, lo uint64) num {
	fill := uint64(hi >> 63)
	return num{fill ^ signBit, fill, uint64(hi), lo}
}

// numBig returns b or, if b does not fit, the nearest integer that does.
func numBig(b *big.Int) num {
	if b.BitLen() > 255 {
		if b.Sign() < 0 {
			return num{}
		}
		return num{math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64}
	}
	w := new(big.Int).Add(b, new(big.Int).Lsh(big.NewInt(1), 255))
	var n num
	mask := new(big.Int).SetUint64(math.MaxUint64)
	for i := 3; i >= 0; i-- {
		n[i] = new(big.Int).And(w, mask).Uint64()
		w.Rsh(w, 64)
	}
	return n
}

func (n num) cmp(o num) int {
	for i := range n {
		if n[i] != o[i] {
			if n[i] < o[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}

// add returns n + o, where o is in two's complement; the result has the offset of n.
func (n num) add(o num) num {
	var c uint64
	for i := 3; i >= 0; i-- {
		n[i], c = bits.Add64(n[i], o[i], c)
	}
	return n
}

// sub returns n - o; for two nums this is their distance.
func (n num) sub(o num) num {
	var c uint64
	for i := 3; i >= 0; i-- {
		n[i], c = bits.Sub64(n[i], o[i], c)
	}
	return n
}

func (n num) next() num { return n.add(num{3: 1}) }
func (n num) prev() num { return n.sub(num{3: 1}) }

// floatKey returns the rank of a float among the numbers of its type: the keys of neighbours differ by one, both zeros
// have key 0, and NaN has the key after infinity. b is the float's bits, and width their number, 16, 32 or 64.
func floatKey(b uint64, width int) int64 {
	inf, sign := infinityKey(width), uint64(1)<<(width-1)
	mag := int64(b & (sign - 1))
	switch {
	case mag > inf:
		return inf + 1
	case b&sign != 0:
		return -mag
	}
	return mag
}

// infinityKey returns the key of +Infinity, which equals its bits.
func infinityKey(width int) int64 {
	switch width {
	case 16:
		return 0x7c00
	case 32:
		return 0x7f800000
	}
	return 0x7ff0000000000000
}

// keyFloat is the inverse of floatKey.
func keyFloat(k int64, width int) float64 {
	mag, sign := k, 1.0
	if k < 0 {
		mag, sign = -k, -1
	}
	if mag > infinityKey(width) {
		return math.NaN()
	}
	switch width {
	case 16:
		return sign * float64(half.Float(uint16(mag)))
	case 32:
		return sign * float64(math.Float32frombits(uint32(mag)))
	}
	return sign * math.Float64frombits(uint64(mag))
}

// newDecimal converts n, which must fit.
func newDecimal(n num) decimal128.Num { return decimal128.New(int64(n[2]), n[3]) }
