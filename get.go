package stoa

import (
	"context"
	"iter"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/pred"
	"stoa/vec"
)

// Row reads the row at position n (of the unfiltered scan).
func (t *Table) Row(ctx context.Context, n int64, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	spec.Rows = vec.Range{From: n, To: n + 1}
	return t.Scan(ctx, spec)
}

// Keys are the columns that Seek looks at: the promised order of the table, or else its first column.
func (t *Table) Keys() []string {
	r := t.sources[0].reader
	var out []string
	for _, k := range r.Order() {
		out = append(out, r.Columns()[k.Column].Name)
	}
	if len(out) == 0 && t.schema.NumFields() > 0 {
		out = []string{t.schema.Field(0).Name}
	}
	return out
}

// Keyed reports whether the table promises an order. If not, Seek compares every value of the first column.
func (t *Table) Keyed() bool { return len(t.sources[0].reader.Order()) > 0 }

// Seek reads the rows whose key columns (see Keys; a prefix of them is enough) equal the values, which are literals in
// the syntax of --where, or plain text for text columns. Where the format has an index, only the pages needed are read.
func (t *Table) Seek(ctx context.Context, values []string, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		e, err := t.keyFilter(values)
		if err != nil {
			yield(nil, err)
			return
		}
		if spec.Filter != nil {
			e = pred.And(e, spec.Filter)
		}
		spec.Filter = e
		for b, err := range t.Scan(ctx, spec) {
			if !yield(b, err) {
				return
			}
		}
	}
}

func (t *Table) keyFilter(values []string) (*pred.Expr, error) {
	keys := t.Keys()
	if len(values) == 0 || len(values) > len(keys) {
		return nil, fault.Invalidf("%d key values are given, the key is (%s)", len(values), strings.Join(keys, ", "))
	}
	var parts []*pred.Expr
	for i, v := range values {
		e, err := t.keyEquals(keys[i], v)
		if err != nil {
			return nil, err
		}
		parts = append(parts, e)
	}
	return pred.And(parts...), nil
}

// keyEquals is the predicate key = value. The value must be one literal and nothing more.
func (t *Table) keyEquals(key, value string) (*pred.Expr, error) {
	lit := value
	if f, _ := t.schema.FieldsByName(key); len(f) == 1 && textual(f[0].Type) && !quoted(value) {
		lit = "'" + strings.ReplaceAll(value, "'", "''") + "'"
	}
	name := pred.JoinPath(key)
	e, err := pred.Parse(`"` + strings.ReplaceAll(key, `"`, `""`) + `" = ` + lit)
	if err != nil || e.Op != pred.OpEq || e.Column != name || len(e.Values) != 1 {
		typ := "of several types"
		if f, _ := t.schema.FieldsByName(key); len(f) == 1 {
			typ = f[0].Type.String()
		}
		return nil, fault.Invalidf("the key value %q is not a value of column %s, which is %s", value, key, typ)
	}
	return pred.Test(e.Column, e.Op, e.Values...), nil // without the text, which nobody wrote
}

// textual reports whether literals of the type are written as text, so that quotes may be left out in a key.
func textual(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.STRING_VIEW, arrow.BINARY_VIEW,
		arrow.DATE32, arrow.DATE64, arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64:
		return true
	}
	return false
}

// quoted reports whether a key value is a literal of --where already.
func quoted(v string) bool {
	low := strings.ToLower(v)
	for _, p := range []string{"'", "x'", "date '", "time '", "timestamp '"} {
		if strings.HasPrefix(low, p) && strings.HasSuffix(v, "'") && len(v) > len(p) {
			return true
		}
	}
	return false
}
