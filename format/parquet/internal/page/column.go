package page

import (
	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/pred"

	"github.com/apache/arrow-go/v18/arrow"
)

// PageRef is a data page, as the headers or the offset index tell of it.
type PageRef struct {
	At     fault.Span // with its header
	Values int64      // levels or values; -1: not known
	Count  int64      // of its values, whatever its header says; 0: the header is believed
	First  int64      // rows that begin before it; -1: not known
	Rows   int64      // rows that begin in it; -1: not known
	Raw    int64      // bytes after decompression; 0: not known
	Coded  bool
	Starts bool // it begins with a row
	Index  bool // it is the offset index that says so
	Bounds *pred.Bounds
}

// FileColumn is a column of the file.
type FileColumn struct {
	*meta.SchemaColumn
	Column format.Column
	Own    arrow.DataType // what Parquet's types say that its values are
	Form   *valueForm
	Unread error // why it cannot be read
}

// Flat reports whether the column is a field by itself: no lists and structs are above it, so its entries need
// no levels.
func (c *FileColumn) Flat() bool { return c.Column.Has&format.Levels == 0 }
