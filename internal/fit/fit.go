// Package fit replaces bytes in strings that a text format cannot hold, and reports where.
package fit

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/coerce"
	"stoa/region"
)

// Fitter makes data for a text format valid UTF-8 (Arrow does not check strings, and files may contain any bytes).
// U+FFFD replaces invalid bytes, and each column in which that happened is reported.
type Fitter struct {
	Format, Place string // of the output

	rows    int64 // before the batch
	invalid []invalidColumn
}

type invalidColumn struct {
	field int
	name  string
	cells int64
	first []int64 // rows, but not all
	span  [2]int64
}

// Batch returns b, retained, or a batch that replaces it.
func (f *Fitter) Batch(b arrow.RecordBatch) arrow.RecordBatch {
	defer func() { f.rows += b.NumRows() }()
	var cols []arrow.Array
	for i, c := range b.Columns() {
		if !hasStrings(c.DataType()) || !invalidUTF8(c) || !f.note(b.ColumnName(i), i, c) {
			continue
		}
		if cols == nil {
			cols = append(cols, b.Columns()...)
		}
		d := replaceInvalid(c.Data())
		cols[i] = array.MakeFromData(d)
		d.Release()
		defer cols[i].Release()
	}
	if cols == nil {
		b.Retain()
		return b
	}
	return array.NewRecordBatch(b.Schema(), cols, b.NumRows())
}

// note records the rows of column c with invalid strings. It returns false if all such strings are below nulls.
func (f *Fitter) note(name string, field int, c arrow.Array) (some bool) {
	const maxRows = 10
	k := 0
	for k < len(f.invalid) && f.invalid[k].field != field {
		k++
	}
	for i := range c.Len() {
		if !rowInvalidUTF8(c, i) {
			continue
		}
		if k == len(f.invalid) {
			f.invalid = append(f.invalid, invalidColumn{field: field, name: name, span: [2]int64{f.rows + int64(i), 0}})
		}
		o := &f.invalid[k]
		some = true
		o.cells++
		o.span[1] = f.rows + int64(i) + 1
		if len(o.first) < maxRows {
			o.first = append(o.first, f.rows+int64(i))
		}
	}
	return some
}

// Replaced returns how many cells were changed; 0 for nil.
func (f *Fitter) Replaced() (n int64) {
	if f == nil {
		return 0
	}
	for _, o := range f.invalid {
		n += o.cells
	}
	return n
}

// Skip counts rows that another Fitter has made valid, before those that come.
func (f *Fitter) Skip(rows int64) {
	if f != nil {
		f.rows += rows
	}
}

// Findings reports what the output contains in changed form.
func (f *Fitter) Findings() (out []region.Finding) {
	for _, o := range f.invalid {
		rows := strings.Trim(strings.ReplaceAll(fmt.Sprint(o.first), " ", ", "), "[]")
		if int64(len(o.first)) < o.cells {
			rows += " and more"
		}
		say := fmt.Sprintf("column %s: strings that are not UTF-8, which %s cannot hold, in %d of the rows "+
			"written (row %s): U+FFFD stands there for each byte that is none", o.name, f.Format, o.cells, rows)
		x := region.Finding{Code: "output.values.utf8", Severity: region.Error, Message: say, Part: f.Place,
			Column: o.name, Rows: o.span, Lost: o.cells}
		x.At.Object = f.Place
		out = append(out, x)
	}
	return out
}

// Invalid returns a function that reports whether a string within value i of c is not UTF-8; nil if none is.
func Invalid(c arrow.Array) func(i int) bool {
	if !hasStrings(c.DataType()) || !invalidUTF8(c) {
		return nil
	}
	return func(i int) bool { return rowInvalidUTF8(c, i) }
}

func hasStrings(t arrow.DataType) bool {
	t = coerce.Storage(t)
	switch t.ID() {
	case arrow.STRING, arrow.LARGE_STRING, arrow.STRING_VIEW:
		return true
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return hasStrings(t.ValueType)
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if hasStrings(f.Type) {
				return true
			}
		}
	}
	return false
}

