package lake

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/internal/scan"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// Input is a file of a table to read.
type Input struct {
	Name   string // in the tree
	Rows   int64  // according to the catalogue; -1 if it does not state it
	Bytes  int64  // the same
	Values map[int]arrow.Array
	// Values are the values of those table columns that are constant in the file, one each. The file need not contain
	// these columns.

	Bounds     map[int]pred.Bounds // of columns of the table, according to the catalogue
	LiveBounds bool                // Bounds do not include the values of deleted rows
	// Deleted are the positions of deleted rows, ascending; nil if there are none.
	Deleted func(ctx context.Context) ([]int64, error)
	// Open opens a file that is not Parquet; nil if it is Parquet. Format is its format. Opts are the options of
	// reading it; nil for Parquet with the table's types.
	Open   func(ctx context.Context) (format.Reader, error)
	Format *format.Format
	Opts   map[string]string
	Stamp  string // changes with the file, or with its deleted rows; "" for that of the file
}

// openInput is an open file.
type openInput struct {
	in      *Input
	reader  format.Reader // includes deleted rows
	plain   format.Reader
	src     scan.Source
	part    format.Part
	groups  []format.RowGroup
	fields  []*fieldMap
	deleted map[int][]int64 // by row group, positions in it
	users   int
}

// files are the open files of a table; unused files are closed when there are many.
type files struct {
	mu   sync.Mutex
	open map[string]*openInput
	idle []string // least recently used first
}

const maxIdle = 64

// acquire opens a file unless it is already open. release must be called when it is no longer used.
func (t *Table) acquire(ctx context.Context, in *Input) (*openInput, error) {
	t.files.mu.Lock()
	defer t.files.mu.Unlock()
	if t.files.open == nil {
		t.files.open = map[string]*openInput{}
	}
	f := t.files.open[in.Name]
	if f == nil {
		var err error
		if f, err = t.openFile(ctx, in); err != nil {
			return nil, err
		}
		t.files.open[in.Name] = f
	}
	f.users++
	t.files.idle = slices.DeleteFunc(t.files.idle, func(n string) bool { return n == in.Name })
	return f, nil
}

func (t *Table) release(f *openInput) {
	t.files.mu.Lock()
	defer t.files.mu.Unlock()
	if f.users--; f.users > 0 {
		return
	}
	t.files.idle = append(t.files.idle, f.in.Name)
	if len(t.files.idle) > maxIdle {
		old := t.files.open[t.files.idle[0]]
		delete(t.files.open, t.files.idle[0])
		t.files.idle = t.files.idle[1:]
		_ = old.close()
	}
}

func (f *openInput) close() error {
	f.src.Dicts.Close()
	return errors.Join(f.plain.Close(), f.src.Objects.Close())
}

// dataTree is the tree from which data are read, bypassing the cache of metadata.
func dataTree(t store.Tree) store.Tree {
	if c, ok := t.(*store.Cache); ok {
		return c.Unwrap()
	}
	return t
}

// Missing returns err, or damage if the file that the catalogue names does not exist.
func Missing(err error, name, catalogue string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fault.Corruptf(fault.Span{Object: name}, "", "%s names the file, and it is not there", catalogue)
	}
	return err
}

// parquetOpts are the options of reading Parquet files: their columns have the table's types.
var parquetOpts = map[string]string{"arrow-schema": "ignore"}

// opts returns the options of reading a Parquet file.
func (in *Input) opts() map[string]string {
	if in.Opts != nil {
		return in.Opts
	}
	return parquetOpts
}

// Members implements format.Composite.
func (t *Table) Members() (out []format.Member) {
	for _, in := range t.c.Files {
		m := format.Member{Name: in.Name, Format: in.Format, Opts: in.Opts}
		if in.Open == nil {
			m.Format, m.Opts = &parquet.Format, in.opts()
		}
		out = append(out, m)
	}
	for _, name := range t.c.Beside {
		out = append(out, format.Member{Name: name, Format: &parquet.Format, Opts: parquetOpts})
	}
	return out
}

