package parquet

import "stoa/vec"

// rowsOf is the rows of the row group that page k has by the index; the row group has so many.
func (x *offsetIndex) rowsOf(k int, rows int64) vec.Range {
	if k+1 < len(x.firstRow) {
		rows = x.firstRow[k+1]
	}
	return vec.Range{From: x.firstRow[k], To: rows}
}
