package iceberg

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/internal/lake"
	"stoa/format/parquet"
	"stoa/store"
)

// Written is a table as stoa wrote it, for another catalogue over the same files.
type Written struct {
	Stored     *arrow.Schema
	Last       int               // id of a field
	Properties map[string]string // what stoa itself adds is left out
	Columns    []string          // that partition it, as in a spec
	Time       int64             // of the snapshot, in milliseconds since 1970
	Files      []lake.File
}

// AsWritten returns the table in a directory, provided that nobody has changed it since stoa wrote it.
func AsWritten(ctx context.Context, tree store.Tree, dir string) (w *Written, err error) {
	op, err := openSnapshot(ctx, format.Target{Tree: tree, Name: dir}, format.OpenOptions{})
	if err != nil {
		return nil, err
	}
	n := 0
	for info, err := range tree.List(ctx, path.Join(dir, metadataDir)) {
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(info.Name, metadataSuffix) {
			n++
		}
	}
	t := op.table
	if n != 1 || path.Base(op.file) != "v1.metadata.json" || len(t.Snapshots) != 1 || op.snap == nil ||
		op.snap.Summary["engine-name"] != engine || len(op.deletes) > 0 {
		return nil, fault.Invalidf("%s is not as stoa wrote it: it was changed since", op.file)
	}
	w = &Written{Stored: arrow.NewSchema(op.fields, nil), Last: t.LastColumn, Time: op.snap.Time,
		Properties: map[string]string{}}
	for _, k := range sortedKeys(t.Properties) {
		w.Properties[k] = t.Properties[k]
	}
	terms, err := op.terms(t.Spec(t.DefaultSpec))
	if err != nil {
		return nil, err
	}
	for _, t := range terms {
		w.Columns = append(w.Columns, lake.QuoteColumn(t.Column))
	}
	for i := range op.data {
		f, err := op.written(ctx, &op.data[i], terms)
		if err != nil {
			return nil, err
		}
		w.Files = append(w.Files, f)
	}
	return w, nil
}

// written returns what the manifest says of a file.
func (op *snapshotReader) written(ctx context.Context, f *live, terms []lake.Term) (out lake.File, err error) {
	at := fault.Span{Object: f.name}
	name, below := strings.CutPrefix(path.Clean(f.name), path.Clean(op.dir)+"/")
	info, err := op.tree.Stat(ctx, f.name)
	switch {
	case err != nil:
		return out, lake.Missing(err, f.name, "the manifest")
	case info.Size != f.Bytes:
		return out, fault.Corruptf(at, "", "the manifest has %d bytes, and the file %d", f.Bytes, info.Size)
	case !below:
		return out, fault.Invalidf("%s is not in the table's directory", f.name)
	}
	in := &lake.Input{}
	if err := op.values(op.fields, in, f); err != nil {
		return out, err
	}
	out = lake.File{Name: name, Bytes: f.Bytes, FileFacts: parquet.FileFacts{Rows: f.Rows, Groups: f.SplitOffsets}}
	for i := range terms {
		v := in.Values[terms[i].Index]
		if v == nil {
			return out, fault.Unsupportedf(at, "", "only columns may partition the table")
		}
		out.Partition = append(out.Partition, terms[i].Value(v, 0))
	}
	var add func(fields []arrow.Field, path []string)
	add = func(fields []arrow.Field, path []string) {
		for _, x := range fields {
			here := append(slices.Clone(path), x.Name)
			switch t := x.Type.(type) {
			case *arrow.StructType:
				add(t.Fields(), here)
			case arrow.NestedType: // of lists and maps no catalogue needs more
			default:
				id := lake.IDOf(x)
				out.Columns = append(out.Columns, parquet.ColumnFacts{Path: here, FieldID: id, Stored: f.Sizes[id],
					Values: f.Values[id], Nulls: f.Nulls[id], NaNs: f.NaNs[id], Min: f.Lower[id], Max: f.Upper[id]})
			}
		}
	}
	add(op.fields, nil)
	return out, nil
}
