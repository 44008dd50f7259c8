package page

import (
	"stoa/fault"
	"stoa/format/carbon/internal/schema"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Cells are the entries of one column of a page that is being filled. The type of the column determines which slice has
// the values.
type Cells struct {
	N int
	// booleans, whole numbers, dates (days since 1970), timestamps (milliseconds since 1970), codes of a global
	// dictionary; lengths of lists and maps
	Ints     []int64
	Nums     []float64        // floats and doubles
	Decs     []decimal128.Num // decimals, unscaled
	data     []byte           // strings and binaries, one after the other
	ends     []uint32         // offset of the end of each in data
	nulls    []byte           // bit set: null; Java's BitSet without trailing zeros
	Children []*Cells         // list: the items; map: the struct of key and value; struct: the fields
}

// NewCells makes empty cells for a column and its children.
func NewCells(c *schema.Column) *Cells {
	x := &Cells{}
	for _, k := range c.Children {
		x.Children = append(x.Children, NewCells(k))
	}
	return x
}

// Reset removes all entries, and keeps the memory.
func (x *Cells) Reset() {
	x.N, x.Ints, x.Nums, x.Decs, x.data, x.ends, x.nulls = 0, x.Ints[:0], x.Nums[:0], x.Decs[:0], x.data[:0],
		x.ends[:0], x.nulls[:0]
	for _, k := range x.Children {
		k.Reset()
	}
}

// Size estimates the bytes that the cells take.
func (x *Cells) Size() int {
	n := 8*(len(x.Ints)+len(x.Nums)) + 16*len(x.Decs) + len(x.data) + 4*len(x.ends)
	for _, k := range x.Children {
		n += k.Size()
	}
	return n
}

// Null reports whether entry i is null.
func (x *Cells) Null(i int) bool { return i>>3 < len(x.nulls) && x.nulls[i>>3]>>(i&7)&1 != 0 }

// setNull makes entry i null. Entries must be marked in ascending order, because a BitSet has no trailing zeros.
func (x *Cells) setNull(i int) {
	for len(x.nulls) <= i>>3 {
		x.nulls = append(x.nulls, 0)
	}
	x.nulls[i>>3] |= 1 << (i & 7)
}

// Text returns entry i of a string or binary column; a null is empty. The result is valid until the cells change.
func (x *Cells) Text(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	return x.data[from:x.ends[i]]
}

// ValueErrorf is a ValueError, Invalid, about entry i.
func ValueErrorf(i int, format string, args ...any) error {
	return &ValueError{Row: i, Err: fault.Invalidf(format, args...)}
}

// ValueError is about a value that the format cannot hold.
type ValueError struct {
	Column string // "": not known yet
	Row    int    // index in the array that was passed to Add
	Err    error
}

// Error is the message of Err.
func (e *ValueError) Error() string { return e.Err.Error() }

// Unwrap is Err.
func (e *ValueError) Unwrap() error { return e.Err }

// binaryArray is an array of binaries.
type binaryArray interface {
	arrow.Array
	Value(i int) []byte
}

// StringArray is an array of strings, with any kind of offsets.
type StringArray interface {
	arrow.Array
	Value(i int) string
}

// inRow sets the row of a ValueError about a child to that of its parent.
func inRow(err error, row int) error {
	if e, ok := err.(*ValueError); ok {
		e.Row = row
	}
	return err
}
