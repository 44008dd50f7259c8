package cfile

import (
	"context"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

const (
	boolID   = arrow.BOOL
	stringID = arrow.STRING
	binaryID = arrow.BINARY
)

// maxSub is how many rows a page has at most: blocks of more are given as several pages, so that a few bytes of runs
// never become a window's whole memory.
const maxSub = 128 << 10

// dataBlock is a data block as the index knows it.
type dataBlock struct {
	ptr   blockPtr
	first int64 // ordinal of the first row; -1: only the block tells
	rows  int64 // -1: likewise
	lost  error
}

// chunk gives the pages of a column file. It is a format.Chunk.
type chunk struct {
	f    *file
	rows vec.Range
	walk *walker     // nil: there are no blocks, or they are in list
	list []dataBlock // of a recovered file
	n    int         // blocks given
	cur  *dataBlock  // the block that is being cut
	sub  int64       // where the next page begins in it
	err  error

	count counting // without a positional index
}

// counting checks that blocks whose rows no index tells follow each other, as far as they were decoded: each says where
// it begins and how many rows it has.
type counting struct {
	mu   sync.Mutex
	have map[int][2]int64 // by number of the block: its first row, and the first one behind it
	last int              // how many blocks there are; 0: not known yet
}

// add checks block number i.
func (k *counting) add(i int, first, end, rows int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.have == nil {
		k.have = map[int][2]int64{}
	}
	k.have[i] = [2]int64{first, end}
	before, ok := k.have[i-1]
	after, behind := k.have[i+1]
	switch {
	case i == 0 && first != 0:
		return fault.Rel(0, 0, "ordinal", "the first block begins at row %d", first)
	case ok && before[1] != first:
		return fault.Rel(0, 0, "ordinal", "the block begins at row %d, the one before ends at %d", first, before[1])
	case behind && after[0] != end:
		return fault.Rel(0, 0, "num_values", "the block ends at row %d, the next one begins at %d", end, after[0])
	case end > rows || i+1 == k.last && end != rows:
		return fault.Rel(0, 0, "num_values", "the block ends at row %d, the footer says %d rows", end, rows)
	}
	return nil
}

// end notes that block i is the last one, and checks where it ended if it was decoded.
func (k *counting) end(i int, rows int64) (end int64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = i + 1
	b, decoded := k.have[i]
	return b[1], !decoded || b[1] == rows
}

// newChunk stands before the page that holds rows.From.
func (f *file) newChunk(ctx context.Context, rows vec.Range) (*chunk, error) {
	c := &chunk{f: f, rows: rows}
	var err error
	switch {
	case f.footer.PosIdx != nil:
		c.walk = f.positions()
		if rows.From >= f.footer.NumValues {
			c.err = io.EOF
			break
		}
		from := max(0, min(rows.From, math.MaxUint32))
		err = c.walk.seek(ctx, positionKey(from), false)
	case f.footer.ValIdx != nil:
		c.walk = f.values()
		err = c.walk.first(ctx)
	default:
		c.err = io.EOF
	}
	return c, err
}

// Next gives the next page: a block, or a part of one that has very many rows.
func (c *chunk) Next(ctx context.Context) (format.Page, error) {
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
		if skip := c.rows.From - b.first; b.first >= 0 && skip >= maxSub && skip < b.rows {
			c.sub = skip / maxSub * maxSub
		}
	}
	b := c.cur
	p := format.Page{Ordinal: c.n - 1, Sub: c.sub, First: b.first, Rows: b.rows, Entries: b.rows,
		Spans: []fault.Span{c.f.span(b.ptr)}, Lost: b.lost, Own: b}
	if b.rows > maxSub && b.lost == nil {
		p.Rows = min(maxSub, b.rows-c.sub)
		p.Entries = p.Rows
		p.First += c.sub
		if c.sub += p.Rows; c.sub < b.rows && b.first+c.sub < c.rows.To {
			return p, nil
		}
	}
	c.cur = nil
	return p, nil
}

// block is the next data block.
func (c *chunk) block(ctx context.Context) (*dataBlock, error) {
	c.n++
	if c.walk == nil {
		return c.listed()
	}
	w := c.walk
	if c.n > 1 {
		if err := w.next(ctx); err != nil {
			return nil, err
		}
	}
	if w.eof {
		return nil, c.end()
	}
	e, err := w.current()
	if err != nil {
		return nil, err
	}
	b := &dataBlock{ptr: e.ptr, first: -1, rows: -1}
	if c.f.footer.PosIdx != nil {
		if b.first, b.rows, err = c.place(e); err != nil {
			return nil, err
		}
		if b.first >= c.rows.To {
			return nil, io.EOF
		}
	}
	return b, w.block(e)
}

// listed is the next block of a recovered file that is wanted.
func (c *chunk) listed() (*dataBlock, error) {
	for ; c.n <= len(c.list); c.n++ {
		b := &c.list[c.n-1]
		if b.first >= 0 && b.rows >= 0 && (b.first+b.rows <= c.rows.From || b.first >= c.rows.To) {
			continue
		}
		return b, nil
	}
	return nil, io.EOF
}

