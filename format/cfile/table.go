package cfile

import (
	"context"
	"iter"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/present"
	"stoa/pred"
	"stoa/region"
	"stoa/vec"
)

// table implements format.Reader for one column file, or for several that are columns of a table.
type table struct {
	name  string
	stamp string
	files []*tableFile
	sc    *arrow.Schema
	// sc with the types to which the files' values are decoded
	stored *arrow.Schema
	rows   int64 // -1: not known
	// the number of rows that a recovered set's setFile, or a recovered file's last block, confirms; nil: none does
	declared *int64
	by       string // the file that has it
	bytes    int64
	meta     []format.KeyValue
	unread   []region.Finding // about CFiles in the directory that are not columns of the table
}

// tableFile is the file of one column.
type tableFile struct {
	*columnfile.File
	name  string
	place place
	found []columnfile.DataBlock // blocks of a recovered file; nil: all blocks in the index
}

func (t *table) Schema() *arrow.Schema   { return t.sc }
func (t *table) Meta() []format.KeyValue { return t.meta }

// Findings returns what was noticed when the table was opened.
func (t *table) Findings() []region.Finding { return t.unread }

// Declared is the number of rows of a recovered set according to its setFile, or of a recovered file according to its
// last block; -1 if unknown.
func (t *table) Declared() (rows int64, by string) {
	if t.declared == nil {
		return -1, ""
	}
	return *t.declared, t.by
}

func (t *table) Close() error {
	var first error
	for _, f := range t.files {
		if f.File == nil || f.Src == nil { // a lost column
			continue
		}
		if err := f.Src.Close(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (t *table) Columns() []format.Column {
	out := make([]format.Column, len(t.files))
	for i, f := range t.files {
		has := format.Values
		switch {
		case f.place.validity:
			has = format.Validity
		case f.Footer.Array():
			has |= format.Lengths
		}
		name := f.name
		if len(f.place.path) == 1 {
			name = t.sc.Field(f.place.path[0]).Name
		}
		out[i] = format.Column{Name: name, Path: f.place.path, Parent: -1, Has: has, Type: f.place.typ,
			Coded: f.Footer.Encoding == block.Dict,
			Facts: format.ColumnFacts{Encoding: f.Footer.Encoding.String(), Codec: f.Footer.Compression.String()}}
	}
	return out
}

// Order implements format.Reader: a table is sorted by the first column with a value index.
func (t *table) Order() []format.Key {
	for i, f := range t.files {
		if f.Sorted() {
			return []format.Key{{Column: i}}
		}
	}
	return nil
}

func (t *table) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		yield(format.Part{Ref: t.name, Stamp: t.stamp, Rows: t.rows, Bytes: t.bytes}, nil)
	}
}

func (t *table) RowGroups(_ context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	g := format.RowGroup{Part: p.Ref, Rows: t.rows, Bytes: t.size(q.Cols), Bounds: map[int]pred.Bounds{}}
	for i, f := range t.files {
		if b, ok := f.Bounds(f.place.typ); ok && !f.place.validity {
			g.Bounds[i] = b
		}
	}
	return []format.RowGroup{g}, nil
}

// size returns the size of the columns' files; of all files without columns.
func (t *table) size(cols []int) (sum int64) {
	if len(cols) == 0 {
		return t.bytes
	}
	for _, c := range cols {
		sum += t.files[c].At.Len
	}
	return sum
}

func (t *table) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	if col < 0 || col >= len(t.files) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	f := t.files[col]
	if f.found != nil {
		return &columnfile.Chunk{F: f.File, Rows: rows, List: f.found}, nil
	}
	return f.NewChunk(ctx, rows)
}

// openColumn opens a column file as a table of one column.
func openColumn(ctx context.Context, tg format.Target, f *columnfile.File, o columnfile.ReadOptions) *table {
	t := &table{name: tg.Name, rows: f.Footer.NumValues, bytes: f.At.Len, files: []*tableFile{{File: f, name: tg.Name}}}
	t.sc = arrow.NewSchema([]arrow.Field{f.Field(o)}, nil)
	t.stored = t.sc
	t.files[0].place = place{path: []int{0}, typ: t.sc.Field(0).Type}
	switch {
	case f.Endless:
		t.rows = -1
	case f.Stated:
		t.declared, t.by = &f.Footer.NumValues, tg.Name
	}
	t.meta = f.Facts()
	t.stamp = stampOf(ctx, tg)
	return t
}

// stampOf returns the stamp of a target, "" if its tree has none.
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
func openTarget(ctx context.Context, tg format.Target, o format.OpenOptions) (*columnfile.File, error) {
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, err
	}
	f, err := columnfile.OpenFile(ctx, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o)
	if err != nil {
		src.Close()
		return f, err
	}
	return f, nil
}

// pathOf converts a path of child indices to the dotted path that predicates use.
func (t *table) pathOf(path []int) string {
	var names []string
	fields := t.stored.Fields()
	for _, k := range path {
		names = append(names, fields[k].Name)
		if st, ok := fields[k].Type.(*arrow.StructType); ok {
			fields = st.Fields()
		}
	}
	return pred.JoinPath(names...)
}

// Stored is the schema with the types to which values are decoded, see Present.
func (t *table) Stored() *arrow.Schema { return t.stored }

// Present converts an array of a Stored type to the type of the schema.
func (t *table) Present(a arrow.Array, to arrow.DataType, mem memory.Allocator) (arrow.Array, error) {
	return present.As(a, to, mem)
}

// Narrow restricts the rows by the value index of a sorted column. A damaged index restricts nothing; the values are
// then compared when they are read.
func (t *table) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	all := vec.Ranges{{From: 0, To: t.rows}}
	switch {
	case t.rows == 0:
		return nil, nil
	case t.rows < 0:
		all[0].To = math.MaxInt64
	}
	for _, f := range t.files {
		if !f.Sorted() || f.found != nil || e == nil {
			continue
		}
		low, high, lowIn, highIn := e.KeyRange(t.pathOf(f.place.path))
		r, err := f.RowsBetween(ctx, f.place.typ, low, high, lowIn, highIn)
		if err != nil {
			if ctx.Err() != nil || !columnfile.IsDamage(err) {
				return nil, err
			}
			continue
		}
		if r.Len() < t.rows {
			format.Skipped(ctx, format.Skip{Level: format.LevelRows, Why: "value index"})
		}
		all = all.Intersect(vec.Ranges{}.Add(r))
	}
	return all, nil
}