// invalidUTF8 reports whether a string within a is not UTF-8, including strings below null lists and structs.
func invalidUTF8(a arrow.Array) bool {
	switch a := a.(type) {
	case array.StringLike:
		if allUTF8(a) {
			return false
		}
		for i := range a.Len() {
			if a.IsValid(i) && !utf8.ValidString(a.Value(i)) {
				return true
			}
		}
	case array.ExtensionArray:
		return invalidUTF8(a.Storage())
	case *array.Dictionary:
		return invalidUTF8(a.Dictionary())
	case array.ListLike:
		return invalidUTF8(a.ListValues())
	case *array.RunEndEncoded:
		return invalidUTF8(a.Values())
	case *array.Struct:
		for i := range a.NumField() {
			if invalidUTF8(a.Field(i)) {
				return true
			}
		}
	case array.Union:
		for i := range a.NumFields() {
			if invalidUTF8(a.Field(i)) {
				return true
			}
		}
	}
	return false
}

// allUTF8 reports whether the concatenated bytes of all strings are UTF-8 and none of the strings begins within a
// character, so that each is UTF-8. The bytes of nulls count as well, and views are not contiguous, so false is
// inconclusive.
func allUTF8(a array.StringLike) bool {
	switch a := a.(type) {
	case *array.String:
		return eachUTF8(a.ValueBytes(), a.ValueOffsets())
	case *array.LargeString:
		return eachUTF8(a.ValueBytes(), a.ValueOffsets())
	}
	return false
}

// eachUTF8 is allUTF8 for the bytes from offs[0] on.
func eachUTF8[T int32 | int64](b []byte, offs []T) bool {
	if !utf8.Valid(b) {
		return false
	}
	for _, o := range offs {
		if at := int(o - offs[0]); at < len(b) && !utf8.RuneStart(b[at]) {
			return false
		}
	}
	return true
}

// rowInvalidUTF8 reports whether a string within value i of a is not UTF-8.
func rowInvalidUTF8(a arrow.Array, i int) bool {
	if a.IsNull(i) {
		return false
	}
	switch a := a.(type) {
	case array.StringLike:
		return !utf8.ValidString(a.Value(i))
	case array.ExtensionArray:
		return rowInvalidUTF8(a.Storage(), i)
	case *array.Dictionary:
		return rowInvalidUTF8(a.Dictionary(), a.GetValueIndex(i))
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		for k := from; k < to; k++ {
			if rowInvalidUTF8(a.ListValues(), int(k)) {
				return true
			}
		}
	case *array.RunEndEncoded:
		return rowInvalidUTF8(a.Values(), a.GetPhysicalIndex(i))
	case *array.Struct:
		for k := range a.NumField() {
			if rowInvalidUTF8(a.Field(k), i) {
				return true
			}
		}
	case *array.SparseUnion:
		return rowInvalidUTF8(a.Field(a.ChildID(i)), i)
	case *array.DenseUnion:
		return rowInvalidUTF8(a.Field(a.ChildID(i)), int(a.ValueOffset(i)))
	}
	return false
}

// replaceInvalid returns d with U+FFFD in place of every byte of a string that is not UTF-8. The caller releases it.
func replaceInvalid(d arrow.ArrayData) arrow.ArrayData {
	t := coerce.Storage(d.DataType())
	if !hasStrings(t) {
		d.Retain()
		return d
	}
	if t.ID() == arrow.DICTIONARY {
		v := replaceInvalid(d.Dictionary()).(*array.Data)
		defer v.Release()
		return array.NewDataWithDictionary(d.DataType(), d.Len(), d.Buffers(), d.NullN(), d.Offset(), v)
	}
	if _, ok := t.(arrow.NestedType); ok {
		var children []arrow.ArrayData
		for _, k := range d.Children() {
			x := replaceInvalid(k)
			defer x.Release()
			children = append(children, x)
		}
		return array.NewData(d.DataType(), d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	}
	b := array.NewBuilder(memory.DefaultAllocator, t).(array.StringLikeBuilder)
	defer b.Release()
	// parents have offsets relative to its beginning
	whole := array.NewData(t, d.Offset()+d.Len(), d.Buffers(), nil, array.UnknownNullCount, 0)
	defer whole.Release()
	a := array.MakeFromData(whole).(array.StringLike)
	defer a.Release()
	for i := range a.Len() {
		switch {
		case a.IsNull(i) || i < d.Offset():
			b.AppendNull()
		default:
			b.Append(string([]rune(a.Value(i))))
		}
	}
	out := b.NewArray()
	defer out.Release()
	return array.NewData(d.DataType(), d.Len(), out.Data().Buffers(), nil, array.UnknownNullCount, d.Offset())
}
