package stoa

import (
	"context"
	"iter"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/pred"
	"stoa/vec"
)

// Row reads the row at position n, from 0, of the unfiltered scan. A table of n rows or fewer yields no batch.
func (t *Table) Row(ctx context.Context, n int64, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	if n < 0 {
		return func(yield func(arrow.RecordBatch, error) bool) {
			yield(nil, fault.Invalidf("there is no row %d: positions begin at 0", n))
		}
	}
	spec.Rows = vec.Range{From: n, To: n + 1}
	return t.Scan(ctx, spec)
}

// Keys returns the columns that Seek compares: those of the table's promised order, or else those by which its row
// groups say that they are sorted (Parquet's sorting columns, CarbonData's sort columns), or else its first column.
func (t *Table) Keys() []string {
	var out []string
	for _, k := range t.keyColumns() {
		out = append(out, k.name)
	}
	return out
}

// keyColumn is a column that Seek compares.
type keyColumn struct {
	name  string   // the format's name for it
	names []string // names of the fields on the path to it
	typ   arrow.DataType
}

func (t *Table) keyColumns() (out []keyColumn) {
	r := t.sources[0].reader
	columns := r.Columns()
	for _, k := range r.Order() {
		c := columns[k.Column]
		key := keyColumn{name: c.Name, names: []string{c.Name}}
		if f, _ := t.schema.FieldsByName(c.Name); len(f) == 1 {
			key.typ = f[0].Type
		}
		if len(c.Path) > 1 { // a field of a struct
			key.names = nil
			for i, fields := 0, r.Schema().Fields(); i < len(c.Path); i++ {
				f := fields[c.Path[i]]
				if key.names, key.typ = append(key.names, f.Name), f.Type; i < len(c.Path)-1 {
					fields = f.Type.(arrow.NestedType).Fields()
				}
			}
		}
		out = append(out, key)
	}
	for i, sorted := 0, t.Sources()[0].Layout.Sorted; len(out) == i && i < len(sorted); i++ {
		if f, _ := t.schema.FieldsByName(sorted[i]); len(f) == 1 {
			out = append(out, keyColumn{sorted[i], []string{sorted[i]}, f[0].Type})
		}
	}
	if len(out) == 0 && t.schema.NumFields() > 0 {
		f := t.schema.Field(0)
		out = []keyColumn{{f.Name, []string{f.Name}, f.Type}}
	}
	return out
}

// Keyed reports whether the table promises an order. If it does not, Seek compares all values that no bounds exclude.
func (t *Table) Keyed() bool { return len(t.sources[0].reader.Order()) > 0 }

// Seek reads the rows whose key columns (see Keys; a prefix of them is enough) equal the values of key. Where the
// format has an index, only the necessary pages are read. Values have the types of their columns and are not parsed: a
// bool, an int…, uint… or float…, a string or []byte (a string also for dates and times, such as '2020-01-02
// 03:04:05'), a time.Time, or a pred.Value. Other types are an error of class Invalid. ParseKey converts text.
func (t *Table) Seek(ctx context.Context, key []any, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	return t.filtered(ctx, spec, func() (*pred.Expr, error) { return t.keyFilter(key) })
}

// SeekFrom reads the rows from a key on: those whose key columns are at or after the values of key in the table's
// order. If the table promises no order (see Keyed) it yields an error of class Invalid. Values are as for Seek; a
// prefix of the key columns is enough.
func (t *Table) SeekFrom(ctx context.Context, key []any, spec ScanSpec) iter.Seq2[arrow.RecordBatch, error] {
	return t.filtered(ctx, spec, func() (*pred.Expr, error) { return t.fromFilter(key) })
}

// filtered scans the rows that pass both the predicate and the filter of spec.
func (t *Table) filtered(ctx context.Context, spec ScanSpec, predicate func() (*pred.Expr, error)) iter.Seq2[
	arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		e, err := predicate()
		if err != nil {
			yield(nil, err)
			return
		}
		if spec.Filter != nil {
			e = pred.And(e, spec.Filter)
		}
		spec.Filter = e
		t.Scan(ctx, spec)(yield)
	}
}

