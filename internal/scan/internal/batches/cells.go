package batches

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/internal/scan/internal/window"
	"stoa/vec"
)

// A Batcher reads all columns side by side, so damage in one of them loses whole rows. If lost cells are to be null,
// such rows are read again, one reader per column, all in step, so that only the damaged cells are lost.

// cellColumn is one column of rows that are being reread.
type cellColumn struct {
	col  int
	next func() (arrow.RecordBatch, error, bool)
	stop func()
	arr  arrow.Array // the cells up to end; nil: they are lost
	end  int64       // row after the last one of arr
}

// cells rereads rows that were lost to damage, column by column.
func (r *Batching) cells(ctx context.Context, of []int, rows vec.Range) error {
	cols := make([]*cellColumn, len(of))
	for k, col := range of {
		c := &cellColumn{col: col, end: rows.From}
		c.next, c.stop = iter.Pull2(r.of(ctx, []int{col}, rows))
		cols[k] = c
		defer c.Close()
	}
	for at := rows.From; at < rows.To; {
		end, hidden := rows.To, false
		for _, c := range cols {
			if err := r.cell(c, at, rows.To); err != nil {
				return err
			}
			end = min(end, c.end)
			hidden = hidden || r.hides(c)
		}
		if !slices.ContainsFunc(cols, (*cellColumn).counts) && rows.To-at > window.MaxLost {
			return nil // no column confirms the declared number of rows
		}
		if hidden {
			at = end
			continue
		}
		end = min(end, at+max(1, min(int64(r.Plan.Spec.Batch), nullBytes/r.nullSize(cols))))
		if err := r.inStep(cols, at, end); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// hides reports whether c has lost cells that prevent their row from being returned: a filter over a lost cell is
// unknown, a union has no null, and the null of a fixed-size list may be larger than any page.
func (r *Batching) hides(c *cellColumn) bool {
	top := r.Plan.Columns[c.col].Path[0]
	t := r.Plan.Fields[top].Type
	return c.arr == nil && (t.ID() == arrow.DENSE_UNION || r.filters(top) || vec.NullSize(t) > r.Src.Limits.Page)
}

// nullBytes is how many bytes the nulls of a batch may take, unless it has only one row.
const nullBytes = 64 << 20

// nullSize returns how many bytes a row takes in the columns whose cells are lost.
func (r *Batching) nullSize(cols []*cellColumn) int64 {
	n := int64(1)
	for _, c := range cols {
		if c.arr == nil {
			n += vec.NullSize(r.Plan.Fields[r.Plan.Columns[c.col].Path[0]].Type)
		}
	}
	return n
}

// counts reports whether c holds cells that take bytes. A column of type null does not count: any number of rows can be
// claimed for it.
func (c *cellColumn) counts() bool { return c.arr != nil && c.arr.DataType().ID() != arrow.NULL }

// cell makes c hold the cells from row at on.
func (r *Batching) cell(c *cellColumn, at, to int64) error {
	g := r.Group
	for c.end <= at {
		c.drop()
		rec, err, ok := c.next()
		if ok && err == nil {
			if rec.NumRows() > 0 {
				c.arr, c.end = rec.Column(0), at+rec.NumRows()
				c.arr.Retain()
			}
			continue
		}
		if !ok {
			err = fault.Corruptf(fault.Span{Object: g.Part}, "column "+r.Plan.Columns[c.col].Name,
				"it ends after %d of %s", at, fault.Count(g.Rows, "row"))
		}
		if !r.Tolerates(err) {
			return err
		}
		var exact rowsError
		if c.end = to; ok && errors.As(err, &exact) {
			_, c.end = exact.LostRows()
			c.end = min(max(c.end, at+1), to)
		}
		l := r.Plan.LossIn(g, c.col)
		l.Rows, l.Exact, l.Err = [2]int64{at, c.end}, true, err
		r.Lose(l)
	}
	return nil
}

func (c *cellColumn) drop() {
	if c.arr != nil {
		c.arr.Release()
		c.arr = nil
	}
}

func (c *cellColumn) Close() {
	c.drop()
	c.stop()
}

// inStep emits the rows [at, end), which every column either holds or has lost.
func (r *Batching) inStep(cols []*cellColumn, at, end int64) error {
	n := end - at
	fields, arrs := make([]arrow.Field, len(cols)), make([]arrow.Array, len(cols))
	defer func() {
		for _, a := range arrs {
			if a != nil {
				a.Release()
			}
		}
	}()
	for k, c := range cols {
		top := r.Plan.Columns[c.col].Path[0]
		if fields[k] = r.Plan.Fields[top]; c.arr == nil {
			arrs[k] = vec.Nulls(r.Plan.Alloc(), fields[k].Type, int(n))
			continue
		}
		from := int64(c.arr.Len()) - (c.end - at)
		arrs[k] = array.NewSlice(c.arr, from, from+n)
		fields[k].Type = arrs[k].DataType() // a struct may have only the requested children
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), arrs, n)
	defer rec.Release()
	return r.batch(rec)
}

// filters reports whether the filter uses a top-level field.
func (r *Batching) filters(top int) bool {
	for _, path := range r.Plan.Paths {
		if path[0] == top {
			return true
		}
	}
	return false
}
