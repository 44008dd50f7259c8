package page

import (
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/civil"
)

// ParseConstant parses a text as a value of a column, for loads. Common spellings take a fast path; all others go to
// schema.ParseValue.
func ParseConstant(c *schema.Column, s string) (v schema.Constant, err error) {
	ok := false
	if quick := fastParser(c); quick != nil {
		v.I, ok = quick(s)
	} else if c.Type == layout.TypeDecimal {
		v.D, ok = parseShortDecimal(s, c.Scale)
	}
	if !ok {
		v, err = ParseExact(c, s)
	}
	if c.Type == layout.TypeDate && err == nil && (v.I < MinDate || v.I > MaxDate) {
		err = fault.Invalidf("%q is beyond what a date can be", s)
	}
	return v, err
}

// fastParser returns a function that parses common texts of the column's type to a whole number; nil if there is none.
func fastParser(c *schema.Column) func(s string) (int64, bool) {
	switch c.Type {
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		unused := 64 - 8*storeTypes[c.Type].Width()
		return func(s string) (int64, bool) {
			n, ok := parseWhole(s)
			return n, ok && n<<unused>>unused == n
		}
	case layout.TypeDate:
		return func(s string) (int64, bool) {
			n, ok := parseDays(s)
			return n, ok && n >= MinDate && n <= MaxDate
		}
	case layout.TypeTimestamp:
		return parseTime
	}
	return nil
}

// parseWhole parses a whole number of at most 18 digits.
func parseWhole(s string) (int64, bool) {
	if len(s) > 1 && s[0] == '-' {
		n, ok := parseWhole(s[1:])
		return -n, ok && s[1] != '-'
	}
	if s == "" || len(s) > 18 {
		return 0, false
	}
	return parseDigits(s)
}

// ParseExact is ParseConstant for every spelling.
func ParseExact(c *schema.Column, s string) (v schema.Constant, err error) {
	if c.Type == layout.TypeTimestamp {
		if when, err := time.Parse(time.RFC3339Nano, s); err == nil {
			if when.Nanosecond()%1e6 != 0 {
				return v, finer(s)
			}
			return schema.Constant{I: when.UnixMilli()}, nil
		}
		if _, parts, ok := strings.Cut(s, "."); ok && len(parts) > 3 && strings.Trim(parts[3:], "0") != "" {
			return v, finer(s)
		}
	}
	v, err = schema.ParseValue(c, s, nil)
	number := c.Type == layout.TypeFloat || c.Type == layout.TypeDouble
	if err != nil || v.Null && !number || number && !isExact(c.Type, s, v.F) {
		return v, fault.Invalidf("%q is not a value of type %s", s, c.Type)
	}
	// CarbonData makes NaN and infinite numbers null that come as text; stoa prints them, and so takes them back.
	if v.Null {
		v.Null = false
		return v, nil
	}
	if c.Type == layout.TypeFloat {
		if v.F = float64(float32(v.F)); math.IsInf(v.F, 0) {
			return v, fault.Invalidf("%q is beyond what a float can be", s)
		}
	}
	return v, nil
}

// isExact reports whether f is the value of a text that is a whole number. Other texts are rounded, as everywhere.
// Digits are not grouped by underscores, as in Go.
func isExact(t layout.DataType, s string, f float64) bool {
	if t == layout.TypeFloat {
		f = float64(float32(f))
	}
	n, whole := new(big.Int).SetString(s, 10)
	if !whole || len(s) > 400 {
		return !strings.Contains(s, "_")
	}
	x, _ := new(big.Float).SetFloat64(f).Int(nil)
	return x != nil && x.Cmp(n) == 0
}

// finer returns an error for a text whose time has more digits than CarbonData stores. Texts are never truncated,
// unlike timestamps, because no check compares them with what is read back.
func finer(s string) error {
	return fault.Invalidf("%q has parts of a millisecond, which CarbonData cannot keep (if the rows have the column "+
		"as timestamps, and not as text, writing option timestamps=truncate drops them)", s)
}

