package parquet

import (
	"io"

	"stoa/format"
	"stoa/internal/rows"
)

// Reader is one open file, for programs that use this format on its own. It has the methods of all native readers:
// Schema, NumRows, Row, RowsFrom, RowsFromKey, Close. Filters, damage policies and tables of many files are package
// stoa's.
type Reader = rows.Reader

// NewReader opens a Parquet file of size bytes. Its key is the first sorting column, if that is a top-level column in
// ascending order. The source must stay open until Close.
func NewReader(r io.ReaderAt, size int64, o format.OpenOptions) (*Reader, error) {
	return rows.Open(r, size, "parquet", "file.parquet", o, open)
}

// Layout implements format.Layouter: the column by which the rows are sorted, where all row groups agree.
func (r *reader) Layout() (l format.Layout) {
	for i, g := range r.Footer.RowGroups {
		if len(g.SortingColumns) == 0 || g.SortingColumns[0].Descending {
			return format.Layout{}
		}
		c := int(g.SortingColumns[0].ColumnIdx)
		if c < 0 || c >= len(r.Leaves) || len(r.Leaves[c].Column.Path) != 1 {
			return format.Layout{}
		}
		name := r.Schema().Field(r.Leaves[c].Column.Path[0]).Name
		if i > 0 && l.Sorted[0] != name {
			return format.Layout{}
		}
		l.Sorted = []string{name}
	}
	return l
}
