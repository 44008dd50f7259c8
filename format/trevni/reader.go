package trevni

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/format/trevni/internal/table"
	"stoa/internal/rows"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// File is an open Trevni file of any dialect, for programs that want its columns and blocks, or its rows without
// anything beyond this format; filters, damage policies and tables of many files are in package stoa. Its methods are
// safe for concurrent use; a ColumnReader is for one goroutine.
type File struct {
	t    *table.Table
	rows *rows.Rows
	name string
}

// Reader is an alias of File: native readers have this name in all formats.
type Reader = File

// NewReader opens a Trevni file of size bytes.
func NewReader(r io.ReaderAt, size int64, o format.OpenOptions) (*Reader, error) {
	return OpenFile(context.Background(), store.One("trevni", r, size), "trevni", o)
}

// OpenFile opens the object name of tree: store.Local{} for paths. Only the header and the descriptors of one
// column are read.
func OpenFile(ctx context.Context, tree store.Tree, name string, o format.OpenOptions) (*File, error) {
	r, err := open(ctx, format.Target{Tree: tree, Name: name}, o)
	if err != nil {
		return nil, err
	}
	t := r.(*table.Table)
	return &File{t: t, rows: rows.Of("trevni", t, t.File.Header.Rows, tree, o), name: name}, nil
}

// NumRows returns the number of rows.
func (f *File) NumRows() int64 { return f.rows.NumRows() }

// Row returns row n of all columns. The caller releases the batch.
func (f *File) Row(ctx context.Context, n int64, mem memory.Allocator) (arrow.RecordBatch, error) {
	return f.rows.Row(ctx, n, mem)
}

// RowsFrom returns the rows from row n on. A batch is valid until the next iteration.
func (f *File) RowsFrom(ctx context.Context, n int64, mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return f.rows.From(ctx, n, mem)
}

// RowsFromKey returns the rows from the first one on whose key is not less than key. The key is the first column known
// to be sorted, see ColumnReader.SeekValue; without one, the error is of class Invalid.
func (f *File) RowsFromKey(ctx context.Context, key pred.Value,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return f.rows.FromKey(ctx, key, mem)
}

// Header returns the parsed header of the file. It must not be changed.
func (f *File) Header() *layout.Header { return &f.t.File.Header }

// Schema returns the Arrow schema of the file's rows.
func (f *File) Schema() *arrow.Schema { return f.t.Shown }

// Close closes the file. Its ColumnReaders cannot be used afterwards.
func (f *File) Close() error { return errors.Join(f.rows.Close(), f.t.Close()) }

// BlockInfo is the contents of a block's descriptor.
type BlockInfo struct {
	Row, Rows   int64       // number of the first row, and number of rows
	Raw, Stored int64       // bytes; without the checksum
	First       *pred.Value // the first value, if the column has them
	At          fault.Span  // stored bytes and checksum
}

// ColumnReader reads the values of one column, block by block, from any row on. A block is read when one of its rows is
// wanted.
type ColumnReader struct {
	f      *container.File
	p      *page.Physical
	cb     *container.ColumnBlocks
	sorted bool

	row     int64       // the next row
	first   int64       // number of the first row in decoded
	decoded arrow.Array // a block, or part of a very large one
	arena   vec.Arena
}

// Column opens a column by its name in the file. Its entries must be rows: values, optional values, or an array of
// values without children. Columns of more deeply nested fields, which other columns count, are an error of class
// Unsupported, and an unknown name is one of class Invalid.
func (f *File) Column(ctx context.Context, name string) (*ColumnReader, error) {
	h := &f.t.File.Header
	i := slices.IndexFunc(h.Columns, func(c layout.Column) bool { return c.Name == name })
	if i < 0 {
		return nil, fault.Invalidf("%s: there is no column %q", f.name, name)
	}
	k := slices.IndexFunc(f.t.Plan.Phys, func(p *page.Physical) bool { return p.Stored == i })
	if k < 0 || f.t.Plan.Phys[k].Parent >= 0 || !f.t.Plan.Phys[k].Counted() ||
		slices.ContainsFunc(f.t.Plan.Phys[k+1:], func(p *page.Physical) bool { return p.Stored == i }) {
		return nil, fault.Unsupportedf(h.Columns[i].At, name,
			"the column's entries are not rows; only scanning puts them together")
	}
	cb, err := f.t.File.Blocks(ctx, i)
	if err != nil {
		return nil, err
	}
	if cb.Rows != h.Rows { // a descriptor is wrong, so the rows cannot be located
		return nil, fault.Corruptf(cb.Desc, f.t.File.PathOf(i), "the blocks have %s, the header says %d",
			fault.Count(cb.Rows, "row"),
			h.Rows)
	}
	return &ColumnReader{f: f.t.File, p: f.t.Plan.Phys[k], cb: cb, sorted: f.t.IsSorted(i)}, nil
}

// Type returns the type of the arrays that Next returns.
func (c *ColumnReader) Type() arrow.DataType { return c.p.Type }

// Rows returns the number of rows of the column's blocks.
func (c *ColumnReader) Rows() int64 { return c.cb.Rows }
func (c *ColumnReader) Row() int64  { return c.row }