// Array returns the cells as an Arrow array of type t. They must be neither strings nor nested.
func (x *Cells) Array(t arrow.DataType) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	b.Reserve(x.N)
	var add func(i int)
	switch b := b.(type) {
	case *array.BooleanBuilder:
		add = func(i int) { b.UnsafeAppend(x.Ints[i] != 0) }
	case *array.Int8Builder:
		add = func(i int) { b.UnsafeAppend(int8(x.Ints[i])) }
	case *array.Int16Builder:
		add = func(i int) { b.UnsafeAppend(int16(x.Ints[i])) }
	case *array.Int32Builder:
		add = func(i int) { b.UnsafeAppend(int32(x.Ints[i])) }
	case *array.Int64Builder:
		add = func(i int) { b.UnsafeAppend(x.Ints[i]) }
	case *array.Date32Builder:
		add = func(i int) { b.UnsafeAppend(arrow.Date32(x.Ints[i])) }
	case *array.TimestampBuilder:
		add = func(i int) { b.UnsafeAppend(arrow.Timestamp(x.Ints[i])) }
	case *array.Float32Builder:
		add = func(i int) { b.UnsafeAppend(float32(x.Nums[i])) }
	case *array.Float64Builder:
		add = func(i int) { b.UnsafeAppend(x.Nums[i]) }
	case *array.Decimal128Builder:
		add = func(i int) { b.UnsafeAppend(x.Decs[i]) }
	default:
		return nil, fault.Bugf("texts of a column of type %s", t)
	}
	for i := range x.N {
		if x.Null(i) {
			b.AppendNull()
		} else {
			add(i)
		}
	}
	return b.NewArray(), nil
}

// parseDigits parses a string that consists of digits only.
func parseDigits(s string) (n int64, ok bool) {
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + int64(d)
	}
	return n, true
}

// parseDays parses YYYY-MM-DD to days since 1970.
func parseDays(s string) (int64, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, ok1 := parseDigits(s[:4])
	m, ok2 := parseDigits(s[5:7])
	d, ok3 := parseDigits(s[8:])
	if !ok1 || !ok2 || !ok3 || m < 1 || m > 12 || d < 1 || int(d) > civil.MonthDays(y, int(m)) {
		return 0, false
	}
	return civil.Days(y, int(m), int(d)), true
}

// parseTime parses YYYY-MM-DD HH:MM:SS, with up to three fractional digits, to milliseconds since 1970. It also accepts
// T as the separator and a Z at the end.
func parseTime(s string) (int64, bool) {
	if len(s) < 19 || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	switch {
	case s[10] == 'T' && s[len(s)-1] == 'Z':
		s = s[:len(s)-1]
	case s[10] != ' ':
		return 0, false
	}
	day, ok := parseDays(s[:10])
	h, ok1 := parseDigits(s[11:13])
	m, ok2 := parseDigits(s[14:16])
	sec, ok3 := parseDigits(s[17:19])
	if !ok || !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || sec > 59 {
		return 0, false
	}
	ms := int64(0)
	if rest := s[19:]; rest != "" {
		if len(rest) < 2 || len(rest) > 4 || rest[0] != '.' {
			return 0, false
		}
		if ms, ok = parseDigits(rest[1:]); !ok {
			return 0, false
		}
		for range 4 - len(rest) {
			ms *= 10
		}
	}
	return ((day*24+h)*60+m)*60_000 + sec*1000 + ms, true
}

// parseShortDecimal parses a decimal of at most 18 digits, counting those of the scale, to its unscaled value.
func parseShortDecimal(s string, scale int32) (d decimal128.Num, ok bool) {
	sign := int64(1)
	if strings.HasPrefix(s, "-") {
		sign, s = -1, s[1:]
	}
	whole, part, _ := strings.Cut(s, ".")
	more := int(scale) - len(part)
	if whole == "" || more < 0 || len(whole)+int(scale) > 18 {
		return d, false
	}
	w, ok1 := parseDigits(whole)
	p, ok2 := parseDigits(part)
	for range len(part) {
		w *= 10
	}
	n := w + p
	for range more {
		n *= 10
	}
	return decimal128.FromI64(sign * n), ok1 && ok2
}
