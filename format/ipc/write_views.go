package ipc

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// hasViews reports whether t is a list view, or one is nested in it, unless in a union, which the library cannot copy
// from the middle either.
func hasViews(t arrow.DataType) bool {
	if x, ok := t.(arrow.ExtensionType); ok {
		return hasViews(x.StorageType())
	}
	switch t.ID() {
	case arrow.LIST_VIEW, arrow.LARGE_LIST_VIEW:
		return true
	case arrow.DENSE_UNION, arrow.SPARSE_UNION:
		return false
	}
	n, ok := t.(arrow.NestedType)
	return ok && slices.ContainsFunc(n.Fields(), func(f arrow.Field) bool { return hasViews(f.Type) })
}

// compactViews returns a with list views that begin at offset 0 and have only the values that they use. The library
// fails on list views with another offset, at any depth, and of all others writes every value of the array of which
// they are a slice. The caller releases the result.
func compactViews(a arrow.Array) (arrow.Array, error) {
	if a.Len() == 0 || !hasViews(a.DataType()) {
		a.Retain()
		return a, nil
	}
	out, err := array.Concatenate([]arrow.Array{a}, memory.NewGoAllocator()) // it copies even a single array
	if err != nil {
		return nil, fault.New(fault.Unsupported, fault.Span{}, "", "a column of type %s: %v", a.DataType(), err)
	}
	return out, nil
}
