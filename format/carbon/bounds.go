package carbon

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"stoa/format"
	"stoa/pred"
	"stoa/vec"
)

// The least and the greatest value of each page and of each blocklet, as format 3 keeps them. How they are written depends on
// whether the column is a dimension (bytes that compare as the values do) or a measure. A null counts as 0, as the text of
// a null, or as code 1: bounds are never too narrow, but they may be too wide.

// bounds are those of a page.
func (c *chunk) bounds(ctx context.Context, p *storedPage) (*pred.Bounds, bool) {
	if c.f.version < 3 {
		return nil, false
	}
	if c.phys.Has != 1 || c.phys.Parent >= 0 || p.minMax == nil {
		return nil, false
	}
	if c.global != nil && p.global {
		b := c.global.pageBounds(ctx, p.minMax)
		return b, b != nil
	}
	b := c.col.minMax(p.minMax, 0)
	return b, b != nil
}

// groupBounds are those of a blocklet, by physical column.
func (t *table) groupBounds(ctx context.Context, f *dataFile, p *part, g int, q format.Query) map[int]pred.Bounds {
	asked := q.Filter.Columns()
	out := map[int]pred.Bounds{}
	rows := f.footer.blocklet[g].rows
	for i := range t.phys {
		ph := &t.phys[i]
		if ph.Parent >= 0 || ph.col.typ.complex() || ph.col.globalCodes() && !slices.Contains(asked, ph.root.name) { // a dictionary is read only for who asks
			continue
		}
		if b := t.blockletBounds(ctx, f, p, g, ph); b != nil {
			b.Rows = rows
			out[i] = *b
		}
	}
	return out
}

func (t *table) blockletBounds(ctx context.Context, f *dataFile, p *part, g int, ph *physical) *pred.Bounds {
	if text, ok := p.partition(ph.root.name); ok {
		v, err := partitionValue(ph.root, text, t.zone)
		if err != nil {
			return nil
		}
		return v.exact(ph, f.footer.blocklet[g].rows)
	}
	c := t.match(f, ph.root, ph.col)
	if c == nil {
		if t.ids == nil {
			return nil
		}
		v, err := defaultValue(ph.col)
		if err != nil {
			return nil
		}
		return v.exact(ph, f.footer.blocklet[g].rows)
	}
	if f.version < 3 {
		return t.bounds12(ctx, f, g, ph, c)
	}
	if c.globalCodes() {
		lo, hi, ok := f.footer.index[g].minMax.at(c.chunk)
		if !ok {
			return nil
		}
		return t.codeBounds(ctx, ph.col, lo, hi)
	}
	return c.minMax(f.footer.index[g].minMax, c.chunk)
}

// Narrow leaves out the pages that cannot hold a row of which e is true. It is format.Narrower.
func (t *table) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	all := vec.Ranges{{From: 0, To: max(g.Rows, 0)}}
	if g.Rows < 0 {
		all[0].To = math.MaxInt64
	}
	f, err := t.file(ctx, g.Part)
	if err != nil || f.version < 3 || f.stream != nil || g.Index < 0 || g.Index >= len(f.footer.blocklet) {
		return all, nil // what is wrong reading will tell
	}
	starts, err := f.pageStarts(ctx, g.Index)
	if err != nil || len(starts) < 3 {
		return all, nil
	}
	out := all
	for _, name := range e.Columns() {
		i := slices.IndexFunc(t.phys, func(p physical) bool { return len(p.Path) == 1 && p.Has == format.Values && p.root.name == name })
		if i < 0 {
			continue
		}
		col := t.match(f, t.phys[i].root, t.phys[i].col)
		if col == nil || col.globalCodes() || col.typ != t.phys[i].col.typ {
			continue
		}
		c, err := f.readChunk(ctx, g.Index, col)
		if err != nil || len(c.pages) != len(starts)-1 {
			continue
		}
		var left vec.Ranges
		for k := range c.pages {
			known := func(path string) *pred.Bounds {
				if path == name && c.pages[k].minMax != nil {
					return col.minMax(c.pages[k].minMax, 0)
				}
				return nil
			}
			if e.Prune(known) != pred.None {
				left = left.Add(vec.Range{From: starts[k], To: starts[k+1]})
			}
		}
		if left.Len() < starts[len(starts)-1] {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "least and greatest values of pages"})
		}
		out = out.Intersect(left)
	}
	return out, nil
}

