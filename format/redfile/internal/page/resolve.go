package page

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/nest"
	"stoa/vec"
)

// No checksum is over a page's header. Where there is no index page, headers alone say how many values pages
// have, and so where the rows of a page are: one wrong number would shift all rows after it. So the headers of
// a chunk are read before its first page is given, and their numbers compared with the chunk's.

// resolvePages finds the pages of a chunk that has no index page. If their numbers of values are not together those
// of the chunk, and one page alone does not hold what its header says, that is the damaged one, and has what
// the others leave; else nobody knows where rows are, and the chunk is lost.
func (t *Table) resolvePages(ctx context.Context) error {
	if t.Meta.Values == 0 && t.Meta.Stored == 0 && t.rows == 0 { // where it would begin, another chunk may
		t.err = io.EOF
		return nil
	}
	end := t.File.StructureAfter(t.At, t.next, t.Group, t.Col)
	begin, odd := t.next, error(nil)
	for odd == nil && t.next != end {
		if t.values == t.Meta.Values && !t.pageNext(ctx, end) {
			break
		}
		odd = t.header(ctx)
	}
	t.err = io.EOF
	switch {
	case odd != nil && !errors.Is(odd, fault.Corrupt) && !errors.Is(odd, fault.Unsupported):
		return odd // of the store: it may pass
	case odd != nil && t.values < t.Meta.Values:
		t.err = odd // what follows is lost
		if len(t.Pages) == 0 {
			return nil
		}
		if begins, err := t.begins(ctx, begin); err != nil {
			return err
		} else if !begins {
			t.Pages, t.values, t.err = nil, 0, fault.Corruptf(t.At.Sub(begin, 0), layout.ChunkPath(t.Group, t.Col),
				"nothing ends here, where the chunk should begin, and %d of its %d values were found: nobody knows "+
					"which rows they are of", t.values, t.Meta.Values)
		} else if n := len(t.Pages); t.noChecksum && !t.File.NoVerify {
			p := &t.Pages[n-1]
			p.Lost = fault.Corruptf(t.At.Sub(p.Off, p.Size), layout.PagePath(t.Group, t.Col, n-1),
				"no page begins where it ends: without checksums nobody knows whether its values are right")
		}
		return nil
	case t.values == t.Meta.Values:
		return t.ends(ctx, end)
	}
	odd = fault.Corruptf(t.At.Sub(begin, min(max(t.next-begin, 0), t.At.Len-begin)),
		layout.ChunkPath(t.Group, t.Col)+".num_values", "its pages have %d values by their headers, the chunk has %d",
		t.values, t.Meta.Values)
	wrong, err := t.contradictory(ctx)
	if err != nil {
		return err
	}
	if wrong < 0 || t.Pages[wrong].Values+t.Meta.Values-t.values < 0 {
		t.Pages, t.err = nil, odd
		return nil
	}
	t.Pages[wrong].Values += t.Meta.Values - t.values
	t.Pages[wrong].Lost = fault.Corruptf(t.At.Sub(t.Pages[wrong].Off, t.Pages[wrong].Size),
		layout.PagePath(t.Group, t.Col, wrong)+".header.data_page.num_values",
		"the page does not hold as many values as its header says; with those of the other pages the chunk has "+
			"%d too many", t.values-t.Meta.Values)
	t.values = 0
	for i := range t.Pages {
		t.place(&t.Pages[i])
	}
	return nil
}

// rowsBegin gives up a chunk that repeats and has pages without checksums if not as many rows begin in it as the row
// group has: a level is another, in whichever page, and all rows after it would have another's values. What cannot be
// read is met, and counted, where it is read.
func (t *Table) rowsBegin(ctx context.Context) error {
	if !t.noChecksum || t.Indexed || t.Leaf.MaxRep == 0 || t.rows < 0 || t.err != io.EOF || t.File.NoVerify {
		return nil
	}
	var arena vec.Arena
	rows := int64(0)
	for i := range t.Pages {
		p := &t.Pages[i]
		if p.Lost != nil || p.Size > t.File.Limits.Page {
			return nil
		}
		arena.Reset()
		b := arena.Bytes(int(p.Size))
		if err := format.ReadFull(ctx, t.Src, t.At.Sub(p.Off, p.Size), "page", b); err != nil {
			return err
		}
		_, rep, err := t.Levels(p, b, &arena)
		if err != nil {
			return nil
		}
		rows += int64(nest.CountRows(rep))
	}
	if rows != t.rows {
		t.Pages, t.err = nil, fault.Corruptf(t.File.ChunkSpan(t.Group, t.Col), layout.ChunkPath(t.Group, t.Col),
			"%d rows begin in the chunk, the row group has %d: without checksums nobody knows in which of its pages",
			rows, t.rows)
	}
	return nil
}

