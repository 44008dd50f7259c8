package page

import (
	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/pred"

	"github.com/apache/arrow-go/v18/arrow"
)

// PageRef is a data page as its header, or the offset index, describes it.
type PageRef struct {
	At        fault.Span // with its header
	Values    int64      // levels or values; -1: not known
	Count     int64      // of its values, whatever its header says; 0: as the header says
	First     int64      // rows that begin before it; -1: not known
	Rows      int64      // rows that begin in it; -1: not known
	Raw       int64      // bytes after decompression; 0: not known
	Coded     bool
	Starts    bool // it begins at a row boundary
	FromIndex bool // Rows comes from the offset index
	Bounds    *pred.Bounds
}

// FileColumn is a column of an open file.
type FileColumn struct {
	*meta.SchemaColumn
	Column format.Column
	Own    arrow.DataType // the type that Parquet's schema alone gives its values
	Form   *valueForm
	Unread error // why it cannot be read; nil: it can
}

// Flat reports whether the column is a top-level field, not inside lists or structs, so that its entries need no
// levels.
func (c *FileColumn) Flat() bool { return c.Column.Has&format.Levels == 0 }
