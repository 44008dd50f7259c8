package table

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// Table is a table of data files. It is a format.Reader.
type Table struct {
	Tree  store.Tree
	Name  string
	Opts  format.OpenOptions
	sc    *arrow.Schema
	Roots []*schema.Column
	Phys  []schema.Physical
	parts []Part
	meta  []format.KeyValue
	Dates page.DateRule
	Zone  *time.Location // of texts without one
	// of the columns that the table has or had; nil: there is no schema, the first file's is taken
	Ids map[string]bool
	// Formats 1 and 2: carbon.blocklet.size of the writer (0: to be found out), and the dictionaries of the
	// table (nil: none known).
	Blocklet int64
	Dicts    *dict.Dictionaries

	saved func([]region.Finding) // told what recovering found; nil: damage is not repaired

	gone    map[string]lost  // what an index names, and what of it cannot be read
	doubted map[string]error // recovering: columns, by id, of whose default the schema says two things

	mu    sync.Mutex
	Files map[string]*datafile.DataFile // opened lately
	order []string
}

// Part is a data file of a table.
type Part struct {
	Name    string
	stamp   string
	rows    int64 // -1: not known without opening it
	bytes   int64
	Segment string
	blocks  []layout.BlockIndex // what an index file says of it, and of which columns
	columns []layout.ColumnSchema
	values  []string       // of the partition columns: name=value
	Update  *status.Update // deleted rows
	agreed  int32          // 1: the file is the one that the index tells of
}

func (t *Table) Schema() *arrow.Schema   { return t.sc }
func (t *Table) Meta() []format.KeyValue { return t.meta }
func (t *Table) Order() []format.Key     { return nil }
func (t *Table) Close() error            { return nil }

func (t *Table) Columns() []format.Column {
	out := make([]format.Column, len(t.Phys))
	for i, p := range t.Phys {
		out[i] = p.Column
	}
	return out
}

func (t *Table) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, name := range layout.Sorted(t.gone) { // first: without a policy for damage nothing is read
			if !yield(format.Part{Ref: name, Rows: t.gone[name].rows}, nil) {
				return
			}
		}
		for _, p := range t.parts {
			if !yield(format.Part{Ref: p.Name, Stamp: p.stamp, Rows: p.rows, Bytes: p.bytes}, nil) {
				return
			}
		}
	}
}

// missing is why a part cannot be read, as far as that is known without opening it.
func (t *Table) missing(ref string) error { return t.gone[ref].err }

// Layout is how the columns say that rows are sorted.
func (t *Table) Layout() (l format.Layout) {
	for _, c := range schema.SortColumns(t.Roots) {
		l.Sorted = append(l.Sorted, c.Name)
	}
	return l
}

// maxOpen is how many files' footers are kept.
const maxOpen = 64

// File opens a data file, or gives it as it was opened lately.
func (t *Table) File(ctx context.Context, name string) (*datafile.DataFile, error) {
	t.mu.Lock()
	f := t.Files[name]
	t.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := t.open(ctx, name)
	if err == nil {
		err = t.Belongs(f)
	}
	if err != nil {
		return nil, err
	}
	if t.Blocklet > 0 {
		f.Widths.Learn(int(t.Blocklet))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Keep(f)
	return f, nil
}

// open opens a data file; when recovering, also one whose header or footer is damaged.
func (t *Table) open(ctx context.Context, name string) (*datafile.DataFile, error) {
	f, err := datafile.OpenFile(ctx, t.Tree, name, t.Opts)
	if err == nil || t.saved == nil || !errors.Is(err, fault.Corrupt) {
		return f, err
	}
	found, findings, again := datafile.RecoverFile(ctx, f, err)
	t.saved(findings)
	if again != nil {
		return nil, err
	}
	found.Rebuilt = true
	return found, nil
}

// Keep remembers an open file.
func (t *Table) Keep(f *datafile.DataFile) {
	name := f.At.Object
	if t.Files[name] != nil {
		return
	}
	if len(t.order) >= maxOpen {
		delete(t.Files, t.order[0])
		t.order = t.order[1:]
	}
	t.Files[name] = f
	t.order = append(t.order, name)
}

func (t *Table) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	if x, ok := t.gone[p.Ref]; ok {
		return nil, x.err
	}
	f, err := t.File(ctx, p.Ref)
	if err == nil && t.saved == nil {
		err = fitsPart(f, t.partOf(p.Ref))
	}
	if err != nil {
		return nil, err
	}
	return t.groups(ctx, f, &Part{Name: p.Ref}, q)
}

