package parquet

import (
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/write"
)

// Writer writes a file; NewWriter begins one.
type Writer = write.Writer

// NewWriter is a writer of a file of schema sc, with the options that WriteKeys lists.
var NewWriter = write.NewWriter

// Part is which file of a table one is.
type Part = meta.Part
