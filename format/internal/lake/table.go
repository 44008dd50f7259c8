package lake

import (
	"cmp"
	"context"
	"iter"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/scan"
	"stoa/internal/sorted"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

type allocator = memory.Allocator

// Config is a table to read.
type Config struct {
	Catalogue string // for errors: "the manifest"
	Sized     bool   // the catalogue states the size of each file
	Tree      store.Tree
	Schema    *arrow.Schema
	Match     Match
	Files     []*Input
	Beside    []string           // Parquet files without rows of the table, such as deletes
	Open      format.OpenOptions // limits, and whether checksums are compared
	Meta      []format.KeyValue
	Findings  []region.Finding
	Layout    format.Layout
	Defaults  map[int]arrow.Array // values of fields in files that lack them, one each, by field id; others are null
}

// Table is a reader of a table of files. Its parts are the files.
type Table struct {
	c      Config
	cols   []format.Column
	byName map[string]*Input
	mem    allocator
	files  files
}

// New opens a table. Its files are opened when they are read.
func New(c Config) *Table {
	t := &Table{c: c, byName: map[string]*Input{}, mem: memory.NewGoAllocator()}
	for i, f := range c.Schema.Fields() {
		t.cols = append(t.cols, format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values,
			Type: f.Type})
	}
	for _, f := range c.Files {
		t.byName[f.Name] = f
	}
	return t
}

// Files returns the table's files.
func (t *Table) Files() []*Input { return t.c.Files }

func (t *Table) Schema() *arrow.Schema      { return t.c.Schema }
func (t *Table) Columns() []format.Column   { return t.cols }
func (t *Table) Order() []format.Key        { return nil }
func (t *Table) Meta() []format.KeyValue    { return t.c.Meta }
func (t *Table) Findings() []region.Finding { return slices.Clone(t.c.Findings) }
func (t *Table) Layout() format.Layout      { return t.c.Layout }

// Close closes the files.
func (t *Table) Close() (err error) {
	t.files.mu.Lock()
	defer t.files.mu.Unlock()
	for _, f := range t.files.open {
		if e := f.close(); err == nil {
			err = e
		}
	}
	t.files.open, t.files.idle = nil, nil
	return err
}

// Parts returns the files, except those in which, according to the catalogue, no row passes the filter.
func (t *Table) Parts(ctx context.Context, q format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		for _, f := range t.c.Files {
			known := func(path string) *pred.Bounds { return t.catalogueBounds(f, path) }
			if q.Filter != nil && q.Filter.Prune(known) == pred.None {
				format.Skipped(ctx, format.Skip{Level: format.LevelPart, Why: "bounds of the catalogue",
					Bytes: f.Bytes})
				continue
			}
			p := format.Part{Ref: f.Name, Stamp: f.Stamp, Rows: -1, Bytes: f.Bytes}
			if info, err := t.c.Tree.Stat(ctx, f.Name); err == nil && f.Stamp == "" {
				p.Stamp = info.Stamp
			}
			if !yield(p, nil) {
				return
			}
		}
	}
}

// catalogueBounds returns the bounds of a column's values in a file according to the catalogue; nil if unknown.
func (t *Table) catalogueBounds(f *Input, path string) *pred.Bounds {
	at, _, err := pred.Find(t.c.Schema.Fields(), path)
	if err != nil || len(at) != 1 {
		return nil
	}
	if b, ok := f.Bounds[at[0]]; ok {
		return &b
	}
	return nil
}

func (t *Table) input(part string) (*Input, error) {
	if f := t.byName[part]; f != nil {
		return f, nil
	}
	return nil, fault.Invalidf("the table has no file %s", part)
}

