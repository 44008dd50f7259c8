package carbon

import (
	"context"
	"encoding/binary"
	"math"

	"stoa/pred"
)

// bounds12 are the bounds that the footer of formats 1 and 2 gives column c of blocklet g: those of dimensions, in the order of the
// bytes in the pages. Codes of a dictionary are turned into the least and the greatest of the values that they stand for.
func (t *table) bounds12(ctx context.Context, f *dataFile, g int, ph *physical, c *column) *pred.Bounds {
	lo, hi, ok := f.footer.index[g].minMax.at(c.chunk)
	if !c.dimension || !ok {
		return nil
	}
	switch {
	case c.globalCodes():
		return t.codeBounds(ctx, ph.col, lo, hi)
	case c.encoders.has(encDirectDictionary):
		return surrogateBounds(c, t.dates, lo, hi)
	case c.typ == typeString || c.typ == typeVarchar:
		// nulls count with their text, and the writer takes the first and the last value of the page for the least and the greatest
		a, z := pred.String(string(lo)), pred.String(string(hi))
		if string(lo) > string(hi) {
			return nil
		}
		return &pred.Bounds{Min: &a, Max: &z, Nulls: -1, Rows: -1}
	}
	return nil
}

// codeBounds are the bounds of codes of a column's dictionary. Whatever is wrong with it is told where it is read.
func (t *table) codeBounds(ctx context.Context, c *column, lo, hi []byte) *pred.Bounds {
	g, err := t.dicts.global(ctx, c)
	if err != nil {
		return nil
	}
	b, err := g.bounds(ctx, lo, hi)
	if err != nil {
		return nil
	}
	return b
}

// surrogateBounds are the bounds of codes of a direct dictionary.
func surrogateBounds(c *column, d dateRule, lo, hi []byte) *pred.Bounds {
	if len(lo) != 4 || len(hi) != 4 {
		return nil
	}
	a, z := int64(binary.BigEndian.Uint32(lo)), int64(binary.BigEndian.Uint32(hi))
	b := &pred.Bounds{Nulls: -1, Rows: -1}
	if a > nullCode {
		b.Nulls = 0
	} else if a == nullCode { // null is the least code; what follows is at least the next one
		a++
	}
	if a > z || z > math.MaxInt32 {
		return nil
	}
	var least, most pred.Value
	switch c.typ {
	case typeDate:
		least, most = pred.Date(a-dateOffset), pred.Date(z-dateOffset)
	case typeTimestamp:
		least, most = instant((a-2)*d.unit+d.cutoff), instant((z-2)*d.unit+d.cutoff)
	default:
		return nil
	}
	b.Min, b.Max = &least, &most
	return b
}
