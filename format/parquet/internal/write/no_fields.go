package write

import (
	"fmt"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
)

// planEmpty replaces the schema by that of the file, in which each struct without fields has meta.NoFields.
func (w *Writer) planEmpty() error {
	fields := w.sc.Fields()
	for i, f := range fields {
		if _, reserved := meta.Emptied(f); reserved {
			return fault.New(fault.Unsupported, fault.Span{}, "", "column %q of type %s cannot be written as Parquet: "+
				"a struct that has only the field %s, of nulls, is read as one without fields", f.Name, f.Type,
				meta.NoFields)
		}
		var empty bool
		if fields[i], empty = meta.Filled(f); !empty {
			continue
		}
		if w.o.refuseEmpty {
			return fault.New(fault.Unsupported, fault.Span{}, "", "column %q of type %s cannot be written as Parquet "+
				"with empty-structs=refuse: Parquet has no struct without fields", f.Name, f.Type)
		}
		w.empty = append(w.empty, f.Name)
	}
	if w.stored = w.sc; w.empty != nil {
		md := w.sc.Metadata()
		w.stored = arrow.NewSchema(fields, &md)
	}
	return nil
}

// note says what readers see of structs without fields; "" if there are none.
func (w *Writer) note() string {
	if w.empty == nil {
		return ""
	}
	const most = 5
	names := strings.Join(w.empty[:min(len(w.empty), most)], ", ")
	if n := len(w.empty); n > most {
		names += fmt.Sprintf(" and %d more", n-most)
	}
	return fmt.Sprintf("Parquet has no struct without fields: in %s other readers see a field %s, which is always "+
		"null (empty-structs=refuse refuses such columns)", names, meta.NoFields)
}

// asStored is a batch with the columns of the file. The caller releases it.
func (w *Writer) asStored(b arrow.RecordBatch) arrow.RecordBatch {
	if w.empty == nil {
		b.Retain()
		return b
	}
	columns := make([]arrow.Array, b.NumCols())
	for i, a := range b.Columns() {
		d := filledData(a.Data(), w.stored.Field(i).Type)
		columns[i] = array.MakeFromData(d)
		d.Release()
		defer columns[i].Release()
	}
	return array.NewRecordBatch(w.stored, columns, b.NumRows())
}

// filledData is an array with the fields that its structs have in to. The caller releases it.
func filledData(d arrow.ArrayData, to arrow.DataType) arrow.ArrayData {
	nested, ok := to.(arrow.NestedType)
	if !ok || arrow.TypeEqual(d.DataType(), to) {
		d.Retain()
		return d
	}
	children := d.Children()
	if len(children) == 0 { // of a struct
		n := d.Offset() + d.Len()
		nulls := array.NewData(arrow.Null, n, []*memory.Buffer{nil}, nil, n, 0)
		defer nulls.Release()
		children = []arrow.ArrayData{nulls}
	}
	made := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		made[i] = filledData(c, nested.Fields()[i].Type)
		defer made[i].Release()
	}
	return array.NewData(to, d.Len(), d.Buffers(), made, d.NullN(), d.Offset())
}
