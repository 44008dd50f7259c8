package pred

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
)

// numberLen returns the length of the unsigned number at the start of s; 0 if there is none.
func numberLen(s string) int {
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

// numberKind returns the kind of the number s, which may have a sign; KindNull if s is not a number.
func numberKind(s string) Kind {
	body := strings.TrimLeft(s, "+-")
	if len(s)-len(body) > 1 || numberLen(body) != len(body) || body == "" {
		return KindNull
	}
	switch {
	case strings.ContainsAny(body, "eE"):
		return KindFloat
	case strings.Contains(body, "."):
		return KindDecimal
	}
	if _, err := strconv.ParseInt(s, 10, 64); err == nil {
		return KindInt
	}
	if _, err := strconv.ParseUint(strings.TrimPrefix(s, "+"), 10, 64); err == nil {
		return KindUint
	}
	return KindDecimal
}

// parseNumber parses a number with or without a sign.
func parseNumber(s string) (Value, error) {
	k := numberKind(s)
	switch k {
	case KindNull:
		return Null(), fault.Invalidf("%s is not a number", s)
	case KindInt, KindUint:
		return parseAs(k, strings.TrimPrefix(s, "+"))
	}
	v, err := parseAs(k, s)
	switch {
	case err == nil:
		return v, nil
	case k == KindDecimal:
		return Null(), fault.Invalidf("%s has more than 38 digits; with an exponent (%se0) it would be a float", s, s)
	}
	return Null(), fault.Invalidf("%s is outside of the range of floats", s)
}

// formatFloat formats f so that Parse reads it as a float again, if it is finite.
func formatFloat(f float64) string {
	switch {
	case f != f:
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}

func parseFloat(s string) (float64, bool) {
	switch strings.ToLower(s) {
	case "nan":
		return math.NaN(), true
	case "inf", "+inf", "infinity", "+infinity":
		return math.Inf(1), true
	case "-inf", "-infinity":
		return math.Inf(-1), true
	}
	if numberKind(s) == KindNull {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	// a number too small for a float must not become zero, which would match other cells
	return f, err == nil && (f != 0 || writesZero(s))
}

// writesZero reports whether the number s is zero.
func writesZero(s string) bool {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		s = s[:i]
	}
	return !strings.ContainsAny(s, "123456789")
}

// formatDecimal formats unscaled × 10^-scale, with scale digits after the point, or with an exponent if those would be
// too many.
func formatDecimal(unscaled decimal128.Num, scale int32) string {
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

// parseDecimal parses a number exactly; its scale is the number of digits after the point, minus the exponent.
func parseDecimal(s string) (unscaled decimal128.Num, scale int32, ok bool) {
	if numberKind(s) == KindNull {
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
	if exp > maxScale || exp < -maxScale || len(s) > 2*maxScale {
		return
	}
	b, valid := new(big.Int).SetString(s, 10)
	if !valid || b.BitLen() > 127 {
		return
	}
	return decimal128.FromBigInt(b), int32(-exp), true
}
