package write

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/nest"
)

// sliceBytes is about how much of a column is shredded at a time: between slices it is looked at whether the row group
// is full.
const sliceBytes = 4 << 20

// sliceEnd is how far a slice of b reaches from row from on, to most: one row at least, and if possible no more
// than so many bytes.
func sliceEnd(b arrow.RecordBatch, from, most, bytes int64) int64 {
	bytes = min(bytes, sliceBytes*max(1, b.NumCols()))
	to := most
	for to-from > 1 {
		size := int64(0)
		for _, a := range b.Columns() {
			size += nest.SizeOfRows(a, from, to)
		}
		if size <= bytes {
			break
		}
		to = from + max(1, (to-from)/2)
	}
	return to
}
