package scan

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/region"
	"stoa/store"
)

// Coded returns the names of the top-level columns that r may have stored as codes of dictionaries.
func Coded(r format.Reader) []string { return plan.Coded(r) }

// Names of the packages below for the packages above.
type (
	Damaged  = plan.Damaged
	Spec     = plan.Spec
	Piece    = plan.Piece
	Trace    = plan.Trace
	Work     = plan.Work
	Tally    = plan.Tally
	Reason   = plan.Reason
	Source   = fetch.Source
	Objects  = fetch.Objects
	Dicts    = fetch.Dicts
	PageInfo = window.PageInfo
)

// MaxWorkers is the maximum number of workers of a scan.
const MaxWorkers = plan.MaxWorkers

// The damage policies.
const (
	Fail      = plan.Fail
	SkipRows  = plan.SkipRows
	NullCells = plan.NullCells
)

// NewTrace returns an empty trace.
func NewTrace() *Trace { return plan.NewTrace() }

// NewObjects returns Objects that opens from tree.
func NewObjects(tree store.Tree) *Objects { return fetch.NewObjects(tree) }

// NewDicts returns an empty cache.
func NewDicts() *Dicts { return fetch.NewDicts() }

// ReadSpan reads the bytes at.
func ReadSpan(ctx context.Context, o *Objects, at fault.Span) ([]byte, error) {
	return fetch.ReadSpan(ctx, o, at)
}

// Groups yields the row groups of all parts of a reader.
func Groups(ctx context.Context, r format.Reader) iter.Seq2[format.RowGroup, error] {
	return func(yield func(format.RowGroup, error) bool) {
		for part, err := range r.Parts(ctx, format.Query{}) {
			var groups []format.RowGroup
			if err == nil {
				groups, err = r.RowGroups(ctx, part, format.Query{})
			}
			if err != nil {
				yield(format.RowGroup{}, err)
				return
			}
			for _, g := range groups {
				if !yield(g, nil) {
					return
				}
			}
		}
	}
}

// Count returns how many rows Run yields for a spec without a filter, if the row groups declare it. They are listed as
// by Run: if Run would end with an error, known is false, and the scan reports it.
func Count(ctx context.Context, r format.Reader, spec Spec) (n int64, known bool) {
	spec.Columns = []string{}
	p, err := plan.New(r, spec)
	if err != nil || p.Filter != nil || p.Batched || spec.Damaged != Fail {
		return 0, false
	}
	overlays, _ := r.(format.Overlayer)
	for part, err := range r.Parts(ctx, p.Query) {
		if err != nil {
			return 0, false
		}
		groups, err := r.RowGroups(ctx, part, p.Query)
		if err != nil {
			return 0, false
		}
		for _, g := range groups {
			if g.Rows < 0 {
				return 0, false
			}
			if overlays != nil {
				if o, err := overlays.Overlay(ctx, g, p.Query.Cols); err != nil || o != nil && o.Drops() {
					return 0, false
				}
			}
			n += g.Rows
		}
	}
	return n, true
}

// Pages decodes every page of a column chunk and passes it to f, the dictionary first. Damage, and pages that need an
// unknown encoding or codec, are reported to lost, which may return nil to continue.
func Pages(ctx context.Context, src Source, g format.RowGroup, col int, f func(PageInfo) error,
	lost func(region.Loss) error) error {
	return window.Pages(ctx, src, g, col, f, lost)
}

// EachDict calls f with the dictionary of each chunk of a column that is not nested, in the order in which they are
// stored, until it returns false. Damaged ones are left out.
func EachDict(ctx context.Context, src Source, column string, f func(arrow.Array) bool) error {
	cols := src.Reader.Columns()
	col := slices.IndexFunc(cols, func(c format.Column) bool { return len(c.Path) == 1 && c.Name == column })
	if col < 0 {
		return nil
	}
	for g, err := range Groups(ctx, src.Reader) {
		var dict arrow.Array
		if err == nil {
			dict, err = window.Dict(ctx, src, g, col)
		}
		switch {
		case errors.Is(err, fault.Corrupt), errors.Is(err, fault.Unsupported), err == nil && dict == nil:
			continue
		case err != nil:
			return err
		}
		more := f(dict)
		if dict.Release(); !more {
			return nil
		}
	}
	return nil
}
