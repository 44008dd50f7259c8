package cfile

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/vec"
)

// table is one column file, or several that are read side by side. It is a format.Reader.
type table struct {
	name  string
	stamp string
	files []*tableFile
	sc    *arrow.Schema
	rows  int64
	bytes int64
	meta  []format.KeyValue
}

// tableFile is the file of one column.
type tableFile struct {
	*file
	name  string
	found []dataBlock // of a recovered file; nil: the index tells
}

func (t *table) Schema() *arrow.Schema   { return t.sc }
func (t *table) Meta() []format.KeyValue { return t.meta }

func (t *table) Close() error {
	var first error
	for _, f := range t.files {
		if f.file == nil || f.src == nil { // a lost column
			continue
		}
		if err := f.src.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (t *table) Columns() []format.Column {
	out := make([]format.Column, len(t.files))
	for i, f := range t.files {
		has := format.Values
		if f.footer.Array() {
			has |= format.Lengths
		}
		out[i] = format.Column{Name: t.sc.Field(i).Name, Path: []int{i}, Parent: -1, Has: has, Type: t.sc.Field(i).Type,
			Facts: format.ColumnFacts{Encoding: f.footer.Encoding.String(), Codec: f.footer.Compression.String()}}
	}
	return out
}

// Order: a column with a value index is sorted by its value. Of several columns at most the first such is promised.
func (t *table) Order() []format.Key {
	for i, f := range t.files {
		if f.sorted() {
			return []format.Key{{Column: i}}
		}
	}
	return nil
}

// sorted reports whether the values of f rise, so that its value index can be searched by value. Those of delta files do not: only
// their keys do, and not within a row.
func (f *file) sorted() bool {
	k := f.kind()
	return f.footer.ValIdx != nil && !f.footer.Nullable && !f.footer.Array() && keyable(f.footer.Type) && k != KindDelta && k != KindBloom
}

func (t *table) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		yield(format.Part{Ref: t.name, Stamp: t.stamp, Rows: t.rows, Bytes: t.bytes}, nil)
	}
}

func (t *table) RowGroups(_ context.Context, p format.Part, _ format.Query) ([]format.RowGroup, error) {
	g := format.RowGroup{Part: p.Ref, Rows: t.rows, Bytes: t.bytes, Bounds: map[int]pred.Bounds{}}
	for i, f := range t.files {
		if b, ok := f.bounds(t.sc.Field(i).Type); ok {
			g.Bounds[i] = b
		}
	}
	return []format.RowGroup{g}, nil
}

func (t *table) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if col < 0 || col >= len(t.files) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	f := t.files[col]
	if f.found != nil {
		return &chunk{f: f.file, rows: rows, list: f.found}, nil
	}
	return f.newChunk(ctx, rows)
}

// openColumn opens a column file as a table of one column.
func openColumn(ctx context.Context, tg format.Target, f *file, o readOptions) *table {
	t := &table{name: tg.Name, rows: f.footer.NumValues, bytes: f.at.Len, files: []*tableFile{{file: f, name: tg.Name}}}
	t.sc = arrow.NewSchema([]arrow.Field{f.field(o)}, nil)
	t.meta = f.facts()
	t.stamp = stampOf(ctx, tg)
	return t
}

// stampOf is the stamp of a target, if its tree gives one.
func stampOf(ctx context.Context, tg format.Target) string {
	if tg.Tree == nil {
		return ""
	}
	info, err := tg.Tree.Stat(ctx, tg.Name)
	if err != nil {
		return ""
	}
	return info.Stamp
}

// openTarget opens header and footer of the CFile at tg.
func openTarget(ctx context.Context, tg format.Target, o format.OpenOptions) (*file, error) {
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, err
	}
	f, err := openFile(ctx, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o)
	if err != nil {
		src.Close()
		return f, err
	}
	return f, nil
}

// facts are what `stoa meta` prints of a file.
func (f *file) facts() []format.KeyValue {
	var out []format.KeyValue
	add := func(k, v string) { out = append(out, format.KeyValue{Key: k, Value: v}) }
	h, t := &f.header, &f.footer
	add("format", fmt.Sprintf("CFile v%d", h.Version))
	add("kind", f.kind().String())
	add("data_type", t.Type.String())
	add("encoding", t.Encoding.String())
	add("compression", t.Compression.String())
	add("nullable", fmt.Sprint(t.Nullable))
	add("array", fmt.Sprint(t.Array()))
	add("num_values", fmt.Sprint(t.NumValues))
	add("checksums", fmt.Sprint(t.Checksums()))
	add("incompatible_features", featureList(t.Incompatible))
	add("compatible_features", fmt.Sprint(t.Compatible))
	for _, p := range []struct {
		name string
		ptr  *blockPtr
	}{{"positional_index", t.PosIdx}, {"value_index", t.ValIdx}, {"dictionary", t.Dict}} {
		if p.ptr != nil {
			add(p.name, fmt.Sprintf("%d+%d", p.ptr.offset, p.ptr.size))
		}
	}
	for _, m := range h.Meta {
		add("header."+m.key, f.factOf(m))
	}
	for _, m := range t.Meta {
		add(m.key, f.factOf(m))
	}
	return out
}
