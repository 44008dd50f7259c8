package table

import (
	"context"
	"math"
	"slices"

	"stoa/format"
	"stoa/format/redfile/internal/schema"
	"stoa/pred"
	"stoa/vec"
)

// Narrow implements format.Narrower. Of the rows of a row group it removes those in pages that, according to the index
// pages, cannot contain a row for which e is true.
func (f *File) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	rows, err := f.RowsOf(ctx, g.Index)
	if err != nil || rows < 0 {
		return vec.Ranges{{From: 0, To: math.MaxInt64}}, err
	}
	out := vec.Ranges{{From: 0, To: rows}}
	for _, name := range e.Columns() {
		at, _, err := pred.Find(f.Shown.Fields(), name)
		if err != nil {
			continue
		}
		col := slices.IndexFunc(f.Leaves, func(l schema.Leaf) bool { return slices.Equal(l.Column.Path, at) })
		if col < 0 || f.Leaves[col].MaxRep > 0 {
			continue
		}
		t, err := f.Table(ctx, g.Index, col)
		if err != nil || !t.Indexed {
			continue // damage is reported when the column is read
		}
		var left vec.Ranges
		for i := range t.Pages {
			p := &t.Pages[i]
			known := func(path string) *pred.Bounds {
				if path == name {
					return p.Bounds
				}
				return nil
			}
			if e.Prune(known) != pred.None {
				left = left.Add(vec.Range{From: p.First, To: p.First + p.Rows})
			}
		}
		if left.Len() < rows {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "index page"})
		}
		out = out.Intersect(left)
	}
	return out, nil
}
