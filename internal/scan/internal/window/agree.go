package window

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/nest"
	"stoa/internal/scan/internal/plan"
	"stoa/vec"
)

// agree looks in the rows [a, b) that sel selects whether the columns of structs contradict each other: such rows are
// damaged, and nobody knows in which column. It gives the rows that may be shown.
func (w *windows) agree(sel *vec.Sel, a, b int64) (*vec.Sel, error) {
	for _, s := range w.run.Plan.Shown {
		if s.Rows == nil {
			continue
		}
		sure := sel
		for _, c := range s.Rows.Columns() {
			sure = w.byCol[c].dropLost(sure, a, b)
		}
		for sure.Count > 0 {
			c, err := w.contradiction(s.Rows, sure)
			if err != nil {
				return nil, err
			}
			if c == nil {
				break
			}
			bits := make([]byte, (sel.N+7)/8)
			for _, i := range c.Rows {
				vec.SetBits(bits, int(i), int(i)+1, true)
			}
			bad := vec.NewSel(bits, sel.N).Not()
			if err := w.disagree(s.Rows, c, a); err != nil {
				return nil, err
			}
			if sure = sure.And(bad); w.run.Plan.Spec.Damaged == plan.SkipRows {
				sel = sel.And(bad)
			}
		}
	}
	return sel, nil
}

// contradiction is the first one between columns of rows, among the rows that sel selects.
func (w *windows) contradiction(rows *nest.RowField, sel *vec.Sel) (*nest.Contradiction, error) {
	views := map[int]arrow.Array{}
	defer func() {
		for _, v := range views {
			v.Release()
		}
	}()
	for _, c := range rows.Columns() {
		v, err := w.byCol[c].vec.View(sel.N)
		if err != nil {
			return nil, err
		}
		views[c] = v
	}
	return rows.Contradicts(sel, func(col int) arrow.Array { return views[col] }), nil
}

// disagree follows the damage policy for what columns of rows contradict each other in, counted from row a: the struct
// is not shown there.
func (w *windows) disagree(rows *nest.RowField, c *nest.Contradiction, a int64) error {
	var bad vec.Ranges
	for _, i := range c.Rows {
		bad = bad.Add(vec.Range{From: a + int64(i), To: a + int64(i) + 1})
	}
	err := fault.Corruptf(fault.Span{Object: w.group.Part}, "column "+rows.Name, "row %d: %s", bad[0].From,
		c.Why)
	if !w.run.Excused(err) {
		return err
	}
	for _, r := range bad {
		l := w.run.Plan.LossIn(w.group, rows.Columns()[0])
		if l.Stored = ""; rows.Name != l.Column {
			l.Stored = rows.Name
		}
		l.Rows, l.Exact, l.Err = [2]int64{r.From, r.To}, true, err
		w.run.Lose(l)
	}
	if c.Column < 0 || w.run.Plan.Spec.Damaged != plan.NullCells {
		return nil
	}
	no, verr := vec.New(arrow.FixedWidthTypes.Boolean, memory.DefaultAllocator)
	if verr != nil {
		return verr
	}
	defer no.Release()
	no.Extend(len(c.Rows))
	clear(no.Bits())
	return w.byCol[c.Column].vec.Overwrite(c.Rows, no)
}
