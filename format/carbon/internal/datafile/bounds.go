package datafile

import (
	"context"
	"encoding/binary"
	"math"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/civil"
	"stoa/pred"
)

// Min and max of pages and blocklets in format 3. Bounds of a dimension are bytes that compare like the values; bounds
// of a measure are numbers. A null counts as 0, as the text for null, or as code 1, so bounds may be too wide but never
// too narrow.

// bounds returns the bounds of a page; nil and false if it has none.
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
	if c.F.Hybrid {
		b = InBoth(b)
	}
	return b, b != nil
}

// ExactConstant returns the bounds of a chunk in which all of rows rows have the constant v.
func ExactConstant(v schema.Constant, ph *schema.Physical, rows int64) *pred.Bounds {
	b := v.Bounds(ph.Type)
	if v.Null {
		b.Nulls = rows
	}
	return b
}

// MinMaxOf returns the bounds that m has for chunk i, which is column c of a file of format 3; nil if there are none.
func MinMaxOf(c *schema.Column, m *layout.MinMax, i int) *pred.Bounds {
	lo, hi, ok := m.At(i)
	if !ok || len(lo) == 0 && len(hi) == 0 || schema.HasGlobalCodes(c) { // codes are not in the order of the values
		return nil
	}
	a, ok1 := BoundOf(c, lo)
	z, ok2 := BoundOf(c, hi)
	if order, ok := pred.Compare(a, z); !ok1 || !ok2 || !ok || order > 0 {
		return nil // unknown, or all values are null
	}
	return &pred.Bounds{Min: &a, Max: &z, Nulls: -1, Rows: -1}
}

// InBoth widens bounds of dates and times so that they hold in both calendars, Java's hybrid one and the proleptic
// Gregorian one.
func InBoth(b *pred.Bounds) *pred.Bounds {
	if b == nil || b.Min == nil || b.Max == nil {
		return b
	}
	wide := *b
	low, high := otherwise(*b.Min), otherwise(*b.Max)
	if order, ok := pred.Compare(low, *b.Min); ok && order < 0 {
		wide.Min = &low
	}
	if order, ok := pred.Compare(high, *b.Max); ok && order > 0 {
		wide.Max = &high
	}
	return &wide
}

// otherwise converts a date or time from Java's calendar; other values are returned unchanged.
func otherwise(v pred.Value) pred.Value {
	const seconds = 86400
	switch {
	case v.Kind == pred.KindDate && v.Int < civil.Switch:
		v.Int = civil.Gregorian(v.Int)
	case v.Kind == pred.KindTimestamp && v.Int < civil.Switch*seconds:
		day := civil.FloorDiv(v.Int, seconds)
		v.Int += (civil.Gregorian(day) - day) * seconds
	}
	return v
}

// Crossed reports whether min and max of chunk i can be parsed and min > max. Writers write such bounds only if all
// values are null.
func Crossed(c *schema.Column, m *layout.MinMax, i int) (lowest, highest pred.Value, yes bool) {
	lo, hi, ok := m.At(i)
	if !ok || len(lo) == 0 || len(hi) == 0 || schema.HasGlobalCodes(c) {
		return lowest, highest, false
	}
	a, ok1 := BoundOf(c, lo)
	z, ok2 := BoundOf(c, hi)
	order, ok := pred.Compare(a, z)
	return a, z, ok && ok1 && ok2 && order > 0
}

// BoundOf parses a bound of column c in format 3; ok is false if it cannot be one.
func BoundOf(c *schema.Column, b []byte) (pred.Value, bool) {
	switch c.Type {
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
		return pred.Value{Kind: pred.KindDecimal, Dec: schema.ParseDecimal(b[1:]), Scale: int32(b[0])}, true
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

// wholeBound parses a big-endian bound of a whole number. That of a measure has eight bytes (one for bytes and
// booleans), that of a dimension has the width of the type and an inverted sign bit.
func wholeBound(c *schema.Column, b []byte) (pred.Value, bool) {
	n := len(b)
	if n == 0 || n > 8 {
		return pred.Value{}, false
	}
	var v int64
	for _, x := range b {
		v = v<<8 | int64(x)
	}
	small := c.Type == layout.TypeBoolean || c.Type == layout.TypeByte
	switch {
	case small && n != 1, !small && !c.Dimension && n != 8, c.Dimension && c.Type == layout.TypeByte:
		// a dimension of type byte has texts as bounds, which do not compare like the values
		return pred.Value{}, false
	case c.Dimension && !small:
		if want := map[layout.DataType]int{layout.TypeShort: 2, layout.TypeInt: 4, layout.TypeLong: 8,
			layout.TypeTimestamp: 8}[c.Type]; n != want {
			return pred.Value{}, false
		}
		v ^= 1 << (8*n - 1)
		v = v << (64 - 8*n) >> (64 - 8*n)
	default:
		v = v << (64 - 8*n) >> (64 - 8*n)
	}
	switch c.Type {
	case layout.TypeBoolean:
		if c.Dimension && (v == '0' || v == '1') { // pages of sort columns have texts as bounds
			v -= '0'
		}
		return pred.Bool(v == 1), v == 0 || v == 1
	case layout.TypeTimestamp:
		return schema.TimestampValue(v), true
	}
	return pred.Int(v), true
}