// openFile opens a file and compares it with the catalogue.
func (t *Table) openFile(ctx context.Context, in *Input) (*openInput, error) {
	at := fault.Span{Object: in.Name}
	open := in.Open
	if open == nil {
		open = func(ctx context.Context) (format.Reader, error) {
			o := t.c.Open
			o.Limits, o.Tracer = o.Limits.Apart(), nil
			o.Opts = in.opts()
			return parquet.Format.Open(ctx, format.Target{Tree: t.c.Tree, Name: in.Name}, o)
		}
	}
	if t.c.Sized {
		if err := Sized(ctx, dataTree(t.c.Tree), in.Name, t.c.Catalogue, in.Bytes); err != nil {
			return nil, err
		}
	}
	r, err := open(ctx)
	if err != nil {
		return nil, Missing(err, in.Name, t.c.Catalogue)
	}
	f := &openInput{in: in, plain: r, reader: r, deleted: map[int][]int64{}}
	f.src = scan.Source{Reader: r, Objects: scan.NewObjects(dataTree(t.c.Tree)).Mapped(t.c.Open.Mmap),
		Dicts: scan.NewDicts(), Limits: t.c.Open.Limits.WithDefaults(), NoVerify: t.c.Open.NoVerify}
	if err := t.prepare(ctx, f); err != nil {
		return nil, errors.Join(fault.Locate(err, at, false, ""), f.close())
	}
	return f, nil
}

// prepare finds the row groups, the columns and the deleted rows of a file.
func (t *Table) prepare(ctx context.Context, f *openInput) error {
	n := 0
	for p, err := range f.plain.Parts(ctx, format.Query{}) {
		if err != nil {
			return err
		}
		f.part = p
		n++
	}
	if n != 1 {
		return fault.Unsupportedf(fault.Span{Object: f.in.Name}, "", "expected a file of one part, found %d", n)
	}
	if f.part.Stamp == "" { // a store that failed once must not leave an open file that no later scan takes for its own
		info, err := t.c.Tree.Stat(ctx, f.in.Name)
		if err != nil {
			return err
		}
		f.part.Stamp = info.Stamp
	}
	all := make([]int, len(f.plain.Columns()))
	for i := range all {
		all[i] = i
	}
	var err error
	if f.groups, err = f.plain.RowGroups(ctx, f.part, format.Query{Cols: all}); err != nil {
		return err
	}
	rows := int64(0)
	for _, g := range f.groups {
		if rows += g.Rows; g.Rows < 0 {
			rows = -1
			break
		}
	}
	if f.in.Rows >= 0 && rows != f.in.Rows {
		return fault.Corruptf(fault.Span{Object: f.in.Name}, "", "expected %s as %s says, found %d",
			fault.Count(f.in.Rows, "row"),
			t.c.Catalogue, rows)
	}
	if f.fields, err = matchFields(t.c.Schema.Fields(), f.plain.Schema().Fields(), t.matcher(), nil); err != nil {
		return err
	}
	for i, n := range f.fields {
		if v := f.in.Values[i]; n.index < 0 && n.fill == nil && v == nil && !t.c.Schema.Field(i).Nullable {
			return fault.Corruptf(fault.Span{Object: f.in.Name}, t.c.Schema.Field(i).Name,
				"the file has no such column, and it cannot be null")
		}
	}
	if err := t.held(f); err != nil {
		return err
	}
	return t.applyDeletes(ctx, f, rows)
}

