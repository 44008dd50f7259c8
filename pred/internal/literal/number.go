package literal

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// MaxScale is the largest magnitude of a decimal's scale.
const MaxScale = 1000

// NumberLen returns the length of the unsigned number at the start of s; 0 if there is none.
func NumberLen(s string) int {
	digits := func(i int) int {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i
	}
	n := digits(0)
	if n < len(s) && s[n] == '.' {
		m := digits(n + 1)
		if n == 0 && m == 1 {
			return 0
		}
		n = m
	}
	if n > 0 && n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		i := n + 1
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if m := digits(i); m > i {
			n = m
		}
	}
	return n
}

// IsNumber reports whether s is a number with or without a sign.
func IsNumber(s string) bool {
	body := strings.TrimLeft(s, "+-")
	return len(s)-len(body) <= 1 && NumberLen(body) == len(body) && body != ""
}

// FormatDecimal formats unscaled × 10^-scale, with scale digits after the point, or with an exponent if those would be
// too many.
func FormatDecimal(unscaled decimal128.Num, scale int32) string {
	s := unscaled.BigInt().String()
	if scale == 0 {
		return s
	}
	if scale < 0 || scale > 60 {
		return s + "e" + strconv.Itoa(-int(scale))
	}
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	if n := int(scale) + 1 - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	return sign + s[:len(s)-int(scale)] + "." + s[len(s)-int(scale):]
}

// ParseDecimal parses a number exactly; its scale is the number of digits after the point, minus the exponent.
func ParseDecimal(s string) (unscaled decimal128.Num, scale int32, ok bool) {
	if !IsNumber(s) {
		return
	}
	exp := 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exp, err = strconv.Atoi(s[i+1:]); err != nil {
			return
		}
		s = s[:i]
	}
	if i := strings.IndexByte(s, '.'); i >= 0 {
		exp -= len(s) - i - 1
		s = s[:i] + s[i+1:]
	}
	if exp > MaxScale || exp < -MaxScale || len(s) > 2*MaxScale {
		return
	}
	b, valid := new(big.Int).SetString(s, 10)
	if !valid || b.BitLen() > 127 {
		return
	}
	return decimal128.FromBigInt(b), int32(-exp), true
}
