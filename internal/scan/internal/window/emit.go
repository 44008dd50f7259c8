package window

import (
	"context"
	"math"
	"slices"

	"stoa/fault"
	"stoa/internal/scan/internal/plan"
	"stoa/region"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
)

// emit emits those of the n rows of the window, which begins at row a, that sel selects, and drops the n rows from the
// lanes.
func (w *Windows) emit(sel *vec.Sel, a int64, n int) error {
	c := w.run.Out
	sel = c.Limit(sel)
	if sel.Count == 0 { // the other columns were not even decoded
		return nil
	}
	if w.fits(n) < n {
		return w.emitPieces(sel, a, n)
	}
	// emitting a small batch first costs less than copying a full one
	if sel.IsAll() && 2*n >= w.run.Plan.Spec.Batch && c.Take == nil {
		if err := c.Flush(); err != nil {
			return err
		}
		return w.handOver(a, n)
	}
	if err := w.append(sel, a, n); err != nil {
		return err
	}
	return c.Added(sel.Count)
}

// append passes the selected rows to the collector.
func (w *Windows) append(sel *vec.Sel, a int64, n int) error {
	for i, o := range w.run.Plan.Outputs {
		var err error
		switch {
		case o.Nested && sel.Count > 0:
			err = w.appendNested(i, o, sel, a, n)
		case o.Nested:
		default:
			err = w.appendFlat(i, w.byCol[o.Col], n, sel)
		}
		if err != nil {
			return err
		}
	}
	if len(w.run.Plan.Postponed) > 0 {
		known := sel
		for _, col := range w.run.Plan.Postponed {
			known = w.byCol[col].dropLost(known, a, a+int64(n))
		}
		w.run.Out.Know(sel, known)
	}
	return nil
}

func (w *Windows) appendFlat(i int, s *stream, n int, sel *vec.Sel) error {
	if w.run.Out.Adopt(i, &s.vec, n, sel) {
		s.row += int64(n)
		return nil
	}
	return w.run.Out.Append(i, s.vec, n, sel)
}

func (w *Windows) appendNested(i int, o plan.Output, sel *vec.Sel, a int64, n int) error {
	arr, err := w.byTop[o.Top].take(a, n, sel, o.Path[1:], w.run.Plan.Alloc())
	if err != nil {
		return err
	}
	defer arr.Release()
	return w.run.Out.AppendArray(i, arr)
}

// fits returns how many of n rows may go into one batch.
func (w *Windows) fits(n int) int {
	for _, o := range w.run.Plan.Outputs {
		if !o.Nested {
			n = w.byCol[o.Col].vec.Fit(n, w.run.Plan.Strings())
		}
	}
	return n
}

// emitPieces is emit for a window with dictionary codes of very long strings: it emits several batches, each small
// enough.
func (w *Windows) emitPieces(sel *vec.Sel, a int64, n int) error {
	if err := w.run.Out.Flush(); err != nil {
		return err
	}
	for at := 0; at < n; {
		k := w.fits(n - at)
		part := sel.Slice(at, at+k)
		if err := w.append(part, a, k); err != nil {
			return err
		}
		a += int64(k)
		for _, l := range w.lanes() {
			l.seek(a)
		}
		at += k
		if err := w.run.Out.Added(part.Count); err != nil {
			return err
		}
		if err := w.run.Out.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// handOver makes a batch of the vectors' own buffers, without copying.
func (w *Windows) handOver(a int64, n int) error {
	made := map[int]arrow.Array{}
	cols := make([]arrow.Array, len(w.run.Plan.Outputs))
	defer func() {
		for _, a := range made {
			a.Release()
		}
		for i, c := range cols {
			if c != nil && w.run.Plan.Outputs[i].Nested {
				c.Release()
			}
		}
	}()
	for i, o := range w.run.Plan.Outputs {
		if o.Nested {
			arr, err := w.byTop[o.Top].take(a, n, vec.All(n), o.Path[1:], w.run.Plan.Alloc())
			if err != nil {
				return err
			}
			cols[i] = arr
			continue
		}
		if made[o.Col] == nil {
			s := w.byCol[o.Col]
			arr, err := o.Emit(s.vec, n)
			if err != nil {
				return err
			}
			s.row += int64(n)
			made[o.Col] = arr
		}
		cols[i] = made[o.Col]
	}
	return w.run.Out.EmitColumns(cols, n)
}

// checkEnd is called when no column yielded another row: all must have ended at the same row, which must be the end of
// the row group. Under a damage policy the rest of a column that ends early is lost, and more is true. If all columns
// end before the row group does, nothing but the declared count says that there are more rows: they are reported as
// lost, and not returned.
func (w *Windows) checkEnd(ctx context.Context, rg vec.Range) (more bool, err error) {
	if w.At >= rg.To && rg.To == w.group.Rows {
		return false, w.checkRest(ctx)
	}
	if w.At >= rg.To && rg.To != math.MaxInt64 {
		return false, nil
	}
	if w.group.Rows < 0 && slices.ContainsFunc(w.filters, lane.restReported) { // no further row can pass
		return false, nil
	}
	lanes := w.lanes()
	for _, l := range lanes {
		if w.group.Rows < 0 && !l.restReported() { // if no row was selected, a column may not have been read up to here
			if _, err := l.cover(ctx, w.At, w.At+1, nil); err != nil {
				return false, err
			}
		}
	}
	for _, l := range lanes {
		if l.readEnd() > w.At {
			return w.uneven(l)
		}
	}
	if w.group.Rows < 0 || w.At >= min(rg.To, w.group.Rows) || len(lanes) == 0 {
		return false, nil
	}
	err = lanes[0].withColumn(fault.Corruptf(fault.Span{Object: w.group.Part}, "",
		"the column ends after %d of %s", w.At, fault.Count(w.group.Rows, "row")))
	if !w.run.Tolerates(err) {
		return false, err
	}
	w.run.Lose(region.Loss{Part: w.group.Part, Group: w.group.Index, Name: w.group.Name,
		Rows: [2]int64{w.At, rg.To}, Err: err})
	w.Live += rg.To - w.At
	w.At = rg.To
	return false, nil
}

// checkRest is called when all rows of the row group were read: no column may have more.
func (w *Windows) checkRest(ctx context.Context) error {
	for _, l := range w.lanes() {
		if l.rest(ctx, w.At, w.group.Rows) <= 0 {
			continue
		}
		err := l.withColumn(fault.Corruptf(fault.Span{Object: w.group.Part}, "",
			"the column goes on after the %d rows that are declared", w.group.Rows))
		if !w.run.Tolerates(err) {
			return err
		}
		lost := l.loss()
		lost.Rows, lost.Err = [2]int64{w.group.Rows, -1}, err
		w.run.Lose(lost)
	}
	return nil
}

// uneven handles columns that end although another column has more rows.
func (w *Windows) uneven(long lane) (more bool, err error) {
	for _, l := range w.lanes() {
		if l.end() != w.At || l.restReported() {
			continue
		}
		err := fault.Corruptf(fault.Span{Object: w.group.Part}, "",
			"column %s ends after %s, column %s has more", l.name(), fault.Count(w.At, "row"), long.name())
		if !w.run.Tolerates(err) {
			return false, err
		}
		l.abandon(err)
		more = true
	}
	return more, nil
}
