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

// PageStarts returns the ordinal in blocklet g of the first row of each page, followed by the number of rows. All
// columns of a blocklet have the same pages. The error is Corrupt if the pages do not add up to the rows of the
// blocklet.
func (f *DataFile) PageStarts(ctx context.Context, g int) ([]int64, error) {
	b := &f.Footer.Blocklet[g]
	starts := []int64{0}
	add := func(rows int64) { starts = append(starts, starts[len(starts)-1]+rows) }
	switch {
	case f.Version < 3, f.Stream != nil:
		if b.Rows > 0 {
			add(b.Rows)
		}
	case b.PageRows != nil:
		for _, n := range b.PageRows {
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
					"expected at most %s in a page, found %d", fault.Count(page.MaxPageRows3, "row"), p.Rows)
			}
			add(p.Rows)
		}
	}
	if last := starts[len(starts)-1]; last != b.Rows {
		return nil, fault.Corruptf(f.FootSpan(), fmt.Sprintf("footer.blocklet[%d].num_rows", g),
			"expected the %s of the pages, found %d", fault.Count(last, "row"), b.Rows)
	}
	return starts, nil
}

// ChunkAt is a column chunk with its place in the file. Chunks of formats 1 and 2 are represented as a chunk of format
// 3 with one page.
type ChunkAt struct {
	layout.ColumnChunk
	At       fault.Span // span of the metadata
	Path     string
	End      int64        // offset of the end of the pages
	Head     []byte       // the metadata
	V12Spans []fault.Span // data, row ids and runs of the page of formats 1 and 2
}

// ReadChunk reads the metadata of a column chunk, and checks that its pages fill it. With an error, c holds what was
// read before it.
func (f *DataFile) ReadChunk(ctx context.Context, g int, col *schema.Column) (*ChunkAt, error) {
	if f.Version < 3 {
		return f.readChunk12(ctx, g, col)
	}
	b := &f.Footer.Blocklet[g]
	c := &ChunkAt{Path: fmt.Sprintf("blocklet[%d].%s", g, col.Name), End: b.ChunkEnd(col.Chunk, f.dimCount)}
	off, n := b.Offsets[col.Chunk], int64(b.Lengths[col.Chunk])
	c.At = f.At.Sub(off, n)
	if b.ChunksFound > 0 && col.Chunk >= b.ChunksFound {
		return c, fault.Corruptf(c.At, c.Path, "the file ends before the end of this column chunk")
	}
	var err error
	if c.Head, err = f.Read(ctx, off, n, c.Path); err != nil {
		return c, err
	}
	cur := f.Cursor(c.Head, c.At, c.Path)
	c.ColumnChunk = layout.ParseDataChunk3(thrift.NewReader(cur, thrift.Compact), "")
	if cur.Err() == nil && cur.Left() > 0 {
		cur.Fail(cur.Pos(), cur.Left(), "", "%d bytes between the metadata and the first page", cur.Left())
	}
	if cur.Err() != nil {
		return c, cur.Err()
	}
	return c, c.check()
}

// check checks that the pages are adjacent and fill the chunk.
func (c *ChunkAt) check() error {
	if len(c.Offsets) != len(c.Pages) || len(c.Lengths) != len(c.Pages) {
		return fault.Corruptf(c.At, c.Path, "expected an offset and a length for each of %s, found %d and %d",
			fault.Count(len(c.Pages), "page"), len(c.Offsets), len(c.Lengths))
	}
	end := c.At.End()
	for i := range c.Pages {
		p := &c.Pages[i]
		at, n := c.At.End()+int64(c.Offsets[i]), int64(c.Lengths[i])
		if c.Offsets[i] < 0 || n < 0 || at+n > c.End {
			return fault.Corruptf(c.At, fmt.Sprintf("%s.page_offset[%d]", c.Path, i),
				"%d bytes at %d: the page ends after the chunk (%d)", n, c.Offsets[i], c.End)
		}
		if at != end {
			return fault.Corruptf(c.At, fmt.Sprintf("%s.page_offset[%d]", c.Path, i),
				"expected the page at %d, found it at %d", end, at)
		}
		end = at + n
		if p.DataLen < 0 || p.RowidLen < 0 || p.RleLen < 0 || int64(p.DataLen)+int64(p.RowidLen)+int64(p.RleLen) != n {
			return fault.Corruptf(c.At, fmt.Sprintf("%s.page_length[%d]", c.Path, i),
				"expected the sum of data (%d), row ids (%d) and runs (%d), found %d", p.DataLen, p.RowidLen,
				p.RleLen, n)
		}
	}
	if end != c.End {
		return fault.Corruptf(c.At, c.Path+".page_length", "expected the pages to end with the chunk at %d, found %d",
			c.End, end)
	}
	return nil
}

// PageSpan is the span of page i in format 3.
func (c *ChunkAt) PageSpan(i int) fault.Span {
	return fault.Span{Object: c.At.Object, Off: c.At.End() + int64(c.Offsets[i]), Len: int64(c.Lengths[i])}
}

// pageSpans returns the spans of page i: one in format 3, else one per piece.
func (c *ChunkAt) pageSpans(i int) []fault.Span {
	if c.V12Spans != nil {
		return c.V12Spans
	}
	return []fault.Span{c.PageSpan(i)}
}

// Within returns the span of a binary field that was parsed from the metadata; field must be a slice of c.Head.
func (c *ChunkAt) Within(field []byte) fault.Span {
	return c.At.Sub(int64(cap(c.Head)-cap(field)), int64(len(field)))
}
