package carbon

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// pageStarts is the first row of each page of blocklet g, and behind the last page the number of rows. All columns of a
// blocklet have the same pages.
func (f *dataFile) pageStarts(ctx context.Context, g int) ([]int64, error) {
	b := &f.footer.blocklet[g]
	starts := []int64{0}
	add := func(rows int64) { starts = append(starts, starts[len(starts)-1]+rows) }
	switch {
	case f.version < 3, f.stream != nil:
		if b.rows > 0 {
			add(b.rows)
		}
	case b.inPage != nil:
		for _, n := range b.inPage {
			add(int64(n))
		}
	case len(f.roots) > 0:
		cc, err := f.readChunk(ctx, g, f.roots[0])
		if err != nil {
			return nil, err
		}
		for _, p := range cc.pages {
			if p.rows < 0 || p.rows > maxPageRows3 {
				return nil, fault.Corruptf(cc.at, cc.path+".numberOfRowsInpage", "%d rows; a page has at most %d, and the footer does not say it", p.rows, maxPageRows3)
			}
			add(p.rows)
		}
	}
	if last := starts[len(starts)-1]; last != b.rows {
		return nil, fault.Corruptf(f.footSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", g), "%d, its pages have %d", b.rows, last)
	}
	return starts, nil
}

// chunkAt is a column chunk of format 3 with its place.
type chunkAt struct {
	columnChunk
	at   fault.Span // of the metadata
	path string
	end  int64 // where the pages end
	head []byte
	old  []fault.Span // the pieces of the page of formats 1 and 2
}

// readChunk reads the metadata of a column chunk.
func (f *dataFile) readChunk(ctx context.Context, g int, col *column) (*chunkAt, error) {
	if f.version < 3 {
		return f.readChunk12(ctx, g, col)
	}
	b := &f.footer.blocklet[g]
	c := &chunkAt{path: fmt.Sprintf("blocklet[%d].%s", g, col.name), end: b.chunkEnd(col.chunk, f.dimCount)}
	off, n := b.offsets[col.chunk], int64(b.lengths[col.chunk])
	c.at = f.at.Sub(off, n)
	if b.whole > 0 && col.chunk >= b.whole {
		return c, fault.Corruptf(c.at, c.path, "the file is cut before the end of this column chunk")
	}
	var err error
	if c.head, err = f.read(ctx, off, n, c.path); err != nil {
		return c, err
	}
	cur := wire.NewCursor(c.head, c.at, c.path)
	c.columnChunk = parseDataChunk3(thrift.NewReader(cur, thrift.Compact), "")
	if cur.Err() == nil && cur.Left() > 0 {
		cur.Fail(cur.Pos(), cur.Left(), "", "%d bytes behind it, before the first page", cur.Left())
	}
	if cur.Err() != nil {
		return c, cur.Err()
	}
	return c, c.check()
}

// check holds the places of the pages against the chunk.
func (c *chunkAt) check() error {
	if len(c.offsets) != len(c.pages) || len(c.lengths) != len(c.pages) {
		return fault.Corruptf(c.at, c.path, "%d pages, %d offsets, %d lengths", len(c.pages), len(c.offsets), len(c.lengths))
	}
	for i := range c.pages {
		p := &c.pages[i]
		at, n := c.at.End()+int64(c.offsets[i]), int64(c.lengths[i])
		if c.offsets[i] < 0 || n < 0 || at+n > c.end {
			return fault.Corruptf(c.at, fmt.Sprintf("%s.page_offset[%d]", c.path, i), "%d and %d bytes: the page ends behind the chunk (%d)", c.offsets[i], n, c.end)
		}
		if p.dataLen < 0 || p.rowidLen < 0 || p.rleLen < 0 || int64(p.dataLen)+int64(p.rowidLen)+int64(p.rleLen) != n {
			return fault.Corruptf(c.at, fmt.Sprintf("%s.page_length[%d]", c.path, i), "%d, but %d bytes of data, %d of row ids, %d of runs", n, p.dataLen, p.rowidLen, p.rleLen)
		}
	}
	return nil
}

// pageSpan is where page i lies in format 3.
func (c *chunkAt) pageSpan(i int) fault.Span {
	return fault.Span{Object: c.at.Object, Off: c.at.End() + int64(c.offsets[i]), Len: int64(c.lengths[i])}
}

// pageSpans is where the pieces of page i lie.
func (c *chunkAt) pageSpans(i int) []fault.Span {
	if c.old != nil {
		return c.old
	}
	return []fault.Span{c.pageSpan(i)}
}

// within is where a field that was parsed from the metadata lies: a part of the same memory.
func (c *chunkAt) within(field []byte) fault.Span {
	return c.at.Sub(int64(cap(c.head)-cap(field)), int64(len(field)))
}