// rowsOf reads all rows of a file of t, in order. yield receives batches and the position of their first row.
func (t *Table) rowsOf(ctx context.Context, f *openInput, cols []int, yield func(b arrow.RecordBatch) error) error {
	var err error
	for _, g := range f.groups {
		t.batches(ctx, f, g, format.Query{Cols: cols}, wholeGroup(f, g), t.mem, func(b arrow.RecordBatch,
			e error) bool {
			if err = e; err == nil {
				err = yield(b)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// applyDeletes finds the deleted rows of a file.
func (t *Table) applyDeletes(ctx context.Context, f *openInput, rows int64) error {
	var gone []int64
	if f.in.Deleted != nil {
		var err error
		if gone, err = f.in.Deleted(ctx); err != nil {
			return err
		}
	}
	if len(gone) == 0 {
		return nil
	}
	if last := gone[len(gone)-1]; last >= rows || gone[0] < 0 {
		return fault.Corruptf(fault.Span{Object: f.in.Name}, "",
			"row %d is said to be deleted, and the file has %s",
			last, fault.Count(rows, "row"))
	}
	base := int64(0)
	for _, g := range f.groups {
		i, _ := slices.BinarySearch(gone, base)
		j, _ := slices.BinarySearch(gone, base+g.Rows)
		if i < j {
			own := make([]int64, 0, j-i)
			for _, p := range gone[i:j] {
				own = append(own, p-base)
			}
			f.deleted[g.Index] = own
		}
		base += g.Rows
	}
	f.reader = withDeletes{f.plain, f.deleted}
	f.src.Reader = f.reader
	return nil
}

// group returns a row group by its index.
func (f *openInput) group(index int) (format.RowGroup, error) {
	for _, g := range f.groups {
		if g.Index == index {
			return g, nil
		}
	}
	return format.RowGroup{}, fault.Invalidf("%s has no row group %d", f.in.Name, index)
}

// liveRows returns the number of rows in a group that are not deleted.
// The number is -1 if it is known only by reading.
func (f *openInput) liveRows(g format.RowGroup) int64 { return g.Rows - int64(len(f.deleted[g.Index])) }

// storedRow returns the position in its row group of row number n, counted without deleted rows; if n equals the number
// of such rows, the end.
func (f *openInput) storedRow(g format.RowGroup, n int64) int64 {
	gone := f.deleted[g.Index]
	if n >= f.liveRows(g) {
		return g.Rows
	}
	// The row is at n+k if k rows before it are deleted: the smallest k for which the next deleted row is after it.
	lo, hi := 0, len(gone)
	for lo < hi {
		if k := (lo + hi) / 2; gone[k]-int64(k) <= n {
			lo = k + 1
		} else {
			hi = k
		}
	}
	return n + int64(lo)
}

// withDeletes is a file with deleted rows.
type withDeletes struct {
	format.Reader
	deleted map[int][]int64
}

// Overlay implements format.Overlayer.
func (r withDeletes) Overlay(_ context.Context, g format.RowGroup, _ []int) (format.Overlay, error) {
	if rows := r.deleted[g.Index]; len(rows) > 0 {
		return format.Drops(rows), nil
	}
	return nil, nil
}

// column returns column i of the table, made from a batch of the file's columns; at locates them in the batch.
func (t *Table) column(f *openInput, i int, b arrow.RecordBatch, at map[int]int, mem allocator) (arrow.Array, error) {
	n := f.fields[i]
	if v := f.in.Values[i]; v != nil {
		return repeat(v, int(b.NumRows()), mem)
	}
	if n.index < 0 {
		return n.absent(int(b.NumRows()), mem)
	}
	a, err := n.apply(b.Column(at[n.index]), mem)
	return a, fault.Locate(err, fault.Span{Object: f.in.Name}, false, t.c.Schema.Field(i).Name)
}

// repeat returns an array with n copies of a value.
func repeat(v arrow.Array, n int, mem allocator) (arrow.Array, error) {
	if v.Len() == n {
		v.Retain()
		return v, nil
	}
	if v.IsNull(0) {
		return vec.Nulls(mem, v.DataType(), n), nil
	}
	if n == 0 {
		return array.NewSlice(v, 0, 0), nil
	}
	parts := []arrow.Array{v} // doubled until there are enough
	var made []arrow.Array
	defer func() {
		for _, a := range made {
			a.Release()
		}
	}()
	for parts[0].Len() < n {
		c, err := array.Concatenate([]arrow.Array{parts[0], parts[0]}, mem)
		if err != nil {
			return nil, err
		}
		made, parts[0] = append(made, c), c
	}
	return array.NewSlice(parts[0], 0, int64(n)), nil
}
