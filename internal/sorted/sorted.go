// Package sorted sorts short lists of structs with one copy of the machine code.
//
// slices.SortFunc is compiled anew for every type of element, 7 to 23 kB each; the lists that are sorted here are
// those of files, tables, findings and places, a few of which a run sorts once. What is sorted row by row or value by
// value stays with package slices, which is faster.
package sorted

import "sort"

// by is a list with its order.
type by[T any] struct {
	list []T
	cmp  func(a, b T) int
}

func (s by[T]) Len() int           { return len(s.list) }
func (s by[T]) Less(i, j int) bool { return s.cmp(s.list[i], s.list[j]) < 0 }
func (s by[T]) Swap(i, j int)      { s.list[i], s.list[j] = s.list[j], s.list[i] }

// By sorts list by cmp, as slices.SortFunc does. The sort is not stable.
func By[T any](list []T, cmp func(a, b T) int) { sort.Sort(by[T]{list, cmp}) }

// StablyBy sorts list by cmp, and keeps the order of equal elements, as slices.SortStableFunc does.
func StablyBy[T any](list []T, cmp func(a, b T) int) { sort.Stable(by[T]{list, cmp}) }
