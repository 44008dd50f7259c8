package nest

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// SizeOfRows returns the approximate size in bytes of a's values in [from, to).
func SizeOfRows(a arrow.Array, from, to int64) (n int64) {
	if from >= to {
		return 0
	}
	switch a := a.(type) {
	case array.ListLike:
		first, _ := a.ValueOffsets(int(from))
		_, last := a.ValueOffsets(int(to - 1))
		return 4*(to-from) + SizeOfRows(a.ListValues(), first, last)
	case *array.Struct:
		for i := range a.NumField() {
			n += SizeOfRows(a.Field(i), from, to)
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
