package scan

import (
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
)

// emit hands n rows of the window, which begins at row a, over, those that sel selects, and drops them from the lanes.
func (w *windows) emit(sel *vec.Sel, a int64, n int) error {
	c := w.run.out
	sel = c.limit(sel)
	if sel.Count == 0 { // the other columns were not even decoded
		return nil
	}
	if w.fit(n) < n {
		return w.emitPieces(sel, a, n)
	}
	// a thin batch before costs less than copying a full one
	if sel.IsAll() && 2*n >= w.run.plan.spec.Batch && c.take == nil {
		if err := c.flush(); err != nil {
			return err
		}
		return w.handOver(a, n)
	}
	if err := w.append(sel, a, n); err != nil {
		return err
	}
	return c.added(sel.Count)
}

// append gives the selected rows to the collector.
func (w *windows) append(sel *vec.Sel, a int64, n int) error {
	for i, o := range w.run.plan.outputs {
		var err error
		switch {
		case o.nested && sel.Count > 0:
			err = w.appendNested(i, o, sel, a, n)
		case o.nested:
		default:
			err = w.appendFlat(i, w.byCol[o.col], n, sel)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *windows) appendFlat(i int, s *stream, n int, sel *vec.Sel) error {
	if w.run.out.adopt(i, &s.vec, n, sel) {
		s.row += int64(n)
		return nil
	}
	return w.run.out.append(i, s.vec, n, sel)
}

func (w *windows) appendNested(i int, o output, sel *vec.Sel, a int64, n int) error {
	arr, err := w.byTop[o.top].take(a, n, sel, o.path[1:], w.run.plan.alloc())
	if err != nil {
		return err
	}
	defer arr.Release()
	return w.run.out.appendArray(i, arr)
}

// fit is how many of n rows may go into one batch.
func (w *windows) fit(n int) int {
	for _, o := range w.run.plan.outputs {
		if !o.nested {
			n = w.byCol[o.col].vec.Fit(n, w.run.plan.strings())
		}
	}
	return n
}

// emitPieces is emit for a window of codes that stand for very long strings: a batch for each part that fits one.
func (w *windows) emitPieces(sel *vec.Sel, a int64, n int) error {
	if err := w.run.out.flush(); err != nil {
		return err
	}
	for at := 0; at < n; {
		k := w.fit(n - at)
		part := sel.Slice(at, at+k)
		if err := w.append(part, a, k); err != nil {
			return err
		}
		a += int64(k)
		for _, l := range w.lanes() {
			l.seek(a)
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
func (w *windows) handOver(a int64, n int) error {
	made := map[int]arrow.Array{}
	cols := make([]arrow.Array, len(w.run.plan.outputs))
	defer func() {
		for _, a := range made {
			a.Release()
		}
		for i, c := range cols {
			if c != nil && w.run.plan.outputs[i].nested {
				c.Release()
			}
		}
	}()
	for i, o := range w.run.plan.outputs {
		if o.nested {
			arr, err := w.byTop[o.top].take(a, n, vec.All(n), o.path[1:], w.run.plan.alloc())
			if err != nil {
				return err
			}
			cols[i] = arr
			continue
		}
		if made[o.col] == nil {
			s := w.byCol[o.col]
			arr, err := s.vec.Emit(n)
			if err != nil {
				return err
			}
			s.row += int64(n)
			made[o.col] = arr
		}
		cols[i] = made[o.col]
	}
	return w.run.out.give(cols, n)
}
