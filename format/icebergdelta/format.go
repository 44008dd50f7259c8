// Package icebergdelta writes tables with two catalogues over the same files: Iceberg's and Delta's. It is read as
// either of these.
package icebergdelta

import (
	"context"
	"maps"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/delta"
	"stoa/format/iceberg"
	"stoa/format/internal/lake"
	"stoa/format/parquet"
	"stoa/store"
)

// Format is format "iceberg,delta". Its options are those of Iceberg.
var Format = format.Format{
	Name:         "iceberg,delta",
	Title:        "Iceberg and Delta over the same files: types that both have, partitions by columns",
	Create:       create,
	Owns:         owns,
	Dictionaries: func(arrow.DataType) bool { return false },
	UTF8:         true,
	Reread:       func(*arrow.Schema, format.WriteOptions) (format.Format, bool) { return iceberg.Format, true },
	WriteKeys:    iceberg.Format.WriteKeys,
}

// deltaKeys are the options that Delta has, too.
var deltaKeys = []string{"partition-by", "file-size", "property", "snapshot-time"}

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, wo format.WriteOptions) (format.Writer, error) {
	rules := iceberg.Rules.And(delta.Rules)
	stored, last, err := rules.Storage(sc)
	if err != nil {
		return nil, err
	}
	o, err := iceberg.Plan(stored, last, wo)
	if err != nil {
		return nil, err
	}
	forDelta, files := wo, map[string]string{}
	forDelta.Opts = map[string]string{}
	for k, v := range wo.Opts {
		if slices.Contains(deltaKeys, k) {
			forDelta.Opts[k] = v
		}
		if slices.ContainsFunc(parquet.Format.WriteKeys, func(x format.OptionKey) bool { return x.Name == k }) {
			files[k] = v
		}
	}
	second, err := delta.Plan(stored, last, forDelta)
	if err != nil {
		return nil, err
	}
	o.Parquet, o.Write = iceberg.FileOptions(files), wo
	first := o.Commit
	o.Commit = func(ctx context.Context, s store.Sink, files []lake.File) ([]string, int64, error) {
		names, n, err := first(ctx, s, files)
		if err != nil {
			return nil, 0, err
		}
		more, m, err := second.Commit(ctx, s, files)
		return append(names, more...), n + m, err
	}
	return lake.NewWriter(s, sc, stored, o), nil
}

// owns reports whether a directory is a table of both kinds that stoa wrote.
func owns(dir string) bool { return lake.Owns(dir, "data", "metadata", "_delta_log") }

// Complete returns Delta's log, and its name, of a table that has the catalogue of Iceberg, as stoa wrote it, and not
// yet that of Delta.
func Complete(ctx context.Context, tree store.Tree, dir string) (name string, log []byte, err error) {
	w, err := iceberg.AsWritten(ctx, tree, dir)
	if err != nil {
		return "", nil, err
	}
	o := delta.WriteOptions{Table: delta.Table{PartitionBy: w.Columns, Time: w.Time}}
	for _, k := range slices.Sorted(maps.Keys(w.Properties)) {
		o.Properties = append(o.Properties, k+"="+w.Properties[k])
	}
	plan, err := delta.Plan(w.Stored, w.Last, format.WriteOptions{Opts: o.Strings()})
	if err != nil {
		return "", nil, err
	}
	memory := store.NewMemory(nil)
	sink := memory.Sink("table")
	names, _, err := plan.Commit(ctx, sink, w.Files)
	if err == nil {
		err = sink.Commit(ctx)
	}
	if err != nil {
		return "", nil, err
	}
	return names[0], memory.Bytes("table/" + names[0]), nil
}