// fromFilter builds "at or after key": a > x, or a = x and b > y, or a = x and b = y and c >= z.
func (t *Table) fromFilter(key []any) (*pred.Expr, error) {
	if !t.Keyed() {
		return nil, fault.Invalidf("the table promises no order, so there is nothing after a key")
	}
	if _, err := t.keyFilter(key); err != nil {
		return nil, err
	}
	keys, order := t.Keys(), t.sources[0].reader.Order()
	var cases, equal []*pred.Expr
	for i, x := range key {
		name := pred.JoinPath(keys[i])
		v, _ := keyValue(x)
		op := pred.OpGt
		if order[i].Descending {
			op = pred.OpLt
		}
		after := pred.Test(name, op, v)
		if order[i].Descending { // nulls are the smallest
			after = pred.Or(after, pred.Test(name, pred.OpIsNull))
		}
		cases = append(cases, pred.And(append(slices.Clone(equal), after)...))
		equal = append(equal, pred.Test(name, pred.OpEq, v))
	}
	return pred.Or(append(cases, pred.And(equal...))...), nil
}

func (t *Table) keyFilter(key []any) (*pred.Expr, error) {
	keys := t.keyColumns()
	if len(key) == 0 || len(key) > len(keys) {
		return nil, fault.Invalidf("%d key values are given, the key is (%s)", len(key), strings.Join(t.Keys(), ", "))
	}
	var parts []*pred.Expr
	for i, x := range key {
		v, ok := keyValue(x)
		if !ok {
			return nil, fault.Invalidf("a value of type %T is no key value of column %s, which is %s", x, keys[i].name,
				keys[i].typeWords())
		}
		parts = append(parts, pred.Test(pred.JoinPath(keys[i].names...), pred.OpEq, v))
	}
	return pred.And(parts...), nil
}

// keyValue converts a Go value to a predicate's; null is not a key.
func keyValue(x any) (v pred.Value, ok bool) {
	switch x := x.(type) {
	case pred.Value:
		return x, x.Kind != pred.KindNull
	case []byte:
		return pred.Bytes(x), x != nil
	case time.Time:
		return pred.Timestamp(x.Unix(), int32(x.Nanosecond())), true
	}
	switch r := reflect.ValueOf(x); {
	case !r.IsValid():
		return v, false
	case r.Kind() == reflect.Bool:
		return pred.Bool(r.Bool()), true
	case r.Kind() == reflect.String:
		return pred.String(r.String()), true
	case r.CanInt():
		return pred.Int(r.Int()), true
	case r.CanUint():
		return pred.Uint(r.Uint()), true
	case r.CanFloat():
		return pred.Float(r.Float()), true
	}
	return v, false
}

// ParseKey converts text typed by people to values for Seek. For columns of text, bytes, dates and times the text is
// the value, character by character, quotation marks included. For other columns it is a literal as in a predicate: 12,
// -1.5, true.
func (t *Table) ParseKey(texts []string) ([]any, error) {
	keys := t.keyColumns()
	var out []any
	for i, text := range texts {
		if i == len(keys) {
			return nil, fault.Invalidf("%d key values are given, the key is (%s)", len(texts),
				strings.Join(t.Keys(), ", "))
		}
		v, err := keys[i].parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// parse returns the value of a text for the column. The text must be exactly one literal.
func (k *keyColumn) parse(text string) (pred.Value, error) {
	if k.typ != nil && textual(k.typ) {
		return pred.String(text), nil
	}
	const any = "k" // the column's own name may be one that no predicate can spell: bytes that are not UTF-8
	e, err := pred.Parse(any + " = " + text)
	if err != nil || e.Op != pred.OpEq || e.Column != any || len(e.Values) != 1 {
		return pred.Value{}, fault.Invalidf("the key value %q is not a value of column %s, which is %s", text, k.name,
			k.typeWords())
	}
	return e.Values[0], nil
}

// typeWords returns the type of the column for error messages.
func (k *keyColumn) typeWords() string {
	if k.typ != nil {
		return k.typ.String()
	}
	return "of several types"
}

// textual reports whether literals of the type are written as text.
func textual(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.STRING_VIEW, arrow.BINARY_VIEW,
		arrow.DATE32, arrow.DATE64, arrow.TIMESTAMP, arrow.TIME32, arrow.TIME64:
		return true
	}
	return false
}
