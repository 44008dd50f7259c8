// Package sorted sorts short lists of structs with one copy of the machine code.
//
// slices.SortFunc is compiled anew for every type of element, 7 to 23 kB each; the lists that are sorted here are
// those of files, tables, findings and places, a few of which a run sorts once. What is sorted row by row or value by
// value stays with package slices, which is faster.
package sorted

import "sort"

// By sorts list by cmp, as slices.SortFunc does. The sort is not stable.
func By[T any](list []T, cmp func(a, b T) int) {
	sort.Slice(list, func(i, j int) bool { return cmp(list[i], list[j]) < 0 })
}

// StablyBy sorts list by cmp, and keeps the order of equal elements, as slices.SortStableFunc does.
func StablyBy[T any](list []T, cmp func(a, b T) int) {
	sort.SliceStable(list, func(i, j int) bool { return cmp(list[i], list[j]) < 0 })
}
