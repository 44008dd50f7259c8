package columnfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/vec"
)

// DataBlock is a data block, as the index describes it or as recovery found it.
type DataBlock struct {
	Ptr   block.BlockPtr
	First int64 // ordinal of the first row; -1: only the block itself states it
	Rows  int64 // number of rows; -1: likewise
	Lost  error // why the block cannot be read; nil: it can
	Own   int64 // by how much the block's own ordinal, which is damaged, is greater than First
}

// Chunk implements format.Chunk for a column file.
type Chunk struct {
	F    *File
	Rows vec.Range
	Walk *Walker     // nil: there are no blocks, or they are in List
	List []DataBlock // of a recovered file
	N    int         // number of blocks read
	at   int64       // row after the last block, with a positional index
	cur  *DataBlock  // the block of the next page, if it has several
	sub  int64       // row of the block at which the next page begins
	err  error

	count rowCheck // without a positional index
}

// rowCheck checks the rows of blocks in a file without a positional index: each block must begin at the row where the
// one before it ends. Blocks may be decoded in any order, and not all need to be.
type rowCheck struct {
	mu   sync.Mutex
	have map[int][2]int64 // by block number: first row, and first row after the block
	last int              // number of blocks; 0: not known yet
}

// add checks block number i, which has the rows [first, end). rows is the number of rows of the file, -1 if unknown.
func (k *rowCheck) add(i int, first, end, rows int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.have == nil {
		k.have = map[int][2]int64{}
	}
	k.have[i] = [2]int64{first, end}
	before, ok := k.have[i-1]
	after, known := k.have[i+1]
	switch {
	case i == 0 && first != 0:
		return fault.Rel(0, 0, "ordinal", "expected the first block to begin at row 0, found %d", first)
	case ok && before[1] != first:
		return fault.Rel(0, 0, "ordinal", "expected the block to begin at row %d, where the one before ends, found %d",
			before[1], first)
	case known && after[0] != end:
		return fault.Rel(0, 0, "num_values", "expected the block to end at row %d, where the next one begins, found %d",
			after[0], end)
	case rows >= 0 && (end > rows || i+1 == k.last && end != rows):
		return fault.Rel(0, 0, "num_values", "expected the block to end at row %d, by the footer, found %d", rows, end)
	}
	return nil
}

// end records that block i is the last one and, if it has been decoded, checks that it ends at row rows.
func (k *rowCheck) end(i int, rows int64) (end int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = i + 1
	b, decoded := k.have[i]
	return b[1], !decoded || rows < 0 || b[1] == rows
}

// statedRows returns the number of rows that the footer states; -1 if that is not certain.
func (f *File) statedRows() int64 {
	if f.Endless {
		return -1
	}
	return f.Footer.NumValues
}

// NewChunk returns the pages of rows, from the one with row rows.From on. The rows of a part of a positional index that
// cannot be read are a page that is lost.
func (f *File) NewChunk(ctx context.Context, rows vec.Range) (*Chunk, error) {
	c := &Chunk{F: f, Rows: rows, at: max(0, rows.From)}
	var err error
	switch {
	case f.Footer.PosIdx != nil:
		c.Walk = f.Positions()
		if rows.From >= f.Footer.NumValues {
			c.err = io.EOF
			break
		}
		if err = c.Walk.seek(ctx, block.PositionKey(min(c.at, math.MaxUint32)), false); err != nil {
			c.cur, err = c.passOver(err)
			c.N = 1
		}
	case f.Footer.ValIdx != nil:
		c.Walk = f.Values()
		err = c.Walk.First(ctx)
	default:
		c.err = io.EOF
	}
	return c, err
}

// Next returns the next page: a block, or block.MaxSub rows of a longer one; io.EOF after the last.
func (c *Chunk) Next(ctx context.Context) (format.Page, error) {
	if c.cur == nil {
		if c.err != nil {
			return format.Page{}, c.err
		}
		b, err := c.block(ctx)
		if err != nil {
			c.err = err
			return format.Page{}, err
		}
		c.cur, c.sub = b, 0
		if skip := c.Rows.From - b.First; b.First >= 0 && skip >= block.MaxSub && skip < b.Rows {
			c.sub = skip / block.MaxSub * block.MaxSub
		}
	}
	b := c.cur
	p := format.Page{Ordinal: c.N - 1, Sub: c.sub, First: b.First, Rows: b.Rows, Entries: b.Rows,
		Spans: []fault.Span{c.F.Span(b.Ptr)}, Lost: b.Lost, Own: b}
	if c.F.Endless && b.First+b.Rows == c.F.Footer.NumValues {
		p.Rows, p.Entries, c.cur = -1, -1, nil
		return p, nil
	}
	if b.Rows > block.MaxSub && b.Lost == nil {
		p.Rows = min(block.MaxSub, b.Rows-c.sub)
		p.Entries = p.Rows
		p.First += c.sub
		if c.sub += p.Rows; c.sub < b.Rows && b.First+c.sub < c.Rows.To {
			return p, nil
		}
	}
	c.cur = nil
	return p, nil
}

