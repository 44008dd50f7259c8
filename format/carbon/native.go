package carbon

import (
	"io"

	"stoa/format"
	"stoa/format/carbon/internal/table"
	"stoa/internal/rows"
)

// Reader is one open data file, for programs that use this format by itself: Schema, NumRows, Row, RowsFrom,
// RowsFromKey, Close, as the readers of all formats have them. Filters, damage policies and tables are package stoa's.
type Reader = rows.Reader

// NewReader opens a data file (.carbondata) of size bytes. Its key is the first of its sort columns.
func NewReader(r io.ReaderAt, size int64, o format.OpenOptions) (*Reader, error) {
	return rows.Open(r, size, "carbon", "file.carbondata", o, table.Open)
}
