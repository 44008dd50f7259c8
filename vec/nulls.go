package vec

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Nulls is an array of n nulls of type t. It is array.MakeArrayOfNull, which panics where a type of nothing but null is part of t, for
// those types too; mem must give zeroed memory.
func Nulls(mem memory.Allocator, t arrow.DataType, n int) arrow.Array {
	if !holdsNull(t) {
		return array.MakeArrayOfNull(mem, t, n)
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
