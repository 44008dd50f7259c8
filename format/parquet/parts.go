package parquet

import (
	"context"
	"io"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/write"
	"stoa/store"
)

// CreatePart is Format.Create for one file of a table of several files. which is called once, when the file is
// finished, and returns the place of the file in the table.
func CreatePart(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions,
	which func() meta.Part) (format.Writer, error) {
	return format.CreateObject(ctx, s, func(w io.Writer) (format.Encoder, error) {
		out, err := write.NewWriterIn(w, sc, o.Opts, o.Mem)
		if err == nil {
			out.Part = which
		}
		return out, err
	})
}

// PartName returns the file name of part n, counted from 0, in a table's directory.
func PartName(n int) string { return file.PartName(n) }
