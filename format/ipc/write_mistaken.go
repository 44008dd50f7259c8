package ipc

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// mistaken reports whether the library would take a dictionary of b for the one at its place in last, which was written
// before, or for its continuation, though it is another. The library compares values approximately: floats may be 1e-5
// apart, and of strings zero bytes at the end do not count.
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
