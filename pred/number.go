package pred

import (
	"math"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/pred/internal/literal"
)

// numberKind returns the kind of the number s, which may have a sign; KindNull if s is not a number.
func numberKind(s string) Kind {
	if !literal.IsNumber(s) {
		return KindNull
	}
	body := strings.TrimLeft(s, "+-")
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

// What literals are made of is read and written by package literal.
var (
	parseDecimal    = literal.ParseDecimal
	formatDecimal   = literal.FormatDecimal
	parseDate       = literal.ParseDate
	parseTime       = literal.ParseTime
	parseTimestamp  = literal.ParseTimestamp
	formatDate      = literal.FormatDate
	formatTime      = literal.FormatTime
	formatTimestamp = literal.FormatTimestamp
)
