package stoa

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array/arreflect"

	"stoa/fault"
	"stoa/internal/rows"
	"stoa/pred"
)

// ErrNotFound is the error of Get when no row has the key.
var ErrNotFound = errors.New("no row has this key")

// RowsOf scans rows into values of T, a struct, for programs that work row by row. Its fields name columns by tags, or
// have their names:
//
//	type Point struct {
//		Host  string    `arrow:"host"`
//		At    time.Time `arrow:"time"`
//		Value *float64  `arrow:"value"` // nil: null
//	}
//	for p, err := range stoa.RowsOf[Point](ctx, t, stoa.ScanSpec{}) { … }
//
// Only the columns of T are read (spec.Columns must be nil). A field without a column, a value that does not fit its
// field, and a null in a column whose field cannot be nil (not a pointer, slice or map) are errors of class Invalid.
// Package arreflect of arrow-go documents which Go types fit which columns. At most one error is yielded, last, with
// the zero T. Values do not share memory with the table.
func RowsOf[T any](ctx context.Context, t *Table, spec ScanSpec) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var zero T
		fields, err := rowFields(reflect.TypeFor[T](), t.Schema())
		if err == nil && spec.Columns != nil {
			err = fault.Invalidf("the columns are those of %T; ScanSpec.Columns must be nil", zero)
		}
		if err != nil {
			yield(zero, err)
			return
		}
		for _, f := range fields {
			spec.Columns = append(spec.Columns, pred.JoinPath(f.column))
		}
		structsOf(t.Scan(ctx, spec), fields, yield)
	}
}

// structsOf yields the rows of batches as values of T.
func structsOf[T any](seq iter.Seq2[arrow.RecordBatch, error], fields []rowField, yield func(T, error) bool) {
	var zero T
	for b, err := range seq {
		var rows []T
		if err == nil {
			err = nullsFit(b, fields)
		}
		if err == nil {
			if rows, err = arreflect.RecordToSlice[T](b); err != nil {
				err = &fault.Error{Class: fault.Invalid, Cause: fieldError{err}}
			}
		}
		if err != nil {
			yield(zero, err)
			return
		}
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}
}

// fieldError is arreflect's error about a column and a field, without the text about arreflect's own calls.
type fieldError struct{ error }

func (e fieldError) Unwrap() error { return e.error }

func (e fieldError) Error() string {
	text := strings.TrimSuffix(e.error.Error(), ": "+arreflect.ErrTypeMismatch.Error())
	if _, after, ok := strings.Cut(text, "arreflect: "); ok {
		return after
	}
	return text
}

// Get returns the row with the key (see Table.Keys) as a value of T, converted as by RowsOf. If no row has the key the
// error is ErrNotFound. If several do, because the table promises no order or the key is only a prefix, the error is of
// class Invalid: Seek reads them all.
func Get[T any](ctx context.Context, t *Table, key ...any) (row T, err error) {
	e, err := t.keyFilter(key)
	if err != nil {
		return row, err
	}
	n := 0
	for r, err := range RowsOf[T](ctx, t, ScanSpec{Filter: e, Limit: 2}) {
		if err != nil {
			return row, err
		}
		if row, n = r, n+1; n > 1 {
			var zero T
			return zero, fault.Invalidf("several rows have the key %v of (%s)", key, strings.Join(t.Keys(), ", "))
		}
	}
	if n == 0 {
		return row, ErrNotFound
	}
	return row, nil
}

// rowField is a field of a struct that rows are read into.
type rowField struct {
	column string
	typ    reflect.Type
}

// rowFields returns the fields of a struct type with their columns.
func rowFields(t reflect.Type, sc *arrow.Schema) (out []rowField, err error) {
	if t.Kind() != reflect.Struct {
		return nil, fault.Invalidf("rows are read into structs, and %s is none", t)
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("arrow"), ",")
		if name == "-" || !f.IsExported() && !f.Anonymous {
			continue
		}
		if f.Anonymous && name == "" { // its fields are promoted
			continue
		}
		if name == "" {
			name = f.Name
		}
		if len(sc.FieldIndices(name)) != 1 {
			return nil, fault.Invalidf("field %s of %s: the table has no column %q, or several", f.Name, t, name)
		}
		out = append(out, rowField{name, f.Type})
	}
	return out, nil
}

// nullsFit returns an error if a column has a null that its field cannot hold.
func nullsFit(b arrow.RecordBatch, fields []rowField) error {
	for i, f := range fields {
		if path, ok := rows.NullsFit(b.Column(i), f.typ); !ok {
			return fault.New(fault.Invalid, fault.Span{}, "column "+f.column+path,
				"it has a null, and the field for it, a %s, cannot be nil", f.typ)
		}
	}
	return nil
}