// RowGroups returns the row groups of a file, with the number of rows that are not deleted.
func (t *Table) RowGroups(ctx context.Context, p format.Part, q format.Query) ([]format.RowGroup, error) {
	in, err := t.input(p.Ref)
	if err != nil {
		return nil, err
	}
	f, err := t.acquire(ctx, in)
	if err != nil {
		return nil, err
	}
	defer t.release(f)
	var leaves []int
	for k, c := range f.plain.Columns() {
		if slices.ContainsFunc(q.Cols, func(i int) bool { return f.fields[i].index == c.Path[0] }) {
			leaves = append(leaves, k)
		}
	}
	some, err := f.plain.RowGroups(ctx, f.part, format.Query{Cols: leaves})
	if err != nil {
		return nil, err
	}
	out := make([]format.RowGroup, len(some))
	for i, g := range some {
		out[i] = format.RowGroup{Part: p.Ref, Index: g.Index, Rows: f.liveRows(g), Bytes: g.Bytes,
			Bounds: t.bounds(f, g, q.Cols)}
	}
	return out, nil
}

// bounds returns the bounds of a row group's columns that are stored as the table's type, and of constant values of the
// file.
func (t *Table) bounds(f *openInput, g format.RowGroup, cols []int) map[int]pred.Bounds {
	out := map[int]pred.Bounds{}
	for _, i := range cols {
		n := f.fields[i]
		if f.in.Values[i] != nil {
			if b, ok := f.in.Bounds[i]; ok {
				b.Rows, b.Nulls = -1, -1
				out[i] = b
			}
			continue
		}
		for k, c := range f.plain.Columns() {
			b, ok := g.Bounds[k]
			if ok && n.same && len(c.Path) == 1 && c.Path[0] == n.index && c.MaxRep == 0 {
				if len(f.deleted[g.Index]) > 0 {
					b.Rows, b.Nulls, b.Exact = -1, -1, false
				}
				out[i] = b
			}
		}
	}
	return out
}

// Chunk implements format.Reader; rows are returned in batches instead.
func (t *Table) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, fault.Unsupportedf(fault.Span{}, "", "the table gives batches")
}

// Narrow implements format.Narrower: it uses the file's indexes if no row of the group is deleted.
func (t *Table) Narrow(ctx context.Context, g format.RowGroup, e *pred.Expr) (vec.Ranges, error) {
	all := vec.Ranges{}.Add(vec.Range{To: g.Rows})
	if g.Rows < 0 {
		all = vec.Ranges{}.Add(vec.Range{To: math.MaxInt64})
	}
	in, err := t.input(g.Part)
	if err != nil {
		return nil, err
	}
	f, err := t.acquire(ctx, in)
	if err != nil {
		return nil, err
	}
	defer t.release(f)
	n, ok := f.plain.(format.Narrower)
	if !ok || len(f.deleted[g.Index]) > 0 {
		return all, nil
	}
	var terms []*pred.Expr
	for _, c := range e.Conjuncts() {
		if !t.hasColumns(f, c) {
			continue
		}
		if own, err := pred.Bind(c, f.plain.Schema()); err == nil {
			terms = append(terms, own)
		}
	}
	if len(terms) == 0 {
		return all, nil
	}
	own, err := f.group(g.Index)
	if err != nil {
		return nil, err
	}
	return n.Narrow(ctx, own, pred.And(terms...))
}

// hasColumns reports whether a file has the columns of e with the same names and types.
func (t *Table) hasColumns(f *openInput, e *pred.Expr) bool {
	for _, name := range e.Columns() {
		at, _, err := pred.Find(t.c.Schema.Fields(), name)
		if err != nil || len(at) != 1 || f.in.Values[at[0]] != nil {
			return false
		}
		n := f.fields[at[0]]
		if !n.same || f.plain.Schema().Field(n.index).Name != t.c.Schema.Field(at[0]).Name {
			return false
		}
	}
	return true
}

// lostRows is damage of some rows of a row group.
type lostRows struct {
	error
	from, to int64
}

func (e *lostRows) Unwrap() error            { return e.error }
func (e *lostRows) LostRows() (int64, int64) { return e.from, e.to }