// Blocks returns the contents of the descriptors.
func (c *ColumnReader) Blocks() []BlockInfo {
	out := make([]BlockInfo, len(c.cb.Blocks))
	for i, b := range c.cb.Blocks {
		out[i] = BlockInfo{b.Row, b.Rows, b.Raw, b.Stored, table.FirstOf(c.p, b.First), b.At}
	}
	return out
}

// SeekRow goes to a row; the number after the last is allowed. Nothing is read.
func (c *ColumnReader) SeekRow(row int64) error {
	if row < 0 || row > c.cb.Rows {
		return fault.Invalidf("row %d: the column has %s", row, fault.Count(c.cb.Rows, "row"))
	}
	c.row = row
	return nil
}

// Next returns the next values, at most n, and never beyond the end of a block; io.EOF after the last row. The caller
// releases the array.
func (c *ColumnReader) Next(ctx context.Context, n int64) (arrow.Array, error) {
	if c.row >= c.cb.Rows {
		return nil, io.EOF
	}
	if err := c.load(ctx, c.row); err != nil {
		return nil, err
	}
	from := c.row - c.first
	to := min(from+max(n, 0), int64(c.decoded.Len()))
	c.row += to - from
	return array.NewSlice(c.decoded, from, to), nil
}

// Close releases the block that was decoded last.
func (c *ColumnReader) Close() {
	if c.decoded != nil {
		c.decoded.Release()
		c.decoded = nil
	}
}

// load decodes the block that holds row.
func (c *ColumnReader) load(ctx context.Context, row int64) error {
	if c.decoded != nil && row >= c.first && row < c.first+int64(c.decoded.Len()) {
		return nil
	}
	ch, err := page.NewChunk(ctx, c.f, c.p, vec.Range{From: row, To: row + 1})
	if err != nil {
		return err
	}
	page, err := ch.Next(ctx)
	if err == nil {
		err = page.Lost
	}
	if err != nil {
		return err
	}
	c.arena.Reset()
	t := format.Task{Page: page, N: page.Entries, Scratch: &c.arena, Limits: c.f.Limits}
	for _, at := range page.Spans {
		b, err := format.ReadPage(ctx, c.f.Src, at, c.f.Limits, "block", c.arena.Bytes)
		if err != nil {
			return err
		}
		t.Bytes = append(t.Bytes, b)
	}
	v, err := vec.New(c.p.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	defer v.Release()
	if err := ch.Decode(&t, v); err != nil {
		return err
	}
	a, err := v.Emit(v.Len())
	if err != nil {
		return err
	}
	c.Close()
	c.decoded, c.first = a, page.First
	return nil
}

// SeekValue goes to the first row whose value is not less than v, and reports whether there is one; otherwise it goes
// past the last row. The column must have first values and be known to be sorted, by our writer's mark or option
// "sorted"; if not, the error is of class Invalid. The block is found by the descriptors. They have no checksum, so the
// blocks on both sides of the border, and no others, are read and compared with their first values.
func (c *ColumnReader) SeekValue(ctx context.Context, v pred.Value) (found bool, err error) {
	if !c.sorted {
		return false, fault.Invalidf("column %q is not known to rise, or has no first values: see the option sorted",
			c.p.Name)
	}
	blocks := slices.DeleteFunc(slices.Clone(c.cb.Blocks), func(b container.Block) bool { return b.Rows == 0 })
	i := sort.Search(len(blocks), func(i int) bool {
		first := table.FirstOf(c.p, blocks[i].First)
		if first == nil {
			err = fault.Corruptf(blocks[i].Desc, "first-value", "it cannot be compared")
			return true
		}
		order, ok := pred.Compare(*first, v)
		if !ok {
			err = fault.Invalidf("values of type %s are not compared with %v", c.p.Type, v)
		}
		return order >= 0
	})
	if err != nil {
		return false, err
	}
	if i < len(blocks) { // according to its descriptor, it begins at v or after it
		k, err := c.search(ctx, &blocks[i], v)
		if err == nil && k != 0 {
			err = fault.Corruptf(blocks[i].Desc, "first-value", "the block begins below it")
		}
		if err != nil {
			return false, err
		}
	}
	c.row = c.cb.Rows
	if i < len(blocks) {
		c.row, found = blocks[i].Row, true
	}
	if i == 0 {
		return found, nil
	}
	b := &blocks[i-1]
	k, err := c.search(ctx, b, v)
	switch {
	case err != nil:
		return false, err
	case k == 0:
		return false, fault.Corruptf(b.Desc, "first-value",
			"the block does not begin below %v, as its descriptor says", v)
	case k < b.Rows:
		c.row, found = b.Row+k, true
	}
	return found, nil
}

// search returns how many values of a block precede the first that is not less than v.
func (c *ColumnReader) search(ctx context.Context, b *container.Block, v pred.Value) (k int64, err error) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "v", Type: c.p.Type}}, nil)
	e, err := pred.Bind(pred.Test("v", pred.OpGe, v), sc)
	if err != nil {
		return 0, err
	}
	for k < b.Rows {
		if err := c.load(ctx, b.Row+k); err != nil {
			return 0, err
		}
		n := c.decoded.Len()
		sel, err := e.Eval(n, func(string) arrow.Array { return c.decoded }, vec.All(n))
		if err != nil {
			return 0, err
		}
		i := 0
		for i < n && !sel.Has(i) {
			i++
		}
		if k += int64(i); i < n {
			break
		}
	}
	return k, nil
}
