package page

import (
	"stoa/fault"
	"stoa/format/carbon/internal/layout"
)

// Kinds of values that are kept in different ways. A page says of which its values are, and so does the header.
const (
	anyKind = iota
	kindTruth
	kindWhole
	kindMoment
	kindFloat
	kindDay
)

func kindOfColumn(t layout.DataType) int {
	switch t {
	case layout.TypeBoolean:
		return kindTruth
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		return kindWhole
	case layout.TypeTimestamp:
		return kindMoment
	case layout.TypeFloat, layout.TypeDouble:
		return kindFloat
	case layout.TypeDate:
		return kindDay
	}
	return anyKind
}

func kindOfPage(t layout.StoreType) int {
	switch t {
	case layout.StoreBoolean:
		return kindTruth
	case layout.StoreByte, layout.StoreShort, layout.StoreInt, layout.StoreLong:
		return kindWhole
	case layout.StoreTimestamp:
		return kindMoment
	case layout.StoreFloat, layout.StoreDouble:
		return kindFloat
	}
	return anyKind // of dates there is none: they are codes, or bytes
}

// kinds holds the kind of a page's values against that of its column: the same numbers are other values as dates.
func (c *Content) kinds() error {
	col, own := kindOfColumn(c.P.Col.Typ), kindOfPage(c.meta.Schema)
	if col == own || col == anyKind || own == anyKind {
		return nil
	}
	return fault.Rel(0, 0, "encoder_meta", "values of type %s, the column has %s", c.meta.Schema, c.P.Col.Typ)
}
