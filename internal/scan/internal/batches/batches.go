package batches

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan/internal/arrays"
	"stoa/internal/scan/internal/plan"
	"stoa/internal/scan/internal/window"
	"stoa/region"
	"stoa/vec"
)

// Batching reads a row group of a reader that returns finished batches: it only filters, projects and collects.
type Batching struct {
	*window.Shared
	Reader format.Batcher
	Group  format.RowGroup
}

// Ranges reads ranges of rows. It returns the row up to which it read.
func (r *Batching) Ranges(ctx context.Context, ranges vec.Ranges) (at int64, err error) {
	for _, rows := range ranges {
		if at, err = r.batches(ctx, rows); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// of returns the batches with these columns, for rows.
func (r *Batching) of(ctx context.Context, cols []int, rows vec.Range) iter.Seq2[arrow.RecordBatch, error] {
	q := r.Plan.Query
	q.Cols = cols
	return safely(r.Reader.Batches(ctx, r.Group, q, rows, vec.Zeroed{Allocator: r.Plan.Alloc()}))
}

// batches reads rows. It returns the row up to which it read.
func (r *Batching) batches(ctx context.Context, rows vec.Range) (int64, error) {
	cols, g := r.Plan.Query.Cols, r.Group
	if cols == nil && len(r.Plan.Columns) > 0 && g.Rows < 0 {
		cols = []int{0}
	}
	at := rows.From
	for rec, err := range r.of(ctx, cols, rows) {
		if err != nil {
			if !r.Tolerates(err) {
				return 0, err
			}
			lost := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name, Rows: [2]int64{at, -1}, Err: err}
			fresh := vec.Range{} // those of its rows that no other loss had
			var exact rowsError
			if errors.As(err, &exact) {
				lost.Rows[0], lost.Rows[1] = exact.LostRows()
				fresh = vec.Range{From: max(at, lost.Rows[0]), To: max(at, lost.Rows[1])}
				if lost.Exact = true; lost.Rows[0] > at { // reported before the rows that precede it
					at += fresh.Len()
				} else {
					at = fresh.To
				}
			}
			if lost.Exact && g.Rows >= 0 && len(cols) > 0 && r.Plan.Spec.Damaged == plan.NullCells {
				if fresh.Len() == 0 {
					continue // told with the other losses of these rows
				}
				if err := r.cells(ctx, cols, fresh); err != nil {
					return 0, err
				}
				continue
			}
			r.Lose(lost)
			continue
		}
		at += rec.NumRows()
		if err := r.batch(rec); err != nil {
			return 0, err
		}
	}
	if err := r.Out.Flush(); err != nil { // arrays built by another reader are not mixed with ours
		return 0, err
	}
	if g.Rows < 0 && at == rows.From && at > 0 { // the row group may have ended before rows
		return r.counted(ctx, at)
	}
	return at, nil
}

// counted returns how many rows, at most limit, a row group has that does not declare their number. It counts rows that
// cannot be read, too.
func (r *Batching) counted(ctx context.Context, limit int64) (n int64, err error) {
	var cols []int
	if len(r.Plan.Columns) > 0 {
		cols = []int{0}
	}
	for rec, err := range r.of(ctx, cols, vec.Range{To: limit}) {
		var exact rowsError
		switch {
		case err == nil:
			n += rec.NumRows()
		case errors.As(err, &exact):
			from, to := exact.LostRows()
			n += to - from
		case r.Tolerates(err):
			return n, nil // it was reported when it was skipped
		default:
			return 0, err
		}
	}
	return n, nil
}

// rowsError is damage whose rows, half-open and counted within the row group, the Batcher knows. The batches that
// follow it begin after these rows, or fill the gap before them.
type rowsError interface {
	error
	LostRows() (from, to int64)
}

// safely converts a panic inside a library to an error at the end.
func safely(seq iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		inside := false // in the body of our own loop, whose panics are not the library's
		defer func() {
			if inside {
				return
			}
			if p := recover(); p != nil {
				yield(nil, fault.Panicked(p, "reading"))
			}
		}()
		for rec, err := range seq {
			inside = true
			ok := yield(rec, err)
			inside = false
			if !ok {
				return
			}
		}
	}
}

// batch filters and projects one batch and emits it.
func (r *Batching) batch(rec arrow.RecordBatch) error {
	n := int(rec.NumRows())
	sel := vec.All(n)
	if e := r.Plan.Filter; e != nil {
		var err error
		sel, err = e.Eval(n, func(path string) arrow.Array { return columnOf(rec, path) }, nil)
		if err != nil {
			return err
		}
	}
	sel = r.Out.Limit(sel)
	if sel.Count == 0 {
		return nil
	}
	cols := make([]arrow.Array, len(r.Plan.Outputs))
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, o := range r.Plan.Outputs {
		slot, ok := r.Plan.Slots[o.Top]
		if !ok {
			return fault.New(fault.Bug, fault.Span{}, o.Path[0], "the column is in no batch")
		}
		a := arrays.Child(rec.Column(slot), o.Path[1:])
		t, err := arrays.Take(a, sel, r.Plan.Alloc())
		a.Release()
		if err != nil {
			return err
		}
		cols[i] = t
	}
	return r.slices(cols, sel.Count)
}

// slices emits cols in batches of the requested size.
func (r *Batching) slices(cols []arrow.Array, n int) error {
	step := r.Plan.Spec.Batch
	for from := 0; from < n; from += step {
		to := min(n, from+step)
		part := make([]arrow.Array, len(cols))
		for i, c := range cols {
			part[i] = array.NewSlice(c, int64(from), int64(to))
		}
		err := r.Out.EmitColumns(part, to-from)
		for _, c := range part {
			c.Release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// columnOf returns a top-level column, or nil for a nested one, which the predicate then finds itself.
func columnOf(rec arrow.RecordBatch, name string) arrow.Array {
	_, at, err := plan.Resolve(rec.Schema().Fields(), name)
	if err != nil || len(at) > 1 {
		return nil
	}
	return rec.Column(at[0])
}
