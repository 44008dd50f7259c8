package carbon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// table is a table of data files. It is a format.Reader.
type table struct {
	tree  store.Tree
	name  string
	opts  format.OpenOptions
	sc    *arrow.Schema
	roots []*column
	phys  []physical
	parts []part
	meta  []format.KeyValue
	dates dateRule
	zone  *time.Location  // of texts without one
	ids   map[string]bool // of the columns that the table has or had; nil: there is no schema, the first file's is taken
	// Formats 1 and 2: carbon.blocklet.size of the writer (0: to be found out), and the dictionaries of the table (nil: none known).
	blocklet int64
	dicts    *dictionaries

	saved func([]region.Finding) // told what recovering found; nil: damage is not repaired

	mu    sync.Mutex
	files map[string]*dataFile // opened lately
	order []string
}

// part is a data file of a table.
type part struct {
	name    string
	stamp   string
	rows    int64 // -1: not known without opening it
	bytes   int64
	segment string
	blocks  []blockIndex // what an index file says of it, and of which columns
	columns []columnSchema
	values  []string // of the partition columns: name=value
	update  *update  // deleted rows
	agreed  int32    // 1: the file is the one that the index tells of
}

func (t *table) Schema() *arrow.Schema   { return t.sc }
func (t *table) Meta() []format.KeyValue { return t.meta }
func (t *table) Order() []format.Key     { return nil }
func (t *table) Close() error            { return nil }

func (t *table) Columns() []format.Column {
	out := make([]format.Column, len(t.phys))
	for i, p := range t.phys {
		out[i] = p.Column
	}
	return out
}

func (t *table) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, p := range t.parts {
			if !yield(format.Part{Ref: p.name, Stamp: p.stamp, Rows: p.rows, Bytes: p.bytes}, nil) {
				return
			}
		}
	}
}

// Layout is how the columns say that rows are sorted.
func (t *table) Layout() (l format.Layout) {
	for _, c := range sortColumns(t.roots) {
		l.Sorted = append(l.Sorted, c.name)
	}
	return l
}

// maxOpen is how many files' footers are kept.
const maxOpen = 64

// file opens a data file, or gives it as it was opened lately.
func (t *table) file(ctx context.Context, name string) (*dataFile, error) {
	t.mu.Lock()
	f := t.files[name]
	t.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := t.open(ctx, name)
	if err == nil {
		err = t.belongs(f)
	}
	if err != nil {
		return nil, err
	}
	if t.blocklet > 0 {
		f.widths.learn(int(t.blocklet))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.keep(f)
	return f, nil
}

// open opens a data file; when recovering, also one whose header or footer is damaged.
func (t *table) open(ctx context.Context, name string) (*dataFile, error) {
	f, err := openFile(ctx, t.tree, name, t.opts)
	if err == nil || t.saved == nil || !errors.Is(err, fault.Corrupt) {
		return f, err
	}
	found, findings, again := recoverFile(ctx, f, err)
	t.saved(findings)
	if again != nil {
		return nil, err
	}
	found.rebuilt = true
	return found, nil
}

// keep remembers an open file.
func (t *table) keep(f *dataFile) {
	name := f.at.Object
	if t.files[name] != nil {
		return
	}
	if len(t.order) >= maxOpen {
		delete(t.files, t.order[0])
		t.order = t.order[1:]
	}
	t.files[name] = f
	t.order = append(t.order, name)
}

func (t *table) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	f, err := t.file(ctx, p.Ref)
	if err != nil {
		return nil, err
	}
	return t.groups(ctx, f, &part{name: p.Ref}, q)
}

// groups are the blocklets of a file.
func (t *table) groups(ctx context.Context, f *dataFile, p *part, q format.Query) ([]format.RowGroup, error) {
	out := make([]format.RowGroup, len(f.footer.blocklet))
	for i := range out {
		b := &f.footer.blocklet[i]
		out[i] = format.RowGroup{Part: p.name, Index: i, Rows: b.rows, Bytes: f.blockletBytes(i), Bounds: t.groupBounds(ctx, f, p, i, q)}
	}
	return out, nil
}

// blockletBytes is the stored size of a blocklet.
func (f *dataFile) blockletBytes(i int) int64 {
	b := &f.footer.blocklet[i]
	if f.stream != nil {
		return f.stream.blocklets[i].at.Len
	}
	if f.version == 3 && len(b.offsets) > 0 {
		return max(b.end, b.dims) - b.offsets[0]
	}
	return (f.footAt - f.headLen) / int64(len(f.footer.blocklet))
}

// match finds the file's column for a column of the table: by the ids of the top-level columns (by name if there is no table, only
// files), below them by place.
func (t *table) match(f *dataFile, root, col *column) *column {
	for _, r := range f.roots {
		if t.ids != nil && r.id == root.id || t.ids == nil && strings.EqualFold(r.name, root.name) {
			return descend(root, r, col)
		}
	}
	return nil
}

// belongs checks that a file has no column that the table never had: dropped ones stay in the schema. So a damaged id does not
// look like a column that was added later.
func (t *table) belongs(f *dataFile) error {
	for _, r := range f.roots {
		if t.ids != nil && !t.ids[r.id] {
			return fault.Corruptf(f.at, "column_schema", "column %s has the id %s, which no column of the table has or had", r.name, r.id)
		}
	}
	return nil
}

