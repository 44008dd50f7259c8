package trevni

import (
	"context"
	"io"
	"slices"
	"sort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
)

// File is an open Trevni file of any dialect, for programs that want its columns and blocks, not its rows:
// those, with filters, damage policies and nested fields put together, are what package stoa's Open gives. Its
// methods are safe for concurrent use; a ColumnReader is for one goroutine.
type File struct {
	t    *table
	name string
}

// OpenFile opens the object name of tree: store.Local{} for paths. Only the header and the descriptors of one
// column are read.
func OpenFile(ctx context.Context, tree store.Tree, name string, o format.OpenOptions) (*File, error) {
	r, err := open(ctx, format.Target{Tree: tree, Name: name}, o)
	if err != nil {
		return nil, err
	}
	return &File{r.(*table), name}, nil
}

// Header is what the file says of itself and its columns. It must not be changed.
func (f *File) Header() *Header { return &f.t.f.header }

// Schema is how the file's rows are shown.
func (f *File) Schema() *arrow.Schema { return f.t.sc }

// Close closes the file; its ColumnReaders cannot be used then.
func (f *File) Close() error { return f.t.Close() }

// BlockInfo is what a block's descriptor says.
type BlockInfo struct {
	Row, Rows   int64       // the first row, and how many
	Raw, Stored int64       // bytes; without the checksum
	First       *pred.Value // the first value, if the column has them
	At          fault.Span  // stored bytes and checksum
}

// ColumnReader reads the values of one column, block by block, from any row on. A block is read when a row of
// it is wanted.
type ColumnReader struct {
	f     *file
	p     *physical
	cb    *columnBlocks
	rises bool

	row   int64       // the next
	first int64       // row of have's first value
	have  arrow.Array // the decoded block, or part of a very large one
	arena vec.Arena
}

// Column opens a column by the name that the file has for it. It must be one whose entries are rows: values,
// values that may be missing, or an array of values without children. The columns of deeper fields, which other
// columns count, are Unsupported here.
func (f *File) Column(ctx context.Context, name string) (*ColumnReader, error) {
	h := &f.t.f.header
	i := slices.IndexFunc(h.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return nil, fault.Invalidf("%s: there is no column %q", f.name, name)
	}
	k := slices.IndexFunc(f.t.p.phys, func(p *physical) bool { return p.column == i })
	if k < 0 || f.t.p.phys[k].Parent >= 0 || !f.t.p.phys[k].counted() ||
		slices.ContainsFunc(f.t.p.phys[k+1:], func(p *physical) bool { return p.column == i }) {
		return nil, fault.Unsupportedf(h.Columns[i].at, name,
			"the column's entries are not rows; only scanning puts them together")
	}
	cb, err := f.t.f.blocks(ctx, i)
	if err != nil {
		return nil, err
	}
	if cb.rows != h.Rows { // a descriptor is wrong, and with it where rows are
		return nil, fault.Corruptf(cb.desc, f.t.f.pathOf(i), "the blocks have %d rows, the header says %d", cb.rows,
			h.Rows)
	}
	return &ColumnReader{f: f.t.f, p: f.t.p.phys[k], cb: cb, rises: f.t.isSorted(i)}, nil
}

// Type is the type of the arrays that Next gives.
func (c *ColumnReader) Type() arrow.DataType { return c.p.Type }

// Rows is how many rows the column's blocks have; Row is the next one.
func (c *ColumnReader) Rows() int64 { return c.cb.rows }
func (c *ColumnReader) Row() int64  { return c.row }

// Blocks is what the descriptors say.
func (c *ColumnReader) Blocks() []BlockInfo {
	out := make([]BlockInfo, len(c.cb.blocks))
	for i, b := range c.cb.blocks {
		out[i] = BlockInfo{b.row, b.rows, b.raw, b.stored, firstOf(c.p, b.first), b.at}
	}
	return out
}

