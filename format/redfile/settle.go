package redfile

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// No checksum is over a page's header. Where there is no index page, headers alone say how many values pages
// have, and so where the rows of a page are: one wrong number would shift all rows behind it. So the headers of
// a chunk are read before its first page is given, and their numbers held against the chunk's.

// settle finds the pages of a chunk that has no index page. If their numbers of values are not together those
// of the chunk, and one page alone does not hold what its header says, that is the damaged one, and has what
// the others leave; else nobody knows where rows are, and the chunk is lost.
func (t *pageTable) settle(ctx context.Context) error {
	if t.meta.values == 0 && t.meta.stored == 0 && t.rows == 0 { // where it would begin, another chunk may
		t.err = io.EOF
		return nil
	}
	end := t.f.structureBehind(t.at, t.next, t.group, t.col)
	begin, odd := t.next, error(nil)
	for odd == nil && t.next != end {
		if t.values == t.meta.values && !t.pageNext(ctx, end) {
			break
		}
		odd = t.header(ctx)
	}
	t.err = io.EOF
	switch {
	case odd != nil && !errors.Is(odd, fault.Corrupt) && !errors.Is(odd, fault.Unsupported):
		return odd // of the store: it may pass
	case odd != nil && t.values < t.meta.values:
		t.err = odd // what is behind is lost
		return nil
	case t.values == t.meta.values:
		return nil
	}
	odd = fault.Corruptf(t.at.Sub(begin, min(max(t.next-begin, 0), t.at.Len-begin)),
		chunkPath(t.group, t.col)+".num_values", "its pages have %d values by their headers, the chunk has %d",
		t.values, t.meta.values)
	wrong, err := t.contradictory(ctx)
	if err != nil {
		return err
	}
	if wrong < 0 || t.pages[wrong].values+t.meta.values-t.values < 0 {
		t.pages, t.err = nil, odd
		return nil
	}
	t.pages[wrong].values += t.meta.values - t.values
	t.pages[wrong].lost = fault.Corruptf(t.at.Sub(t.pages[wrong].off, t.pages[wrong].size),
		pagePath(t.group, t.col, wrong)+".header.data_page.num_values",
		"the page does not hold as many values as its header says; with those of the other pages the chunk has "+
			"%d too many", t.values-t.meta.values)
	t.values = 0
	for i := range t.pages {
		t.place(&t.pages[i])
	}
	return nil
}

// pageNext reports whether a page of data begins where the next header would be.
func (t *pageTable) pageNext(ctx context.Context, end int64) bool {
	if t.next < magicLen || t.next >= end {
		return false
	}
	h, head, err := pageAt(ctx, t.src, t.at.Sub(t.next, end-t.next), "")
	return err == nil && h.kind == dataPage && t.next+head+int64(h.stored) <= end
}

// contradictory is the only page that does not hold what its header says; -1: there is none, or several.
func (t *pageTable) contradictory(ctx context.Context) (found int, err error) {
	found = -1
	c := chunk{t: t}
	var arena vec.Arena
	for i := range t.pages {
		p := &t.pages[i]
		if p.size > t.f.limits.Page {
			return -1, nil
		}
		arena.Reset()
		b := make([]byte, p.size)
		if err := format.ReadFull(ctx, t.src, t.at.Sub(p.off, p.size), "page", b); err != nil {
			return -1, err
		}
		dst, err := vec.New(t.l.column.Type, memory.DefaultAllocator)
		if err != nil {
			return -1, err
		}
		n := min(maxSub, p.values)
		err = c.Decode(&format.Task{Page: format.Page{Ordinal: i, Spans: []fault.Span{t.at.Sub(p.off, p.size)},
			Own: p}, N: n, Bytes: [][]byte{b}, Scratch: &arena, Limits: t.f.limits}, dst)
		dst.Release()
		switch {
		case err == nil:
		case found >= 0:
			return -1, nil
		default:
			found = i
		}
	}
	return found, ctx.Err()
}
