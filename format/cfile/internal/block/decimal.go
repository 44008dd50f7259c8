package block

import (
	"encoding/binary"
	"math/big"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
)

// DigitsAs is the largest number of digits that values of t may have when they are read as Arrow type at; no writer
// stores a decimal with more. 0 means no limit, as for Int128, which is read as a decimal but may have any 128 bits.
func (t Type) DigitsAs(at arrow.DataType) int {
	if d, ok := at.(*arrow.Decimal128Type); ok && t != Int128 {
		return int(d.Precision)
	}
	return 0
}

// CheckDigits checks n decimals of 16 bytes each, little-endian. A decimal of more than digits digits is a relative
// error, Corrupt.
func CheckDigits(b []byte, n, digits int) error {
	w := As[[2]uint64](b, n)
	if digits > 18 {
		return checkLong(w, digits)
	}
	limit := uint64(1)
	for range digits {
		limit *= 10
	}
	for i, x := range w {
		// x + limit - 1 lies in [0, 2*limit - 1) iff -limit < x < limit
		if uint64(int64(x[0])>>63) != x[1] || x[0]+limit-1 >= 2*limit-1 {
			return tooMany(i, x, digits)
		}
	}
	return nil
}

// checkLong is CheckDigits for numbers that may need more than 64 bits.
func checkLong(w [][2]uint64, digits int) error {
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(digits)), nil)
	safe := int64(new(big.Int).Rsh(limit, 64).Uint64()) // numbers whose upper half is smaller are less than limit
	for i, x := range w {
		if hi := int64(x[1]); hi >= -safe && hi < safe {
			continue
		}
		if bigOf(x).CmpAbs(limit) >= 0 {
			return tooMany(i, x, digits)
		}
	}
	return nil
}

func bigOf(x [2]uint64) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(int64(x[1])), 64)
	return n.Add(n, new(big.Int).SetUint64(x[0]))
}

func tooMany(i int, x [2]uint64, digits int) error {
	return fault.Rel(0, 0, "", "value %d, %s, has more than the %d digits of its type", i, bigOf(x), digits)
}

// tenTo38 is the smallest positive number of 39 digits.
var tenTo38 = new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil)

// TooWide reports whether a number of 128 bits, little-endian, has more than 38 digits.
func TooWide(le []byte) bool {
	hi := binary.LittleEndian.Uint64(le[8:])
	if int64(hi) > -(1<<62) && int64(hi) < 1<<62 { // 2^126 is less than 10^38
		return false
	}
	return bigOf([2]uint64{binary.LittleEndian.Uint64(le), hi}).CmpAbs(tenTo38) >= 0
}
