// Package typewords reads schemas written by people and those printed by `stoa schema -f json`.
package typewords

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
)

// Parse reads a schema from a text such as
//
//	id: int64 not null, name: utf8, price: decimal(10, 2), at: timestamp[us, tz=UTC], tags: list<utf8>,
//	where: struct<x: float64, y: float64>, attributes: map<utf8, utf8>
//
// Types are written as in Arrow's own texts; string, int, long, double, float, boolean, date, time and bytes are also
// accepted. A name with other characters than letters, digits, _ . - and space is put in double quotes. A text that
// begins with { is the JSON of `stoa schema -f json`.
func Parse(text string) (*arrow.Schema, error) {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		fields, err := format.ParseSchema("schema", []byte(text))
		if err != nil {
			return nil, err
		}
		return Of(fields)
	}
	p := &typeParser{s: text}
	fields, err := p.fields(0)
	if err == nil && p.at < len(p.s) {
		err = p.fail("unexpected %q", p.s[p.at:])
	}
	if err != nil {
		return nil, err
	}
	return arrow.NewSchema(fields, nil), nil
}

type typeParser struct {
	s     string
	at    int
	depth int
}

func (p *typeParser) fail(format string, args ...any) error {
	return fault.Invalidf("schema: %s, at character %d", fmt.Sprintf(format, args...), p.at+1)
}

func (p *typeParser) space() {
	for p.at < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.at]) >= 0 {
		p.at++
	}
}

// skip skips token if it comes next.
func (p *typeParser) skip(token string) bool {
	p.space()
	if !strings.HasPrefix(strings.ToLower(p.s[p.at:]), token) {
		return false
	}
	p.at += len(token)
	return true
}

func (p *typeParser) need(token string) error {
	if !p.skip(token) {
		return p.fail("%q expected", token)
	}
	return nil
}

// fields reads name: type, … up to the byte end, which is not consumed (0: the end of the text).
func (p *typeParser) fields(end byte) ([]arrow.Field, error) {
	var out []arrow.Field
	for {
		p.space()
		if p.at == len(p.s) || p.s[p.at] == end {
			return out, nil
		}
		f, err := p.field()
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(out, func(o arrow.Field) bool { return o.Name == f.Name }) {
			return nil, p.fail("field %q occurs twice", f.Name)
		}
		out = append(out, f)
		if !p.skip(",") {
			return out, nil
		}
	}
}

func (p *typeParser) field() (arrow.Field, error) {
	name, err := p.name()
	if err != nil {
		return arrow.Field{}, err
	}
	if err := p.need(":"); err != nil {
		return arrow.Field{}, err
	}
	t, err := p.typ()
	f := arrow.Field{Name: name, Type: t, Nullable: true}
	if err == nil {
		f.Nullable = p.skip("nullable") || !p.skip("not null")
	}
	return f, err
}

func (p *typeParser) name() (string, error) {
	p.space()
	if p.at < len(p.s) && p.s[p.at] == '"' {
		q, err := strconv.QuotedPrefix(p.s[p.at:])
		if err != nil {
			return "", p.fail("a quoted name does not end")
		}
		p.at += len(q)
		return strconv.Unquote(q)
	}
	n := strings.IndexByte(p.s[p.at:], ':')
	if n <= 0 {
		return "", p.fail("a name and a colon expected")
	}
	name := strings.TrimSpace(p.s[p.at : p.at+n])
	p.at += n
	return name, nil
}