// Batches implements format.Batcher.
func (t *Table) Batches(ctx context.Context, g format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	if mem == nil {
		mem = t.mem
	}
	return func(yield func(arrow.RecordBatch, error) bool) {
		in, err := t.input(g.Part)
		if err != nil {
			yield(nil, err)
			return
		}
		f, err := t.acquire(ctx, in)
		if err != nil {
			yield(nil, err)
			return
		}
		defer t.release(f)
		own, err := f.group(g.Index)
		if err != nil {
			yield(nil, err)
			return
		}
		t.batches(ctx, f, own, q, rows, mem, yield)
	}
}

// batches reads rows of a row group and assembles the table's columns from them.
func (t *Table) batches(ctx context.Context, f *openInput, g format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator, yield func(arrow.RecordBatch, error) bool) {
	at := map[int]int{}
	names := []string{}
	fields := make([]arrow.Field, len(q.Cols))
	for k, i := range q.Cols {
		fields[k] = t.c.Schema.Field(i)
		if n := f.fields[i].index; n >= 0 && f.in.Values[i] == nil {
			if _, ok := at[n]; !ok {
				at[n] = len(names)
				names = append(names, pred.JoinPath(f.plain.Schema().Field(n).Name))
			}
		}
	}
	piece := scan.Piece{Part: f.part.Ref, Stamp: f.part.Stamp, Groups: []int{g.Index}, Count: g.Rows,
		Rows: vec.Range{From: f.storedRow(g, rows.From), To: f.storedRow(g, rows.To)}}
	if g.Rows >= 0 && piece.Rows.Len() <= 0 {
		return
	}
	var lost []error
	spec := scan.Spec{Columns: names, Unordered: true, Pieces: []scan.Piece{piece}, Alloc: mem, Memory: q.Batch,
		Damaged: scan.SkipRows, Lost: func(l region.Loss) { lost = append(lost, f.loss(g, l)) }}
	if g.Rows < 0 { // the only group of a file of text
		spec.Pieces, spec.Rows = nil, rows
	}
	out := &inOrder{at: rows.From, rows: rows, yield: yield}
	sc := arrow.NewSchema(fields, nil)
	for b, err := range scan.Run(ctx, f.src, spec, nil) {
		if !out.lose(lost) {
			return
		}
		lost = nil
		if err != nil {
			yield(nil, err)
			return
		}
		whole, err := t.record(f, sc, q.Cols, b, at, mem)
		if err != nil {
			yield(nil, err)
			return
		}
		more := out.batch(whole)
		whole.Release()
		if !more {
			return
		}
	}
	if out.lose(lost) {
		out.rest()
	}
}

// inOrder yields batches and losses in the order of their rows. A scan reports losses before the rows that precede
// them, and leaves the lost rows out of the middle of its batches.
type inOrder struct {
	at    int64       // the row that is yielded next
	rows  vec.Range   // that are wanted
	lost  []*lostRows // not yielded yet, by their first rows
	yield func(arrow.RecordBatch, error) bool
}

// lose adds losses. It yields those of which the rows are not known at once.
func (o *inOrder) lose(lost []error) bool {
	for _, err := range lost {
		e, ok := err.(*lostRows)
		if !ok {
			if !o.yield(nil, err) {
				return false
			}
			continue
		}
		if e.from, e.to = max(e.from, o.rows.From), min(e.to, o.rows.To); e.from < e.to {
			o.lost = append(o.lost, e)
		}
	}
	sorted.StablyBy(o.lost, func(a, b *lostRows) int { return cmp.Compare(a.from, b.from) })
	return true
}

// batch yields the rows of a batch, cut where rows are missing.
func (o *inOrder) batch(b arrow.RecordBatch) bool {
	for from, n := int64(0), b.NumRows(); from < n; {
		to := n
		if len(o.lost) > 0 {
			if o.lost[0].from <= o.at {
				if !o.next() {
					return false
				}
				continue
			}
			to = min(n, from+o.lost[0].from-o.at)
		}
		part := b.NewSlice(from, to)
		more := o.yield(part, nil)
		part.Release()
		if !more {
			return false
		}
		o.at, from = o.at+to-from, to
	}
	return true
}

