package format

import (
	"context"
	"slices"

	"stoa/fault"
	"stoa/vec"
)

// Drops is an Overlay that removes rows and changes no cells. Its items are ordinals in the row group, ascending and
// distinct.
type Drops []int64

// Drops reports true: rows are removed.
func (d Drops) Drops() bool { return true }

// Touches reports false: no column has changed cells.
func (d Drops) Touches(int) bool { return false }

// Spans returns nil: Patch needs no bytes.
func (d Drops) Spans(vec.Range) []fault.Span { return nil }

// Patch returns which of rows are removed.
func (d Drops) Patch(_ context.Context, rows vec.Range, _ [][]byte) (*vec.Patch, error) {
	i, _ := slices.BinarySearch(d, rows.From)
	j, _ := slices.BinarySearch(d, rows.To)
	p := &vec.Patch{First: rows.From, N: int(rows.Len())}
	if i == j {
		return p, nil
	}
	bits := make([]byte, (p.N+7)/8)
	for _, r := range d[i:j] {
		k := r - rows.From
		bits[k>>3] |= 1 << (k & 7)
	}
	p.Drop = vec.NewSel(bits, p.N)
	return p, nil
}
