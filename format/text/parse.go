package text

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"stoa/internal/cells"
	"stoa/internal/civil"
	"stoa/internal/enc/half"
)

// setter parses a text and appends its value to one builder. It does not keep the text.
type setter func(s []byte) error

// textSetter is the inverse of cells.AppendCSV, and of the JSON form of scalars; nil for types that are not scalar.
func textSetter(b array.Builder, t arrow.DataType) setter {
	if f := numberSetter(b); f != nil {
		return f
	}
	if f := timeSetter(b, t); f != nil {
		return f
	}
	if f := bytesSetter(b, t); f != nil {
		return f
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		return func(s []byte) error {
			v, ok := parseBool(s)
			b.Append(v)
			return checkValue(ok, s, t)
		}
	case *array.Decimal32Builder:
		return decimalSetter(t, func(n *big.Int) { b.Append(decimal.Decimal32(n.Int64())) })
	case *array.Decimal64Builder:
		return decimalSetter(t, func(n *big.Int) { b.Append(decimal.Decimal64(n.Int64())) })
	case *array.Decimal128Builder:
		slow := decimalSetter(t, func(n *big.Int) { b.Append(decimal128.FromBigInt(n)) })
		d := t.(arrow.DecimalType)
		return func(s []byte) error {
			if n, ok := shortDecimal(s, int(d.GetScale()), int(d.GetPrecision())); ok {
				b.Append(decimal128.FromI64(n))
				return nil
			}
			return slow(s)
		}
	case *array.Decimal256Builder:
		return decimalSetter(t, func(n *big.Int) { b.Append(decimal256.FromBigInt(n)) })
	case *array.NullBuilder:
		return func(s []byte) error { b.AppendNull(); return checkValue(len(s) == 0, s, t) }
	case array.DictionaryBuilder, *array.ExtensionBuilder:
		return func(s []byte) error { return b.AppendValueFromString(string(s)) }
	}
	return nil
}

// valueError is the error of a text that is not a value of a type.
type valueError struct {
	text string
	typ  arrow.DataType
	why  string
}

func (e *valueError) Error() string {
	s := fmt.Sprintf("%q is not a value of type %s", e.text, e.typ)
	if e.why != "" {
		s += ": " + e.why
	}
	return s
}

func checkValue(ok bool, s []byte, t arrow.DataType) error {
	if ok {
		return nil
	}
	return newValueError(s, t, "")
}

func newValueError(s []byte, t arrow.DataType, why string) error {
	const show = 60
	text := string(s[:min(len(s), show)])
	if len(s) > show {
		text += "…"
	}
	return &valueError{text, t, why}
}

// view returns s as a string without a copy, for functions that do not keep it.
func view(s []byte) string { return unsafe.String(unsafe.SliceData(s), len(s)) }

func parseBool(s []byte) (v, ok bool) {
	switch string(s) {
	case "true", "True", "TRUE":
		return true, true
	case "false", "False", "FALSE":
		return false, true
	}
	return false, false
}

// parseInt reads a decimal integer.
func parseInt(s []byte) (int64, bool) {
	neg := len(s) > 0 && s[0] == '-'
	digits := s
	if neg || len(s) > 0 && s[0] == '+' {
		digits = s[1:]
	}
	if len(digits) == 0 || len(digits) > 18 {
		v, err := strconv.ParseInt(view(s), 10, 64)
		return v, err == nil
	}
	var v int64
	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}
		v = v*10 + int64(c)
	}
	if neg {
		v = -v
	}
	return v, true
}

func numberSetter(b array.Builder) setter {
	switch b := b.(type) {
	case *array.Int8Builder:
		return intSetter(b.Append, math.MinInt8, math.MaxInt8, b.Type())
	case *array.Int16Builder:
		return intSetter(b.Append, math.MinInt16, math.MaxInt16, b.Type())
	case *array.Int32Builder:
		return intSetter(b.Append, math.MinInt32, math.MaxInt32, b.Type())
	case *array.Int64Builder:
		return intSetter(b.Append, math.MinInt64, math.MaxInt64, b.Type())
	case *array.Uint8Builder:
		return intSetter(b.Append, 0, math.MaxUint8, b.Type())
	case *array.Uint16Builder:
		return intSetter(b.Append, 0, math.MaxUint16, b.Type())
	case *array.Uint32Builder:
		return intSetter(b.Append, 0, math.MaxUint32, b.Type())
	case *array.Uint64Builder:
		return func(s []byte) error {
			v, err := strconv.ParseUint(view(s), 10, 64)
			b.Append(v)
			return checkValue(err == nil, s, b.Type())
		}
	case *array.Float16Builder:
		return halfSetter(b)
	case *array.Float32Builder:
		return floatSetter(func(f float64) { b.Append(float32(f)) }, 32, b.Type())
	case *array.Float64Builder:
		return floatSetter(b.Append, 64, b.Type())
	}
	return nil
}

