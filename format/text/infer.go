package text

import (
	"github.com/apache/arrow-go/v18/arrow"
)

// class is a set of the kinds of values seen in a column.
type class uint16

const (
	isInt   class = 1 << iota // an int64 without leading zeros
	isUint                    // a positive integer that only a uint64 can hold
	isBig                     // a longer integer
	isFloat                   // a decimal number with a point or an exponent, NaN, an infinity
	isBool
	isDate
	isStamp    // a timestamp without zone
	isZoned    // a timestamp with zone
	isNanos    // a timestamp has more than six digits
	isNegative // there is a negative isInt
	isString   // anything else
	isNull     // no value
)

// classOf returns the kind of one cell that is not null.
func classOf(s []byte) class {
	if len(s) == 0 {
		return isString
	}
	switch c := s[0]; {
	case c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.':
		return numeric(s)
	case c == 'N' || c == 'I':
		if w := string(s); w == "NaN" || w == "Inf" {
			return isFloat
		}
	}
	if _, ok := parseBool(s); ok {
		return isBool
	}
	return isString
}

// numeric returns the kind of a cell that begins like a number.
func numeric(s []byte) class {
	digits := s
	if s[0] == '-' || s[0] == '+' {
		digits = s[1:]
	}
	if string(digits) == "Inf" {
		return isFloat
	}
	if len(digits) == 0 || digits[0] != '.' && (digits[0] < '0' || digits[0] > '9') {
		return isString
	}
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' {
		return isStampOr(s, isString) // a number would lose the leading zero, as in 007
	}
	plain := true
	for _, c := range digits {
		plain = plain && c >= '0' && c <= '9'
	}
	if plain {
		return integer(s)
	}
	if _, ok := parseFloat(s, 64); ok {
		return isFloat
	}
	return isStampOr(s, isString)
}

func integer(s []byte) class {
	if s[0] == '+' {
		return isString // a number would lose the plus, as in a telephone number
	}
	if v, ok := parseInt(s); ok {
		switch {
		case v < 0:
			return isInt | isNegative
		case s[0] == '-':
			return isFloat // -0
		}
		return isInt
	}
	const most = "18446744073709551615"
	if s[0] != '-' && (len(s) < len(most) || len(s) == len(most) && string(s) <= most) {
		return isUint
	}
	return isBig
}

// isStampOr returns the kind of a date or timestamp, or else other.
func isStampOr(s []byte, other class) class {
	if _, rest, ok := parseDate(s); ok && len(rest) == 0 {
		return isDate
	}
	_, frac, zoned, _, ok := parseStamp(s, 9)
	if !ok {
		return other
	}
	out := isStamp
	if zoned {
		out = isZoned
	}
	if frac%1000 != 0 {
		out |= isNanos
	}
	return out
}

// infer returns the type that holds all values seen without loss; utf8 if no other type does.
func (c class) infer() arrow.DataType {
	unit := arrow.Microsecond
	if c&isNanos != 0 {
		unit = arrow.Nanosecond
	}
	c &^= isNanos | isNull
	if numbers := isFloat | isInt | isUint | isBig | isNegative; c&isFloat != 0 && c&^numbers == 0 {
		return arrow.PrimitiveTypes.Float64
	}
	switch c {
	case isInt, isInt | isNegative:
		return arrow.PrimitiveTypes.Int64
	case isUint, isUint | isInt:
		return arrow.PrimitiveTypes.Uint64
	case isBool:
		return arrow.FixedWidthTypes.Boolean
	case isDate:
		return arrow.FixedWidthTypes.Date32
	case isStamp, isStamp | isDate:
		return &arrow.TimestampType{Unit: unit}
	case isZoned:
		return &arrow.TimestampType{Unit: unit, TimeZone: "UTC"}
	}
	return arrow.BinaryTypes.String
}
