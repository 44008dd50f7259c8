package write

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// sliceBytes is about how much is shredded at a time: between slices it is looked at whether the row group is full.
const sliceBytes = 4 << 20

// sliceEnd is how far a slice of b reaches from row from on, to most: one row at least, and if possible no more
// than some bytes.
func sliceEnd(b arrow.RecordBatch, from, most int64) int64 {
	to := most
	for to-from > 1 {
		size := int64(0)
		for _, a := range b.Columns() {
			size += sizeOfRows(a, from, to)
		}
		if size <= sliceBytes*max(1, b.NumCols()) {
			break
		}
		to = from + max(1, (to-from)/2)
	}
	return to
}

// sizeOfRows is about how many bytes the values of a in [from, to) have.
func sizeOfRows(a arrow.Array, from, to int64) (n int64) {
	if from >= to {
		return 0
	}
	switch a := a.(type) {
	case array.ListLike:
		first, _ := a.ValueOffsets(int(from))
		_, last := a.ValueOffsets(int(to - 1))
		return 4*(to-from) + sizeOfRows(a.ListValues(), first, last)
	case *array.Struct:
		for i := range a.NumField() {
			n += sizeOfRows(a.Field(i), from, to)
		}
		return n
	case *array.StringView, *array.BinaryView:
		view := a.(array.ViewLike)
		for i := from; i < to; i++ {
			if n += 16; view.IsValid(int(i)) {
				n += int64(view.ValueHeader(int(i)).Len())
			}
		}
		return n
	case array.BinaryLike:
		last := int(to - 1)
		return 4*(to-from) + a.ValueOffset64(last) + int64(a.ValueLen(last)) - a.ValueOffset64(int(from))
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return (to - from) * int64(max(8, t.BitWidth())) / 8
	}
	return 8 * (to - from)
}
