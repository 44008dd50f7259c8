package vec

import (
	"math"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Nulls returns an array of n nulls of type t. It is array.MakeArrayOfNull, extended to types that contain a null type,
// for which that function panics, and to allocators whose memory is not zeroed, in which its offsets would be garbage.
func Nulls(mem memory.Allocator, t arrow.DataType, n int) arrow.Array {
	mem = Zeroed{Allocator: mem}
	if !holdsNull(t) {
		a := array.MakeArrayOfNull(mem, t, n)
		defer a.Release()
		return NoShortOffsets(a)
	}
	b := array.NewBuilder(mem, t)
	defer b.Release()
	b.AppendNulls(n)
	return b.NewArray()
}

func holdsNull(t arrow.DataType) bool {
	if t.ID() == arrow.NULL {
		return true
	}
	if nested, ok := t.(arrow.NestedType); ok {
		for _, f := range nested.Fields() {
			if holdsNull(f.Type) {
				return true
			}
		}
	}
	return false
}

// NullSize returns roughly how many bytes a null of type t takes in an array, at most math.MaxInt64: lists and strings
// of a fixed size take space for their values, and a type may declare any size.
func NullSize(t arrow.DataType) int64 {
	switch t := t.(type) {
	case *arrow.FixedSizeListType:
		return times(int64(t.Len()), NullSize(t.Elem()))
	case *arrow.StructType:
		var n int64 = 1
		for _, f := range t.Fields() {
			if n += NullSize(f.Type); n < 0 {
				return math.MaxInt64
			}
		}
		return n
	case arrow.ExtensionType:
		return NullSize(t.StorageType())
	case arrow.FixedWidthDataType:
		return 1 + int64(t.Bytes())
	}
	return 16
}

func times(a, b int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < math.MaxInt64 {
		return int64(lo)
	}
	return math.MaxInt64
}
