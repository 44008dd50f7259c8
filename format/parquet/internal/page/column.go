package page

import (
	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/pred"

	"github.com/apache/arrow-go/v18/arrow"
)

// PageRef describes a data page, as known from its header or the offset index.
type PageRef struct {
	At        fault.Span // including its header
	Values    int64      // levels or values; -1 if unknown
	Count     int64      // number of its values, overriding the header; 0 if the header is to be believed
	First     int64      // rows that begin before it; -1 if unknown
	Rows      int64      // rows that begin in it; -1 if unknown
	Raw       int64      // bytes after decompression; 0 if unknown
	Coded     bool
	Starts    bool // it begins at a row boundary
	FromIndex bool // Rows comes from the offset index
	Bounds    *pred.Bounds
}

// FileColumn is a column of an open file.
type FileColumn struct {
	*meta.SchemaColumn
	Column format.Column
	Own    arrow.DataType // the type that Parquet's schema alone implies for its values
	Form   *valueForm
	Unread error // why it cannot be read; nil if it can
}

// Flat reports whether the column is a top-level field, not inside a list or struct: then its entries need no levels.
func (c *FileColumn) Flat() bool { return c.Column.Has&format.Levels == 0 }