// begins reports whether a structure ends where the first page of the chunk is: the magic, the metadata of a column, a
// sync block, or all pages of another chunk. If not, bytes were put in or taken out before it, and the page there may
// be any of the chunk's.
func (t *Table) begins(ctx context.Context, at int64) (bool, error) {
	if t.File.NoVerify {
		return true, nil
	}
	from := t.File.StructureBefore(at, t.Group, t.Col)
	values, off := int64(0), from
	for off < at {
		h, size, err := layout.PageAt(ctx, t.Src, t.At.Sub(off, t.At.Len-off), "")
		if size += int64(h.Stored); err == nil && h.Kind == layout.DataPage {
			values += int64(h.Values)
		}
		if isDamage(err) {
			_, size, err = container.ReadColumnMeta(ctx, t.Src, t.At.Sub(off, t.At.Len-off), t.File.Limits.Metadata, "")
		}
		if err != nil {
			if isDamage(err) {
				err = nil
			}
			return false, err
		}
		off += size
	}
	return off == at && (values == 0 || values == t.File.ValuesAt(from, t.Group, t.Col)), nil
}

// isDamage reports whether err says that a structure is not where it should be, and not that it could not be read.
func isDamage(err error) bool {
	return errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported)
}

// ends gives up a chunk that has pages without checksums if they do not end where the next structure begins, or none
// begins there: bytes were put in or taken out, perhaps in one of them, and nothing else would tell that its values are
// others.
func (t *Table) ends(ctx context.Context, end int64) error {
	f, next := t.File, t.next
	if !t.noChecksum || f.NoVerify || f.Gathered || f.Lost != nil {
		return nil
	}
	for next < end { // blocks that let a reader find its way lie between chunks
		h, head, err := layout.PageAt(ctx, t.Src, t.At.Sub(next, end-next), "")
		if err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
			return err
		}
		if err != nil || h.Kind == layout.DataPage {
			break
		}
		next += head + int64(h.Stored)
	}
	begins, err := next == end, error(nil)
	if begins && end < t.At.Len {
		begins, err = t.structure(ctx, end)
	}
	if err == nil && !begins {
		t.Pages, t.err = nil, fault.Corruptf(t.At.Sub(t.next, 0), layout.ChunkPath(t.Group, t.Col),
			"its pages end here, the next structure should begin at %d, and is not there: without checksums nobody "+
				"knows which of its values are right", end)
	}
	return err
}

// structure reports whether a page begins at off, or a column's metadata, or whether that of this chunk is where it
// should be, behind it.
func (t *Table) structure(ctx context.Context, off int64) (bool, error) {
	c := &t.File.Footer.Groups[t.Group].Columns[t.Col]
	_, _, err := layout.PageAt(ctx, t.Src, t.At.Sub(off, t.At.Len-off), "")
	for _, at := range []int64{off, c.Offset} {
		damaged := errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported)
		if damaged && at >= off && at < t.At.Len {
			_, _, err = container.ReadColumnMeta(ctx, t.Src, t.At.Sub(at, t.At.Len-at), t.File.Limits.Metadata, "")
		}
	}
	if err != nil && !errors.Is(err, fault.Corrupt) && !errors.Is(err, fault.Unsupported) {
		return false, err
	}
	return err == nil, nil
}

// pageNext reports whether a page of data begins where the next header would be.
func (t *Table) pageNext(ctx context.Context, end int64) bool {
	if t.next < layout.MagicLen || t.next >= end {
		return false
	}
	h, head, err := layout.PageAt(ctx, t.Src, t.At.Sub(t.next, end-t.next), "")
	return err == nil && h.Kind == layout.DataPage && t.next+head+int64(h.Stored) <= end
}

// contradictory is the only page that does not hold what its header says; -1: there is none, or several.
func (t *Table) contradictory(ctx context.Context) (found int, err error) {
	found = -1
	c := chunk{t: t}
	var arena vec.Arena
	for i := range t.Pages {
		p := &t.Pages[i]
		if p.Size > t.File.Limits.Page {
			return -1, nil
		}
		arena.Reset()
		b := make([]byte, p.Size)
		if err := format.ReadFull(ctx, t.Src, t.At.Sub(p.Off, p.Size), "page", b); err != nil {
			return -1, err
		}
		dst, err := vec.New(t.Leaf.Column.Type, memory.DefaultAllocator)
		if err != nil {
			return -1, err
		}
		n := min(MaxSub, p.Values)
		err = c.Decode(&format.Task{Page: format.Page{Ordinal: i, Spans: []fault.Span{t.At.Sub(p.Off, p.Size)},
			Own: p}, N: n, Bytes: [][]byte{b}, Scratch: &arena, Limits: t.File.Limits}, dst)
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
