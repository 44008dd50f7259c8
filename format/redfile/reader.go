package redfile

import (
	"context"
	"errors"
	"io"
	"iter"
	"sort"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/table"
	"stoa/internal/nest"
	"stoa/internal/rows"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// Reader is an open RedFile, for programs that need single rows by their number. Its methods may be called
// concurrently.
type Reader struct {
	f      *table.File
	rows   *rows.Rows
	starts []int64 // first row of each row group, and the end
	fields []fieldReader
	all    []format.Column
	pool   sync.Pool // of *vec.Arena
}

// fieldReader holds the state to assemble one top-level field.
type fieldReader struct {
	cols []int
	asm  *nest.Assembler // nil if the field is a single column
}

// NewReader opens a RedFile of size bytes that refers to no other files. Errors are those of OpenReader.
func NewReader(r io.ReaderAt, size int64, o format.OpenOptions) (*Reader, error) {
	ctx, tree := context.Background(), store.One("redfile", r, size)
	src, err := tree.Open(ctx, "redfile")
	if err != nil {
		return nil, err
	}
	return OpenReader(ctx, tree, src, "redfile", o)
}

// OpenReader opens a RedFile. The name is used in errors. Chunks in other files are opened in tree, by their paths
// relative to name; tree may be nil if there are none. If row groups do not state their number of rows, as in
// generation A without a flat column, the error is Unsupported.
func OpenReader(ctx context.Context, tree store.Tree, src store.Source, name string, o format.OpenOptions) (*Reader,
	error) {
	opts, err := layout.ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	if tree == nil {
		tree = store.NewMemory(nil)
	}
	f := table.New(tree, src, fault.Span{Object: name, Len: src.Size()}, o, opts)
	if err := f.Open(ctx, o.Tracer); err != nil {
		return nil, err
	}
	r := &Reader{f: f, starts: []int64{0}, all: f.Columns()}
	for g := range f.Footer.Groups {
		n, err := f.RowsOf(ctx, g)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, fault.Unsupportedf(f.MetaAt, layout.RowGroupPath(g),
				"rows by number, where a row group does not say how many it has")
		}
		r.starts = append(r.starts, r.starts[g]+n)
	}
	r.rows = rows.Of("redfile", f, r.NumRows(), rows.With(tree, name, src), o)
	return r, r.plan()
}

func (r *Reader) plan() error {
	r.pool.New = func() any { return new(vec.Arena) }
	for i, fd := range r.f.Shown.Fields() {
		fr := fieldReader{}
		for c := range r.all {
			if r.all[c].Path[0] == i {
				fr.cols = append(fr.cols, c)
			}
		}
		if len(fr.cols) != 1 || len(r.all[fr.cols[0]].Path) > 1 {
			var err error
			if fr.asm, err = nest.NewAssembler(fd, r.all, fr.cols, nil); err != nil {
				return err
			}
		}
		r.fields = append(r.fields, fr)
	}
	return nil
}

// Schema returns the Arrow schema of the rows.
func (r *Reader) Schema() *arrow.Schema { return r.f.Shown }

// NumRows returns the total number of rows.
func (r *Reader) NumRows() int64 { return r.starts[len(r.starts)-1] }

// Close closes the file.
func (r *Reader) Close() error { return errors.Join(r.rows.Close(), r.f.Close()) }

// RowsFrom returns the rows from row n on. A batch is valid until the next iteration.
func (r *Reader) RowsFrom(ctx context.Context, n int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return r.rows.From(ctx, n, mem)
}

// RowsFromKey returns an error of class Invalid, because RedFile does not record an order of rows.
func (r *Reader) RowsFromKey(ctx context.Context, key pred.Value,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return r.rows.FromKey(ctx, key, mem)
}

// Row returns row n of all columns, 0 ≤ n < NumRows, as a batch of one row, which the caller releases. It reads one
// page of each column; if a repeated column has no index page, it scans from the beginning of the row group.
func (r *Reader) Row(ctx context.Context, n int64, mem memory.Allocator) (arrow.RecordBatch, error) {
	if n < 0 || n >= r.NumRows() {
		return nil, fault.Invalidf("there is no row %d: the file has %d", n, r.NumRows())
	}
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	g := sort.Search(len(r.starts), func(i int) bool { return r.starts[i] > n }) - 1
	a := r.pool.Get().(*vec.Arena)
	defer r.pool.Put(a)
	arrs := make([]arrow.Array, 0, len(r.fields))
	defer func() {
		for _, x := range arrs {
			x.Release()
		}
	}()
	for i := range r.fields {
		x, err := r.field(ctx, &r.fields[i], g, n-r.starts[g], a, mem)
		if errors.Is(err, fault.Unsupported) { // rows can be located only by reading a chunk from its beginning
			return r.rows.Row(ctx, n, mem)
		}
		if err != nil {
			return nil, err
		}
		arrs = append(arrs, x)
	}
	return array.NewRecordBatch(r.f.Shown, arrs, 1), nil
}

func (r *Reader) field(ctx context.Context, fr *fieldReader, g int, row int64, a *vec.Arena,
	mem memory.Allocator) (arrow.Array, error) {
	in := make([]nest.Input, 0, len(fr.cols))
	defer func() {
		for _, x := range in {
			x.Array.Release()
		}
	}()
	for _, col := range fr.cols {
		x, err := r.entries(ctx, g, col, row, a, mem)
		if err != nil {
			return nil, err
		}
		in = append(in, x)
	}
	if fr.asm == nil {
		in[0].Array.Retain()
		return in[0].Array, nil
	}
	return fr.asm.Assemble(in, 1, mem)
}

// entries returns the entries of one row of a column.
func (r *Reader) entries(ctx context.Context, g, col int, row int64, a *vec.Arena,
	mem memory.Allocator) (in nest.Input, err error) {
	t, err := r.f.Table(ctx, g, col)
	if err != nil {
		return in, err
	}
	i, p, err := t.PageOfRow(ctx, row)
	if err != nil {
		return in, err
	}
	a.Reset()
	at := t.At.Sub(p.Off, p.Size)
	b, err := format.ReadPage(ctx, t.Src, at, r.f.Limits, layout.PagePath(g, col, i), a.Bytes)
	if err != nil {
		return in, err
	}
	v, err := vec.New(r.all[col].Type, mem)
	if err != nil {
		return in, err
	}
	defer v.Release()
	c := page.NewChunk(t, vec.Range{})
	k := int(row - p.First)
	task := format.Task{N: p.Values, Bytes: [][]byte{b}, Scratch: a, Limits: r.f.Limits,
		Page: format.Page{Ordinal: i, Spans: []fault.Span{at}, Own: p}}
	flat := r.f.Leaves[col].MaxRep == 0
	if flat { // one entry of the page is enough
		task.Page.Sub, task.N = int64(k), 1
		k = 0
	}
	if err := c.Decode(&task, v); err != nil {
		return in, err
	}
	from, to := k, k+1
	if !flat {
		from, to = nest.RowStart(v.Rep(), k), nest.RowStart(v.Rep(), k+1)
	}
	if v.Def() != nil {
		in.Def, in.Rep = append([]byte(nil), v.Def()[from:to]...), append([]byte(nil), v.Rep()[from:to]...)
	}
	v.Truncate(to)
	v.Skip(from)
	in.Array, err = v.Emit(v.Len())
	return in, err
}
