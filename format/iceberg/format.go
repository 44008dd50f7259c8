package iceberg

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
)

// Format is format "iceberg".
var Format = format.Format{
	Name:         "iceberg",
	Title:        "Apache Iceberg tables, versions 1 to 3: Parquet, and metadata that say which files are the table",
	Create:       create,
	Dictionaries: func(arrow.DataType) bool { return false },
	UTF8:         true,
	WriteKeys:    writeKeys(),
}
