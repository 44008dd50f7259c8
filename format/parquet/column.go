package parquet

import (
	"stoa/fault"
	"stoa/format"
	"stoa/pred"

	"github.com/apache/arrow-go/v18/arrow"
)

// pageRef is a data page, as the headers or the offset index tell of it.
type pageRef struct {
	at     fault.Span // with its header
	values int64      // levels or values; -1: not known
	first  int64      // rows that begin before it; -1: not known
	rows   int64      // rows that begin in it; -1: not known
	raw    int64      // bytes after decompression; 0: not known
	coded  bool
	starts bool // it begins with a row
	index  bool // it is the offset index that says so
	bounds *pred.Bounds
}

// fileColumn is a column of the file.
type fileColumn struct {
	*schemaColumn
	column format.Column
	own    arrow.DataType // what Parquet's types say that its values are
	form   *valueForm
	unread error // why it cannot be read
}

// flat reports whether the column is a field by itself: no lists and structs are above it, so its entries need
// no levels.
func (c *fileColumn) flat() bool { return c.column.Has&format.Levels == 0 }
