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
	var parts []string
	for i, v := range values {
		lit := v
		if f, _ := t.schema.FieldsByName(keys[i]); len(f) == 1 && textual(f[0].Type) && !quoted(v) {
			lit = "'" + strings.ReplaceAll(v, "'", "''") + "'"
		}
		parts = append(parts, `"`+strings.ReplaceAll(keys[i], `"`, `""`)+`" = `+lit)
	}
	return pred.Parse(strings.Join(parts, " and "))
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
