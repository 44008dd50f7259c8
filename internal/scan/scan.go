// Package scan turns pages into record batches. It does not depend on any format.
//
// The loop: Run iterates over tasks (usually a row group each), run.read over the windows of a task. Windows.Filter and
// Fill make each column cover the rows of a window (stream.cover, field.cover), page by page (stream.page, leaf.page),
// and fetch.Decode calls the format's decoder. The packages below, from the lowest: arrays, plan, fetch, emit, window,
// batches. This package has the tasks, the order of row groups (merge), workers (parallel), and the pieces of a scan
// (Cut).
package scan

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/batches"
	"stoa/internal/scan/internal/emit"
	"stoa/internal/scan/internal/fetch"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/region"
	"stoa/vec"
)

// Schema returns the schema of the batches that spec selects.
func Schema(r format.Reader, spec plan.Spec) (*arrow.Schema, error) {
	p, err := plan.New(r, spec)
	if err != nil {
		return nil, err
	}
	return p.Schema, nil
}

// Run reads the rows that spec selects. At most one error is yielded, last, with a nil batch. A batch is valid until
// the next step of the loop; to keep it longer, call Retain. Ranging again scans again. passed, if not nil, receives
// the number of rows read or skipped, before the filter.
func Run(ctx context.Context, src fetch.Source, spec plan.Spec, passed *int64) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		var s *refusal
		if spec.Damaged != plan.Fail {
			s = &refusal{lost: spec.Lost, yield: yield}
			spec.Lost, yield = s.report, s.emit
		}
		p, err := plan.New(src.Reader, spec)
		if err != nil {
			yield(nil, err)
			return
		}
		r := &run{Shared: window.Shared{Plan: p, Src: src, Out: emit.New(p, yield)}}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if r.workers() {
			err = r.parallel(ctx)
		} else {
			next, stop := iter.Pull2(r.tasks(ctx)) // ranging over it would put two more frames above each page
			defer stop()
			for err == nil {
				t, failed, ok := next()
				if !ok {
					break
				}
				if err = cmp.Or(failed, ctx.Err()); err == nil {
					err = r.read(ctx, t)
				}
			}
			stop()
		}
		if passed != nil {
			*passed = r.base
		}
		if err == nil || errors.Is(err, emit.ErrStop) {
			err = r.Out.Flush()
		}
		r.Out.Release()
		if err == nil && s != nil && p.Filter == nil && p.Spec.Rows == (vec.Range{}) {
			err = s.err()
		}
		if err != nil && !errors.Is(err, emit.ErrLeft) && !errors.Is(err, emit.ErrStop) {
			yield(nil, err)
		}
	}
}

// refusal records whether a scan met only unsupported features. Such a scan is refused, because that is not damage.
type refusal struct {
	lost    func(region.Loss) // the caller's function for losses; may be nil
	yield   func(arrow.RecordBatch, error) bool
	rows    int64 // returned
	refused error // the first error of class Unsupported among the losses
	damaged bool  // there were other losses
}

func (s *refusal) report(l region.Loss) {
	if !errors.Is(l.Err, fault.Unsupported) {
		s.damaged = true
	} else if s.refused == nil {
		s.refused = l.Err
	}
	if s.lost != nil {
		s.lost(l)
	}
}

func (s *refusal) emit(b arrow.RecordBatch, err error) bool {
	if b != nil {
		s.rows += b.NumRows()
	}
	return s.yield(b, err)
}

// err returns why nothing at all could be read, if damage is not the reason.
func (s *refusal) err() error {
	if s.rows > 0 || s.damaged {
		return nil
	}
	return s.refused
}

// run reads a scan, or the part of it that one worker reads.
type run struct {
	window.Shared
	base int64 // rows of the row groups so far
}

// none is the range for a row group that lies after the wanted rows.
var none = vec.Range{From: 0, To: -1}

// wanted returns which rows of the next row group the spec selects by position.
func (r *run) wanted(g format.RowGroup) vec.Range {
	local := r.Plan.RowsOf(r.base)
	if local.To <= 0 {
		return none
	}
	local.From = max(0, local.From)
	if r.Plan.Logical { // positions are counted while the rows are read
		local = vec.Range{From: 0, To: math.MaxInt64}
	}
	if g.Rows >= 0 {
		local.To = min(local.To, g.Rows)
	}
	return local
}

// read reads a task: the loop over the windows of its row group, or the merge of several row groups. A part that could
// not be opened is reported as lost.
func (r *run) read(ctx context.Context, t *task) error {
	if t.lost != nil {
		r.Lose(*t.lost)
		r.base += max(0, t.lost.Rows[1])
		return nil
	}
	defer t.upcoming.read()
	if len(t.groups) > 1 {
		return r.merge(ctx, t.groups)
	}
	g, rows := t.groups[0], t.rows
	if rows == (vec.Range{}) {
		if rows = r.wanted(g); rows == none {
			return emit.ErrStop
		}
	}
	if rows.Len() == 0 && g.Rows >= 0 {
		r.base += g.Rows
		return nil
	}
	ranges, overlay, err := r.Narrow(ctx, g, rows)
	if err != nil {
		return err
	}
	if len(ranges) == 0 {
		r.passed(g, rows.To, 0)
		return nil
	}
	if b, ok := r.Src.Reader.(format.Batcher); ok {
		in := batches.Batching{Shared: &r.Shared, Reader: b, Group: g}
		at, err := in.Ranges(ctx, ranges)
		r.passed(g, at, at)
		return err
	}
	r.foresee(ctx, t, ranges)
	w, err := window.Open(ctx, &r.Shared, r.base, g, rows, ranges, overlay)
	if err != nil {
		return err
	}
	defer w.Release()
	for _, rows := range ranges {
		w.At = rows.From
		for more := true; more; {
			if err := w.Begin(ctx, rows); err != nil {
				return err
			}
			if err := w.Filter(ctx); err != nil {
				return err
			}
			if err := w.Fill(ctx); err != nil {
				return err
			}
			if more, err = w.Emit(ctx); err != nil {
				return err
			}
		}
	}
	r.passed(g, w.At, w.Live)
	return nil
}

// passed counts the rows of a row group that was read up to row at; live is the number that the overlay kept.
func (r *run) passed(g format.RowGroup, at, live int64) {
	switch {
	case r.Plan.Logical:
		r.base += live
	case g.Rows >= 0:
		r.base += g.Rows
	default:
		r.base += at
	}
}
