package page

import (
	"math"
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

// ConstantOf reads a text as a value of a column, for loads. The usual spellings are read here, quickly; all
// others by schema.ParseValue.
func ConstantOf(c *schema.Column, s string) (v schema.Constant, err error) {
	ok := false
	if quick := quickText(c); quick != nil {
		v.I, ok = quick(s)
	} else if c.Typ == layout.TypeDecimal {
		v.D, ok = decimalOf(s, c.Scale)
	}
	if !ok {
		v, err = SlowConstant(c, s)
	}
	if c.Typ == layout.TypeDate && err == nil && (v.I < MinDate || v.I > MaxDate) {
		err = fault.Invalidf("%q is beyond what a date can be", s)
	}
	return v, err
}

// quickText reads the usual texts of the column's type as a whole number; nil: there is no such way.
func quickText(c *schema.Column) func(s string) (int64, bool) {
	switch c.Typ {
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		unused := 64 - 8*storeTypes[c.Typ].Width()
		return func(s string) (int64, bool) {
			n, ok := wholeOf(s)
			return n, ok && n<<unused>>unused == n
		}
	case layout.TypeDate:
		return func(s string) (int64, bool) {
			n, ok := daysOf(s)
			return n, ok && n >= MinDate && n <= MaxDate
		}
	case layout.TypeTimestamp:
		return timeOf
	}
	return nil
}

// wholeOf reads a whole number of at most 18 digits.
func wholeOf(s string) (int64, bool) {
	if len(s) > 1 && s[0] == '-' {
		n, ok := wholeOf(s[1:])
		return -n, ok && s[1] != '-'
	}
	if s == "" || len(s) > 18 {
		return 0, false
	}
	return digits(s)
}

func SlowConstant(c *schema.Column, s string) (v schema.Constant, err error) {
	if c.Typ == layout.TypeTimestamp {
		if when, err := time.Parse(time.RFC3339Nano, s); err == nil {
			if when.Nanosecond()%1e6 != 0 {
				return v, fault.Invalidf("%q has parts of a millisecond", s)
			}
			return schema.Constant{I: when.UnixMilli()}, nil
		}
		if _, parts, ok := strings.Cut(s, "."); ok && len(parts) > 3 && strings.Trim(parts[3:], "0") != "" {
			return v, fault.Invalidf("%q has parts of a millisecond", s)
		}
	}
	if v, err = schema.ParseValue(c, s, nil); err != nil || v.Null {
		return v, fault.Invalidf("%q is no %s", s, c.Typ)
	}
	if c.Typ == layout.TypeFloat {
		if v.F = float64(float32(v.F)); math.IsInf(v.F, 0) {
			return v, fault.Invalidf("%q is beyond what a float can be", s)
		}
	}
	return v, nil
}

// Array has the cells, which are no strings and not nested, as an Arrow array of a type.
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

// digits reads a number of exactly these digits.
func digits(s string) (n int64, ok bool) {
	for i := range len(s) {
		d := s[i] - '0'
		if d > 9 {
			return 0, false
		}
		n = 10*n + int64(d)
	}
	return n, true
}

// daysOf reads YYYY-MM-DD as days since 1970.
func daysOf(s string) (int64, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	y, ok1 := digits(s[:4])
	m, ok2 := digits(s[5:7])
	d, ok3 := digits(s[8:])
	if !ok1 || !ok2 || !ok3 || m < 1 || m > 12 || d < 1 || int(d) > civil.MonthDays(y, int(m)) {
		return 0, false
	}
	return civil.Days(y, int(m), int(d)), true
}

// timeOf reads YYYY-MM-DD HH:MM:SS with up to three digits of a fraction, or T between and Z after it, as
// milliseconds since 1970.
func timeOf(s string) (int64, bool) {
	if len(s) < 19 || s[13] != ':' || s[16] != ':' {
		return 0, false
	}
	switch {
	case s[10] == 'T' && s[len(s)-1] == 'Z':
		s = s[:len(s)-1]
	case s[10] != ' ':
		return 0, false
	}
	day, ok := daysOf(s[:10])
	h, ok1 := digits(s[11:13])
	m, ok2 := digits(s[14:16])
	sec, ok3 := digits(s[17:19])
	if !ok || !ok1 || !ok2 || !ok3 || h > 23 || m > 59 || sec > 59 {
		return 0, false
	}
	ms := int64(0)
	if rest := s[19:]; rest != "" {
		if len(rest) < 2 || len(rest) > 4 || rest[0] != '.' {
			return 0, false
		}
		if ms, ok = digits(rest[1:]); !ok {
			return 0, false
		}
		for range 4 - len(rest) {
			ms *= 10
		}
	}
	return ((day*24+h)*60+m)*60_000 + sec*1000 + ms, true
}

// decimalOf reads a decimal of at most 18 digits, those of the scale among them, as a whole number of 10^-scale.
func decimalOf(s string, scale int32) (d decimal128.Num, ok bool) {
	sign := int64(1)
	if strings.HasPrefix(s, "-") {
		sign, s = -1, s[1:]
	}
	whole, part, _ := strings.Cut(s, ".")
	more := int(scale) - len(part)
	if whole == "" || more < 0 || len(whole)+int(scale) > 18 {
		return d, false
	}
	w, ok1 := digits(whole)
	p, ok2 := digits(part)
	for range len(part) {
		w *= 10
	}
	n := w + p
	for range more {
		n *= 10
	}
	return decimal128.FromI64(sign * n), ok1 && ok2
}