// groups are the blocklets of a file.
func (t *Table) groups(ctx context.Context, f *datafile.DataFile, p *Part, q format.Query) ([]format.RowGroup, error) {
	out := make([]format.RowGroup, len(f.Footer.Blocklet))
	for i := range out {
		b := &f.Footer.Blocklet[i]
		out[i] = format.RowGroup{Part: p.Name, Index: i, Rows: b.Rows, Bytes: f.BlockletBytes(i),
			Bounds: t.groupBounds(ctx, f, p, i, q)}
	}
	return out, nil
}

// Match finds the file's column for a column of the table: by the ids of the top-level columns (by name if
// there is no table, only files), below them by place.
func (t *Table) Match(f *datafile.DataFile, root, col *schema.Column) *schema.Column {
	for _, r := range f.Roots {
		if t.Ids != nil && r.Id == root.Id || t.Ids == nil && strings.EqualFold(r.Name, root.Name) {
			return descend(root, r, col)
		}
	}
	return nil
}

// Belongs checks that a file has no column that the table never had: dropped ones stay in the schema. So a
// damaged id does not look like a column that was added later.
func (t *Table) Belongs(f *datafile.DataFile) error {
	for _, r := range f.Roots {
		if t.Ids != nil && !t.Ids[r.Id] {
			return fault.Corruptf(f.At, "column_schema",
				"column %s has the id %s, which no column of the table has or had", r.Name, r.Id)
		}
	}
	return nil
}

// descend walks down want's tree to col and have's along.
func descend(want, have, col *schema.Column) *schema.Column {
	if want == col {
		return have
	}
	for i, k := range want.Kids {
		if i < len(have.Kids) {
			if c := descend(k, have.Kids[i], col); c != nil {
				return c
			}
		}
	}
	return nil
}

func (t *Table) Chunk(ctx context.Context, g format.RowGroup, col int, rows vec.Range) (format.Chunk, error) {
	return t.chunk(ctx, g, &Part{Name: g.Part}, col, rows)
}

func (t *Table) chunk(ctx context.Context, g format.RowGroup, part *Part, col int, rows vec.Range) (format.Chunk,
	error) {
	if col < 0 || col >= len(t.Phys) {
		return nil, fault.Invalidf("there is no column %d", col)
	}
	f, err := t.File(ctx, g.Part)
	if err != nil {
		return nil, err
	}
	if g.Index < 0 || g.Index >= len(f.Footer.Blocklet) {
		return nil, fault.Invalidf("%s has no blocklet %d", g.Part, g.Index)
	}
	p := &t.Phys[col]
	n := f.Footer.Blocklet[g.Index].Rows
	if g.Rows >= 0 && g.Rows != n { // the index planned it
		return nil, fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", g.Index),
			"%d, the index file says %d", n, g.Rows)
	}
	if c := f.Positions(p, g.Index, rows); c != nil {
		return c, nil
	}
	if text, ok := part.partition(p.Root.Name); ok {
		v, err := schema.PartitionValue(p.Root, text, t.Zone)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: g.Part}, true, "partition")
		}
		return schema.NewConstChunk(v, p.Type, n, rows, false), nil
	}
	fc := t.Match(f, p.Root, p.Col)
	if fc == nil && t.Ids == nil {
		return nil, fault.Corruptf(f.At, "", "there is no column %s, which the first file of %s has", p.Name, t.Name)
	}
	if fc == nil {
		if err := t.doubted[p.Root.Id]; err != nil {
			return nil, err
		}
		v, err := schema.DefaultValue(p.Col)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{Object: t.Name}, true, "schema")
		}
		return schema.NewConstChunk(v, p.Type, n, rows, p.Parent >= 0), nil
	}
	if fc.Typ != p.Col.Typ && !widens(fc.Typ, p.Col.Typ) {
		return nil, fault.Unsupportedf(f.At, "", "column %s is %s in the file and %s in the table", p.Name, fc.Typ,
			p.Col.Typ)
	}
	if f.Stream != nil {
		return t.newStreamChunk(f, g.Index, fc)
	}
	return t.NewChunk(ctx, f, g.Index, p, fc, rows)
}

// widens reports whether values of type a are values of type b.
func widens(a, b layout.DataType) bool {
	rank := map[layout.DataType]int{layout.TypeByte: 1, layout.TypeShort: 2, layout.TypeInt: 3, layout.TypeLong: 4}
	switch {
	case rank[a] > 0 && rank[b] > 0:
		return rank[a] <= rank[b]
	case a == layout.TypeFloat && b == layout.TypeDouble, a == layout.TypeString &&
		b == layout.TypeVarchar, a == layout.TypeVarchar && b == layout.TypeString:
		return true
	}
	return false
}

