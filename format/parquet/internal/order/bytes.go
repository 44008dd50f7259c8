package order

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// FirstBeyond is the first string, or bytes, less than low or greater than high, as unsigned bytes; nil: there is no
// such bound. ok: the leaf is of those; of others, and of dictionaries, First knows. Most values are told apart from a
// bound by their first eight bytes.
func (v *View) FirstBeyond(low, high []byte) (at int, ok bool) {
	if v.Leaf.Len() == 0 {
		return -1, true
	}
	switch a := v.Leaf.(type) {
	case *array.String:
		return beyond(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	case *array.Binary:
		return beyond(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	case *array.LargeString:
		return beyond(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	case *array.LargeBinary:
		return beyond(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	}
	return -1, false
}

// beyond goes through values; offsets are those of the whole buffer, of which data begins with the first one.
func beyond[O int32 | int64](v *View, low, high []byte, offsets []O, data []byte) int {
	least, most := head(low), head(high)
	for i := range v.Leaf.Len() {
		b := data[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]]
		h := head(b)
		if (low == nil || h > least) && (high == nil || h < most) {
			continue
		}
		if (low != nil && bytes.Compare(b, low) < 0 || high != nil && bytes.Compare(b, high) > 0) && v.Has(i) {
			return i
		}
	}
	return -1
}

// head are the first eight bytes as a number, in the order of the bytes; zeros are behind fewer.
func head(b []byte) (n uint64) {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	for i, c := range b {
		n |= uint64(c) << (56 - 8*i)
	}
	return n
}