// block returns the next data block; io.EOF after the last.
func (c *Chunk) block(ctx context.Context) (*DataBlock, error) {
	c.N++
	if c.Walk == nil {
		return c.listed()
	}
	w := c.Walk
	if c.N > 1 {
		if err := w.Next(ctx); err != nil {
			return c.passOver(err)
		}
	}
	if w.Eof {
		return nil, c.end()
	}
	e, err := w.Current()
	if err != nil {
		return c.passOver(err)
	}
	b := &DataBlock{Ptr: e.Ptr, First: -1, Rows: -1}
	if c.F.Footer.PosIdx != nil {
		if b.First, b.Rows, err = c.Place(e); err != nil {
			return c.passOver(err)
		}
		if b.First >= c.Rows.To {
			return nil, io.EOF
		}
	}
	if err := w.Block(e); err != nil {
		return c.passOver(err)
	}
	c.at = b.First + b.Rows
	return b, nil
}

// passOver returns a lost block that stands for the entry of the index at which the walk stopped with the error lost:
// its rows end where the next entry, or one above it, says that its own begin. It returns lost if that is not known.
func (c *Chunk) passOver(lost error) (*DataBlock, error) {
	var e *fault.Error
	if !errors.As(lost, &e) || e.Class != fault.Corrupt || c.F.Footer.PosIdx == nil || len(c.Walk.Stack) == 0 {
		return nil, lost
	}
	key, err := c.Walk.following()
	if err != nil {
		return nil, lost
	}
	end, ok := c.F.Footer.NumValues, true
	if key != nil {
		next := block.IndexEntry{Key: key}
		end, ok = next.Ordinal()
	}
	if !ok || end <= c.at || end > c.F.Footer.NumValues {
		return nil, lost
	}
	b := &DataBlock{First: c.at, Rows: end - c.at, Lost: lost}
	c.at = end
	return b, nil
}

// listed returns the next block of a recovered file that has some of the chunk's rows.
func (c *Chunk) listed() (*DataBlock, error) {
	for ; c.N <= len(c.List); c.N++ {
		b := &c.List[c.N-1]
		if b.First >= 0 && b.Rows >= 0 && (b.First+b.Rows <= c.Rows.From || b.First >= c.Rows.To) {
			continue
		}
		return b, nil
	}
	return nil, io.EOF
}

// end is called after the last block. It returns io.EOF, or an error if the number of values is wrong.
func (c *Chunk) end() error {
	if n := c.F.Footer.NumValues; c.N == 1 && n > 0 {
		return fault.Corruptf(c.F.FootSpan(), "footer.num_values", "expected 0, as the index is empty, found %d", n)
	}
	if c.F.Footer.PosIdx == nil {
		if end, ok := c.count.end(c.N-2, c.F.statedRows()); !ok {
			return fault.Corruptf(c.F.FootSpan(), "footer.num_values", "expected %d, where the last block ends, "+
				"found %d", end, c.F.Footer.NumValues)
		}
	}
	return io.EOF
}

// Place returns the rows of the block that a positional entry points to: they end where those of the next entry begin,
// or at the end of the file. The error is Corrupt.
func (c *Chunk) Place(e block.IndexEntry) (first, rows int64, err error) {
	w := c.Walk
	first, ok := e.Ordinal()
	if !ok {
		return 0, 0, fault.Corruptf(w.Place(), w.Path()+".key", "expected an ordinal of 4 bytes, found %d", len(e.Key))
	}
	if c.N == 1 && first > max(0, c.Rows.From) {
		return 0, 0, fault.Corruptf(w.Place(), w.Path()+".key",
			"expected row %d or a lower one as the ordinal of the first block, found %d", max(0, c.Rows.From), first)
	}
	end := c.F.Footer.NumValues
	key, err := w.following()
	if err != nil {
		return 0, 0, err
	}
	if key != nil {
		next := block.IndexEntry{Key: key}
		if end, ok = next.Ordinal(); !ok {
			return 0, 0, fault.Corruptf(w.Place(), w.Path(), "expected an ordinal of 4 bytes as the key after it, "+
				"found %d", len(key))
		}
	}
	if end <= first || end > c.F.Footer.NumValues {
		return 0, 0, fault.Corruptf(w.Place(), w.Path(), "the block would have rows %d to %d of %d", first, end,
			c.F.Footer.NumValues)
	}
	return first, end - first, nil
}

