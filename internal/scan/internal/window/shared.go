package window

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/region"
	"stoa/vec"
)

// Shared is what all row groups of a scan share, or of the part of a scan that one worker reads.
type Shared struct {
	Plan *plan.Plan
	Src  fetch.Source
	Out  *emit.Collector
}

// Tolerates reports whether the damage policy continues after err. An unsupported encoding or codec is excused, too: a
// flipped bit in a page header can produce one, while the other pages are intact.
func (r *Shared) Tolerates(err error) bool {
	return r.Plan.Spec.Damaged != plan.Fail && (damaged(err) || errors.Is(err, fault.Unsupported))
}

// damaged reports whether err means that bytes are damaged, rather than that they could not be read.
func damaged(err error) bool { return errors.Is(err, fault.Corrupt) }

// maxRow returns how many bytes the nested values of a row may take: as many as a row of text.
func (r *Shared) maxRow() int64 {
	if m := r.Plan.Spec.Memory; m > 0 {
		return format.Limits{Opening: m}.Row()
	}
	return r.Src.Limits.Row()
}

// Lose reports a loss to Spec.Lost.
func (r *Shared) Lose(l region.Loss) {
	if r.Plan.Spec.Lost != nil {
		r.Plan.Spec.Lost(l)
	}
}

// MaxLost is the maximum number of rows that a page that cannot be decoded may claim in a row group that does not
// declare its rows, and the maximum that are returned as null for a row group of which every column is lost.
const MaxLost = 1 << 24

// exceeds reports whether a page claims more rows than its row group can have. Its number of rows is then damaged, too,
// and is not used to make placeholders: only the end of the row group is known.
func exceeds(g format.RowGroup, first, rows int64) bool {
	if g.Rows < 0 {
		return rows > MaxLost
	}
	return rows > g.Rows-first
}

// plausible reports whether the declared number of rows of g is trusted for a column that is lost from row from on.
func plausible(g format.RowGroup, from int64) bool { return g.Rows >= 0 && g.Rows-from <= MaxLost }

// Narrow returns which rows of g have to be read, and the changes of g. It reports skipped rows through format.Skipped.
func (r *Shared) Narrow(ctx context.Context, g format.RowGroup, rows vec.Range) (ranges vec.Ranges,
	overlay format.Overlay, err error) {
	ranges = vec.Ranges{rows}
	if o, ok := r.Src.Reader.(format.Overlayer); ok {
		overlay, err = o.Overlay(ctx, g, r.Plan.Query.Cols)
		if err != nil && r.Tolerates(err) { // any of the rows may be outdated
			l := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name,
				Rows: [2]int64{rows.From, min(rows.To, g.Rows)}, Exact: true, Err: err}
			if g.Rows < 0 {
				l.Rows, l.Exact = [2]int64{-1, -1}, false
			}
			r.Lose(l)
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if r.Plan.Filter == nil || r.Plan.Logical && r.Plan.Spec.Rows != (vec.Range{}) {
		return ranges, overlay, nil
	}
	if r.Plan.Prunes(g, overlay, -1, nil) {
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: r.Plan.WhyGroup(g, overlay)})
		return nil, overlay, nil
	}
	nw, ok := r.Src.Reader.(format.Narrower)
	if !ok {
		return ranges, overlay, nil
	}
	narrowed, err := nw.Narrow(ctx, g, r.Plan.Filter)
	switch {
	case err == nil:
		ranges = ranges.Intersect(narrowed)
	case r.Plan.Spec.Damaged == plan.Fail || !errors.Is(err, fault.Corrupt):
		return nil, nil, err
	} // a damaged index excludes nothing; the data is read instead
	return ranges, overlay, nil
}
