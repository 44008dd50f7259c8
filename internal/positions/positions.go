// Package positions tells which rows of a table losses are about.
package positions

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/vec"
)

// Positions are the row groups of a table, in the order in which an unfiltered scan reads them. The rows of a
// region.Loss count within its row group, positions within the table.
type Positions struct {
	total  int64
	groups map[groupOf]vec.Range // -1: not known
}

type groupOf struct {
	part  string
	index int
}

// Add adds the row groups of a reader. A part whose row groups cannot be listed, because it is damaged, has the rows
// that it is declared to have.
func (p *Positions) Add(ctx context.Context, r format.Reader) error {
	for part, err := range r.Parts(ctx, format.Query{}) {
		if err != nil {
			return err
		}
		groups, err := r.RowGroups(ctx, part, format.Query{})
		if errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported) {
			groups, err = []format.RowGroup{{Part: part.Ref, Rows: max(0, part.Rows)}}, nil
		}
		if err != nil {
			return err
		}
		merged := len(r.Order()) > 0 && len(groups) > 1
		for _, g := range groups {
			if drops, err := drops(ctx, r, g); merged || drops || err != nil {
				p.total = -1 // positions are counted while the rows are read
			}
			p.add(g)
		}
	}
	return nil
}

// drops reports whether rows of g may be deleted, in which case only reading shows their number.
func drops(ctx context.Context, r format.Reader, g format.RowGroup) (bool, error) {
	o, ok := r.(format.Overlayer)
	if !ok {
		return false, nil
	}
	overlay, err := o.Overlay(ctx, g, nil)
	return overlay != nil && overlay.Drops(), err
}

// Rows returns how many rows a reader has before any filter; -1 if that is known only by reading. No data is read.
func Rows(ctx context.Context, r format.Reader) (int64, error) {
	var sum int64
	for g, err := range scan.Groups(ctx, r) {
		if err != nil {
			return -1, err
		}
		if drops, err := drops(ctx, r, g); err != nil || drops || g.Rows < 0 {
			return -1, err
		}
		sum += g.Rows
	}
	return sum, nil
}

func (p *Positions) add(g format.RowGroup) {
	if p.groups == nil {
		p.groups = map[groupOf]vec.Range{}
	}
	rows := vec.Range{From: p.total, To: -1}
	if p.total >= 0 && g.Rows >= 0 {
		rows.To = p.total + g.Rows
	}
	p.total = rows.To
	id := groupOf{g.Part, g.Index}
	if _, twice := p.groups[id]; twice {
		rows.From = -1
	}
	p.groups[id] = rows
}

// Total returns how many positions the table has, with those of rows that cannot be read; -1: known only by reading.
func (p *Positions) Total() int64 { return p.total }

// Of returns the positions of a loss. It reports false if they are not known: where row groups are merged or rows may
// be deleted, positions count other rows than losses do.
func (p *Positions) Of(l region.Loss) (rows vec.Range, known bool) {
	g, ok := p.groups[groupOf{l.Part, l.Group}]
	if !ok || g.From < 0 || l.Rows[0] < 0 {
		return vec.Range{}, false
	}
	rows = vec.Range{From: g.From + l.Rows[0], To: g.From + l.Rows[1]}
	switch {
	case l.Rows[1] >= 0:
	case g.To >= 0:
		rows.To = g.To
	default:
		return vec.Range{}, false
	}
	return rows, true
}