// Dict returns the page of the dictionary; false if the file is not dictionary-encoded.
func (c *Chunk) Dict() (format.Page, bool) {
	p := c.F.Footer.Dict
	if p == nil || c.F.Footer.Encoding != block.Dict {
		return format.Page{}, false
	}
	page := format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: -1, Spans: []fault.Span{c.F.Span(*p)},
		Own: dictPage{}}
	if reason := c.F.Problem(*p); reason != "" {
		page.Lost = fault.Corruptf(c.F.FootSpan(), "footer.dict_block_ptr", "%s", reason)
	}
	return page, true
}

// dictPage marks the page of the dictionary.
type dictPage struct{}

// Decode appends a page to dst.
func (c *Chunk) Decode(t *format.Task, dst *vec.Vector) error {
	if _, err := c.F.Decode(t, dst, &c.count); err != nil {
		path := "dictionary"
		if _, ok := t.Page.Own.(dictPage); !ok {
			path = pathOf(t.Page)
		}
		return fault.Locate(err, t.Page.Spans[0], true, path)
	}
	return nil
}

// pathOf returns the path of a page's block, which names its first row or, if that is unknown, its number in the chunk.
func pathOf(p format.Page) string {
	if p.First >= 0 {
		return fmt.Sprintf("block(from row %d)", p.First-p.Sub)
	}
	return fmt.Sprintf("block[%d]", p.Ordinal)
}

// Decode appends the page of t to dst. count checks the blocks of a file without a positional index; it may be nil. The
// error is relative to the block, or has a place.
func (f *File) Decode(t *format.Task, dst *vec.Vector, count *rowCheck) (block.Layout, error) {
	d := decoding{f: f, t: t}
	var err error
	if d.b, err = f.OpenBlock(t.Bytes[0], t.Page.Spans[0], t.Scratch, f.NoVerify || t.NoVerify); err != nil {
		return d.lay, err
	}
	t.Raw = int64(len(d.b.Data))
	c := d.b.Reader()
	own, _ := t.Page.Own.(*DataBlock)
	if own == nil {
		d.lay.Values = block.ParsePlainBinary(&c)
		d.lay.Rows = d.lay.Values.Count
		if dst.Items != nil {
			dst = dst.Items // the dictionary of a list column is in the items
		}
	} else {
		d.lay = block.ParseDataBlock(&c, &f.Footer)
	}
	if c.Err() != nil {
		return d.lay, c.Err()
	}
	if own != nil && own.First < 0 && count != nil {
		first := int64(d.lay.Values.Ordinal)
		if err := count.add(t.Page.Ordinal, first, first+int64(d.lay.Rows), f.statedRows()); err != nil {
			return d.lay, d.b.Locate(err, 0, "")
		}
	}
	return d.lay, d.b.Locate(decodeRows(&d, own, dst), 0, "")
}

// decodeRows decodes the rows of the page. own is the page's block, nil for the dictionary.
func decodeRows(d *decoding, own *DataBlock, dst *vec.Vector) error {
	l := &d.lay
	n := int64(l.Rows)
	if own != nil {
		if own.Rows >= 0 && n != own.Rows {
			return fault.Rel(0, 0, "num_rows", "expected %s by the index, found %d", fault.Count(own.Rows, "row"), n)
		}
		if own.First >= 0 && int64(l.Values.Ordinal) != own.First+own.Own {
			return fault.Rel(0, 0, "ordinal", "expected the block to begin at row %d by the index, found %d", own.First,
				l.Values.Ordinal)
		}
		n -= d.t.Page.Sub
		if d.t.N >= 0 {
			n = min(n, d.t.N)
		}
	}
	if n < 0 {
		return fault.Bugf("cfile: a page begins at row %d of %d", d.t.Page.Sub, l.Rows)
	}
	skip := int(d.t.Page.Sub)
	if own == nil {
		return d.flat(dst, nil, 0, int(n))
	}
	switch {
	case d.f.Footer.Array():
		return d.list(dst, skip, int(n))
	case d.f.Footer.Nullable:
		return d.flat(dst, &l.Nulls, skip, int(n))
	}
	return d.flat(dst, nil, skip, int(n))
}
