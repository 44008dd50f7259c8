package window

import (
	"context"
	"math"
	"slices"

	"stoa/fault"
	"stoa/region"
	"stoa/vec"
)

// checkEnd is called when no column gave another row: all must have ended together, and where the row group says. Under
// a damage policy the rest of a column that ends before the others is lost, and more is true; where all end, that the
// row group has more rows is its word alone: they are told, and not given.
func (w *windows) checkEnd(ctx context.Context, rg vec.Range) (more bool, err error) {
	if w.At >= rg.To && rg.To == w.group.Rows {
		return false, w.checkRest(ctx)
	}
	if w.At >= rg.To && rg.To != math.MaxInt64 {
		return false, nil
	}
	if w.group.Rows < 0 && slices.ContainsFunc(w.filters, lane.gone) { // no row passes any more
		return false, nil
	}
	lanes := w.lanes()
	for _, l := range lanes {
		if l.sure() > w.At {
			return w.uneven(l)
		}
	}
	if w.group.Rows < 0 || w.At >= min(rg.To, w.group.Rows) || len(lanes) == 0 {
		return false, nil
	}
	err = lanes[0].blame(fault.Corruptf(fault.Span{Object: w.group.Part}, "",
		"the column ends after %d of %d rows", w.At, w.group.Rows))
	if !w.run.Excused(err) {
		return false, err
	}
	w.run.Lose(region.Loss{Part: w.group.Part, Group: w.group.Index, Name: w.group.Name,
		Rows: [2]int64{w.At, rg.To}, Err: err})
	w.Live += rg.To - w.At
	w.At = rg.To
	return false, nil
}

// checkRest is called when the row group's rows are complete: no column may have more.
func (w *windows) checkRest(ctx context.Context) error {
	for _, l := range w.lanes() {
		if l.rest(ctx, w.At, w.group.Rows) <= 0 {
			continue
		}
		err := l.blame(fault.Corruptf(fault.Span{Object: w.group.Part}, "",
			"the column goes on after the %d rows that are declared", w.group.Rows))
		if !w.run.Excused(err) {
			return err
		}
		lost := l.loss()
		lost.Rows, lost.Err = [2]int64{w.group.Rows, -1}, err
		w.run.Lose(lost)
	}
	return nil
}

// uneven is for columns that end where another has more rows.
func (w *windows) uneven(long lane) (more bool, err error) {
	for _, l := range w.lanes() {
		if l.end() != w.At || l.gone() {
			continue
		}
		err := fault.Corruptf(fault.Span{Object: w.group.Part}, "",
			"column %s ends after %d rows, column %s has more", l.name(), w.At, long.name())
		if !w.run.Excused(err) {
			return false, err
		}
		l.giveUp(err)
		more = true
	}
	return more, nil
}
