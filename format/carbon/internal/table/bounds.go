package table

import (
	"context"
	"math"
	"slices"

	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/pred"
	"stoa/vec"
)

// groupBounds returns the bounds of a blocklet's columns, by physical column.
func (t *Table) groupBounds(ctx context.Context, f *datafile.DataFile, p *Part, g int,
	q format.Query) map[int]pred.Bounds {
	filtered := q.Filter.Columns()
	out := map[int]pred.Bounds{}
	rows := f.Footer.Blocklet[g].Rows
	for i := range t.Phys {
		ph := &t.Phys[i]
		// dictionaries are read only for columns of the filter
		if ph.Parent >= 0 || ph.Col.Type.Complex() || schema.HasGlobalCodes(ph.Col) &&
			!slices.Contains(filtered, ph.Root.Name) {
			continue
		}
		if b := t.blockletBounds(ctx, f, p, g, ph); b != nil {
			b.Rows = rows
			out[i] = *b
		}
	}
	return out
}

func (t *Table) blockletBounds(ctx context.Context, f *datafile.DataFile, p *Part, g int,
	ph *schema.Physical) *pred.Bounds {
	if text, ok := p.partition(ph.Root.Name); ok {
		v, err := schema.PartitionValue(ph.Root, text, t.Zone)
		if err != nil {
			return nil
		}
		return datafile.ExactConstant(v, ph, f.Footer.Blocklet[g].Rows)
	}
	c := t.Match(f, ph.Root, ph.Col)
	if c == nil {
		if t.Ids == nil || t.ambiguous[ph.Root.ID] != nil {
			return nil
		}
		v, err := schema.DefaultValue(ph.Col)
		if err != nil {
			return nil
		}
		return datafile.ExactConstant(v, ph, f.Footer.Blocklet[g].Rows)
	}
	if f.Version < 3 {
		return t.bounds12(ctx, f, g, ph, c)
	}
	if schema.HasGlobalCodes(c) {
		lo, hi, ok := f.Footer.Index[g].MinMax.At(c.Chunk)
		if !ok {
			return nil
		}
		return t.codeBounds(ctx, ph.Col, lo, hi)
	}
	return datafile.InBoth(datafile.MinMaxOf(c, f.Footer.Index[g].MinMax, c.Chunk))
}

// Narrow implements format.Narrower: it leaves out pages in which e can be true for no row.
func (t *Table) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	all := vec.Ranges{{From: 0, To: max(g.Rows, 0)}}
	if g.Rows < 0 {
		all[0].To = math.MaxInt64
	}
	f, err := t.File(ctx, g.Part)
	if err != nil || f.Version < 3 || f.Stream != nil || g.Index < 0 || g.Index >= len(f.Footer.Blocklet) {
		return all, nil // reading reports the error
	}
	starts, err := f.PageStarts(ctx, g.Index)
	if err != nil || len(starts) < 3 {
		return all, nil
	}
	out := all
	for _, name := range e.Columns() {
		i := slices.IndexFunc(t.Phys, func(p schema.Physical) bool {
			return len(p.Path) == 1 &&
				p.Has == format.Values && p.Root.Name == name
		})
		if i < 0 {
			continue
		}
		col := t.Match(f, t.Phys[i].Root, t.Phys[i].Col)
		if col == nil || schema.HasGlobalCodes(col) || col.Type != t.Phys[i].Col.Type {
			continue
		}
		c, err := f.ReadChunk(ctx, g.Index, col)
		if err != nil || len(c.Pages) != len(starts)-1 {
			continue
		}
		var left vec.Ranges
		for k := range c.Pages {
			known := func(path string) *pred.Bounds {
				if path == name && c.Pages[k].MinMax != nil {
					return datafile.InBoth(datafile.MinMaxOf(col, c.Pages[k].MinMax, 0))
				}
				return nil
			}
			if e.Prune(known) != pred.None {
				left = left.Add(vec.Range{From: starts[k], To: starts[k+1]})
			}
		}
		if left.Len() < starts[len(starts)-1] {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "min and max values of pages"})
		}
		out = out.Intersect(left)
	}
	return out, nil
}

// bounds12 returns the bounds of a column in blocklet g from the footer of formats 1 and 2, which has bounds of
// dimensions only. Bounds of dictionary codes are converted to bounds of the values of all codes between them.
func (t *Table) bounds12(ctx context.Context, f *datafile.DataFile, g int, ph *schema.Physical,
	c *schema.Column) *pred.Bounds {
	lo, hi, ok := f.Footer.Index[g].MinMax.At(c.Chunk)
	if !c.Dimension || !ok {
		return nil
	}
	switch {
	case schema.HasGlobalCodes(c):
		return t.codeBounds(ctx, ph.Col, lo, hi)
	case c.Encoders.Has(layout.EncDirectDictionary):
		return datafile.InBoth(datafile.SurrogateBounds(c, t.Dates, lo, hi))
	case c.Type == layout.TypeString || c.Type == layout.TypeVarchar:
		// a null counts as its text; min and max are the first and last value of the page, whose values need not be
		// sorted
		a, z := pred.String(string(lo)), pred.String(string(hi))
		if string(lo) > string(hi) {
			return nil
		}
		return &pred.Bounds{Min: &a, Max: &z, Nulls: -1, Rows: -1}
	}
	return nil
}

// codeBounds converts bounds of codes of a column's dictionary. Damage of the dictionary is reported when it is read.
func (t *Table) codeBounds(ctx context.Context, c *schema.Column, lo, hi []byte) *pred.Bounds {
	g, err := t.Dicts.Global(ctx, c)
	if err != nil {
		return nil
	}
	b, err := g.Bounds(ctx, lo, hi)
	if err != nil {
		return nil
	}
	return b
}
