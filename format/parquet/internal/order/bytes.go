package order

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow/array"
)

// FirstOutside returns the index of the first string or binary value less than low or greater than high, compared as
// unsigned bytes, or -1 if there is none. A nil bound is no bound. ok is false if the leaf has another type or is a
// dictionary: use First then. The comparison is fast because most values differ from a bound within their first eight
// bytes.
func (v *View) FirstOutside(low, high []byte) (at int, ok bool) {
	if v.Leaf.Len() == 0 {
		return -1, true
	}
	switch a := v.Leaf.(type) {
	case *array.String:
		return firstOutside(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	case *array.Binary:
		return firstOutside(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	case *array.LargeString:
		return firstOutside(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	case *array.LargeBinary:
		return firstOutside(v, low, high, a.ValueOffsets(), a.ValueBytes()), true
	}
	return -1, false
}

// firstOutside searches the values; offsets are relative to the whole buffer, and data begins at the first of them.
func firstOutside[O int32 | int64](v *View, low, high []byte, offsets []O, data []byte) int {
	lowHead, highHead := head(low), head(high)
	for i := range v.Leaf.Len() {
		b := data[offsets[i]-offsets[0] : offsets[i+1]-offsets[0]]
		h := head(b)
		if (low == nil || h > lowHead) && (high == nil || h < highHead) {
			continue
		}
		if (low != nil && bytes.Compare(b, low) < 0 || high != nil && bytes.Compare(b, high) > 0) && v.Has(i) {
			return i
		}
	}
	return -1
}

// head returns the first eight bytes as a big-endian number, padded with zeros.
func head(b []byte) (n uint64) {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	for i, c := range b {
		n |= uint64(c) << (56 - 8*i)
	}
	return n
}
