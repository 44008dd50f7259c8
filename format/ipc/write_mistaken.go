package ipc

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// mistaken reports whether the library would take a dictionary of b for the corresponding one in last, which was
// written before, or for its continuation, although it differs. The library compares values approximately: floats may
// differ by 1e-5, and zero bytes at the end of strings do not count.
func mistaken(last, b arrow.RecordBatch) bool {
	for i := range b.Columns() {
		if mistakenData(last.Column(i).Data(), b.Column(i).Data()) {
			return true
		}
	}
	return false
}

func mistakenData(last, d arrow.ArrayData) bool {
	for i, c := range d.Children() {
		if mistakenData(last.Children()[i], c) {
			return true
		}
	}
	from, ok := last.Dictionary().(*array.Data)
	to, _ := d.Dictionary().(*array.Data)
	if !ok || from == nil || to == nil || from == to || from.Len() == 0 || from.Len() > to.Len() {
		return false
	}
	if mistakenData(from, to) {
		return true
	}
	x, y := array.MakeFromData(from), array.MakeFromData(to)
	defer x.Release()
	defer y.Release()
	begin := array.NewSlice(y, 0, int64(x.Len()))
	defer begin.Release()
	return array.ApproxEqual(x, begin, array.WithNaNsEqual(true)) && !sameValues(x, begin)
}

// withoutValues returns d, which has no rows, with empty dictionaries. The caller releases it.
func withoutValues(d arrow.ArrayData) arrow.ArrayData {
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		if arrow.IsUnion(d.DataType().ID()) { // the library writes all children of a dense union
			c = array.NewSliceData(c, 0, 0)
			defer c.Release()
		}
		children[i] = withoutValues(c)
		defer children[i].Release()
	}
	out := array.NewData(d.DataType(), d.Len(), d.Buffers(), children, d.NullN(), d.Offset())
	if dict, ok := d.Dictionary().(*array.Data); ok && dict != nil {
		none := array.NewSliceData(dict, 0, 0)
		defer none.Release()
		empty := withoutValues(none)
		defer empty.Release()
		out.SetDictionary(empty)
	}
	return out
}
