package delta

import (
	"context"
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
	List:         lake.List(entry),
	Open:         open,
	Unchecked:    format.UncheckedMembers(open),
	Bounds:       true,
	Codes:        Codes,
	Create:       create,
	Claims:       claims,
	Refers:       refers,
	Owns:         func(dir string) bool { return lake.Owns(dir, log.Dir) },
	Dictionaries: func(arrow.DataType) bool { return false },
	UTF8:         true,
	WriteKeys:    slices.Concat(writing.Keys(), parquet.Format.WriteKeys),
	ReadKeys:     reading.Keys(),
}

// entry returns the table as List describes it. Its number of rows is known if the log states that of every file.
func entry(ctx context.Context, tg format.Target, o format.OpenOptions) (e format.Entry, err error) {
	op, err := openVersion(ctx, tg, o)
	if err != nil {
		return e, err
	}
	e = format.Entry{Kind: "table", Meta: op.properties(), Findings: op.found}
	for _, a := range op.adds() {
		in, err := op.input(a)
		if err != nil {
			return format.Entry{}, err
		}
		if e.Bytes += a.Size; in.Rows < 0 || e.Rows < 0 {
			e.Rows = -1
		} else {
			e.Rows += in.Rows
			if a.Vector != nil {
				e.Rows -= a.Vector.Cardinality
			}
		}
		found, err := lake.SizeFinding(ctx, op.tree, in.Name, "the log", a.Size)
		if err != nil {
			return e, err
		}
		e.Findings = append(e.Findings, found...)
	}
	return e, nil
}

// claims implements Format.Claims: the log, Parquet files, deletion vectors, directories of partitions, and whatever
// lies below names that begin with _ or . belong to the table.
func claims(_ context.Context, tg format.Target, _ format.OpenOptions) format.Claimer {
	dir := path.Clean(tg.Name)
	return func(name string, isDir bool) (format.Claim, error) {
		rest, ok := strings.CutPrefix(path.Clean(name), dir+"/")
		if name == dir || ok && lake.LogMayName(rest, isDir) {
			return format.OfTable, nil
		}
		return format.Foreign, nil
	}
}
