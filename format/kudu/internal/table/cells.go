package table

import (
	"context"
	"errors"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
	"stoa/vec"
)

// Each calls f with the cells of each live row of a small tablet, by column and in stored form; nil is NULL. They are
// valid until f returns.
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

// eachOf is Each for a rowset.
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
	next := make([]int, len(t.Cols)) // index into each column of the patch
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

// PatchAll reads the blocks that an overlay needs for rows, and returns the patch. Suspect rows are an error.
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

// LostBlocks returns a single finding if blocks of a tablet on which rows depend are missing or truncated, else nil.
func (tb *Tablet) LostBlocks(ctx context.Context) (*region.Finding, error) {
	var first region.Finding
	all, lost, needed := 0, 0, false
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
			lost++
			if !b.Idle() && !needed {
				needed, first = true, codes.Finding(fs.LostCode(p), err, tb.ID)
			}
		}
	}
	if !needed { // no row is lost
		return nil, nil
	}
	x := tb.Note(first.Code, first.At,
		fmt.Sprintf("%d of %d blocks are missing or truncated: %s", lost, all, first.Message))
	return &x, nil
}
