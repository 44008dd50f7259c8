// Package exported converts Arrow arrays to a form that arrow-go exports correctly to the C data interface.
//
// Two things would be wrong otherwise. A struct or sparse union with an offset is exported with that offset, although
// its fields already begin there: the reader would see the values of other rows, or none. And the array of an extension
// type is exported without its children.
package exported

import (
	"bytes"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Batch returns the rows of b as a struct array whose columns are settled. The caller releases it.
func Batch(b arrow.RecordBatch) *array.Struct {
	children := make([]arrow.ArrayData, b.NumCols())
	for i, c := range b.Columns() {
		children[i] = Settled(c.Data())
		defer children[i].Release()
	}
	t := arrow.StructOf(b.Schema().Fields()...)
	d := array.NewData(t, int(b.NumRows()), []*memory.Buffer{nil}, children, 0, 0)
	defer d.Release()
	return array.NewStructData(d)
}

// Settled returns d in a form that arrow-go exports correctly, with a reference of its own; usually d itself.
func Settled(d arrow.ArrayData) arrow.ArrayData {
	if unchanged(d) {
		d.Retain()
		return d
	}
	t := d.DataType()
	if x, ok := t.(arrow.ExtensionType); ok {
		t = x.StorageType()
	}
	off, bufs := d.Offset(), d.Buffers()
	cut := off != 0 && offsetIsOfChildren(t)
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		if cut {
			c = array.NewSliceData(c, int64(off), int64(off+d.Len()))
			defer c.Release()
		}
		children[i] = Settled(c)
		defer children[i].Release()
	}
	if cut {
		bufs, off = begun(d), 0
	}
	dict, _ := d.Dictionary().(*array.Data)
	if dict != nil {
		s := Settled(dict)
		defer s.Release()
		dict = s.(*array.Data)
		return array.NewDataWithDictionary(t, d.Len(), bufs, d.NullN(), off, dict)
	}
	return array.NewData(t, d.Len(), bufs, children, d.NullN(), off)
}

// unchanged reports whether d is exported correctly as it is, which is nearly always so.
func unchanged(d arrow.ArrayData) bool {
	if d.DataType().ID() == arrow.EXTENSION || d.Offset() != 0 && offsetIsOfChildren(d.DataType()) {
		return false
	}
	for _, c := range d.Children() {
		if !unchanged(c) {
			return false
		}
	}
	dict, ok := d.Dictionary().(*array.Data)
	return !ok || dict == nil || unchanged(dict)
}

func offsetIsOfChildren(t arrow.DataType) bool {
	return t.ID() == arrow.STRUCT || t.ID() == arrow.SPARSE_UNION
}

// begun returns the buffers of a struct or a sparse union from its offset on: the validity bitmap and the type codes.
func begun(d arrow.ArrayData) []*memory.Buffer {
	out := make([]*memory.Buffer, len(d.Buffers()))
	if valid := d.Buffers()[0]; valid != nil && valid.Len() > 0 {
		b := make([]byte, bitutil.BytesForBits(int64(d.Len())))
		bitutil.CopyBitmap(valid.Bytes(), d.Offset(), d.Len(), b, 0)
		out[0] = memory.NewBufferBytes(b)
	}
	if len(out) > 1 && d.Buffers()[1] != nil {
		out[1] = memory.NewBufferBytes(bytes.Clone(d.Buffers()[1].Bytes()[d.Offset() : d.Offset()+d.Len()]))
	}
	return out
}