// end is reached when the index has no more blocks.
func (c *chunk) end() error {
	if n := c.f.footer.NumValues; c.n == 1 && n > 0 {
		return fault.Corruptf(c.f.footSpan(), "footer.num_values", "%d, but the index is empty", n)
	}
	if c.f.footer.PosIdx == nil {
		if end, ok := c.count.end(c.n-2, c.f.footer.NumValues); !ok {
			return fault.Corruptf(c.f.footSpan(), "footer.num_values", "%d, but the last block ends at row %d", c.f.footer.NumValues, end)
		}
	}
	return io.EOF
}

// place is the rows of the block of a positional entry: up to the next entry's, or to the end of the file.
func (c *chunk) place(e indexEntry) (first, rows int64, err error) {
	w := c.walk
	first, ok := e.ordinal()
	if !ok {
		return 0, 0, fault.Corruptf(w.place(), w.path()+".key", "%d bytes, an ordinal has 4", len(e.key))
	}
	if c.n == 1 && first > max(0, c.rows.From) {
		return 0, 0, fault.Corruptf(w.place(), w.path()+".key", "ordinal %d, but nothing comes before and row %d is wanted", first, max(0, c.rows.From))
	}
	end := c.f.footer.NumValues
	key, err := w.following()
	if err != nil {
		return 0, 0, err
	}
	if key != nil {
		next := indexEntry{key: key}
		if end, ok = next.ordinal(); !ok {
			return 0, 0, fault.Corruptf(w.place(), w.path(), "the key behind it has %d bytes, an ordinal has 4", len(key))
		}
	}
	if end <= first || end > c.f.footer.NumValues {
		return 0, 0, fault.Corruptf(w.place(), w.path(), "the block would have the rows %d to %d of %d", first, end, c.f.footer.NumValues)
	}
	return first, end - first, nil
}

// Dict is the dictionary of a dictionary-encoded file.
func (c *chunk) Dict() (format.Page, bool) {
	p := c.f.footer.Dict
	if p == nil || c.f.footer.Encoding != Dict {
		return format.Page{}, false
	}
	page := format.Page{Ordinal: -1, First: -1, Rows: -1, Entries: -1, Spans: []fault.Span{c.f.span(*p)}, Own: dictPage{}}
	if reason := c.f.bad(*p); reason != "" {
		page.Lost = fault.Corruptf(c.f.footSpan(), "footer.dict_block_ptr", "%s", reason)
	}
	return page, true
}

// dictPage marks the page of the dictionary.
type dictPage struct{}

// Decode appends a page to dst.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	if _, err := c.f.decode(t, dst, &c.count); err != nil {
		path := "dictionary"
		if _, ok := t.Page.Own.(dictPage); !ok {
			path = pathOf(t.Page)
		}
		return fault.Locate(err, t.Page.Spans[0], true, path)
	}
	return nil
}

// pathOf names a page's block by its first row, as describe does; its number is known only where reading began at the
// beginning.
func pathOf(p format.Page) string {
	if p.First >= 0 {
		return fmt.Sprintf("block(from row %d)", p.First-p.Sub)
	}
	return fmt.Sprintf("block[%d]", p.Ordinal)
}

// decode appends the block of a page to dst. count, if it is not nil, is told of blocks whose rows no index tells.
func (f *file) decode(t *format.Task, dst *vec.Vector, count *counting) (layout, error) {
	d := decoding{f: f, t: t}
	var err error
	if d.b, err = f.openBlock(t.Bytes[0], t.Page.Spans[0], t.Scratch, f.noVerify || t.NoVerify); err != nil {
		return d.lay, err
	}
	t.Raw = int64(len(d.b.data))
	c := d.b.reader()
	own, _ := t.Page.Own.(*dataBlock)
	if own == nil {
		d.lay.values = parsePlainBinary(&c)
		d.lay.rows = d.lay.values.count
		if dst.Items != nil {
			dst = dst.Items // the dictionary of a list column is in the items
		}
	} else {
		d.lay = parseDataBlock(&c, &f.footer)
	}
	if c.Err() != nil {
		return d.lay, c.Err()
	}
	if own != nil && own.first < 0 && count != nil {
		first := int64(d.lay.values.ordinal)
		if err := count.add(t.Page.Ordinal, first, first+int64(d.lay.rows), f.footer.NumValues); err != nil {
			return d.lay, d.b.locate(err, 0, "")
		}
	}
	return d.lay, d.b.locate(d.rows(own, dst), 0, "")
}

// rows decodes the rows that the page stands for.
func (d *decoding) rows(own *dataBlock, dst *vec.Vector) error {
	l := &d.lay
	n := int64(l.rows)
	if own != nil {
		if own.rows >= 0 && n != own.rows {
			return fault.Rel(0, 0, "num_rows", "the block has %d rows, the index says %d", n, own.rows)
		}
		if own.first >= 0 && int64(l.values.ordinal) != own.first {
			return fault.Rel(0, 0, "ordinal", "the block says it begins at row %d, the index says %d", l.values.ordinal, own.first)
		}
		n -= d.t.Page.Sub
		if d.t.N >= 0 {
			n = min(n, d.t.N)
		}
	}
	if n < 0 {
		return fault.Bugf("cfile: a page begins at row %d of %d", d.t.Page.Sub, l.rows)
	}
	skip := int(d.t.Page.Sub)
	if own == nil {
		return d.flat(dst, nil, 0, int(n))
	}
	switch {
	case d.f.footer.Array():
		return d.list(dst, skip, int(n))
	case d.f.footer.Nullable:
		return d.flat(dst, &l.nulls, skip, int(n))
	}
	return d.flat(dst, nil, skip, int(n))
}