// plain maps the names of types without parameters.
var plain = map[string]arrow.DataType{
	"null": arrow.Null, "bool": arrow.FixedWidthTypes.Boolean, "boolean": arrow.FixedWidthTypes.Boolean,
	"int8": arrow.PrimitiveTypes.Int8, "int16": arrow.PrimitiveTypes.Int16, "int32": arrow.PrimitiveTypes.Int32,
	"int64": arrow.PrimitiveTypes.Int64,
	"uint8": arrow.PrimitiveTypes.Uint8, "uint16": arrow.PrimitiveTypes.Uint16,
	"uint32": arrow.PrimitiveTypes.Uint32, "uint64": arrow.PrimitiveTypes.Uint64,
	"int": arrow.PrimitiveTypes.Int32, "long": arrow.PrimitiveTypes.Int64,
	"float16": arrow.FixedWidthTypes.Float16, "float32": arrow.PrimitiveTypes.Float32,
	"float64": arrow.PrimitiveTypes.Float64,
	"float":   arrow.PrimitiveTypes.Float32, "double": arrow.PrimitiveTypes.Float64,
	"utf8": arrow.BinaryTypes.String, "string": arrow.BinaryTypes.String,
	"large_utf8": arrow.BinaryTypes.LargeString, "large_string": arrow.BinaryTypes.LargeString,
	"string_view": arrow.BinaryTypes.StringView, "utf8_view": arrow.BinaryTypes.StringView,
	"binary": arrow.BinaryTypes.Binary, "bytes": arrow.BinaryTypes.Binary,
	"large_binary": arrow.BinaryTypes.LargeBinary, "binary_view": arrow.BinaryTypes.BinaryView,
	"date": arrow.FixedWidthTypes.Date32, "date32": arrow.FixedWidthTypes.Date32,
	"date64": arrow.FixedWidthTypes.Date64,
	"time":   arrow.FixedWidthTypes.Time64us, "timestamp": arrow.FixedWidthTypes.Timestamp_us,
	"duration":                arrow.FixedWidthTypes.Duration_us,
	"month_interval":          arrow.FixedWidthTypes.MonthInterval,
	"day_time_interval":       arrow.FixedWidthTypes.DayTimeInterval,
	"month_day_nano_interval": arrow.FixedWidthTypes.MonthDayNanoInterval,
}

// Maximum nesting depth of types, and maximum length of fixed-size lists.
const maxTypeDepth, maxFixed = 64, 1 << 20

func (p *typeParser) typ() (arrow.DataType, error) {
	if p.depth++; p.depth > maxTypeDepth {
		return nil, p.fail("types are nested deeper than %d", maxTypeDepth)
	}
	defer func() { p.depth-- }()
	p.space()
	start := p.at
	for p.at < len(p.s) && (p.s[p.at] == '_' || p.s[p.at] >= '0' && p.s[p.at] <= '9' || p.s[p.at]|32 >= 'a' &&
		p.s[p.at]|32 <= 'z') {
		p.at++
	}
	word := strings.ToLower(p.s[start:p.at])
	if p.at < len(p.s) {
		switch p.s[p.at] {
		case '[':
			return p.bracketed(word)
		case '(':
			return p.decimal(word)
		case '<':
			return p.nested(word)
		}
	}
	if t, ok := plain[word]; ok {
		return t, nil
	}
	p.at = start
	return nil, p.fail("no such type: %q", word)
}

// until reads up to the byte end and consumes it.
func (p *typeParser) until(end byte) (string, error) {
	n := strings.IndexByte(p.s[p.at:], end)
	if n < 0 {
		return "", p.fail("%q expected", end)
	}
	s := p.s[p.at : p.at+n]
	p.at += n + 1
	return s, nil
}

var units = map[string]arrow.TimeUnit{"s": arrow.Second, "ms": arrow.Millisecond, "us": arrow.Microsecond,
	"ns": arrow.Nanosecond}

