package schemafmt

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
)

// ParseColumns parses columns: NAME TYPE, one per line or separated by commas. A comment begins with --.
func ParseColumns(text string) (fields []arrow.Field, err error) {
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "--")
		p := &typeParser{rest: line}
		for p.skip(); p.rest != ""; p.skip() {
			if p.take(",") {
				continue
			}
			f, err := p.field(" ")
			if err != nil {
				return nil, err
			}
			fields = append(fields, f)
		}
	}
	if len(fields) == 0 {
		return nil, cli.WrongUse("no columns")
	}
	return fields, nil
}

// ParseColumn parses one column.
func ParseColumn(text string) (arrow.Field, error) {
	fields, err := ParseColumns(text)
	if err == nil && len(fields) != 1 {
		err = cli.WrongUse("%q is not one column: write it as NAME TYPE", text)
	}
	if err != nil {
		return arrow.Field{}, err
	}
	return fields[0], nil
}

// maxTypeDepth is the maximum nesting depth of types.
const maxTypeDepth = 64

// typeParser parses types in Spark's syntax.
type typeParser struct {
	rest  string
	depth int
}

func (p *typeParser) skip() { p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace) }

func (p *typeParser) take(s string) bool {
	p.skip()
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = rest
	}
	return ok
}

// word parses letters, digits and underscores, or anything between backquotes.
func (p *typeParser) word() (string, error) {
	p.skip()
	if rest, ok := strings.CutPrefix(p.rest, "`"); ok {
		name, rest, ok := strings.Cut(rest, "`")
		if ok && name != "" {
			p.rest = rest
			return name, nil
		}
	}
	i := strings.IndexFunc(p.rest, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' })
	if i < 0 {
		i = len(p.rest)
	}
	if i == 0 {
		return "", cli.WrongUse("expected a name at %q", p.rest)
	}
	w := p.rest[:i]
	p.rest = p.rest[i:]
	return w, nil
}

// field parses a name, the separator, and a type.
func (p *typeParser) field(between string) (f arrow.Field, err error) {
	if f.Name, err = p.word(); err != nil {
		return f, err
	}
	if between != " " && !p.take(between) {
		return f, cli.WrongUse("expected %q after %s", between, f.Name)
	}
	var varchar bool
	f.Type, varchar, err = p.dataType()
	f.Nullable = true
	if varchar {
		f.Metadata = arrow.NewMetadata([]string{format.MetaType}, []string{"varchar"})
	}
	return f, err
}

var plainTypes = map[string]arrow.DataType{
	"boolean": arrow.FixedWidthTypes.Boolean, "tinyint": arrow.PrimitiveTypes.Int8,
	"byte": arrow.PrimitiveTypes.Int8, "smallint": arrow.PrimitiveTypes.Int16,
	"short": arrow.PrimitiveTypes.Int16, "int": arrow.PrimitiveTypes.Int32, "integer": arrow.PrimitiveTypes.Int32,
	"bigint": arrow.PrimitiveTypes.Int64,
	"long":   arrow.PrimitiveTypes.Int64, "float": arrow.PrimitiveTypes.Float32, "real": arrow.PrimitiveTypes.Float32,
	"double": arrow.PrimitiveTypes.Float64,
	"string": arrow.BinaryTypes.String, "char": arrow.BinaryTypes.String, "varchar": arrow.BinaryTypes.String,
	"text":   arrow.BinaryTypes.String,
	"binary": arrow.BinaryTypes.Binary, "date": arrow.FixedWidthTypes.Date32,
	"timestamp": &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
}

func (p *typeParser) dataType() (t arrow.DataType, varchar bool, err error) {
	w, err := p.word()
	if err != nil {
		return nil, false, err
	}
	w = strings.ToLower(w)
	if p.depth++; p.depth > maxTypeDepth {
		return nil, false, cli.WrongUse("types are nested deeper than %d", maxTypeDepth)
	}
	defer func() { p.depth-- }()
	var types []arrow.DataType
	switch w {
	case "decimal", "numeric":
		t, err = p.decimal()
		return t, false, err
	case "array", "map":
		if types, err = p.inside(map[string]int{"array": 1, "map": 2}[w]); err != nil {
			return nil, false, err
		}
		if w == "array" {
			return arrow.ListOf(types[0]), false, nil
		}
		return arrow.MapOf(types[0], types[1]), false, nil
	case "struct":
		t, err = p.structType()
		return t, false, err
	}
	t, ok := plainTypes[w]
	if !ok {
		return nil, false, cli.WrongUse("there is no type %q", w)
	}
	if w == "char" || w == "varchar" { // the length is ignored
		if p.take("(") {
			if _, err := p.number(); err != nil || !p.take(")") {
				return nil, false, cli.WrongUse("expected %s(LENGTH)", w)
			}
			return t, false, nil
		}
	}
	return t, w == "varchar" || w == "text", nil
}

func (p *typeParser) number() (int32, error) {
	w, err := p.word()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(w, 10, 32)
	return int32(n), err
}

func (p *typeParser) decimal() (arrow.DataType, error) {
	t := &arrow.Decimal128Type{Precision: 10}
	if !p.take("(") {
		return t, nil
	}
	var err error
	if t.Precision, err = p.number(); err == nil && p.take(",") {
		t.Scale, err = p.number()
	}
	if err != nil || !p.take(")") || t.Precision < 1 || t.Precision > 38 || t.Scale > t.Precision {
		return nil, cli.WrongUse("expected decimal(PRECISION, SCALE), with a precision of at most 38")
	}
	return t, nil
}

// inside parses n types between < and >.
func (p *typeParser) inside(n int) (out []arrow.DataType, err error) {
	open := "<"
	for range n {
		if !p.take(open) {
			return nil, cli.WrongUse("expected %q at %q", open, p.rest)
		}
		t, _, err := p.dataType()
		if err != nil {
			return nil, err
		}
		out, open = append(out, t), ","
	}
	if !p.take(">") {
		return nil, cli.WrongUse("expected \">\" at %q", p.rest)
	}
	return out, nil
}

func (p *typeParser) structType() (arrow.DataType, error) {
	var fields []arrow.Field
	for open := "<"; p.take(open); open = "," {
		f, err := p.field(":")
		if err != nil {
			return nil, err
		}
		f.Metadata = arrow.Metadata{}
		fields = append(fields, f)
	}
	if len(fields) == 0 || !p.take(">") {
		return nil, cli.WrongUse("expected struct<NAME:TYPE,...>")
	}
	return arrow.StructOf(fields...), nil
}
