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

// planStored replaces the schema with that of the file: each struct without fields gets meta.NoFields, and unions
// become structs.
func (w *Writer) planStored() error {
	fields := w.sc.Fields()
	for i, f := range fields {
		if _, reserved := meta.Emptied(f); reserved {
			return fault.New(fault.Unsupported, fault.Span{}, "", "column %q of type %s cannot be written as Parquet: "+
				"a struct that has only the field %s, of nulls, is read as one without fields", f.Name, f.Type,
				meta.NoFields)
		}
		if err := unionInUnion(f); err != nil {
			return err
		}
		var union bool
		filled, empty := meta.Filled(f)
		if fields[i], union = meta.Grouped(filled); union {
			w.unions = append(w.unions, f.Name)
		}
		if !empty {
			continue
		}
		if w.o.refuseEmpty {
			return fault.New(fault.Unsupported, fault.Span{}, "", "column %q of type %s cannot be written as Parquet "+
				"with empty-structs=refuse: Parquet has no struct without fields", f.Name, f.Type)
		}
		w.empty = append(w.empty, f.Name)
	}
	if w.stored = w.sc; w.empty != nil || w.unions != nil {
		md := w.sc.Metadata()
		w.stored = arrow.NewSchema(fields, &md)
	}
	return nil
}

// notes returns messages about what other readers see in place of structs without fields and unions.
func (w *Writer) notes() (out []string) {
	if w.empty != nil {
		out = append(out, fmt.Sprintf("Parquet has no struct without fields: in %s other readers see a field %s, "+
			"which is always null (empty-structs=refuse refuses such columns)", someOf(w.empty), meta.NoFields))
	}
	if w.unions != nil {
		out = append(out, fmt.Sprintf("Parquet has no unions: in %s other readers see a struct with a field for each "+
			"member, of which one at most is not null; which member a null is of is not kept", someOf(w.unions)))
	}
	return out
}

// someOf lists some of the names, so that messages remain short.
func someOf(names []string) string {
	const most = 5
	if n := len(names); n > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", n-most)
	}
	return strings.Join(names, ", ")
}

// asStored converts a batch to the columns of the file. The caller releases it.
func (w *Writer) asStored(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	if w.stored == w.sc {
		b.Retain()
		return b, nil
	}
	columns := make([]arrow.Array, b.NumCols())
	for i, a := range b.Columns() {
		d, err := storedData(a.Data(), w.stored.Field(i).Type)
		if err != nil {
			return nil, err
		}
		columns[i] = array.MakeFromData(d)
		d.Release()
		defer columns[i].Release()
	}
	return array.NewRecordBatch(w.stored, columns, b.NumRows()), nil
}

// storedData converts an array to type to: structs get the fields that they have there, unions become structs. The
// caller releases it.
func storedData(d arrow.ArrayData, to arrow.DataType) (arrow.ArrayData, error) {
	nested, ok := to.(arrow.NestedType)
	if !ok || arrow.TypeEqual(d.DataType(), to) {
		d.Retain()
		return d, nil
	}
	if _, is := d.DataType().(arrow.UnionType); is {
		return groupedData(d, to.(*arrow.StructType))
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
		var err error
		if made[i], err = storedData(c, nested.Fields()[i].Type); err != nil {
			return nil, err
		}
		defer made[i].Release()
	}
	return array.NewData(to, d.Len(), d.Buffers(), made, d.NullN(), d.Offset()), nil
}
