package cells

import (
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// digitsOf returns, for a decimal array, a function that writes the unscaled integer of a row in decimal digits, with
// its sign.
func digitsOf(a arrow.Array) func(dst []byte, i int) []byte {
	switch a := a.(type) {
	case *array.Decimal32:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(a.Value(i)), 10) }
	case *array.Decimal64:
		return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(a.Value(i)), 10) }
	case *array.Decimal128:
		return func(dst []byte, i int) []byte {
			v := a.Value(i)
			if lo := int64(v.LowBits()); v.HighBits() == lo>>63 {
				return strconv.AppendInt(dst, lo, 10)
			}
			return v.BigInt().Append(dst, 10)
		}
	case *array.Decimal256:
		return func(dst []byte, i int) []byte { return a.Value(i).BigInt().Append(dst, 10) }
	}
	return nil
}

// plainDecimal writes the digits with the decimal point and all digits of the scale: 1.50.
func plainDecimal(dst, digits []byte, scale int) []byte {
	if digits[0] == '-' {
		dst, digits = append(dst, '-'), digits[1:]
	}
	switch {
	case scale <= 0:
		dst = append(dst, digits...)
		for ; scale < 0 && string(digits) != "0"; scale++ {
			dst = append(dst, '0')
		}
		return dst
	case len(digits) <= scale:
		dst = append(dst, '0', '.')
		for range scale - len(digits) {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	cut := len(digits) - scale
	dst = append(dst, digits[:cut]...)
	return append(append(dst, '.'), digits[cut:]...)
}