// OpenFiles opens data files as one table: the schema is the first one's.
func OpenFiles(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions, names []string,
	saved func([]region.Finding)) (*Table, error) {
	t := &Table{saved: saved, Tree: tg.Tree, Name: tg.Name, Opts: op, Files: map[string]*datafile.DataFile{},
		Zone: o.Zone, Blocklet: o.Blocklet}
	t.Opts.Tracer = nil
	var err error
	if t.Dates, err = o.Rule(); err != nil {
		return nil, err
	}
	for _, name := range names {
		if n := status.ParseFileName(name); o.Bucket >= 0 && n.Bucket != o.Bucket {
			continue
		}
		info, err := tg.Tree.Stat(ctx, name)
		if err != nil {
			return nil, err
		}
		p := Part{Name: name, stamp: info.Stamp, rows: -1, bytes: info.Size}
		if t.sc == nil {
			f, err := t.open(ctx, name)
			if err != nil {
				return nil, err
			}
			if t.Blocklet > 0 {
				f.Widths.Learn(int(t.Blocklet))
			}
			t.Keep(f)
			p.rows = f.Footer.Rows
			t.meta = f.Facts()
			if err := t.AllColumns(f.Roots, f.ColumnsAt(), f.ColumnsPath()); err != nil {
				return nil, err
			}
			if t.Dicts, err = dict.DictionariesAbove(ctx, tg.Tree, path.Dir(name), f.Columns, op); err != nil {
				return nil, err
			}
		}
		t.parts = append(t.parts, p)
	}
	if t.sc == nil {
		return nil, fault.Invalidf("%s has no data file of bucket %d", tg.Name, o.Bucket)
	}
	return t, nil
}

// AllColumns gives the table its schema, of columns that stand at a place. When recovering, what is strange about
// them is told, and got over.
func (t *Table) AllColumns(roots []*schema.Column, at fault.Span, path string) (err error) {
	if err := schema.Strange(roots); err != nil {
		if err = fault.Locate(err, at, true, path); t.saved == nil {
			return err
		}
		code := "carbon.header.damaged"
		if strings.HasPrefix(path, "schema") {
			code = "carbon.schema.damaged"
		}
		t.saved([]region.Finding{layout.Saying(code, at, t.Name,
			"%s: %v: names, types and the order of columns may be others", path, err)})
		schema.Rename(roots)
	}
	t.Roots = schema.Visible(roots)
	if t.sc, err = schema.ArrowSchema(t.Roots, nil); err == nil {
		t.Phys, err = schema.PhysicalColumns(t.Roots)
	}
	return fault.Locate(err, fault.Span{Object: t.Name}, true, "columns")
}

// Indexed is what the index says of a part; nil if there is none.
func (p *Part) Indexed() *datafile.Indexed {
	if p.blocks == nil {
		return nil
	}
	return &datafile.Indexed{Blocks: p.blocks, Columns: p.columns}
}

// Folder is a directory of data files, without a table around it, and what its index files say.
type Folder struct {
	Data    []string // data files, by name
	Indexes []string // index files
	Named   map[string]*datafile.Indexed
	Bad     map[string]error // index files that cannot be read
	here    map[string]bool
}

// ReadFolder lists a directory, and reads its index files.
func ReadFolder(ctx context.Context, tg format.Target, l format.Limits) (*Folder, error) {
	d := &Folder{Named: map[string]*datafile.Indexed{}, Bad: map[string]error{}, here: map[string]bool{}}
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil {
			return nil, err
		}
		switch k := ByName(info.Name); {
		case info.Dir:
		case k == kindFile:
			d.Data = append(d.Data, info.Name)
			d.here[path.Base(info.Name)] = true
		case k == KindIndex, k == KindMerged:
			d.Indexes = append(d.Indexes, info.Name)
		}
	}
	slices.SortStableFunc(d.Indexes, func(a, b string) int { // a merged one stands for others: it counts before them
		return strings.Compare(path.Ext(b), path.Ext(a))
	})
	for _, name := range d.Indexes {
		o, err := layout.OpenObject(ctx, tg.Tree, name, l)
		if err != nil {
			return nil, err
		}
		files, err := o.ReadIndex(ctx, ByName(name) == KindMerged, nil)
		if err == nil && !slices.ContainsFunc(files, func(f layout.IndexFile) bool { return len(f.Blocks) > 0 }) {
			err = fault.Corruptf(o.At, "", "the index names no data file")
		}
		if err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		if err != nil {
			d.Bad[name] = err
			continue
		}
		said := map[string]*datafile.Indexed{}
		datafile.Collect(said, files)
		for file, x := range said {
			if d.Named[file] == nil {
				d.Named[file] = x
			}
		}
	}
	return d, nil
}

// Missing are the data files that an index names, and that are not there.
func (d *Folder) Missing() (out []string) {
	for _, name := range layout.Sorted(d.Named) {
		if !d.here[name] {
			out = append(out, name)
		}
	}
	return out
}

// Unnamed are the data files that no index names, where there is one.
func (d *Folder) Unnamed() (out []string) {
	for _, name := range d.Data {
		if len(d.Indexes) > 0 && d.Named[path.Base(name)] == nil {
			out = append(out, name)
		}
	}
	return out
}

