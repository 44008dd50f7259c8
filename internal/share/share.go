// Package share divides the files of a table among several planners.
package share

import (
	"context"

	"stoa/fault"
	"stoa/store"
)

// Share is the N-th of Of parts, from 0; the zero value is everything.
type Share struct{ N, Of int }

// Nobodys marks a source that is opened only for its schema: no file is in the share.
var Nobodys = Share{N: -1, Of: -1}

// Check returns an error if there is no such share.
func (s Share) Check() error {
	if s != (Share{}) && (s.N < 0 || s.N >= s.Of) {
		return fault.Invalidf("there is no part %d of %s, counted from 0", s.N, fault.Count(s.Of, "part"))
	}
	return nil
}

// Range returns the share of n things.
func (s Share) Range(n int) (from, to int) {
	if s.Of <= 1 {
		return 0, n
	}
	return n * s.N / s.Of, n * (s.N + 1) / s.Of
}

// Some returns the part of list that is in the share, and the share of each of its elements: all of it if there are
// several. If none is, it returns the first, which is nobody's.
func Some[T any](s Share, list []T) ([]T, Share) {
	if s.Of <= 1 || len(list) <= 1 {
		return list, s
	}
	from, to := s.Range(len(list))
	if from == to {
		return list[:1], Nobodys
	}
	return list[from:to], Share{}
}

// Entries are the entries of a directory, of which those outside of the share are not to be opened.
type Entries struct {
	from, to, n int
	Each        Share // the share of those that are opened
}

// EntriesOf lists a directory, unless everything is in the share.
func EntriesOf(ctx context.Context, tree store.Tree, dir string, s Share, ignored func(name string) bool) *Entries {
	e := &Entries{to: -1}
	if s.Of <= 1 {
		return e
	}
	n := 0
	for info, err := range tree.List(ctx, dir) {
		if (err == nil || info.Name != "") && !ignored(info.Name) {
			n++
		}
	}
	if e.from, e.to = s.Range(n); e.from == e.to {
		e.from, e.to, e.Each = 0, 1, Nobodys
	}
	return e
}

// Skips reports whether the next entry is outside of the share.
func (e *Entries) Skips() bool {
	i := e.n
	e.n++
	return e.to >= 0 && (i < e.from || i >= e.to)
}