func intSetter[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](add func(T), lowest, highest int64,
	t arrow.DataType) setter {
	return func(s []byte) error {
		v, ok := parseInt(s)
		if !ok || v < lowest || v > highest {
			return newValueError(s, t, "")
		}
		add(T(v))
		return nil
	}
}

func floatSetter(add func(float64), bits int, t arrow.DataType) setter {
	return func(s []byte) error {
		f, ok := parseFloat(s, bits)
		if !ok {
			return newValueError(s, t, "")
		}
		add(f)
		return nil
	}
}

// halfSetter rounds to the nearest float16; a number beyond its range is an error, not infinite.
func halfSetter(b *array.Float16Builder) setter {
	return func(s []byte) error {
		f, ok := parseFloat(s, 64)
		bits := half.Of(f)
		if !ok || !math.IsInf(f, 0) && math.IsInf(float64(half.Float(bits)), 0) {
			return newValueError(s, b.Type(), "")
		}
		b.Append(float16.FromBits(bits))
		return nil
	}
}

// parseFloat reads a decimal number, NaN or an infinity, but not Go's hexadecimal numbers and underscores. A number out
// of range is an error, not infinite.
func parseFloat(s []byte, bits int) (float64, bool) {
	for _, c := range s {
		if c == '_' || c == 'x' || c == 'X' {
			return 0, false
		}
	}
	f, err := strconv.ParseFloat(view(s), bits)
	return f, err == nil
}

// decimalSetter reads decimals with or without an exponent; digits beyond the scale must be zero.
func decimalSetter(t arrow.DataType, add func(*big.Int)) setter {
	d := t.(arrow.DecimalType)
	return func(s []byte) error {
		n, err := parseDecimal(s, int(d.GetScale()), int(d.GetPrecision()))
		if err != nil {
			return newValueError(s, t, err.Error())
		}
		add(n)
		return nil
	}
}

// shortDecimal is a fast parseDecimal for at most 18 digits, without an exponent; ok is false for other texts.
func shortDecimal(s []byte, scale, precision int) (n int64, ok bool) {
	const highest = 18
	negative := len(s) > 0 && s[0] == '-'
	if negative {
		s = s[1:]
	}
	digits, point := 0, -1
	for i, c := range s {
		switch {
		case '0' <= c && c <= '9' && digits < highest:
			n = n*10 + int64(c-'0')
			digits++
		case c == '.' && point < 0 && i > 0 && i < len(s)-1:
			point = i
		default:
			return 0, false
		}
	}
	if point >= 0 {
		scale -= len(s) - 1 - point
	}
	if digits == 0 || scale < 0 || digits+scale > min(highest, precision) {
		return 0, false
	}
	for range scale {
		n *= 10
	}
	if negative {
		n = -n
	}
	return n, true
}

var errDigits = errors.New("it has more digits than the type")

// parseDecimal returns s as an integer in units of 10^-scale.
func parseDecimal(s []byte, scale, precision int) (*big.Int, error) {
	digits, exp, ok := splitDecimal(s)
	if !ok {
		return nil, errors.New("it is not a decimal number")
	}
	n, _ := new(big.Int).SetString(digits, 10)
	if n.Sign() == 0 {
		return n, nil
	}
	shift := exp + scale
	if shift > 1000 || shift < -len(digits)-1 {
		return nil, errDigits
	}
	ten := big.NewInt(10)
	if shift >= 0 {
		n.Mul(n, new(big.Int).Exp(ten, big.NewInt(int64(shift)), nil))
	} else if _, rest := n.QuoRem(n, new(big.Int).Exp(ten, big.NewInt(int64(-shift)), nil),
		new(big.Int)); rest.Sign() != 0 {
		return nil, errDigits
	}
	if len(new(big.Int).Abs(n).Text(10)) > precision {
		return nil, errDigits
	}
	return n, nil
}

// splitDecimal splits s such that its value is digits · 10^exp.
func splitDecimal(s []byte) (digits string, exp int, ok bool) {
	b := make([]byte, 0, len(s))
	point, seen := -1, 0
	for i, c := range s {
		switch {
		case c >= '0' && c <= '9':
			b = append(b, c)
			seen++
			if point >= 0 {
				exp--
			}
		case (c == '-' || c == '+') && i == 0:
			b = append(b, c)
		case c == '.' && point < 0:
			point = i
		case (c == 'e' || c == 'E') && seen > 0:
			e, err := strconv.Atoi(string(s[i+1:]))
			if err != nil || e > 1e6 || e < -1e6 {
				return "", 0, false
			}
			return string(b), exp + e, true
		default:
			return "", 0, false
		}
	}
	return string(b), exp, seen > 0
}

