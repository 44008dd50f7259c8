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

// FileFacts are what catalogues of tables keep about a file that was written.
type FileFacts = write.FileFacts

// CreateWithFacts is Format.Create, and a function that returns the facts of the file once the writer is closed.
var CreateWithFacts = write.CreateWithFacts
