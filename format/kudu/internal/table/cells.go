package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Each calls f with the cells of each live row of a small tablet; nil is NULL.
func (t *Table) Each(ctx context.Context, tb *Tablet, f func(cells [][]byte) error) error {
	if err := t.Load(ctx, tb); err != nil {
		return err
	}
	for _, s := range tb.Sets {
		if err := t.eachOf(ctx, s, f); err != nil {
			return err
		}
	}
	m := tb.logged
	if m == nil {
		return nil
	}
	cells := make([][]byte, len(t.Cols))
	for row := range m.keys {
		for i, v := range m.cells {
			cells[i] = meta.CellOf(v, row, &t.Stored.Columns[i])
		}
		if err := f(cells); err != nil {
			return err
		}
	}
	return nil
}

// eachOf is each of a rowset.
func (t *Table) eachOf(ctx context.Context, s *RowSet, f func(cells [][]byte) error) error {
	cols := make([]int, len(t.Cols))
	base := make([]*Values, len(t.Cols))
	for i := range cols {
		cols[i] = i
		b, ok := s.Block(t.Stored.Columns[i].ID)
		if !ok {
			continue
		}
		x, err := t.Values(ctx, s, b)
		if err != nil {
			return err
		}
		defer x.It.Close()
		base[i] = x
	}
	rows := vec.Range{To: max(s.Rows, 0)}
	var p *vec.Patch
	o, err := t.ChangesOf(ctx, s, cols, t.Opts.At)
	if err == nil && o != nil {
		p, err = t.PatchAll(ctx, o, rows)
	}
	if err != nil {
		return err
	}
	next := make([]int, len(t.Cols)) // place in the patch's column
	cells := make([][]byte, len(t.Cols))
	for row := range s.Rows {
		for i := range cells {
			cells[i] = t.Stored.Columns[i].ReadDefault
			if base[i] != nil {
				if cells[i], err = base[i].Next(ctx); err != nil {
					return err
				}
			}
		}
		if p != nil {
			for k, c := range p.Cols {
				if n := next[k]; n < len(c.Rows) && int64(c.Rows[n]) == row {
					cells[c.Col] = meta.CellOf(c.Vals, n, &t.Stored.Columns[c.Col])
					next[k]++
				}
			}
			if p.Drop != nil && p.Drop.Has(int(row)) {
				continue
			}
		}
		if err := f(cells); err != nil {
			return err
		}
	}
	return nil
}

// PatchAll reads what an overlay needs for rows, and gives its patch. What is suspect is an error.
func (t *Table) PatchAll(ctx context.Context, o *overlay, rows vec.Range) (*vec.Patch, error) {
	var stored [][]byte
	for _, at := range o.Spans(rows) {
		b := make([]byte, at.Len)
		if err := format.ReadFull(ctx, Source{t.Tree, at.Object, at.End()}, at, "deltas", b); err != nil {
			return nil, err
		}
		stored = append(stored, b)
	}
	p, err := o.Patch(ctx, rows, stored)
	if err == nil && len(p.Suspect) > 0 {
		return nil, p.Suspect[0].Err
	}
	return p, err
}

// LostBlocks is a finding if blocks of a tablet are missing or cut.
func (tb *Tablet) LostBlocks(ctx context.Context) (*region.Finding, error) {
	var first region.Finding
	all, lost := 0, 0
	for i := range tb.RowSets {
		for _, b := range tb.RowSets[i].Blocks() {
			all++
			p, err := tb.FS.PlaceOf(ctx, tb.Tablet, b.BlockRef)
			switch {
			case err == nil:
				continue
			case !errors.As(err, new(*fault.Error)):
				return nil, err
			}
			if lost++; lost == 1 {
				first = codes.Finding(fs.LostCode(p), err, tb.ID)
			}
		}
	}
	if lost == 0 {
		return nil, nil
	}
	x := tb.Note(first.Code, first.At, fmt.Sprintf("%d of %d blocks are missing or cut: %s", lost, all, first.Message))
	return &x, nil
}

// Values reads the values of a block one by one.
type Values struct {
	It    *cfile.Iterator
	At    fault.Span
	width int
	arr   arrow.Array
	i     int
}

// Values reads the values of a block from the first on.
func (t *Table) Values(ctx context.Context, s *RowSet, b meta.BlockRef) (*Values, error) {
	r, err := t.OpenBlock(ctx, s, b)
	if err != nil {
		return nil, err
	}
	it, err := r.SeekToOrdinal(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &Values{It: it, At: r.At(), width: r.Footer().Type.Width()}, nil
}

// Next is the next value, as a block has it; nil is NULL.
func (x *Values) Next(ctx context.Context) ([]byte, error) {
	for x.arr == nil || x.i == x.arr.Len() {
		if x.arr != nil {
			x.arr.Release()
			x.arr = nil
		}
		var err error
		if x.arr, err = x.It.Next(ctx, 4096); err != nil {
			if err == io.EOF {
				err = fault.Corruptf(x.At, "", "the file ends before its rowset does")
			}
			return nil, err
		}
		x.i = 0
	}
	i := x.i
	x.i++
	if x.arr.IsNull(i) {
		return nil, nil
	}
	switch a := x.arr.(type) {
	case *array.Boolean:
		if a.Value(i) {
			return []byte{1}, nil
		}
		return []byte{0}, nil
	case *array.String:
		return []byte(a.Value(i)), nil
	case *array.Binary:
		return a.Value(i), nil
	}
	d := x.arr.Data()
	size := d.DataType().(arrow.FixedWidthDataType).Bytes()
	return d.Buffers()[1].Bytes()[(d.Offset()+i)*size:][:x.width], nil
}