func bytesSetter(b array.Builder, t arrow.DataType) setter {
	switch b := b.(type) {
	case *array.StringBuilder:
		return utf8Setter(b.BinaryBuilder.Append, t)
	case *array.LargeStringBuilder:
		return utf8Setter(b.BinaryBuilder.Append, t)
	case *array.StringViewBuilder:
		return utf8Setter(func(s []byte) { b.Append(string(s)) }, t)
	case *array.BinaryBuilder:
		return base64Setter(b.Append, t, -1)
	case *array.BinaryViewBuilder:
		return base64Setter(b.Append, t, -1)
	case *array.FixedSizeBinaryBuilder:
		return base64Setter(b.Append, t, t.(*arrow.FixedSizeBinaryType).ByteWidth)
	}
	return nil
}

func utf8Setter(add func([]byte), t arrow.DataType) setter {
	return func(s []byte) error {
		if !utf8.Valid(s) {
			return newValueError(s, t, "it is not UTF-8")
		}
		add(s)
		return nil
	}
}

func base64Setter(add func([]byte), t arrow.DataType, width int) setter {
	var buf []byte
	return func(s []byte) error {
		var err error
		if buf, err = base64.StdEncoding.AppendDecode(buf[:0], s); err != nil {
			return newValueError(s, t, "it is not base64")
		}
		if width >= 0 && len(buf) != width {
			return newValueError(s, t, fmt.Sprintf("it is %d bytes long", len(buf)))
		}
		add(buf)
		return nil
	}
}

// timeSetter is textSetter for dates, times, timestamps and durations; nil for other types.
func timeSetter(b array.Builder, t arrow.DataType) setter {
	switch b := b.(type) {
	case *array.Date32Builder:
		return dateSetter(t, func(d int64) bool { b.Append(arrow.Date32(d)); return d == int64(int32(d)) })
	case *array.Date64Builder:
		return dateSetter(t, func(d int64) bool { b.Append(arrow.Date64(d * cells.SecondsPerDay * 1000)); return true })
	case *array.Time32Builder:
		return clockSetter(t, t.(*arrow.Time32Type).Unit, func(v int64) { b.Append(arrow.Time32(v)) })
	case *array.Time64Builder:
		return clockSetter(t, t.(*arrow.Time64Type).Unit, func(v int64) { b.Append(arrow.Time64(v)) })
	case *array.TimestampBuilder:
		return stampSetter(b, t.(*arrow.TimestampType))
	case *array.DurationBuilder:
		return durationSetter(b, t.(*arrow.DurationType))
	}
	return nil
}

func dateSetter(t arrow.DataType, add func(int64) bool) setter {
	return func(s []byte) error {
		d, rest, ok := parseDate(s)
		if !ok || len(rest) > 0 {
			return newValueError(s, t, "")
		}
		return checkValue(add(d), s, t)
	}
}

func clockSetter(t arrow.DataType, unit arrow.TimeUnit, add func(int64)) setter {
	per, digits := cells.PerSecond(unit)
	return func(s []byte) error {
		sec, rest, ok := parseClock(s)
		frac, rest, exact := parseFraction(rest, digits)
		if !ok || !exact || len(rest) > 0 {
			return newValueError(s, t, "")
		}
		add(sec*per + frac)
		return nil
	}
}

func stampSetter(b *array.TimestampBuilder, t *arrow.TimestampType) setter {
	per, digits := cells.PerSecond(t.Unit)
	loc, err := t.GetZone()
	if err != nil {
		loc = time.UTC
	}
	return func(s []byte) error {
		sec, frac, zoned, offset, ok := parseStamp(s, digits)
		if !ok {
			if v, number := parseInt(s); number { // for years outside of 0…9999
				b.Append(arrow.Timestamp(v))
				return nil
			}
			return newValueError(s, t, "")
		}
		switch {
		case zoned && t.TimeZone == "":
			return newValueError(s, t, "it has a time zone")
		case zoned:
			sec -= offset
		case t.TimeZone != "":
			sec -= localOffset(sec, loc)
		}
		v := sec*per + frac
		if (v-frac)/per != sec {
			return newValueError(s, t, "it is out of range")
		}
		b.Append(arrow.Timestamp(v))
		return nil
	}
}

// localOffset returns the offset of loc from UTC when its clocks show sec.
func localOffset(sec int64, loc *time.Location) int64 {
	u := time.Unix(sec, 0).UTC()
	local := time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, loc)
	return sec - local.Unix()
}

