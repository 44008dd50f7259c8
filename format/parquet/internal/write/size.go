package write

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/nest"
)

// sliceBytes is the approximate number of bytes of a column that are shredded at a time: between slices the writer
// checks whether the row group is full.
const sliceBytes = 4 << 20

// sliceEnd returns the end of the slice of b that begins at row from: at most limit, at least one row later, and if
// possible before the slice exceeds the given number of bytes.
func sliceEnd(b arrow.RecordBatch, from, limit, bytes int64) int64 {
	bytes = min(bytes, sliceBytes*max(1, b.NumCols()))
	to := limit
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
