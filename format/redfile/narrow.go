package redfile

import (
	"context"
	"math"
	"slices"
	"stoa/format"
	"stoa/pred"
	"stoa/vec"
)

// Narrow leaves out the pages that cannot hold a row of which e is true. It is format.Narrower.
func (f *file) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	rows, err := f.rowsOf(ctx, g.Index)
	if err != nil || rows < 0 {
		return vec.Ranges{{From: 0, To: math.MaxInt64}}, err
	}
	out := vec.Ranges{{From: 0, To: rows}}
	for _, name := range e.Columns() {
		at, _, err := pred.Find(f.schema.Fields(), name)
		if err != nil {
			continue
		}
		col := slices.IndexFunc(f.leaves, func(l leaf) bool { return slices.Equal(l.column.Path, at) })
		if col < 0 || f.leaves[col].maxRep > 0 {
			continue
		}
		t, err := f.table(ctx, g.Index, col)
		if err != nil || !t.indexed {
			continue // if it is damage, reading will tell
		}
		var left vec.Ranges
		for i := range t.pages {
			p := &t.pages[i]
			known := func(path string) *pred.Bounds {
				if path == name {
					return p.bounds
				}
				return nil
			}
			if e.Prune(known) != pred.None {
				left = left.Add(vec.Range{From: p.first, To: p.first + p.rows})
			}
		}
		if left.Len() < rows {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "index page"})
		}
		out = out.Intersect(left)
	}
	return out, nil
}
