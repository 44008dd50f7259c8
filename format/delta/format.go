package delta

import (
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/parquet"
)

// Format is format "delta".
var Format = format.Format{
	Name:         "delta",
	Title:        "Delta Lake tables: Parquet, and a log that says which files are the table",
	Create:       create,
	Dictionaries: func(arrow.DataType) bool { return false },
	UTF8:         true,
	WriteKeys:    slices.Concat(own.Keys(), parquet.Format.WriteKeys),
}
