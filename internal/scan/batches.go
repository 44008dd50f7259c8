package scan

import (
	"context"
	"errors"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
)

// batching reads a row group of a reader that gives finished batches: filter, projection, and collecting only.
type batching struct {
	*reading
	reader format.Batcher
	group  format.RowGroup
}

// ranges reads ranges of rows. It returns how many rows it went through, counted from row 0.
func (r *batching) ranges(ctx context.Context, ranges vec.Ranges) (at int64, err error) {
	for _, rows := range ranges {
		if at, err = r.batches(ctx, rows); err != nil {
			return 0, err
		}
	}
	return at, nil
}

// of gives the batches of some columns, for rows.
func (r *batching) of(ctx context.Context, cols []int, rows vec.Range) iter.Seq2[arrow.RecordBatch, error] {
	q := r.plan.query
	q.Cols = cols
	return safely(r.reader.Batches(ctx, r.group, q, rows, vec.Zeroed{Allocator: r.plan.alloc()}))
}

// batches reads rows. It returns how many it went through, counted from row 0.
func (r *batching) batches(ctx context.Context, rows vec.Range) (int64, error) {
	cols, g := r.plan.query.Cols, r.group
	if cols == nil && len(r.plan.columns) > 0 && g.Rows < 0 {
		cols = []int{0}
	}
	at := rows.From
	for rec, err := range r.of(ctx, cols, rows) {
		if err != nil {
			if !r.excused(err) {
				return 0, err
			}
			lost := region.Loss{Part: g.Part, Group: g.Index, Name: g.Name, Rows: [2]int64{at, -1}, Err: err}
			var exact rowsError
			if errors.As(err, &exact) {
				lost.Rows[0], lost.Rows[1] = exact.LostRows()
				if lost.Exact = true; lost.Rows[0] > at { // told ahead of the rows before it
					at += lost.Rows[1] - lost.Rows[0]
				} else {
					at = lost.Rows[1]
				}
			}
			if lost.Exact && g.Rows >= 0 && len(cols) > 0 && r.plan.spec.Damaged == NullCells {
				if err := r.cells(ctx, cols, vec.Range{From: lost.Rows[0], To: lost.Rows[1]}); err != nil {
					return 0, err
				}
				continue
			}
			r.lose(lost)
			continue
		}
		at += rec.NumRows()
		if err := r.batch(rec); err != nil {
			return 0, err
		}
	}
	if err := r.out.flush(); err != nil { // arrays of another reader's making are not mixed with ours
		return 0, err
	}
	if g.Rows < 0 && at == rows.From && at > 0 { // it may have ended before them
		return r.counted(ctx, at)
	}
	return at, nil
}

// counted is how many rows there are in a row group that does not know it, most at most. A row that does not
// fit is one, too.
func (r *batching) counted(ctx context.Context, most int64) (n int64, err error) {
	var cols []int
	if len(r.plan.columns) > 0 {
		cols = []int{0}
	}
	for rec, err := range r.of(ctx, cols, vec.Range{To: most}) {
		var exact rowsError
		switch {
		case err == nil:
			n += rec.NumRows()
		case errors.As(err, &exact):
			from, to := exact.LostRows()
			n += to - from
		case r.excused(err):
			return n, nil // it was told when it was passed over
		default:
			return 0, err
		}
	}
	return n, nil
}

// rowsError is damage of which a Batcher knows the rows, half-open and counted in the row group. What it gives
// next begins behind them, or fills what is before them.
type rowsError interface {
	error
	LostRows() (from, to int64)
}

// safely turns a panic inside a library into an error at the end.
func safely(seq iter.Seq2[arrow.RecordBatch, error]) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		inside := false // of our own loop's body: its panics are not the library's
		defer func() {
			if inside {
				return
			}
			if p := recover(); p != nil {
				yield(nil, fault.Bugf("reading panicked: %v", p))
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

// batch filters and projects one batch and gives it on.
func (r *batching) batch(rec arrow.RecordBatch) error {
	n := int(rec.NumRows())
	sel := vec.All(n)
	if e := r.plan.filter; e != nil {
		var err error
		sel, err = e.Eval(n, func(path string) arrow.Array { return columnOf(rec, path) }, nil)
		if err != nil {
			return err
		}
	}
	sel = r.out.limit(sel)
	if sel.Count == 0 {
		return nil
	}
	cols := make([]arrow.Array, len(r.plan.outputs))
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, o := range r.plan.outputs {
		slot, ok := r.plan.slots[o.top]
		if !ok {
			return fault.New(fault.Bug, fault.Span{}, o.path[0], "the column is in no batch")
		}
		a := child(rec.Column(slot), o.path[1:])
		t, err := take(a, sel, r.plan.alloc())
		a.Release()
		if err != nil {
			return err
		}
		cols[i] = t
	}
	return r.slices(cols, sel.Count)
}

// slices gives cols on in batches of the wanted size.
func (r *batching) slices(cols []arrow.Array, n int) error {
	step := r.plan.spec.Batch
	for from := 0; from < n; from += step {
		to := min(n, from+step)
		part := make([]arrow.Array, len(cols))
		for i, c := range cols {
			part[i] = array.NewSlice(c, int64(from), int64(to))
		}
		err := r.out.give(part, to-from)
		for _, c := range part {
			c.Release()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// columnOf is a top-level column; nil for what lies inside one, which the predicate then finds itself.
func columnOf(rec arrow.RecordBatch, name string) arrow.Array {
	_, at, err := resolve(rec.Schema().Fields(), name)
	if err != nil || len(at) > 1 {
		return nil
	}
	return rec.Column(at[0])
}
