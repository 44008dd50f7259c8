package parquet

import (
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/write"
)

// Writer writes one file; NewWriter makes one.
type Writer = write.Writer

// NewWriter returns a writer of a file with schema sc. Its options are those of Format.WriteKeys.
var NewWriter = write.NewWriter

// Part is the place of a file in a table of several files.
type Part = meta.Part

// FileFacts are the facts that table catalogues keep about a written file.
type FileFacts = write.FileFacts

// ColumnFacts are those of one of its columns.
type ColumnFacts = write.ColumnFacts

// CreateWithFacts is like Format.Create, but also returns a function that returns the facts of the file once the writer
// is closed.
var CreateWithFacts = write.CreateWithFacts
