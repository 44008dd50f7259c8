package lake

import (
	"context"
	"iter"
	"path"
	"slices"
	"strings"

	"stoa/format"
)

// LogMayName reports whether a file or directory, by its name below the table's, belongs to a table with a log of
// Delta: Parquet files, deletion vectors, directories of partitions, and whatever lies below names that begin with _
// or . do.
func LogMayName(name string, isDir bool) bool {
	hidden := func(part string) bool { return strings.HasPrefix(part, "_") || strings.HasPrefix(part, ".") }
	ext := path.Ext(name)
	return isDir || ext == ".parquet" || ext == ".bin" || slices.ContainsFunc(strings.Split(name, "/"), hidden)
}

// List returns a Format.List for places that contain one table. entry describes the table, with the reading option at
// if that is set.
func List(entry func(context.Context, format.Target, format.OpenOptions) (format.Entry, error)) func(context.Context,
	format.Target) iter.Seq2[format.Entry, error] {
	return func(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
		return func(yield func(format.Entry, error) bool) {
			yield(entry(ctx, tg, tg.OpenOptions("at")))
		}
	}
}
