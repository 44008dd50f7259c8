// Package settle rewrites data before it is written so that every writer understands it.
package settle

import (
	"fmt"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/coerce"
	"stoa/internal/nest"
)

// Dictionaries rewrites dictionary arrays, at any depth, so that every writer understands them: no code refers to a
// null, since most writers look for nulls only among codes, and dictionaries of value types that the format does not
// support become plain arrays. A nil Dictionaries means that there are none.
type Dictionaries struct {
	schema *arrow.Schema // of what Batch returns
	plain  []string      // columns whose type changes
	mem    memory.Allocator
	kept   func(values arrow.DataType) bool
}

// New returns a Dictionaries for schema sc. kept reports the value types for which the format supports dictionaries,
// see format.Format; nil means strings and binaries. It returns nil if the schema has no dictionaries.
func New(sc *arrow.Schema, kept func(values arrow.DataType) bool, mem memory.Allocator) *Dictionaries {
	if !slices.ContainsFunc(sc.Fields(), func(f arrow.Field) bool { return HasDictionaries(f.Type) }) {
		return nil
	}
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	if kept == nil {
		kept = isText
	}
	d := &Dictionaries{schema: sc, mem: mem, kept: kept}
	fields := slices.Clone(sc.Fields())
	for i, f := range fields {
		if fields[i].Type = d.typeOf(f.Type); !arrow.TypeEqual(fields[i].Type, f.Type) {
			d.plain = append(d.plain, f.Name)
		}
	}
	if d.plain != nil {
		meta := sc.Metadata()
		d.schema = arrow.NewSchema(fields, &meta)
	}
	return d
}

// Rows returns rows of schema sc, and their schema, with dictionaries that every writer understands; kept as for New.
func Rows(sc *arrow.Schema, kept func(values arrow.DataType) bool, rows iter.Seq2[arrow.RecordBatch, error],
	mem memory.Allocator) (*arrow.Schema, iter.Seq2[arrow.RecordBatch, error]) {
	d := New(sc, kept, mem)
	if d == nil {
		return sc, rows
	}
	return d.schema, func(yield func(arrow.RecordBatch, error) bool) {
		for b, err := range rows {
			if err == nil {
				b, err = d.Batch(b)
			}
			more := yield(b, err)
			if err == nil {
				b.Release()
			}
			if !more {
				return
			}
		}
	}
}

// HasDictionaries reports whether t is a dictionary, or one is nested in it.
func HasDictionaries(t arrow.DataType) bool {
	t = coerce.Storage(t)
	n, ok := t.(arrow.NestedType)
	return t.ID() == arrow.DICTIONARY ||
		ok && slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return HasDictionaries(f.Type) })
}

// isText reports whether t is a string or binary type of any layout.
func isText(t arrow.DataType) bool {
	switch t.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return true
	}
	return false
}

// typeOf returns t in which dictionaries that are not kept are replaced by their value types.
func (d *Dictionaries) typeOf(t arrow.DataType) arrow.DataType {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		if !d.kept(t.ValueType) {
			return d.typeOf(t.ValueType)
		}
	case arrow.NestedType:
		if HasDictionaries(t) {
			fields := slices.Clone(t.Fields())
			for i := range fields {
				fields[i].Type = d.typeOf(fields[i].Type)
			}
			return WithFields(t, fields)
		}
	}
	return t
}

// Schema returns the schema of the batches that Batch returns for batches of schema sc.
func (d *Dictionaries) Schema(sc *arrow.Schema) *arrow.Schema {
	if d == nil {
		return sc
	}
	return d.schema
}

// Columns returns the columns whose type changes.
func (d *Dictionaries) Columns() []string {
	if d == nil {
		return nil
	}
	return d.plain
}

// Batch returns b, retained, or a batch that replaces it. The caller releases it.
func (d *Dictionaries) Batch(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	if d == nil {
		b.Retain()
		return b, nil
	}
	cols := slices.Clone(b.Columns())
	for i, c := range cols {
		x, err := d.settled(c.Data(), d.schema.Field(i).Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", b.ColumnName(i), err)
		}
		cols[i] = array.MakeFromData(x)
		x.Release()
		defer cols[i].Release()
	}
	return array.NewRecordBatch(d.schema, cols, b.NumRows()), nil
}