// Lack is the error of a data file that is missing.
func (d *Folder) Lack(dir, name string) error {
	return fault.Corruptf(fault.Span{Object: path.Join(dir, name)}, "", "the index names this file, and it is missing")
}

// lost is a part of which nothing is there.
type lost struct {
	rows int64 // -1: nobody knows
	err  error
}

// openFolder opens a directory of data files as one table. What an index names is there, or is lost.
func openFolder(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions,
	saved func([]region.Finding)) (*Table, error) {
	d, err := ReadFolder(ctx, tg, op.Limits)
	if err != nil {
		return nil, err
	}
	t, err := openNamed(ctx, tg, op, o, d, saved)
	if err != nil {
		return nil, err
	}
	t.gone = map[string]lost{}
	unnamed := d.Unnamed()
	for _, name := range d.Missing() {
		x := lost{rows: d.Named[name].Rows(), err: d.Lack(tg.Name, name)}
		if len(unnamed) > 0 { // one of them may be this one
			x.rows = -1
		}
		if o.Bucket < 0 || status.ParseFileName(name).Bucket == o.Bucket {
			t.gone[path.Join(tg.Name, name)] = x
		}
	}
	for name, err := range d.Bad {
		t.gone[name] = lost{-1, err}
	}
	if saved != nil {
		t.sayFolder(d, unnamed)
	}
	return t, nil
}

// openNamed opens the data files of a directory; if there is none, with the columns that an index tells.
func openNamed(ctx context.Context, tg format.Target, op format.OpenOptions, o ReadOptions, d *Folder,
	saved func([]region.Finding)) (*Table, error) {
	if len(d.Data) > 0 {
		t, err := OpenFiles(ctx, tg, op, o, d.Data, saved)
		if err != nil {
			return nil, err
		}
		for i := range t.parts {
			p := &t.parts[i]
			x := d.Named[path.Base(p.Name)]
			if x == nil {
				continue
			}
			if p.blocks, p.columns = x.Blocks, x.Columns; p.rows != x.Rows() { // one of them is of another file
				p.rows = -1
			}
		}
		return t, nil
	}
	for _, name := range layout.Sorted(d.Bad) {
		return nil, d.Bad[name]
	}
	t := &Table{saved: saved, Tree: tg.Tree, Name: tg.Name, Opts: op, Files: map[string]*datafile.DataFile{},
		Zone: o.Zone}
	at := fault.Span{Object: d.Indexes[0]}
	names := layout.Sorted(d.Named)
	if len(names) == 0 {
		return nil, fault.Corruptf(at, "", "the index names no data file")
	}
	roots, _, err := schema.ColumnTree(d.Named[names[0]].Columns, at, "table_columns")
	if err == nil {
		err = schema.Fit(roots, op.Limits, at, "table_columns")
	}
	if err == nil {
		err = t.AllColumns(roots, at, "table_columns")
	}
	return t, err
}

// sayFolder tells, when recovering, what the index files of a directory do not agree with. What they name and is not
// there is a loss of whoever reads.
func (t *Table) sayFolder(d *Folder, unnamed []string) {
	for _, name := range layout.Sorted(d.Bad) {
		t.saved([]region.Finding{layout.Saying("carbon.index.damaged", fault.Span{Object: name}, t.Name,
			"%v: the data files that are there are read; it may have named others", d.Bad[name])})
		delete(t.gone, name)
	}
	for _, name := range unnamed {
		t.saved([]region.Finding{layout.Saying("carbon.index.missing", fault.Span{Object: name}, t.Name,
			"no index of the directory names this data file: it is read all the same")})
	}
}

// partOf is a part by its name, with what an index says of it.
func (t *Table) partOf(name string) *Part {
	if i := slices.IndexFunc(t.parts, func(p Part) bool { return p.Name == name }); i >= 0 {
		return &t.parts[i]
	}
	return &Part{Name: name}
}

// eachFits looks at every data file of a directory, so that recovery tells now what is lost.
func (t *Table) eachFits(ctx context.Context) error {
	for i := range t.parts {
		if err := t.fits(ctx, &t.parts[i]); err != nil {
			return err
		}
	}
	return nil
}

// fits tells, when recovering, where a data file is not as its index says; damage of it its reader meets.
func (t *Table) fits(ctx context.Context, p *Part) error {
	f, err := t.File(ctx, p.Name)
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return err
	}
	if err == nil && f.FootAt > 0 {
		if err := fitsPart(f, p); err != nil {
			t.saved([]region.Finding{layout.Saying("carbon.index.disagree", f.FootSpan(), p.Name,
				"%v: the rows of the data file are read; it may be another one than was loaded", err)})
		}
	}
	return nil
}
