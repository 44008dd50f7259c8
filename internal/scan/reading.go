package scan

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// reading is what all row groups of a scan share, or of the part of it that one worker reads.
type reading struct {
	plan *plan
	src  Source
	out  *collector
}

// excused reports whether the damage policy reads on after err. An encoding or codec that nobody knows is
// excused, too: one flipped bit of its number in a page header makes it so, and the other pages are whole.
func (r *reading) excused(err error) bool {
	return r.plan.spec.Damaged != Fail && (damaged(err) || errors.Is(err, fault.Unsupported))
}

// damaged reports whether err says that bytes are damaged, rather than that they could not be read.
func damaged(err error) bool { return errors.Is(err, fault.Corrupt) }

// lose reports a loss to whoever asked.
func (r *reading) lose(l region.Loss) {
	if r.plan.spec.Lost != nil {
		r.plan.spec.Lost(l)
	}
}

// mostLost is how many rows a page that cannot be decoded may say that it has, in a row group that does not say
// how many it has.
const mostLost = 1 << 24

// beyond reports whether a page says that it has more rows than its row group: then its number is damaged, too,
// and no placeholders are made by it. All that is known is where the row group ends.
func beyond(g format.RowGroup, first, rows int64) bool {
	if g.Rows < 0 {
		return rows > mostLost
	}
	return rows > g.Rows-first
}

// narrow is which of the rows of g have to be looked at, and what changed in g. What it passes over it
// reports, if somebody listens.
func (r *reading) narrow(ctx context.Context, g format.RowGroup, rows vec.Range) (ranges vec.Ranges,
	overlay format.Overlay, err error) {
	ranges = vec.Ranges{rows}
	if o, ok := r.src.Reader.(format.Overlayer); ok {
		overlay, err = o.Overlay(ctx, g, r.plan.query.Cols)
		if err != nil && r.excused(err) { // nobody knows which of the rows are as they were
			l := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name,
				Rows: [2]int64{rows.From, min(rows.To, g.Rows)}, Exact: true, Err: err}
			if g.Rows < 0 {
				l.Rows, l.Exact = [2]int64{-1, -1}, false
			}
			r.lose(l)
			return nil, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if r.plan.filter == nil || r.plan.logical && r.plan.spec.Rows != (vec.Range{}) {
		return ranges, overlay, nil
	}
	if r.plan.prunes(g, overlay, -1, nil) {
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: r.plan.whyGroup(g, overlay)})
		return nil, overlay, nil
	}
	nw, ok := r.src.Reader.(format.Narrower)
	if !ok {
		return ranges, overlay, nil
	}
	narrowed, err := nw.Narrow(ctx, g, r.plan.filter)
	switch {
	case err == nil:
		ranges = ranges.Intersect(narrowed)
	case r.plan.spec.Damaged == Fail || !errors.Is(err, fault.Corrupt):
		return nil, nil, err
	} // a damaged index narrows nothing; the data is read instead
	return ranges, overlay, nil
}