// settled returns x as type t, which is either its own type or typeOf of it. The caller releases it.
func (d *Dictionaries) settled(x arrow.ArrayData, t arrow.DataType) (arrow.ArrayData, error) {
	if !HasDictionaries(x.DataType()) {
		x.Retain()
		return x, nil
	}
	if coerce.Storage(x.DataType()).ID() == arrow.DICTIONARY {
		return d.dictionary(x, t)
	}
	below := coerce.Storage(t).(arrow.NestedType).Fields()
	var children []arrow.ArrayData
	for i, k := range x.Children() {
		child, err := d.settled(k, below[i].Type)
		if err != nil {
			return nil, err
		}
		defer child.Release()
		children = append(children, child)
	}
	return array.NewData(t, x.Len(), x.Buffers(), children, x.NullN(), x.Offset()), nil
}

// dictionary is settled for a dictionary array.
func (d *Dictionaries) dictionary(x arrow.ArrayData, t arrow.DataType) (arrow.ArrayData, error) {
	codes := array.NewDictionaryData(storedAs(x, coerce.Storage(x.DataType())))
	defer codes.Release()
	values := codes.Dictionary()
	bufs, nulls := slices.Clone(x.Buffers()), x.NullN()
	if valid := d.validCodes(codes); valid != nil {
		defer valid.Release()
		bufs[0], nulls = valid, array.UnknownNullCount
	}
	if d.kept(values.DataType()) {
		v, err := d.settled(values.Data(), coerce.Storage(t).(*arrow.DictionaryType).ValueType)
		if err != nil {
			return nil, err
		}
		defer v.Release()
		return array.NewDataWithDictionary(t, x.Len(), bufs, nulls, x.Offset(), v.(*array.Data)), nil
	}
	lifted := array.NewDataWithDictionary(codes.DataType(), x.Len(), bufs, nulls, x.Offset(),
		values.Data().(*array.Data))
	defer lifted.Release()
	some := array.NewDictionaryData(lifted)
	defer some.Release()
	plain, err := nest.Decoded(some, d.mem)
	if err != nil {
		return nil, err
	}
	defer plain.Release()
	return d.settled(plain.Data(), t)
}

// storedAs returns the data of an extension array with its storage type.
func storedAs(x arrow.ArrayData, t arrow.DataType) arrow.ArrayData {
	dict, _ := x.Dictionary().(*array.Data)
	return array.NewDataWithDictionary(t, x.Len(), x.Buffers(), x.NullN(), x.Offset(), dict)
}

// validCodes returns a bitmap, from the first entry of the buffers on, of the codes whose values are not null; nil if
// the dictionary has no null. The caller releases it.
func (d *Dictionaries) validCodes(a *array.Dictionary) *memory.Buffer {
	values := a.Dictionary()
	if values.NullN() == 0 && values.DataType().ID() != arrow.NULL {
		return nil
	}
	from := a.Data().Offset()
	b := memory.NewResizableBuffer(d.mem)
	b.Resize(int(bitutil.BytesForBits(int64(from + a.Len()))))
	clear(b.Bytes())
	for i := range a.Len() {
		if a.IsNull(i) {
			continue
		}
		// the writer will refuse a code that is out of bounds
		if code := a.GetValueIndex(i); code < 0 || code >= values.Len() || !values.IsNull(code) {
			bitutil.SetBit(b.Bytes(), from+i)
		}
	}
	return b
}

// WithFields returns t with its fields replaced, in order.
func WithFields(t arrow.NestedType, fields []arrow.Field) arrow.DataType {
	switch t := t.(type) {
	case *arrow.StructType:
		return arrow.StructOf(fields...)
	case *arrow.ListType:
		return arrow.ListOfField(fields[0])
	case *arrow.LargeListType:
		return arrow.LargeListOfField(fields[0])
	case *arrow.ListViewType:
		return arrow.ListViewOfField(fields[0])
	case *arrow.LargeListViewType:
		return arrow.LargeListViewOfField(fields[0])
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfField(t.Len(), fields[0])
	case *arrow.MapType:
		entry := fields[0].Type.(*arrow.StructType).Fields()
		m := arrow.MapOfFields(entry[0], entry[1])
		m.KeysSorted = t.KeysSorted
		return m
	case *arrow.DenseUnionType:
		return arrow.DenseUnionOf(fields, t.TypeCodes())
	case *arrow.SparseUnionType:
		return arrow.SparseUnionOf(fields, t.TypeCodes())
	case *arrow.RunEndEncodedType:
		return arrow.RunEndEncodedOf(fields[0].Type, fields[1].Type)
	}
	return t
}
