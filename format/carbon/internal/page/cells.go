package page

import (
	"stoa/fault"
	"stoa/format/carbon/internal/schema"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

// Cells are the entries of one column of a page that is being filled. Which of the slices is used follows from
// the type.
type Cells struct {
	N int
	// booleans, whole numbers, dates (days), timestamps (milliseconds); lengths of lists and maps
	Ints     []int64
	Nums     []float64        // floats and doubles
	Decs     []decimal128.Num // decimals, unscaled
	data     []byte           // strings and binaries, one after the other
	ends     []uint32         // where each of them ends
	nulls    []byte           // bit set: null; Java's BitSet without trailing zeros
	Children []*Cells         // of a list: the items; of a map: the struct of key and value; of a struct: the children
}

// NewCells makes the cells for a column and what is in it.
func NewCells(c *schema.Column) *Cells {
	x := &Cells{}
	for _, k := range c.Children {
		x.Children = append(x.Children, NewCells(k))
	}
	return x
}

func (x *Cells) Reset() {
	x.N, x.Ints, x.Nums, x.Decs, x.data, x.ends, x.nulls = 0, x.Ints[:0], x.Nums[:0], x.Decs[:0], x.data[:0],
		x.ends[:0], x.nulls[:0]
	for _, k := range x.Children {
		k.Reset()
	}
}

// Size is about how many bytes the cells take.
func (x *Cells) Size() int {
	n := 8*(len(x.Ints)+len(x.Nums)) + 16*len(x.Decs) + len(x.data) + 4*len(x.ends)
	for _, k := range x.Children {
		n += k.Size()
	}
	return n
}

// Null reports whether entry i is null.
func (x *Cells) Null(i int) bool { return i>>3 < len(x.nulls) && x.nulls[i>>3]>>(i&7)&1 != 0 }

// setNull marks entry i, which must not be before one that is already marked.
func (x *Cells) setNull(i int) {
	for len(x.nulls) <= i>>3 {
		x.nulls = append(x.nulls, 0)
	}
	x.nulls[i>>3] |= 1 << (i & 7)
}

func (x *Cells) Text(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	return x.data[from:x.ends[i]]
}

// ValueErrorf reports a value that the format cannot hold.
func ValueErrorf(i int, format string, args ...any) error {
	return &ValueError{Row: i, Err: fault.Invalidf(format, args...)}
}

// ValueError is an error about entry row of what add was given.
type ValueError struct {
	Column string
	Row    int
	Err    error
}

func (e *ValueError) Error() string { return e.Err.Error() }

func (e *ValueError) Unwrap() error { return e.Err }

// texter is an array of strings or bytes.
type texter interface {
	arrow.Array
	Value(i int) []byte
}

type Stringer interface {
	arrow.Array
	Value(i int) string
}

// inRow puts an error about a child at the row of its parent.
func inRow(err error, row int) error {
	if e, ok := err.(*ValueError); ok {
		e.Row = row
	}
	return err
}
