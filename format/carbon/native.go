package carbon

import (
	"io"

	"stoa/format"
	"stoa/format/carbon/internal/table"
	"stoa/internal/rows"
)

// Reader is one open data file, for programs that need only this format. It has the methods of all formats' readers:
// Schema, NumRows, Row, RowsFrom, RowsFromKey, Close. Filters, damage policies and tables are in package stoa.
type Reader = rows.Reader

// NewReader opens a data file (.carbondata) of size bytes, of format 1, 2 or 3. Its key is the first of its sort
// columns. Errors are those of r, Corrupt, Unsupported or Limit with a place in "file.carbondata", or Invalid for
// options.
func NewReader(r io.ReaderAt, size int64, o format.OpenOptions) (*Reader, error) {
	return rows.Open(r, size, "carbon", "file.carbondata", o, table.Open)
}
