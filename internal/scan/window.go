package scan

import (
	"context"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

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
	overlay format.Overlay // nil: rows are final as decoded
	at      int64          // rows before this one are done
	live    int64          // rows gone through that the overlay left
}

func newWindows(ctx context.Context, r *run, g format.RowGroup, rows vec.Ranges) (*windows, error) {
	w := &windows{run: r, group: g, byCol: map[int]*stream{}}
	if o, ok := r.src.Reader.(format.Overlayer); ok {
		var err error
		if w.overlay, err = o.Overlay(ctx, g, r.plan.query.Cols); err != nil {
			return nil, err
		}
	}
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
	if w.run.plan.filter == nil {
		b = min(b, w.run.out.room(a))
	}
	if b, err = w.coverAll(ctx, w.filters, a, b, nil); err != nil || b == a {
		return b, err
	}
	live, patch, err := w.changes(ctx, a, b)
	if err != nil {
		return 0, err
	}
	sel, err := w.filter(a, b, w.positioned(live), patch)
	if err != nil {
		return 0, err
	}
	if sel.Count > 0 || w.group.Rows < 0 && len(w.filters) == 0 { // only the columns tell where such a group ends
		to, err := w.coverAll(ctx, w.others, a, b, sel)
		if err != nil || to == a {
			return to, err
		}
		if to < b {
			live, sel, b = live.Slice(0, int(to-a)), sel.Slice(0, int(to-a)), to
		}
		if err := w.patch(w.others, patch, int(b-a)); err != nil {
			return 0, err
		}
		for _, s := range w.others {
			if w.run.plan.spec.Damaged == SkipRows || slices.Contains(w.run.plan.keys, s.column) {
				sel = s.dropLost(sel, a, b)
			}
		}
	}
	w.live += int64(live.Count)
	return b, w.emit(sel, int(b-a))
}

// through goes through the rows rg, window by window.
func (w *windows) through(ctx context.Context, rg vec.Range) error {
	w.at = rg.From
	for w.at < rg.To {
		if w.run.plan.logical && w.run.plan.rowsOf(w.run.base+w.live).To <= 0 {
			return errStop
		}
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

// changes is what the overlay says of the rows [a, b): which are there, and the patch. Damage in it makes all of
// them suspect: they are never shown unpatched.
func (w *windows) changes(ctx context.Context, a, b int64) (live *vec.Sel, p *vec.Patch, err error) {
	n := int(b - a)
	if w.overlay == nil {
		return vec.All(n), nil, nil
	}
	rows := vec.Range{From: a, To: b}
	var bytes [][]byte
	for _, at := range w.overlay.Spans(rows) {
		var one []byte
		if one, err = ReadSpan(ctx, w.run.src.Objects, at); err != nil {
			break
		}
		bytes = append(bytes, one)
	}
	if err == nil {
		p, err = w.overlay.Patch(ctx, rows, bytes)
	}
	switch {
	case err != nil && w.run.excused(err):
		w.run.lose(region.Loss{Part: w.group.Part, Group: w.group.Index, Rows: [2]int64{a, b}, Exact: true, Err: err})
		return vec.None(n), nil, nil
	case err != nil:
		return nil, nil, err
	case p == nil || p.Drop == nil:
		return vec.All(n), p, nil
	}
	return p.Drop.Not(), p, nil
}

// positioned cuts live to the wanted rows where these are counted among the rows that are there: deleted ones have no
// position.
func (w *windows) positioned(live *vec.Sel) *vec.Sel {
	if !w.run.plan.logical || w.run.plan.spec.Rows == (vec.Range{}) {
		return live
	}
	rows := w.run.plan.rowsOf(w.run.base + w.live)
	from, to := max(0, rows.From), max(0, rows.To)
	return without(first(live, int(min(to, int64(live.Count)))), int(min(from, int64(live.Count))))
}

// without is s without its first k entries.
func without(s *vec.Sel, k int) *vec.Sel {
	if k == 0 {
		return s
	}
	return s.And(first(s, k).Not())
}

// patch overwrites cells of streams, in the window's first n rows.
func (w *windows) patch(streams []*stream, p *vec.Patch, n int) error {
	if p == nil {
		return nil
	}
	for _, c := range p.Cols {
		s := w.byCol[c.Col]
		if s == nil || !slices.Contains(streams, s) {
			continue
		}
		k, _ := slices.BinarySearch(c.Rows, int32(n))
		vals := c.Vals
		if k < len(c.Rows) { // the window ended before the patch
			short, err := vec.New(vals.Type, memory.DefaultAllocator)
			if err != nil {
				return err
			}
			defer short.Release()
			if err := short.Append(vals, 0, k, nil); err != nil {
				return err
			}
			vals = short
		}
		if err := s.vec.Overwrite(c.Rows[:k], vals); err != nil {
			return err
		}
	}
	return nil
}

// filter is the rows of live that pass the filter, whose columns are decoded for [a, b).
func (w *windows) filter(a, b int64, live *vec.Sel, p *vec.Patch) (*vec.Sel, error) {
	for _, s := range w.filters { // under every policy: a filter over a lost cell is unknown, also "is null"
		live = s.dropLost(live, a, b)
	}
	if err := w.patch(w.filters, p, int(b-a)); err != nil {
		return nil, err
	}
	if w.run.plan.filter == nil || live.Count == 0 {
		return live, nil
	}
	return w.evaluate(w.run.plan.filter, int(b-a), live)
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
	if w.fit(n) < n {
		return w.emitPieces(sel, n)
	}
	if sel.IsAll() && c.rows == 0 && 2*n >= w.run.plan.spec.Batch && c.take == nil {
		return w.handOver(n)
	}
	for i, o := range w.run.plan.outputs {
		if err := c.append(i, w.byCol[o.col].vec, n, sel); err != nil {
			return err
		}
	}
	return c.added(sel.Count)
}

// maxStrings is how many bytes of strings a window may add to a batch's column: two of them are still below what Arrow's
// offsets can count.
const maxStrings = 1 << 29

// fit is how many of n rows may go into one batch.
func (w *windows) fit(n int) int {
	for _, o := range w.run.plan.outputs {
		n = w.byCol[o.col].vec.Fit(n, maxStrings)
	}
	return n
}

// emitPieces is emit for a window of codes that stand for very long strings: a batch for each part that fits one.
func (w *windows) emitPieces(sel *vec.Sel, n int) error {
	if err := w.run.out.flush(); err != nil {
		return err
	}
	for at := 0; at < n; {
		k := w.fit(n - at)
		part := sel.Slice(at, at+k)
		for i, o := range w.run.plan.outputs {
			if err := w.run.out.append(i, w.byCol[o.col].vec, k, part); err != nil {
				return err
			}
		}
		for _, s := range w.byCol {
			s.seek(s.row + int64(k))
		}
		at += k
		if err := w.run.out.added(part.Count); err != nil {
			return err
		}
		if err := w.run.out.flush(); err != nil {
			return err
		}
	}
	return nil
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
