package vec

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// NoShortOffsets returns a with offset buffers removed that are too short, in all its parts without values; if there
// are none, it returns a itself. For 0 rows, array.MakeArrayOfNull makes a buffer of 4 bytes for 64-bit offsets within
// lists, and reading the first offset there panics. The caller releases the result.
func NoShortOffsets(a arrow.Array) arrow.Array {
	d := noShortOffsets(a.Data().(*array.Data))
	defer d.Release()
	if d == a.Data() {
		a.Retain()
		return a
	}
	return array.MakeFromData(d)
}

func noShortOffsets(d *array.Data) *array.Data {
	buffers, same := d.Buffers(), true
	if w := offsetWidth(d.DataType()); w > 0 && d.Len() == 0 && len(buffers) > 1 && buffers[1] != nil {
		if n := buffers[1].Len(); n > 0 && n < w*(d.Offset()+1) {
			buffers, same = slices.Clone(buffers), false
			buffers[1] = (*memory.Buffer)(nil)
		}
	}
	children := make([]arrow.ArrayData, len(d.Children()))
	for i, c := range d.Children() {
		made := noShortOffsets(c.(*array.Data))
		defer made.Release()
		children[i], same = made, same && made == c
	}
	dict, _ := d.Dictionary().(*array.Data)
	if dict != nil {
		made := noShortOffsets(dict)
		defer made.Release()
		dict, same = made, same && made == dict
	}
	if same {
		d.Retain()
		return d
	}
	out := array.NewData(d.DataType(), d.Len(), buffers, children, d.NullN(), d.Offset())
	if dict != nil {
		out.SetDictionary(dict)
	}
	return out
}

// offsetWidth returns the number of bytes of an offset of type t, 0 for types without offsets.
func offsetWidth(t arrow.DataType) int {
	for t.ID() == arrow.EXTENSION {
		t = t.(arrow.ExtensionType).StorageType()
	}
	switch t.ID() {
	case arrow.LIST, arrow.MAP, arrow.STRING, arrow.BINARY:
		return arrow.Int32SizeBytes
	case arrow.LARGE_LIST, arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return arrow.Int64SizeBytes
	}
	return 0
}