// descend walks down want's tree to col and have's along.
func descend(want, have, col *column) *column {
	if want == col {
		return have
	}
	for i, k := range want.kids {
		if i < len(have.kids) {
			if c := descend(k, have.kids[i], col); c != nil {
				return c
			}
		}
	}
	return nil
}

func (t *table) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	return t.chunk(ctx, g, &part{name: g.Part}, col, rows)
}

func (t *table) chunk(ctx context.Context, g format.RowGroup, part *part, col int, rows vec.Range) (format.Chunk, error) {
	if col < 0 || col >= len(t.phys) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	f, err := t.file(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	if g.Index < 0 || g.Index >= len(f.footer.blocklet) {
		return nil, fault.Invalidf("%s has no blocklet %d", g.Part, g.Index)
	}
	p := &t.phys[col]
	n := f.footer.blocklet[g.Index].rows
	if g.Rows >= 0 && g.Rows != n { // the index planned it
		return nil, fault.Corruptf(f.footSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", g.Index), "%d, the index file says %d", n, g.Rows)
	}
	if c := f.positions(p, g.Index, rows); c != nil {
		return c, nil
	}
	if text, ok := part.partition(p.root.name); ok {
		v, err := partitionValue(p.root, text, t.zone)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: g.Part}, true, "partition")
		}
		return newConstChunk(v, p.Type, n, rows, false), nil
	}
	fc := t.match(f, p.root, p.col)
	if fc == nil && t.ids == nil {
		return nil, fault.Corruptf(f.at, "", "there is no column %s, which the first file of %s has", p.Name, t.name)
	}
	if fc == nil {
		v, err := defaultValue(p.col)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: t.name}, true, "schema")
		}
		return newConstChunk(v, p.Type, n, rows, p.Parent >= 0), nil
	}
	if fc.typ != p.col.typ && !widens(fc.typ, p.col.typ) {
		return nil, fault.Unsupportedf(f.at, "", "column %s is %s in the file and %s in the table", p.Name, fc.typ, p.col.typ)
	}
	if f.stream != nil {
		return t.newStreamChunk(f, g.Index, fc)
	}
	return t.newChunk(ctx, f, g.Index, p, fc, rows)
}

// widens reports whether values of type a are values of type b.
func widens(a, b dataType) bool {
	rank := map[dataType]int{typeByte: 1, typeShort: 2, typeInt: 3, typeLong: 4}
	switch {
	case rank[a] > 0 && rank[b] > 0:
		return rank[a] <= rank[b]
	case a == typeFloat && b == typeDouble, a == typeString && b == typeVarchar, a == typeVarchar && b == typeString:
		return true
	}
	return false
}

// openFiles opens data files as one table: the schema is the first one's.
func openFiles(ctx context.Context, tg format.Target, op format.OpenOptions, o readOptions, names []string, saved func([]region.Finding)) (*table, error) {
	t := &table{saved: saved, tree: tg.Tree, name: tg.Name, opts: op, files: map[string]*dataFile{}, zone: o.zone, blocklet: o.blocklet}
	t.opts.Tracer = nil
	var err error
	if t.dates, err = o.rule(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if n := parseFileName(name); o.bucket >= 0 && n.bucket != o.bucket {
			continue
		}
		info, err := tg.Tree.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		p := part{name: name, stamp: info.Stamp, rows: -1, bytes: info.Size}
		if t.sc == nil {
			f, err := t.open(ctx, name)
			if err != nil {
				return nil, err
			}
			if t.blocklet > 0 {
				f.widths.learn(int(t.blocklet))
			}
			t.keep(f)
			p.rows = f.footer.rows
			t.meta = f.facts()
			if err := t.columns(f.roots); err != nil {
				return nil, err
			}
			if t.dicts, err = dictionariesAbove(ctx, tg.Tree, path.Dir(name), f.columns, op); err != nil {
				return nil, err
			}
		}
		t.parts = append(t.parts, p)
	}
	if t.sc == nil {
		return nil, fault.Invalidf("%s has no data file of bucket %d", tg.Name, o.bucket)
	}
	return t, nil
}

// columns gives the table its schema.
func (t *table) columns(roots []*column) (err error) {
	t.roots = visible(roots)
	if t.sc, err = arrowSchema(t.roots, nil); err == nil {
		t.phys, err = physicalColumns(t.roots)
	}
	return fault.Locate(err, fault.Span{Object: t.name}, true, "columns")
}

// facts are what `stoa meta` prints of a data file.
func (f *dataFile) facts() []format.KeyValue {
	var out []format.KeyValue
	add := func(k string, v any) { out = append(out, format.KeyValue{Key: k, Value: fmt.Sprint(v)}) }
	add("format", fmt.Sprintf("CarbonData V%d", f.version))
	add("file", path.Base(f.at.Object))
	add("num_rows", f.footer.rows)
	add("blocklets", len(f.footer.blocklet))
	add("columns", len(f.columns))
	if f.version == 3 {
		add("is_sort", f.footer.sorted)
		add("schema_time_stamp", f.header.stamp)
	}
	for _, k := range []string{"version", "written_by"} {
		if v, ok := f.footer.extra[k]; ok {
			add("extra_info."+k, v)
		}
	}
	return out
}
