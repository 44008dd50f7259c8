// Package scan turns pages into record batches: it plans, fetches ahead, prunes, decodes, filters and assembles.
// It knows no format.
//
// The unit is the window: rows [a,b) of one row group. All columns are decoded into the window's vectors; a page
// that crosses b is decoded whole and its tail is carried into the next window, so no page is decoded twice.
// Filter columns are decoded first; pages of the other columns without a surviving row are not even fetched.
package scan

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// Schema is the schema of the batches that spec gives.
func Schema(r format.Reader, spec Spec) (*arrow.Schema, error) {
	p, err := newPlan(r, spec)
	if err != nil {
		return nil, err
	}
	return p.schema, nil
}

// Run reads. At most one error comes, last, with a nil batch. A batch is valid until the next step of the loop;
// who needs it longer calls Retain. Ranging again scans again. passed, if not nil, receives the number of rows
// (before the filter) of everything that was gone through.
func Run(ctx context.Context, src Source, spec Spec, passed *int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var s *sieve
		if spec.Damaged != Fail {
			s = &sieve{lost: spec.Lost, yield: yield}
			spec.Lost, yield = s.tell, s.give
		}
		p, err := newPlan(src.Reader, spec)
		if err != nil {
			yield(nil, err)
			return
		}
		r := &run{reading: reading{plan: p, src: src, out: newCollector(p, yield)}}
		err = r.all(ctx)
		if passed != nil {
			*passed = r.base
		}
		if err == nil || errors.Is(err, errStop) {
			err = r.out.flush()
		}
		r.out.release()
		if err == nil && s != nil && p.filter == nil && p.spec.Rows == (vec.Range{}) {
			err = s.nothing()
		}
		if err != nil && !errors.Is(err, errLeft) && !errors.Is(err, errStop) {
			yield(nil, err)
		}
	}
}

// sieve notes whether anything was read besides what needs something that is not known here.
type sieve struct {
	lost    func(region.Loss) // who else is told of losses; may be nil
	yield   func(arrow.RecordBatch, error) bool
	rows    int64 // that were given
	refused error // the first error of class Unsupported among the losses
	damaged bool  // there were others
}

func (s *sieve) tell(l region.Loss) {
	if !errors.Is(l.Err, fault.Unsupported) {
		s.damaged = true
	} else if s.refused == nil {
		s.refused = l.Err
	}
	if s.lost != nil {
		s.lost(l)
	}
}

func (s *sieve) give(b arrow.RecordBatch, err error) bool {
	if b != nil {
		s.rows += b.NumRows()
	}
	return s.yield(b, err)
}

// nothing is why nothing at all could be read, if that is no damage.
func (s *sieve) nothing() error {
	if s.rows > 0 || s.damaged {
		return nil
	}
	return s.refused
}

// run reads a scan, or the part of it that one worker reads.
type run struct {
	reading
	base int64 // rows of the row groups gone through
}

// all is the loop over parts and row groups.
func (r *run) all(ctx context.Context) error {
	if r.plan.spec.Parallel > 1 && r.plan.spec.Rows == (vec.Range{}) { // positions are counted one by one
		return r.parallel(ctx)
	}
	if r.plan.spec.Pieces != nil {
		return r.pieces(ctx, func(t *task) error { return r.do(ctx, t) })
	}
	for part, err := range r.src.Reader.Parts(ctx, r.plan.query) {
		if err != nil {
			return err
		}
		groups, lost, err := r.groups(ctx, part)
		if err != nil {
			return err
		}
		if lost != nil {
			r.lose(*lost)
			r.base += max(0, part.Rows)
		}
		for _, c := range r.plan.clusters(groups, r.src.Reader.Order()) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if len(c) > 1 {
				err = r.merge(ctx, c)
			} else {
				err = r.read(ctx, c[0], r.wanted(c[0]))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// groups are the row groups of a part. A part whose row groups cannot even be listed is lost as a whole, if the
// damage policy reads on.
func (r *run) groups(ctx context.Context, part format.Part) ([]format.RowGroup, *region.Loss, error) {
	groups, err := r.src.Reader.RowGroups(ctx, part, r.plan.query)
	if err == nil || !r.excused(err) {
		return groups, nil, err
	}
	l := &region.Loss{Part: part.Ref, Rows: [2]int64{-1, -1}, Err: err}
	if part.Rows >= 0 {
		l.Rows, l.Exact = [2]int64{0, part.Rows}, true
	}
	return nil, l, nil
}

// none are the rows of a row group that lies behind the wanted ones.
var none = vec.Range{From: 0, To: -1}

// wanted is which rows of the next row group the spec wants, by position.
func (r *run) wanted(g format.RowGroup) vec.Range {
	local := r.plan.rowsOf(r.base)
	if local.To <= 0 {
		return none
	}
	local.From = max(0, local.From)
	if r.plan.logical { // positions are counted while the rows are read
		local = vec.Range{From: 0, To: math.MaxInt64}
	}
	if g.Rows >= 0 {
		local.To = min(local.To, g.Rows)
	}
	return local
}

// read is the loop over the windows of one row group.
func (r *run) read(ctx context.Context, g format.RowGroup, rows vec.Range) error {
	if rows == none {
		return errStop
	}
	if rows.Len() == 0 && g.Rows >= 0 {
		r.base += g.Rows
		return nil
	}
	ranges, overlay, err := r.narrow(ctx, g, rows)
	if err != nil {
		return err
	}
	if len(ranges) == 0 {
		r.passed(g, rows.To, 0)
		return nil
	}
	if b, ok := r.src.Reader.(format.Batcher); ok {
		in := batching{reading: &r.reading, reader: b, group: g}
		at, err := in.ranges(ctx, ranges)
		r.passed(g, at, at)
		return err
	}
	w, err := newWindows(ctx, &r.reading, r.base, g, ranges, overlay)
	if err != nil {
		return err
	}
	defer w.release()
	for _, rows := range ranges {
		w.at = rows.From
		for more := true; more; {
			if more, err = w.next(ctx, rows); err != nil {
				return err
			}
		}
	}
	r.passed(g, w.at, w.live)
	return nil
}

// passed counts the rows of a row group that was gone through: up to row at, of which the overlay left live.
func (r *run) passed(g format.RowGroup, at, live int64) {
	switch {
	case r.plan.logical:
		r.base += live
	case g.Rows >= 0:
		r.base += g.Rows
	default:
		r.base += at
	}
}
