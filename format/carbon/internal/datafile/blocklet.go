package datafile

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/thrift"
)

// PageStarts is the first row of each page of blocklet g, and after the last page the number of rows. All columns of a
// blocklet have the same pages.
func (f *DataFile) PageStarts(ctx context.Context, g int) ([]int64, error) {
	b := &f.Footer.Blocklet[g]
	starts := []int64{0}
	add := func(rows int64) { starts = append(starts, starts[len(starts)-1]+rows) }
	switch {
	case f.Version < 3, f.Stream != nil:
		if b.Rows > 0 {
			add(b.Rows)
		}
	case b.InPage != nil:
		for _, n := range b.InPage {
			add(int64(n))
		}
	case len(f.Roots) > 0:
		cc, err := f.ReadChunk(ctx, g, f.Roots[0])
		if err != nil {
			return nil, err
		}
		for _, p := range cc.Pages {
			if p.Rows < 0 || p.Rows > page.MaxPageRows3 {
				return nil, fault.Corruptf(cc.At, cc.Path+".numberOfRowsInpage",
					"%d rows; a page has at most %d, and the footer does not say it", p.Rows, page.MaxPageRows3)
			}
			add(p.Rows)
		}
	}
	if last := starts[len(starts)-1]; last != b.Rows {
		return nil, fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", g),
			"%d, its pages have %d", b.Rows, last)
	}
	return starts, nil
}

// ChunkAt is a column chunk of format 3 with its place.
type ChunkAt struct {
	layout.ColumnChunk
	At       fault.Span // of the metadata
	Path     string
	End      int64 // where the pages end
	Head     []byte
	V12Spans []fault.Span // the pieces of the page of formats 1 and 2
}

// ReadChunk reads the metadata of a column chunk.
func (f *DataFile) ReadChunk(ctx context.Context, g int, col *schema.Column) (*ChunkAt, error) {
	if f.Version < 3 {
		return f.readChunk12(ctx, g, col)
	}
	b := &f.Footer.Blocklet[g]
	c := &ChunkAt{Path: fmt.Sprintf("blocklet[%d].%s", g, col.Name), End: b.ChunkEnd(col.Chunk, f.dimCount)}
	off, n := b.Offsets[col.Chunk], int64(b.Lengths[col.Chunk])
	c.At = f.At.Sub(off, n)
	if b.Whole > 0 && col.Chunk >= b.Whole {
		return c, fault.Corruptf(c.At, c.Path, "the file is cut before the end of this column chunk")
	}
	var err error
	if c.Head, err = f.Read(ctx, off, n, c.Path); err != nil {
		return c, err
	}
	cur := f.Cursor(c.Head, c.At, c.Path)
	c.ColumnChunk = layout.ParseDataChunk3(thrift.NewReader(cur, thrift.Compact), "")
	if cur.Err() == nil && cur.Left() > 0 {
		cur.Fail(cur.Pos(), cur.Left(), "", "%d bytes after it, before the first page", cur.Left())
	}
	if cur.Err() != nil {
		return c, cur.Err()
	}
	return c, c.check()
}

// check compares the places of the pages with the chunk.
func (c *ChunkAt) check() error {
	if len(c.Offsets) != len(c.Pages) || len(c.Lengths) != len(c.Pages) {
		return fault.Corruptf(c.At, c.Path, "%d pages, %d offsets, %d lengths", len(c.Pages), len(c.Offsets),
			len(c.Lengths))
	}
	end := c.At.End()
	for i := range c.Pages {
		p := &c.Pages[i]
		at, n := c.At.End()+int64(c.Offsets[i]), int64(c.Lengths[i])
		if c.Offsets[i] < 0 || n < 0 || at+n > c.End {
			return fault.Corruptf(c.At, fmt.Sprintf("%s.page_offset[%d]", c.Path, i),
				"%d and %d bytes: the page ends after the chunk (%d)", c.Offsets[i], n, c.End)
		}
		if at != end {
			return fault.Corruptf(c.At, fmt.Sprintf("%s.page_offset[%d]", c.Path, i),
				"the page begins at %d, what is before it ends at %d", at, end)
		}
		end = at + n
		if p.DataLen < 0 || p.RowidLen < 0 || p.RleLen < 0 || int64(p.DataLen)+int64(p.RowidLen)+int64(p.RleLen) != n {
			return fault.Corruptf(c.At, fmt.Sprintf("%s.page_length[%d]", c.Path, i),
				"%d, but %d bytes of data, %d of row ids, %d of runs", n, p.DataLen, p.RowidLen, p.RleLen)
		}
	}
	if end != c.End {
		return fault.Corruptf(c.At, c.Path+".page_length", "the pages end at %d, the chunk at %d", end, c.End)
	}
	return nil
}

// PageSpan is where page i lies in format 3.
func (c *ChunkAt) PageSpan(i int) fault.Span {
	return fault.Span{Object: c.At.Object, Off: c.At.End() + int64(c.Offsets[i]), Len: int64(c.Lengths[i])}
}

// pageSpans is where the pieces of page i lie.
func (c *ChunkAt) pageSpans(i int) []fault.Span {
	if c.V12Spans != nil {
		return c.V12Spans
	}
	return []fault.Span{c.PageSpan(i)}
}

// Within is where a field that was parsed from the metadata lies: a part of the same memory.
func (c *ChunkAt) Within(field []byte) fault.Span {
	return c.At.Sub(int64(cap(c.Head)-cap(field)), int64(len(field)))
}