func durationSetter(b *array.DurationBuilder, t *arrow.DurationType) setter {
	unit := t.Unit.String()
	return func(s []byte) error {
		digits := s
		if n := len(s) - len(unit); n > 0 && string(s[n:]) == unit {
			digits = s[:n]
		}
		v, ok := parseInt(digits)
		b.Append(arrow.Duration(v))
		return checkValue(ok, s, t)
	}
}

// digitsAt reads exactly n digits.
func digitsAt(s []byte, n int) (v int64, rest []byte, ok bool) {
	if len(s) < n {
		return 0, s, false
	}
	for _, c := range s[:n] {
		if c < '0' || c > '9' {
			return 0, s, false
		}
		v = v*10 + int64(c-'0')
	}
	return v, s[n:], true
}

// parseDate reads YYYY-MM-DD, with a sign and more digits for far years, as days since 1970.
func parseDate(s []byte) (days int64, rest []byte, ok bool) {
	neg := len(s) > 0 && s[0] == '-'
	if neg {
		s = s[1:]
	}
	n := 0
	for n < len(s) && n < 8 && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n < 4 || n >= len(s) || s[n] != '-' {
		return 0, s, false
	}
	y, rest, _ := digitsAt(s, n)
	m, rest, ok1 := digitsAt(rest[1:], 2)
	if !ok1 || len(rest) == 0 || rest[0] != '-' {
		return 0, s, false
	}
	d, rest, ok2 := digitsAt(rest[1:], 2)
	if neg {
		y = -y
	}
	if !ok2 || m < 1 || m > 12 || d < 1 || int(d) > civil.MonthDays(y, int(m)) {
		return 0, s, false
	}
	return civil.Days(y, int(m), int(d)), rest, true
}

// parseClock reads HH:MM or HH:MM:SS as seconds.
func parseClock(s []byte) (sec int64, rest []byte, ok bool) {
	h, rest, ok1 := digitsAt(s, 2)
	if !ok1 || len(rest) == 0 || rest[0] != ':' {
		return 0, s, false
	}
	m, rest, ok2 := digitsAt(rest[1:], 2)
	if !ok2 || h > 23 || m > 59 {
		return 0, s, false
	}
	sec = h*3600 + m*60
	if len(rest) > 0 && rest[0] == ':' {
		var n int64
		if n, rest, ok = digitsAt(rest[1:], 2); !ok || n > 59 {
			return 0, s, false
		}
		sec += n
	}
	return sec, rest, true
}

// parseFraction reads .ddd in units of 10^-digits; ok is false if further digits are not zero.
func parseFraction(s []byte, digits int) (v int64, rest []byte, ok bool) {
	if len(s) == 0 || s[0] != '.' {
		return 0, s, true
	}
	n := 1
	for ; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		switch {
		case n <= digits:
			v = v*10 + int64(s[n]-'0')
		case s[n] != '0':
			return 0, s, false
		}
	}
	for k := n; k <= digits; k++ {
		v *= 10
	}
	return v, s[n:], n > 1
}

// parseStamp reads a date, T or a space, a time, and optionally Z or an offset.
func parseStamp(s []byte, digits int) (sec, frac int64, zoned bool, offset int64, ok bool) {
	days, rest, ok := parseDate(s)
	if !ok {
		return 0, 0, false, 0, false
	}
	if len(rest) == 0 {
		return days * cells.SecondsPerDay, 0, false, 0, true
	}
	if rest[0] != 'T' && rest[0] != 't' && rest[0] != ' ' {
		return 0, 0, false, 0, false
	}
	clock, rest, ok1 := parseClock(rest[1:])
	frac, rest, ok2 := parseFraction(rest, digits)
	if !ok1 || !ok2 {
		return 0, 0, false, 0, false
	}
	sec = days*cells.SecondsPerDay + clock
	if len(rest) == 0 {
		return sec, frac, false, 0, true
	}
	offset, ok = parseOffset(rest)
	return sec, frac, true, offset, ok
}

// parseOffset reads Z, +HH, +HHMM, +HH:MM or +HH:MM:SS.
func parseOffset(s []byte) (seconds int64, ok bool) {
	if string(s) == "Z" || string(s) == "z" {
		return 0, true
	}
	sign := int64(1)
	switch s[0] {
	case '-':
		sign = -1
	case '+':
	default:
		return 0, false
	}
	s = s[1:]
	for _, scale := range []int64{3600, 60, 1} {
		if scale < 3600 {
			if len(s) == 0 {
				break
			}
			if s[0] == ':' {
				s = s[1:]
			}
		}
		v, rest, ok := digitsAt(s, 2)
		if !ok {
			return 0, false
		}
		seconds += v * scale
		s = rest
	}
	return sign * seconds, len(s) == 0
}
