package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/enc/half"
	"stoa/internal/sqltext"
)

// maxParameters is how many parameters a statement may have.
const maxParameters = 1000

// A parameter is a question mark in a statement.
type parameter struct {
	token  sqltext.Token
	column string // with which it is compared; "": not known
	number bool   // it is one of rows: of limit or offset
}

// parameters returns the parameters of a statement, in order.
func parameters(statement string) (out []parameter) {
	tokens := sqltext.Lex(statement)
	for i, t := range tokens {
		if !t.Is("?") {
			continue
		}
		p := parameter{token: t}
		if i > 0 && (tokens[i-1].Is("limit") || tokens[i-1].Is("offset")) {
			p.number = true
		} else {
			p.column = comparedWith(statement, tokens, i)
		}
		out = append(out, p)
	}
	return out
}

// comparedWith returns the name of the column that token i is compared with: in a = ?, ? < a, a between ? and ?,
// a in (?, ?), a like ?.
func comparedWith(statement string, tokens []sqltext.Token, i int) string {
	name := func(k int) string {
		switch {
		case k < 0 || k >= len(tokens):
		case tokens[k].Kind == sqltext.Quoted:
			return tokens[k].Word
		case tokens[k].Kind == sqltext.Word:
			return statement[tokens[k].From:tokens[k].To]
		}
		return ""
	}
	sign := func(k int) bool {
		return k >= 0 && k < len(tokens) && tokens[k].Kind == sqltext.Sign && strings.Contains("=<>!", tokens[k].Word)
	}
	word := func(k int, w ...string) bool { return k >= 0 && isOne(tokens[k], w) }
	k := i - 1
	if word(k, "(", ",") { // of a list
		for word(k, ",", "?") {
			k--
		}
		if !word(k, "(") || !word(k-1, "in") {
			return ""
		}
		k--
	} else if word(k, "and") && word(k-1, "?") && word(k-2, "between") {
		k -= 2
	}
	switch {
	case word(k, "in", "between", "like", "ilike"):
		if k--; word(k, "not") {
			k--
		}
		return name(k)
	case sign(k):
		for sign(k) {
			k--
		}
		return name(k)
	case sign(i + 1):
		for i++; sign(i); i++ {
		}
		for i+2 < len(tokens) && tokens[i+1].Is(".") {
			i += 2
		}
		return name(i)
	}
	return ""
}

// replaced returns a statement with texts in the places of its parameters.
func replaced(statement string, all []parameter, text func(int) string) string {
	var b strings.Builder
	at := 0
	for i, p := range all {
		b.WriteString(statement[at:p.token.From])
		b.WriteString(text(i))
		at = p.token.To
	}
	b.WriteString(statement[at:])
	return b.String()
}

// withoutValues is a statement with the same columns and no parameters.
func withoutValues(statement string, all []parameter) string {
	return replaced(statement, all, func(i int) string {
		if all[i].number {
			return "0"
		}
		return "null"
	})
}

// withValues is a statement with the only row of a batch as the values of its parameters. engine: it may be run by it.
func withValues(statement string, b arrow.RecordBatch, engine bool) (string, error) {
	all := parameters(statement)
	if int(b.NumCols()) != len(all) {
		return "", fault.Invalidf("the statement: expected values for %d parameters, found %d", len(all), b.NumCols())
	}
	texts := make([]string, len(all))
	for i := range all {
		text, err := literal(b.Column(i), engine)
		if err != nil {
			return "", fmt.Errorf("parameter %d: %w", i+1, err)
		}
		texts[i] = " " + text + " "
	}
	return replaced(statement, all, func(i int) string { return texts[i] }), nil
}

// literal writes the first value of an array as predicates and SQL have it. Negative numbers are in brackets, so that
// no comment begins before them.
func literal(a arrow.Array, engine bool) (string, error) {
	if a.IsNull(0) {
		return "null", nil
	}
	switch a := a.(type) {
	case *array.Null:
		return "null", nil
	case *array.Boolean:
		return strconv.FormatBool(a.Value(0)), nil
	case *array.Float16:
		return float(float64(half.Float(a.Value(0).Uint16()))), nil
	case *array.Float32:
		return float(float64(a.Value(0))), nil
	case *array.Float64:
		return float(a.Value(0)), nil
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16, *array.Uint32,
		*array.Uint64:
		return number(a.ValueStr(0)), nil
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		return number(a.ValueStr(0)), nil
	case *array.String:
		return sqltext.Quote(a.Value(0)), nil
	case *array.LargeString:
		return sqltext.Quote(a.Value(0)), nil
	case *array.StringView:
		return sqltext.Quote(a.Value(0)), nil
	case *array.Binary:
		return binary(a.Value(0), engine), nil
	case *array.LargeBinary:
		return binary(a.Value(0), engine), nil
	case *array.FixedSizeBinary:
		return binary(a.Value(0), engine), nil
	case *array.Date32:
		return "date '" + a.Value(0).ToTime().Format(time.DateOnly) + "'", nil
	case *array.Date64:
		return "date '" + a.Value(0).ToTime().Format(time.DateOnly) + "'", nil
	case *array.Time32:
		return "time '" + a.Value(0).ToTime(a.DataType().(*arrow.Time32Type).Unit).Format("15:04:05.999") + "'", nil
	case *array.Time64:
		return "time '" + a.Value(0).ToTime(a.DataType().(*arrow.Time64Type).Unit).Format("15:04:05.999999999") + "'",
			nil
	case *array.Timestamp:
		return timestamp(a.Value(0).ToTime(a.DataType().(*arrow.TimestampType).Unit)), nil
	}
	return "", fault.Unsupportedf(fault.Span{}, "", "values of the type %s", a.DataType())
}

func number(digits string) string {
	if strings.HasPrefix(digits, "-") {
		return "(" + digits + ")"
	}
	return digits
}

func float(x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Sprintf("cast('%v' as double)", x)
	}
	return number(strconv.FormatFloat(x, 'e', -1, 64))
}

// binary is a call that predicates do not have, if there is an engine: x'00' is a text there.
func binary(b []byte, engine bool) string {
	text := "'" + hex.EncodeToString(b) + "'"
	if engine {
		return "from_hex(" + text + ")"
	}
	return "x" + text
}

// timestamp is written with the digits that it has. What is finer than microseconds needs a type that is.
func timestamp(t time.Time) string {
	text := t.UTC().Format("2006-01-02 15:04:05.999999999")
	if t.Nanosecond()%1000 != 0 {
		return "cast('" + text + "' as timestamp_ns)"
	}
	return "timestamp '" + text + "'"
}

// parameterSchema has a field for each parameter, of the type of the column that it is compared with, else text.
func parameterSchema(all []parameter, columns []*arrow.Schema) *arrow.Schema {
	fields := make([]arrow.Field, len(all))
	for i, p := range all {
		f := arrow.Field{Name: strconv.Itoa(i + 1), Type: arrow.BinaryTypes.String, Nullable: true}
		if p.number {
			f.Type = arrow.PrimitiveTypes.Int64
		}
		for _, sc := range columns {
			for _, c := range sc.Fields() {
				if p.column != "" && strings.EqualFold(c.Name, p.column) && writable(c.Type) {
					f.Type = c.Type
				}
			}
		}
		fields[i] = f
	}
	return arrow.NewSchema(fields, nil)
}

// writable reports whether literal knows a type.
func writable(t arrow.DataType) bool {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	b.AppendEmptyValue()
	a := b.NewArray()
	defer a.Release()
	_, err := literal(a, false)
	return err == nil
}
