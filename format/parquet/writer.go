package parquet

import (
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/write"
)

// Writer writes one file; NewWriter makes one.
type Writer = write.Writer

// NewWriter returns a writer of a file with schema sc. Its options are those of Format.WriteKeys.
var NewWriter = write.NewWriter

// Part says which file of a table a file is.
type Part = meta.Part
