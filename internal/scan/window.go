package scan

import (
	"context"
	"math"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// windows runs over ranges of rows of one row group.
type windows struct {
	run     *run
	group   format.RowGroup
	filters []*stream
	others  []*stream
	byCol   map[int]*stream
	arena   vec.Arena
	at      int64 // rows before this one are done
}

func newWindows(ctx context.Context, r *run, g format.RowGroup, rows vec.Ranges) (*windows, error) {
	w := &windows{run: r, group: g, byCol: map[int]*stream{}}
	filters, others := r.plan.filters, r.plan.others
	if len(filters)+len(others) == 0 && g.Rows < 0 && len(r.plan.columns) > 0 {
		others = []int{0} // no column is wanted, and only reading one tells how many rows there are
	}
	for i, col := range append(append([]int(nil), filters...), others...) {
		ahead := r.plan.spec.Ahead
		if i >= len(filters) && len(filters) > 0 {
			ahead = -1 // which pages are needed is not known ahead
		}
		s, err := r.open(ctx, g, col, rows, ahead, &w.arena)
		if err != nil {
			w.release()
			return nil, err
		}
		w.byCol[col] = s
		if i < len(filters) {
			w.filters = append(w.filters, s)
		} else {
			w.others = append(w.others, s)
		}
	}
	return w, nil
}

func (w *windows) release() {
	for _, s := range w.byCol {
		s.close()
	}
}

// window does the rows [a, b), or fewer, and returns where it ended: a if there are no more.
func (w *windows) window(ctx context.Context, a, b int64) (end int64, err error) {
	sel := (*vec.Sel)(nil)
	if b, sel, err = w.filter(ctx, a, b); err != nil {
		return 0, err
	}
	if sel == nil || sel.Count > 0 {
		to, err := w.coverAll(ctx, w.others, a, b, sel)
		if err != nil {
			return 0, err
		}
		if to < b {
			sel, b = cut(sel, int(to-a)), to
		}
	}
	n := int(b - a)
	if n == 0 {
		return b, nil
	}
	if sel == nil {
		sel = vec.All(n)
	}
	for _, s := range w.others {
		sel = s.dropLost(sel, a, b)
	}
	return b, w.emit(sel, n)
}

// cut is the first n entries of sel.
func cut(sel *vec.Sel, n int) *vec.Sel {
	if sel == nil {
		return nil
	}
	return sel.Slice(0, n)
}

// through goes through the rows rg, window by window.
func (w *windows) through(ctx context.Context, rg vec.Range) error {
	w.at = rg.From
	for w.at < rg.To {
		if err := ctx.Err(); err != nil {
			return err
		}
		b := rg.To
		if b-w.at > int64(w.run.plan.spec.Batch) {
			b = w.at + int64(w.run.plan.spec.Batch)
		}
		end, err := w.window(ctx, w.at, b)
		if err != nil {
			return err
		}
		if end == w.at {
			break
		}
		w.at = end
	}
	return w.checkEnd(ctx, rg)
}

// checkEnd is called when no column gave another row: all must have ended together, and where the row group says.
func (w *windows) checkEnd(ctx context.Context, rg vec.Range) error {
	if w.at >= rg.To && rg.To == w.group.Rows {
		return w.checkRest(ctx)
	}
	if w.at >= rg.To && rg.To != math.MaxInt64 {
		return nil
	}
	for _, s := range w.byCol {
		if s.end() > w.at {
			return w.uneven(s)
		}
	}
	if w.group.Rows >= 0 && w.at < min(rg.To, w.group.Rows) && len(w.byCol) > 0 {
		for _, s := range w.byCol {
			return s.blame(fault.Corruptf(fault.Span{Object: w.group.Part}, "", "the column ends after %d of %d rows", w.at, w.group.Rows))
		}
	}
	return nil
}

// checkRest is called when the row group's rows are complete: no column may have more. Only pages that do not tell
// their rows can bring such a surprise; the others were counted by the format.
func (w *windows) checkRest(ctx context.Context) error {
	for _, s := range w.byCol {
		more := s.end() - w.group.Rows
		for more <= 0 && s.dead == nil && !s.ended {
			pb, err := s.pager.peek(ctx)
			if err != nil || pb.page.Rows >= 0 {
				break
			}
			if err := s.page(ctx, pb, w.at, math.MaxInt64, nil); err != nil {
				break
			}
			more = s.end() - w.group.Rows
		}
		if more > 0 {
			err := s.blame(fault.Corruptf(fault.Span{Object: w.group.Part}, "", "the column goes on behind the %d rows that are declared", w.group.Rows))
			if !w.run.excused(err) {
				return err
			}
			w.run.lose(region.Loss{Part: w.group.Part, Group: w.group.Index, Column: s.col.Name, Rows: [2]int64{w.group.Rows, -1}, Err: err})
		}
	}
	return nil
}

func (w *windows) uneven(long *stream) error {
	for _, s := range w.byCol {
		if s.end() == w.at {
			return fault.Corruptf(fault.Span{Object: w.group.Part}, "", "column %s ends after %d rows, column %s has more", s.col.Name, w.at, long.col.Name)
		}
	}
	return nil
}

// coverAll has the streams cover [a, b) and returns the row that all reached.
func (w *windows) coverAll(ctx context.Context, streams []*stream, a, b int64, want *vec.Sel) (int64, error) {
	to := b
	for _, s := range streams {
		end, err := s.cover(ctx, a, b, want)
		if err != nil {
			return 0, err
		}
		to = min(to, end)
	}
	if w.group.Rows >= 0 {
		to = min(to, w.group.Rows)
	}
	return to, nil
}

// filter decodes the filter's columns and evaluates it. sel is nil if there is no filter.
func (w *windows) filter(ctx context.Context, a, b int64) (int64, *vec.Sel, error) {
	e := w.run.plan.filter
	if e == nil {
		return b, nil, nil
	}
	b, err := w.coverAll(ctx, w.filters, a, b, nil)
	if err != nil {
		return 0, nil, err
	}
	n := int(b - a)
	sel := vec.All(n)
	for _, s := range w.filters {
		sel = s.dropLost(sel, a, b)
	}
	if n == 0 {
		return b, sel, nil
	}
	sel, err = w.evaluate(e, n, sel)
	return b, sel, err
}

func (w *windows) evaluate(e *pred.Expr, n int, sel *vec.Sel) (*vec.Sel, error) {
	views := map[string]arrow.Array{}
	defer func() {
		for _, v := range views {
			v.Release()
		}
	}()
	for _, name := range e.Columns() {
		_, path, err := resolve(w.run.src.Reader.Schema(), name)
		if err != nil {
			return nil, err
		}
		s := w.byCol[w.run.plan.physical(path[0])]
		if views[name], err = s.vec.View(n); err != nil {
			delete(views, name)
			return nil, err
		}
	}
	return e.Eval(n, func(path string) arrow.Array { return views[path] }, sel)
}

// emit hands n rows of the window over, those that sel selects, and drops them from the streams.
func (w *windows) emit(sel *vec.Sel, n int) error {
	c := w.run.out
	sel = c.limit(sel)
	if sel.IsAll() && c.rows == 0 && 2*n >= w.run.plan.spec.Batch {
		return w.handOver(n)
	}
	for i, o := range w.run.plan.outputs {
		if err := c.append(i, w.byCol[o.col].vec, n, sel); err != nil {
			return err
		}
	}
	return c.added(sel.Count)
}

// handOver makes a batch of the vectors' own buffers.
func (w *windows) handOver(n int) error {
	made := map[int]arrow.Array{}
	defer func() {
		for _, a := range made {
			a.Release()
		}
	}()
	cols := make([]arrow.Array, len(w.run.plan.outputs))
	for i, o := range w.run.plan.outputs {
		if made[o.col] == nil {
			s := w.byCol[o.col]
			a, err := s.vec.Emit(n)
			if err != nil {
				return err
			}
			s.row += int64(n)
			made[o.col] = a
		}
		cols[i] = made[o.col]
	}
	return w.run.out.give(cols, n)
}
