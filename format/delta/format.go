package delta

import (
	"context"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/format/internal/lake"
	"stoa/format/parquet"
)

// Format is format "delta".
var Format = format.Format{
	Name:         "delta",
	Title:        "Delta Lake tables: Parquet, and a log that says which files are the table",
	Probe:        probe,
	List:         list,
	Open:         open,
	Create:       create,
	Claims:       claims,
	Owns:         func(dir string) bool { return lake.Owns(dir, log.Dir) },
	Dictionaries: func(arrow.DataType) bool { return false },
	UTF8:         true,
	WriteKeys:    slices.Concat(own.Keys(), parquet.Format.WriteKeys),
	ReadKeys:     reads.Keys(),
}

// list is Format.List: the table is one entry.
func list(ctx context.Context, tg format.Target) iter.Seq2[format.Entry, error] {
	return func(yield func(format.Entry, error) bool) {
		opts := map[string]string{}
		if at, ok := tg.Opts["at"]; ok {
			opts["at"] = at
		}
		op, err := begin(ctx, tg, format.OpenOptions{Limits: tg.Limits, Opts: opts})
		if err != nil {
			yield(format.Entry{}, err)
			return
		}
		e := format.Entry{Kind: "table", Meta: op.facts()}
		for _, a := range op.adds() {
			in, err := op.input(a)
			if err != nil {
				yield(format.Entry{}, err)
				return
			}
			e.Bytes += a.Size
			switch {
			case in.Rows < 0 || e.Rows < 0:
				e.Rows = -1
			case a.Vector != nil:
				e.Rows += in.Rows - a.Vector.Cardinality
			default:
				e.Rows += in.Rows
			}
		}
		yield(e, nil)
	}
}

// claims is Format.Claims: the log, Parquet files, deletion vectors, and directories of partitions are its own.
func claims(_ context.Context, tg format.Target, _ format.OpenOptions) format.Claimer {
	dir := path.Clean(tg.Name)
	return func(name string, isDir bool) (format.Claim, error) {
		rest, ok := strings.CutPrefix(path.Clean(name), dir+"/")
		base := path.Base(name)
		switch {
		case name == dir:
			return format.OfTable, nil
		case !ok:
			return format.Foreign, nil
		case rest == log.Dir || strings.HasPrefix(rest, log.Dir+"/"), base == "_change_data", isDir,
			strings.HasSuffix(base, ".parquet"), strings.HasSuffix(base, ".bin"), base[0] == '_', base[0] == '.':
			return format.OfTable, nil
		}
		return format.Foreign, nil
	}
}
