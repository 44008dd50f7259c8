package carbon

import (
	"math"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/civil"
)

// constantOf reads a text as a value of a column, for loads. The usual spellings are read here, quickly; all others by parseValue.
func constantOf(c *column, s string) (v constant, err error) {
	ok := false
	if quick := c.quick(); quick != nil {
		v.i, ok = quick(s)
	} else if c.typ == typeDecimal {
		v.d, ok = decimalOf(s, c.scale)
	}
	if !ok {
		v, err = slowConstant(c, s)
	}
	if c.typ == typeDate && err == nil && (v.i < minDate || v.i > maxDate) {
		err = fault.Invalidf("%q is beyond what a date can be", s)
	}
	return v, err
}

// quick reads the usual texts of the column's type as a whole number; nil: there is no such way.
func (c *column) quick() func(s string) (int64, bool) {
	switch c.typ {
	case typeByte, typeShort, typeInt, typeLong:
		unused := 64 - 8*storeTypes[c.typ].width()
		return func(s string) (int64, bool) {
			n, ok := wholeOf(s)
			return n, ok && n<<unused>>unused == n
		}
	case typeDate:
		return func(s string) (int64, bool) {
			n, ok := daysOf(s)
			return n, ok && n >= minDate && n <= maxDate
		}
	case typeTimestamp:
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

func slowConstant(c *column, s string) (v constant, err error) {
	if c.typ == typeTimestamp {
		if when, err := time.Parse(time.RFC3339Nano, s); err == nil {
			if when.Nanosecond()%1e6 != 0 {
				return v, fault.Invalidf("%q has parts of a millisecond", s)
			}
			return constant{i: when.UnixMilli()}, nil
		}
		if _, parts, ok := strings.Cut(s, "."); ok && len(parts) > 3 && strings.Trim(parts[3:], "0") != "" {
			return v, fault.Invalidf("%q has parts of a millisecond", s)
		}
	}
	if v, err = parseValue(c, s, nil); err != nil || v.null {
		return v, fault.Invalidf("%q is no %s", s, c.typ)
	}
	if c.typ == typeFloat {
		if v.f = float64(float32(v.f)); math.IsInf(v.f, 0) {
			return v, fault.Invalidf("%q is beyond what a float can be", s)
		}
	}
	return v, nil
}

// array has the cells, which are no strings and not nested, as an Arrow array of a type.
func (x *cells) array(t arrow.DataType) (arrow.Array, error) {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	b.Reserve(x.n)
	var add func(i int)
	switch b := b.(type) {
	case *array.BooleanBuilder:
		add = func(i int) { b.UnsafeAppend(x.ints[i] != 0) }
	case *array.Int8Builder:
		add = func(i int) { b.UnsafeAppend(int8(x.ints[i])) }
	case *array.Int16Builder:
		add = func(i int) { b.UnsafeAppend(int16(x.ints[i])) }
	case *array.Int32Builder:
		add = func(i int) { b.UnsafeAppend(int32(x.ints[i])) }
	case *array.Int64Builder:
		add = func(i int) { b.UnsafeAppend(x.ints[i]) }
	case *array.Date32Builder:
		add = func(i int) { b.UnsafeAppend(arrow.Date32(x.ints[i])) }
	case *array.TimestampBuilder:
		add = func(i int) { b.UnsafeAppend(arrow.Timestamp(x.ints[i])) }
	case *array.Float32Builder:
		add = func(i int) { b.UnsafeAppend(float32(x.nums[i])) }
	case *array.Float64Builder:
		add = func(i int) { b.UnsafeAppend(x.nums[i]) }
	case *array.Decimal128Builder:
		add = func(i int) { b.UnsafeAppend(x.decs[i]) }
	default:
		return nil, fault.Bugf("texts of a column of type %s", t)
	}
	for i := range x.n {
		if x.null(i) {
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

// timeOf reads YYYY-MM-DD HH:MM:SS with up to three digits of a fraction, or T between and Z behind, as milliseconds since 1970.
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

// CheckText tells why a text is no value of a column of the table in dir; loads read texts in the same way.
func CheckText(dir, name, s string) error {
	t, err := readTableSchema(dir)
	if err != nil {
		return err
	}
	c := t.top(name)
	if c == nil {
		return fault.Invalidf("%s has no column %q", dir, name)
	}
	if c.typ == typeString || c.typ == typeVarchar {
		return nil
	}
	v, err := constantOf(&column{columnSchema: c}, s)
	if err == nil && c.typ == typeDecimal && !v.d.FitsInPrecision(c.precision) {
		err = fault.Invalidf("%s has more than %d digits", s, c.precision)
	}
	return err
}