// SeekRow goes to a row, which may be the one behind the last. Nothing is read.
func (c *ColumnReader) SeekRow(row int64) error {
	if row < 0 || row > c.cb.rows {
		return fault.Invalidf("row %d of %d", row, c.cb.rows)
	}
	c.row = row
	return nil
}

// Next gives the next values: n at most, and none behind the end of a block. Behind the last row there is
// io.EOF. The array belongs to the caller, who releases it.
func (c *ColumnReader) Next(ctx context.Context, n int64) (arrow.Array, error) {
	if c.row >= c.cb.rows {
		return nil, io.EOF
	}
	if err := c.load(ctx, c.row); err != nil {
		return nil, err
	}
	from := c.row - c.first
	to := min(from+max(n, 0), int64(c.have.Len()))
	c.row += to - from
	return array.NewSlice(c.have, from, to), nil
}

// Close releases what was decoded last.
func (c *ColumnReader) Close() {
	if c.have != nil {
		c.have.Release()
		c.have = nil
	}
}

// load decodes the block that holds row.
func (c *ColumnReader) load(ctx context.Context, row int64) error {
	if c.have != nil && row >= c.first && row < c.first+int64(c.have.Len()) {
		return nil
	}
	ch, err := newChunk(ctx, c.f, c.p, vec.Range{From: row, To: row + 1})
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
	t := format.Task{Page: page, N: page.Entries, Scratch: &c.arena, Limits: c.f.limits}
	for _, at := range page.Spans {
		if at.Len > c.f.limits.Page {
			return fault.Limitf(at, "", "%d bytes are more than a page may have (%d)", at.Len, c.f.limits.Page)
		}
		b := make([]byte, at.Len)
		if err := format.ReadFull(ctx, c.f.src, at, "block", b); err != nil {
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
	c.have, c.first = a, page.First
	return nil
}

// SeekValue goes to the first row whose value is not below v, and reports whether there is one; else it goes
// behind the last row. The column must have first values and be known to rise: our writer notes it, of other
// files the option "sorted" says it. Descriptors find the place, and because they have no checksum, the two
// blocks around it are looked at, no others.
func (c *ColumnReader) SeekValue(ctx context.Context, v pred.Value) (found bool, err error) {
	if !c.rises {
		return false, fault.Invalidf("column %q is not known to rise, or has no first values: see the option sorted", c.p.Name)
	}
	blocks := slices.DeleteFunc(slices.Clone(c.cb.blocks), func(b block) bool { return b.rows == 0 })
	i := sort.Search(len(blocks), func(i int) bool {
		first := firstOf(c.p, blocks[i].first)
		if first == nil {
			err = fault.Corruptf(blocks[i].desc, "first-value", "it cannot be compared")
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
	if i < len(blocks) { // it begins at v or behind: so it says itself
		k, err := c.search(ctx, &blocks[i], v)
		if err == nil && k != 0 {
			err = fault.Corruptf(blocks[i].desc, "first-value", "the block begins below it")
		}
		if err != nil {
			return false, err
		}
	}
	c.row = c.cb.rows
	if i < len(blocks) {
		c.row, found = blocks[i].row, true
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
		return false, fault.Corruptf(b.desc, "first-value",
			"the block does not begin below %v, as its descriptor says", v)
	case k < b.rows:
		c.row, found = b.row+k, true
	}
	return found, nil
}

// search is how many values of a block come before the first that is not below v.
func (c *ColumnReader) search(ctx context.Context, b *block, v pred.Value) (k int64, err error) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "v", Type: c.p.Type}}, nil)
	e, err := pred.Bind(pred.Test("v", pred.OpGe, v), sc)
	if err != nil {
		return 0, err
	}
	for k < b.rows {
		if err := c.load(ctx, b.row+k); err != nil {
			return 0, err
		}
		n := c.have.Len()
		sel, err := e.Eval(n, func(string) arrow.Array { return c.have }, vec.All(n))
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
