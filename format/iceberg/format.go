package iceberg

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/internal/lake"
)

// Format is format "iceberg".
var Format = format.Format{
	Name:         "iceberg",
	Title:        "Apache Iceberg tables, versions 1 to 3: Parquet, and metadata that say which files are the table",
	Probe:        probe,
	List:         lake.List(entry),
	Open:         open,
	Unchecked:    format.UncheckedMembers(open),
	Bounds:       true,
	Create:       create,
	Claims:       claims,
	Refers:       refers,
	Owns:         func(dir string) bool { return lake.Owns(dir, dataDir, metadataDir) },
	Dictionaries: func(arrow.DataType) bool { return false },
	UTF8:         true,
	WriteKeys:    writeKeys(),
	ReadKeys:     reading.Keys(),
}

// entry returns the table as List describes it. Its number of rows is known if none are deleted.
func entry(ctx context.Context, tg format.Target, o format.OpenOptions) (e format.Entry, err error) {
	op, err := openSnapshot(ctx, tg, o)
	if err != nil {
		return e, err
	}
	e = format.Entry{Kind: "table", Meta: op.properties()}
	for _, f := range op.data {
		e.Rows, e.Bytes = e.Rows+f.Rows, e.Bytes+f.Bytes
	}
	for _, f := range slices.Concat(op.data, op.deletes) {
		found, err := lake.SizeFinding(ctx, op.tree, f.name, "the manifest", f.Bytes)
		if err != nil {
			return e, err
		}
		e.Findings = append(e.Findings, found...)
	}
	if len(op.deletes) > 0 {
		e.Rows = -1
	}
	return e, nil
}

// claims implements Format.Claims: everything in the table's directories belongs to the table, and so do the files that
// Delta's log may name, if there is one.
func claims(ctx context.Context, tg format.Target, _ format.OpenOptions) format.Claimer {
	dir := path.Clean(tg.Name)
	_, err := tg.Tree.Stat(ctx, path.Join(dir, "_delta_log"))
	both := err == nil
	return func(name string, isDir bool) (format.Claim, error) {
		rest, ok := strings.CutPrefix(path.Clean(name), dir+"/")
		first, _, _ := strings.Cut(rest, "/")
		if name == dir || ok && (first == dataDir || first == metadataDir || first == "_delta_log") {
			return format.OfTable, nil
		}
		if both && ok && lake.LogMayName(rest, isDir) {
			return format.OfTable, nil
		}
		return format.Foreign, nil
	}
}