// next yields the next loss.
func (o *inOrder) next() bool {
	e := o.lost[0]
	o.lost, o.at = o.lost[1:], max(o.at, e.to)
	return o.yield(nil, e)
}

// rest yields the losses after the last row.
func (o *inOrder) rest() {
	for len(o.lost) > 0 && o.next() {
	}
}

// loss converts damage of a file's row group to an error about the rows that are not deleted.
func (f *openInput) loss(g format.RowGroup, l region.Loss) error {
	if !l.Exact {
		return l.Err
	}
	gone := f.deleted[g.Index]
	i, _ := slices.BinarySearch(gone, l.Rows[0])
	j, _ := slices.BinarySearch(gone, l.Rows[1])
	return &lostRows{l.Err, l.Rows[0] - int64(i), l.Rows[1] - int64(j)}
}

func (t *Table) record(f *openInput, sc *arrow.Schema, cols []int, b arrow.RecordBatch,
	at map[int]int, mem allocator) (arrow.RecordBatch, error) {
	out := make([]arrow.Array, len(cols))
	defer func() {
		for _, a := range out {
			if a != nil {
				a.Release()
			}
		}
	}()
	for k, i := range cols {
		a, err := t.column(f, i, b, at, mem)
		if err != nil {
			return nil, err
		}
		out[k] = a
	}
	return array.NewRecordBatch(sc, out, b.NumRows()), nil
}

// Each reads the rows of all files that are not deleted: see EachOf.
func (t *Table) Each(ctx context.Context, yield func(file int, position func(i int) int64, b arrow.RecordBatch) error,
) error {
	for k, in := range t.Files() {
		err := t.EachOf(ctx, in, func(position func(int) int64, b arrow.RecordBatch) error {
			return yield(k, position, b)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// EachOf reads the rows of a file that are not deleted. position returns the position of row i of a batch in the file.
func (t *Table) EachOf(ctx context.Context, in *Input,
	yield func(position func(i int) int64, b arrow.RecordBatch) error) error {
	f, err := t.acquire(ctx, in)
	if err != nil {
		return err
	}
	defer t.release(f)
	cols := make([]int, len(t.cols))
	for i := range cols {
		cols[i] = i
	}
	base := int64(0)
	for _, g := range f.groups {
		next := int64(0) // rows of the group before the batch, without deleted ones
		take := func(b arrow.RecordBatch, e error) bool {
			if err = e; err == nil {
				from := next
				err = yield(func(i int) int64 { return base + f.storedRow(g, from+int64(i)) }, b)
				next += b.NumRows()
			}
			return err == nil
		}
		t.batches(ctx, f, g, format.Query{Cols: cols}, wholeGroup(f, g), t.mem, take)
		if err != nil {
			return err
		}
		base += g.Rows
	}
	return nil
}

// wholeGroup returns all rows of a group that are not deleted.
func wholeGroup(f *openInput, g format.RowGroup) vec.Range { return vec.Range{To: f.liveRows(g)} }

// Positions reads the positions of deleted rows from files of position deletes, in which the columns of t are file_path
// and pos. All paths are mapped by path; the result contains only those in wanted.
func (t *Table) Positions(ctx context.Context, take func(path string, pos int64) error) error {
	for _, in := range t.c.Files {
		f, err := t.acquire(ctx, in)
		if err != nil {
			return err
		}
		err = t.rowsOf(ctx, f, []int{0, 1}, func(b arrow.RecordBatch) error {
			paths, ok1 := b.Column(0).(*array.String)
			pos, ok2 := b.Column(1).(*array.Int64)
			if !ok1 || !ok2 || paths.NullN() > 0 || pos.NullN() > 0 {
				return fault.Corruptf(fault.Span{Object: in.Name}, "", "deletes without a path or a position")
			}
			for i := range int(b.NumRows()) {
				if err := take(paths.Value(i), pos.Value(i)); err != nil {
					return err
				}
			}
			return nil
		})
		t.release(f)
		if err != nil {
			return err
		}
	}
	return nil
}
