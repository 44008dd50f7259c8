package block

import "stoa/wire"

// Layout is a parsed data block.
type Layout struct {
	Rows   int
	Nulls  Bitmap // of a nullable block
	Arrays arrays // of an array block
	Values values
}

// ParseDataBlock reads a data block of a file with footer f, which c holds exactly: an array block, a nullable
// block, or bare values.
func ParseDataBlock(c *wire.Cursor, f *Footer) (l Layout) {
	switch {
	case f.Array():
		l.Arrays = parseArrays(c)
		l.Rows = l.Arrays.Cells.N
	case f.Nullable:
		l.Nulls = parseNulls(c)
		l.Rows = l.Nulls.N
	}
	l.Values = parseValues(c, f.Type, f.Encoding)
	if !f.Array() && !f.Nullable {
		l.Rows = l.Values.Count
	}
	return l
}

// MaxSub is the largest number of rows of a page; a block with more rows is split into several pages. A few bytes of
// runs can encode any number of rows, which would exceed the memory of a scan window.
const MaxSub = 128 << 10