// exact are the bounds of a constant in all rows.
func (v constant) exact(ph *physical, rows int64) *pred.Bounds {
	b := v.bounds(ph.Type)
	if v.null {
		b.Nulls = rows
	}
	return b
}

// minMax is the bounds that number i of m gives column c of a file of format 3; nil if it gives none.
func (c *column) minMax(m *minMax, i int) *pred.Bounds {
	lo, hi, ok := m.at(i)
	if !ok || len(lo) == 0 && len(hi) == 0 || c.globalCodes() { // codes are not in the order of the values
		return nil
	}
	a, ok1 := c.bound(lo)
	z, ok2 := c.bound(hi)
	if order, ok := pred.Compare(a, z); !ok1 || !ok2 || !ok || order > 0 {
		return nil // nothing was kept, or nothing was there but nulls
	}
	return &pred.Bounds{Min: &a, Max: &z, Nulls: -1, Rows: -1}
}

// crossed reports whether a least value that can be read is greater than the greatest one. Only where all values are null that may be.
func (c *column) crossed(m *minMax, i int) (least, greatest pred.Value, yes bool) {
	lo, hi, ok := m.at(i)
	if !ok || len(lo) == 0 || len(hi) == 0 || c.globalCodes() {
		return least, greatest, false
	}
	a, ok1 := c.bound(lo)
	z, ok2 := c.bound(hi)
	order, ok := pred.Compare(a, z)
	return a, z, ok && ok1 && ok2 && order > 0
}

// bound is a bound's bytes as a value.
func (c *column) bound(b []byte) (pred.Value, bool) {
	switch c.typ {
	case typeString, typeVarchar:
		return pred.Value{Kind: pred.KindString, Text: string(b)}, true
	case typeBinary:
		return pred.Value{Kind: pred.KindBytes, Text: string(b)}, true
	case typeDate:
		if len(b) != 4 {
			return pred.Value{}, false
		}
		return pred.Value{Kind: pred.KindDate, Int: int64(binary.BigEndian.Uint32(b)) - dateOffset}, true
	case typeDecimal:
		if c.dimension || len(b) < 2 || len(b) > 17 {
			return pred.Value{}, false
		}
		return pred.Value{Kind: pred.KindDecimal, Dec: bigNum(b[1:]), Scale: int32(b[0])}, true
	case typeDouble:
		if c.dimension || len(b) != 8 {
			return pred.Value{}, false
		}
		f := math.Float64frombits(binary.BigEndian.Uint64(b))
		return pred.Value{Kind: pred.KindFloat, Float: f}, !math.IsNaN(f) && !math.IsInf(f, 0)
	case typeBoolean, typeByte, typeShort, typeInt, typeLong, typeTimestamp:
		return c.wholeBound(b)
	}
	return pred.Value{}, false
}

// wholeBound is a bound of whole numbers: eight bytes (one of bytes and booleans), of a dimension as many as the type has, with
// the sign turned.
func (c *column) wholeBound(b []byte) (pred.Value, bool) {
	n := len(b)
	if n == 0 || n > 8 {
		return pred.Value{}, false
	}
	var v int64
	for _, x := range b {
		v = v<<8 | int64(x)
	}
	small := c.typ == typeBoolean || c.typ == typeByte
	switch {
	case small && n != 1, !small && !c.dimension && n != 8, c.dimension && c.typ == typeByte: // the last one is a text
		return pred.Value{}, false
	case c.dimension && !small:
		if want := map[dataType]int{typeShort: 2, typeInt: 4, typeLong: 8, typeTimestamp: 8}[c.typ]; n != want {
			return pred.Value{}, false
		}
		v ^= 1 << (8*n - 1)
		v = v << (64 - 8*n) >> (64 - 8*n)
	default:
		v = v << (64 - 8*n) >> (64 - 8*n)
	}
	switch c.typ {
	case typeBoolean:
		if c.dimension && (v == '0' || v == '1') { // pages of sort columns have texts
			v -= '0'
		}
		return pred.Bool(v == 1), v == 0 || v == 1
	case typeTimestamp:
		return instant(v), true
	}
	return pred.Int(v), true
}