// bracketed reads timestamp[us, tz=UTC], time32[ms], duration[s], fixed_size_binary[16].
func (p *typeParser) bracketed(word string) (arrow.DataType, error) {
	p.at++
	inner, err := p.until(']')
	if err != nil {
		return nil, err
	}
	first, zone, _ := strings.Cut(inner, ",")
	first = strings.TrimSpace(first)
	if word == "fixed_size_binary" {
		n, err := strconv.Atoi(first)
		if err != nil || n < 0 || n > 1<<20 {
			return nil, p.fail("%q is no length", first)
		}
		return &arrow.FixedSizeBinaryType{ByteWidth: n}, nil
	}
	unit, ok := units[first]
	if !ok {
		return nil, p.fail("%q is none of s, ms, us, ns", first)
	}
	switch word {
	case "timestamp":
		return &arrow.TimestampType{Unit: unit, TimeZone: strings.TrimPrefix(strings.TrimSpace(zone), "tz=")}, nil
	case "duration":
		return &arrow.DurationType{Unit: unit}, nil
	case "time", "time32", "time64":
		if unit <= arrow.Millisecond {
			return &arrow.Time32Type{Unit: unit}, nil
		}
		return &arrow.Time64Type{Unit: unit}, nil
	}
	return nil, p.fail("no such type: %q", word)
}

// decimal reads decimal(10, 2), decimal256(50, 2).
func (p *typeParser) decimal(word string) (arrow.DataType, error) {
	p.at++
	inner, err := p.until(')')
	if err != nil {
		return nil, err
	}
	a, b, _ := strings.Cut(inner, ",")
	precision, err1 := strconv.ParseInt(strings.TrimSpace(a), 10, 32)
	scale, err2 := strconv.ParseInt(strings.TrimSpace(b), 10, 32)
	if strings.TrimSpace(b) == "" {
		scale, err2 = 0, nil
	}
	id := arrow.DECIMAL128
	switch word {
	case "decimal", "decimal128":
		if precision > 38 {
			id = arrow.DECIMAL256
		}
	case "decimal32":
		id = arrow.DECIMAL32
	case "decimal64":
		id = arrow.DECIMAL64
	case "decimal256":
		id = arrow.DECIMAL256
	default:
		return nil, p.fail("no such type: %q", word)
	}
	t, err := arrow.NewDecimalType(id, int32(precision), int32(scale))
	if err1 != nil || err2 != nil || err != nil || precision < 1 || scale > precision || scale < -precision {
		return nil, p.fail("%q is no precision and scale", inner)
	}
	return t, nil
}

// nested reads list<T>, large_list<T>, fixed_size_list<T>[3], struct<a: T, …>, map<K, V>.
func (p *typeParser) nested(word string) (arrow.DataType, error) {
	p.at++
	switch word {
	case "struct":
		fields, err := p.fields('>')
		if err != nil {
			return nil, err
		}
		return arrow.StructOf(fields...), p.need(">")
	case "map":
		k, err := p.typ()
		if err == nil {
			err = p.need(",")
		}
		if err != nil {
			return nil, err
		}
		v, err := p.typ()
		if err != nil {
			return nil, err
		}
		if p.skip(",") && !p.skip("items_nullable") {
			return nil, p.fail("%q expected", "items_nullable")
		}
		return arrow.MapOf(k, v), p.need(">")
	}
	return p.list(word)
}

func (p *typeParser) list(word string) (arrow.DataType, error) {
	for _, name := range []string{"item", "element"} { // as Arrow writes it
		start := p.at
		if p.skip(name) && p.skip(":") {
			break
		}
		p.at = start
	}
	t, err := p.typ()
	if err != nil {
		return nil, err
	}
	if p.skip(",") && !p.skip("nullable") {
		return nil, p.fail("%q expected", "nullable")
	}
	if err := p.need(">"); err != nil {
		return nil, err
	}
	switch word {
	case "list":
		return arrow.ListOf(t), nil
	case "large_list":
		return arrow.LargeListOf(t), nil
	case "fixed_size_list":
		if err := p.need("["); err != nil {
			return nil, err
		}
		s, err := p.until(']')
		n, bad := strconv.ParseInt(s, 10, 32)
		if err != nil || bad != nil || n < 1 || n > maxFixed {
			return nil, p.fail("%q is no length", s)
		}
		return arrow.FixedSizeListOf(int32(n), t), nil
	}
	return nil, p.fail("no such type: %q", word)
}
