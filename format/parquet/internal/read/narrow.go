package read

import (
	"context"
	"slices"

	"stoa/format"
	"stoa/format/parquet/internal/order"
	"stoa/pred"
	"stoa/vec"
)

// joinRows is the gap, in rows, up to which ranges of rows are read as one: a seek costs more than reading that many
// rows.
const joinRows = 1024

// Narrow consults the statistics of the row group, its Bloom filters, then the page indexes of the columns in e. It
// returns the rows that none of these exclude.
func (r *Reader) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	rows := r.Footer.RowGroups[g.Index].NumRows
	all := vec.Ranges{}.Add(vec.Range{To: rows})
	if e == nil {
		return all, nil
	}
	leaves := map[string]order.LeafField{}
	for _, name := range e.Columns() {
		if l, ok := r.LeafNamed(name); ok {
			leaves[name] = l
		}
	}
	verdict := e.Prune(func(name string) *pred.Bounds {
		l, ok := leaves[name]
		if !ok {
			return nil
		}
		b := r.GroupBounds(g.Index, l)
		return &b
	})
	switch verdict {
	case pred.None:
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "row group statistics"})
		return nil, nil
	case pred.All:
		return all, nil
	}
	excluded, err := r.bloomExcludes(ctx, g.Index, e, leaves)
	if err != nil {
		return nil, err
	}
	if excluded {
		format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "Bloom filter"})
		return nil, nil
	}
	return r.narrowPages(ctx, g.Index, e, leaves, all)
}

// pageBounds are the bounds of the data pages of a leaf according to the page indexes.
type pageBounds struct {
	firstRow []int64
	bounds   []pred.Bounds
}

// of returns the bounds of the page that contains row.
func (p *pageBounds) of(row int64) *pred.Bounds {
	i, found := slices.BinarySearch(p.firstRow, row)
	if !found {
		i--
	}
	return &p.bounds[i]
}

// narrowPages excludes rows that cannot match, in the intervals between the page boundaries of all leaves.
func (r *Reader) narrowPages(ctx context.Context, group int, e *pred.Expr, leaves map[string]order.LeafField,
	all vec.Ranges) (vec.Ranges, error) {
	pages := map[string]*pageBounds{}
	var cuts []int64
	for name, l := range leaves {
		p, err := r.pageBounds(ctx, group, l)
		if err != nil {
			return nil, err
		}
		if p != nil {
			pages[name] = p
			cuts = append(cuts, p.firstRow...)
		}
	}
	if len(cuts) == 0 {
		return all, nil
	}
	slices.Sort(cuts)
	cuts = append(slices.Compact(cuts), all[0].To)
	var out vec.Ranges
	for i, from := range cuts[:len(cuts)-1] {
		verdict := e.Prune(func(name string) *pred.Bounds {
			if p := pages[name]; p != nil {
				return p.of(from)
			}
			return nil
		})
		if verdict == pred.None {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "page index"})
			continue
		}
		if n := len(out); n > 0 && from-out[n-1].To < joinRows {
			from = out[n-1].To
		}
		out = out.Add(vec.Range{From: from, To: cuts[i+1]})
	}
	return out, nil
}

// pageBounds reads both indexes of a leaf; nil if there are none, or its type has no defined order.
func (r *Reader) pageBounds(ctx context.Context, group int, l order.LeafField) (*pageBounds, error) {
	if !r.Ordered(l.Column) {
		return nil, nil
	}
	off, err := r.OffsetIndex(ctx, group, l.Column)
	if off == nil || err != nil || len(off.FirstRow) == 0 {
		return nil, err
	}
	col, err := r.ColumnIndex(ctx, group, l.Column, len(off.FirstRow))
	if col == nil || err != nil {
		return nil, err
	}
	out := &pageBounds{firstRow: off.FirstRow}
	for i := range off.FirstRow {
		b := pred.Bounds{Nulls: -1, Rows: -1}
		end := r.Footer.RowGroups[group].NumRows
		if i+1 < len(off.FirstRow) {
			end = off.FirstRow[i+1]
		}
		b.Rows = end - off.FirstRow[i]
		counted := r.CountsNulls(l.Column)
		if counted && col.Nulls != nil && col.Nulls[i] >= 0 && col.Nulls[i] <= b.Rows {
			b.Nulls = col.Nulls[i]
		}
		switch {
		case col.NullPages[i] && counted:
			b.Nulls = b.Rows
		case !col.NullPages[i]:
			b.Min, b.Max = r.StatsValue(l, col.Min[i]), r.StatsValue(l, col.Max[i])
		}
		out.bounds = append(out.bounds, b)
	}
	return out, nil
}
