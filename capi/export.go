package main

// #include "stoa.h"
import "C"

import (
	"bytes"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// exportBatch gives a batch to the host. What is given is returned, too: its buffers must stay where they are.
//
// Two things that arrow-go's export gets wrong are brought into a form in which it is right. A struct, or a sparse
// union, that begins in the middle of its fields would be given with its offset, and with fields that begin there
// already: whoever reads would take another row's values, or none. And of an extension type's array it gives no
// children.
func exportBatch(b arrow.RecordBatch, out *C.struct_ArrowArray) arrow.ArrayData {
	children := make([]arrow.ArrayData, b.NumCols())
	for i, c := range b.Columns() {
		children[i] = settled(c.Data())
		defer children[i].Release()
	}
	d := array.NewData(arrow.StructOf(b.Schema().Fields()...), int(b.NumRows()), []*memory.Buffer{nil}, children, 0, 0)
	a := array.NewStructData(d)
	defer a.Release()
	cdata.ExportArrowArray(a, (*cdata.CArrowArray)(unsafe.Pointer(out)), nil)
	return d
}

// settled is data that can be exported, with a reference of its own.
func settled(d arrow.ArrayData) arrow.ArrayData {
	if asItIs(d) {
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
		children[i] = settled(c)
		defer children[i].Release()
	}
	if cut {
		bufs, off = begun(d), 0
	}
	dict, _ := d.Dictionary().(*array.Data)
	if dict != nil {
		s := settled(dict)
		defer s.Release()
		dict = s.(*array.Data)
		return array.NewDataWithDictionary(t, d.Len(), bufs, d.NullN(), off, dict)
	}
	return array.NewData(t, d.Len(), bufs, children, d.NullN(), off)
}

// asItIs reports that nothing about data has to be settled, which is nearly always so.
func asItIs(d arrow.ArrayData) bool {
	if d.DataType().ID() == arrow.EXTENSION || d.Offset() != 0 && offsetIsOfChildren(d.DataType()) {
		return false
	}
	for _, c := range d.Children() {
		if !asItIs(c) {
			return false
		}
	}
	dict, ok := d.Dictionary().(*array.Data)
	return !ok || dict == nil || asItIs(dict)
}

func offsetIsOfChildren(t arrow.DataType) bool {
	return t.ID() == arrow.STRUCT || t.ID() == arrow.SPARSE_UNION
}

// begun are the buffers of a struct or a sparse union from its offset on: which are not null, and the types.
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
