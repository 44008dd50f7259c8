package datafile

import (
	"context"
	"encoding/binary"
	"math"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/pred"
)

// The smallest and the largest value of each page and of each blocklet, as format 3 keeps them. How they are
// written depends on whether the column is a dimension (bytes that compare as the values do) or a measure. A
// null counts as 0, as the text of a null, or as code 1: bounds are never too narrow, but they may be too wide.

// bounds are those of a page.
func (c *Chunk) bounds(ctx context.Context, p *page.StoredPage) (*pred.Bounds, bool) {
	if c.F.Version < 3 {
		return nil, false
	}
	if c.Phys.Has != 1 || c.Phys.Parent >= 0 || p.MinMax == nil {
		return nil, false
	}
	if c.Global != nil && p.Global {
		b := c.Global.PageBounds(ctx, p.MinMax)
		return b, b != nil
	}
	b := MinMaxOf(c.Col, p.MinMax, 0)
	return b, b != nil
}

// ExactConstant are the bounds of a constant in all rows.
func ExactConstant(v schema.Constant, ph *schema.Physical, rows int64) *pred.Bounds {
	b := v.Bounds(ph.Type)
	if v.Null {
		b.Nulls = rows
	}
	return b
}

// MinMaxOf is the bounds that number i of m gives column c of a file of format 3; nil if it gives none.
func MinMaxOf(c *schema.Column, m *layout.MinMax, i int) *pred.Bounds {
	lo, hi, ok := m.At(i)
	if !ok || len(lo) == 0 && len(hi) == 0 || schema.GlobalCodes(c) { // codes are not in the order of the values
		return nil
	}
	a, ok1 := BoundOf(c, lo)
	z, ok2 := BoundOf(c, hi)
	if order, ok := pred.Compare(a, z); !ok1 || !ok2 || !ok || order > 0 {
		return nil // nothing was kept, or nothing was there but nulls
	}
	return &pred.Bounds{Min: &a, Max: &z, Nulls: -1, Rows: -1}
}

// Crossed reports whether a smallest value that can be read is greater than the largest one. Only where all
// values are null that may be.
func Crossed(c *schema.Column, m *layout.MinMax, i int) (lowest, highest pred.Value, yes bool) {
	lo, hi, ok := m.At(i)
	if !ok || len(lo) == 0 || len(hi) == 0 || schema.GlobalCodes(c) {
		return lowest, highest, false
	}
	a, ok1 := BoundOf(c, lo)
	z, ok2 := BoundOf(c, hi)
	order, ok := pred.Compare(a, z)
	return a, z, ok && ok1 && ok2 && order > 0
}

// BoundOf is a bound's bytes as a value.
func BoundOf(c *schema.Column, b []byte) (pred.Value, bool) {
	switch c.Typ {
	case layout.TypeString, layout.TypeVarchar:
		return pred.Value{Kind: pred.KindString, Text: string(b)}, true
	case layout.TypeBinary:
		return pred.Value{Kind: pred.KindBytes, Text: string(b)}, true
	case layout.TypeDate:
		if len(b) != 4 {
			return pred.Value{}, false
		}
		return pred.Value{Kind: pred.KindDate, Int: int64(binary.BigEndian.Uint32(b)) - schema.DateOffset}, true
	case layout.TypeDecimal:
		if c.Dimension || len(b) < 2 || len(b) > 17 {
			return pred.Value{}, false
		}
		return pred.Value{Kind: pred.KindDecimal, Dec: schema.BigNum(b[1:]), Scale: int32(b[0])}, true
	case layout.TypeDouble:
		if c.Dimension || len(b) != 8 {
			return pred.Value{}, false
		}
		f := math.Float64frombits(binary.BigEndian.Uint64(b))
		return pred.Value{Kind: pred.KindFloat, Float: f}, !math.IsNaN(f) && !math.IsInf(f, 0)
	case layout.TypeBoolean, layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong, layout.TypeTimestamp:
		return wholeBound(c, b)
	}
	return pred.Value{}, false
}

// wholeBound is a bound of whole numbers: eight bytes (one of bytes and booleans), of a dimension as many as
// the type has, with the sign turned.
func wholeBound(c *schema.Column, b []byte) (pred.Value, bool) {
	n := len(b)
	if n == 0 || n > 8 {
		return pred.Value{}, false
	}
	var v int64
	for _, x := range b {
		v = v<<8 | int64(x)
	}
	small := c.Typ == layout.TypeBoolean || c.Typ == layout.TypeByte
	switch {
	case small && n != 1, !small && !c.Dimension && n != 8, c.Dimension && c.Typ == layout.TypeByte:
		// the last one is a text
		return pred.Value{}, false
	case c.Dimension && !small:
		if want := map[layout.DataType]int{layout.TypeShort: 2, layout.TypeInt: 4, layout.TypeLong: 8,
			layout.TypeTimestamp: 8}[c.Typ]; n != want {
			return pred.Value{}, false
		}
		v ^= 1 << (8*n - 1)
		v = v << (64 - 8*n) >> (64 - 8*n)
	default:
		v = v << (64 - 8*n) >> (64 - 8*n)
	}
	switch c.Typ {
	case layout.TypeBoolean:
		if c.Dimension && (v == '0' || v == '1') { // pages of sort columns have texts
			v -= '0'
		}
		return pred.Bool(v == 1), v == 0 || v == 1
	case layout.TypeTimestamp:
		return schema.Instant(v), true
	}
	return pred.Int(v), true
}
