package scan

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/vec"
)

// scoutRows is how many rows the filter's columns are read ahead of the others, so that the first rows come soon.
const scoutRows = 256 << 10

// scout reads the columns of the filter before the others. It is for a Batcher that knows its pages: those of other columns that have no row
// that passes are then never asked for.
type scout struct {
	run    *run
	reader format.Batcher
	group  format.RowGroup
	tested []format.ColumnPages // of the columns that the filter looks at
	pages  []format.ColumnPages // of the others
	rows   vec.Ranges           // to be read: what passes, and what lies between without a page of its own
}

// newScout is nil where there is nothing to gain: the metadata says that all rows pass, or the filter looks at all columns.
func (r *run) newScout(ctx context.Context, b format.Batcher, g format.RowGroup) (*scout, error) {
	p := r.plan
	paged, ok := b.(format.Paged)
	if !ok || p.filter == nil || g.Rows < 0 || p.spec.Damaged == NullCells {
		return nil, nil
	}
	if p.filter.Prune(func(name string) *pred.Bounds {
		if k, ok := p.named[name]; ok {
			if b, ok := g.Bounds[k]; ok {
				return &b
			}
		}
		return nil
	}) == pred.All {
		return nil, nil
	}
	s := &scout{run: r, reader: b, group: g}
	pages, err := paged.Pages(ctx, g, p.query)
	if err != nil {
		if errors.Is(err, fault.Corrupt) {
			return nil, nil // what is wrong with them shows when they are needed
		}
		return nil, err
	}
	for _, c := range pages {
		switch {
		case slices.Contains(p.filters, c.Column):
			s.tested = append(s.tested, c)
			continue
		case c.Pages == nil: // not known: all or nothing
			c.Pages = []format.Page{{Rows: g.Rows}}
		}
		s.pages = append(s.pages, c)
	}
	if len(s.pages) == 0 {
		return nil, nil
	}
	return s, nil
}

// through gives the rows of all columns that are needed of some.
func (s *scout) through(ctx context.Context, rows vec.Range) error {
	p := s.run.plan
	for rows.Len() > 0 {
		step := vec.Range{From: rows.From, To: min(rows.To, rows.From+scoutRows)}
		rows.From, s.rows = step.To, nil
		if err := s.test(ctx, step); err != nil {
			return err
		}
		p.spec.Trace.readPages(s.group, s.tested, vec.Ranges{step})
		p.spec.Trace.readPages(s.group, s.pages, s.rows)
		for _, live := range s.rows {
			if _, err := s.run.batches(ctx, s.reader, s.group, live); err != nil {
				return err
			}
		}
	}
	return nil
}

// test reads the columns of the filter. Rows that damage takes are left for the reading of all columns, which tells of it.
func (s *scout) test(ctx context.Context, rows vec.Range) error {
	p, at := s.run.plan, rows.From
	for rec, err := range safely(s.reader.Batches(ctx, s.group, p.scouted, rows, vec.Zeroed{Allocator: p.alloc()})) {
		if err != nil {
			var exact rowsError
			switch {
			case !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported):
				return err
			case errors.As(err, &exact):
				from, to := exact.LostRows()
				s.keep(vec.Range{From: from, To: min(to, rows.To)})
				at = to
				continue
			}
			s.keep(vec.Range{From: at, To: rows.To})
			return nil
		}
		sel, err := p.filter.Eval(int(rec.NumRows()), func(path string) arrow.Array { return columnOf(rec, path) }, nil)
		if err != nil {
			return err
		}
		s.keepAll(at, sel)
		at += rec.NumRows()
	}
	return nil
}

// keepAll keeps the selected rows of those that begin with row at.
func (s *scout) keepAll(at int64, sel *vec.Sel) {
	for i := 0; i < sel.N; {
		if !sel.Has(i) {
			i++
			continue
		}
		from := i
		for i++; i < sel.N && sel.Has(i); i++ {
		}
		s.keep(vec.Range{From: at + int64(from), To: at + int64(i)})
	}
}

// keep adds rows. What lies between them and the ones before is left out only if a page of some column does.
func (s *scout) keep(rows vec.Range) {
	if rows.Len() == 0 {
		return
	}
	if n := len(s.rows); n > 0 && !s.pageBetween(s.rows[n-1].To, rows.From) {
		s.rows[n-1].To = max(s.rows[n-1].To, rows.To)
		return
	}
	s.rows = append(s.rows, rows)
}

func (s *scout) pageBetween(from, to int64) bool {
	for _, c := range s.pages {
		i, _ := slices.BinarySearchFunc(c.Pages, from, func(p format.Page, row int64) int { return int(min(1, max(-1, p.First-row))) })
		if i < len(c.Pages) && c.Pages[i].First+c.Pages[i].Rows <= to {
			return true
		}
	}
	return false
}
