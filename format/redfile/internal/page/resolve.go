package page

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/nest"
	"stoa/vec"
)

// No checksum covers a page header. Without an index page, headers alone state the numbers of values of pages, and thus
// their rows: one wrong number would shift all rows after it. So the headers of a chunk are read before its first page
// is returned, and their totals are compared with the chunk's.

// resolvePages finds the pages of a chunk that has no index page. If their numbers of values do not add up to the
// chunk's, and exactly one page contradicts its header and has the values that the others leave over, then its header
// is the damaged one; otherwise the rows of every page are in doubt, and the chunk is lost.
func (t *Table) resolvePages(ctx context.Context) error {
	if t.Meta.Values == 0 && t.Meta.Stored == 0 && t.rows == 0 { // no pages: its offset may be that of another chunk
		t.err = io.EOF
		return nil
	}
	end := t.File.StructureAfter(t.At, t.next, t.Group, t.Col)
	begin, odd := t.next, error(nil)
	for odd == nil && t.next != end {
		if t.values == t.Meta.Values && !t.dataPageNext(ctx, end) {
			break
		}
		odd = t.header(ctx)
	}
	t.err = io.EOF
	switch {
	case odd != nil && !isDamage(odd):
		return odd // an error of the store, which may be transient
	case odd != nil && t.values < t.Meta.Values:
		t.err = odd // the rest of the chunk is lost
		t.dropBehindOther()
		return t.doubtPages(ctx, begin)
	case t.values == t.Meta.Values:
		if err := t.checkEnd(ctx, end); err != nil || t.err != io.EOF {
			return err
		}
		return t.checkPlace(ctx, begin, end)
	}
	odd = fault.Corruptf(t.At.Sub(begin, min(max(t.next-begin, 0), t.At.Len-begin)),
		layout.ChunkPath(t.Group, t.Col)+".num_values", "expected %s, the page headers have %d",
		fault.Count(t.Meta.Values, "value"),
		t.values)
	wrong, err := t.contradictory(ctx, t.Meta.Values-t.values)
	if err != nil {
		return err
	}
	if wrong < 0 {
		t.Pages, t.err = nil, odd
		return nil
	}
	t.Pages[wrong].Values += t.Meta.Values - t.values
	t.Pages[wrong].Lost = fault.Corruptf(t.At.Sub(t.Pages[wrong].Off, t.Pages[wrong].Size),
		layout.PagePath(t.Group, t.Col, wrong)+".header.data_page.num_values",
		"the body does not have the number of values in the header, and the headers of the chunk have %d too many",
		t.values-t.Meta.Values)
	t.values = 0
	for i := range t.Pages {
		t.number(&t.Pages[i])
	}
	return nil
}

// dropBehindOther gives up the pages after a page that is not a data page, if the values of the chunk could not be
// found to their end: that page may be a data page with a damaged type, and then all rows after it are shifted.
func (t *Table) dropBehindOther() {
	if t.other < 0 {
		return
	}
	t.Pages, t.values = t.Pages[:t.other], 0
	for i := range t.Pages {
		t.number(&t.Pages[i])
	}
}

// doubtPages decides which of the pages found, starting at begin, can be used if the pages after them cannot be found:
// none if they may have moved, and not the last page if it has no checksum, or is so short that it may be the last one
// of another chunk: its checksum says nothing about its place.
func (t *Table) doubtPages(ctx context.Context, begin int64) error {
	n := len(t.Pages)
	if n == 0 {
		return nil
	}
	placed, err := t.placed(ctx, begin)
	if err == nil && placed == unknown && !t.copies() {
		if follows, e := t.followsStructure(ctx, begin); follows || e != nil {
			placed, err = yes, e
		}
	}
	switch {
	case err != nil:
		return err
	case placed != yes && !t.File.NoVerify:
		t.Pages, t.values, t.err = nil, 0, fault.Corruptf(t.At.Sub(begin, 0), layout.ChunkPath(t.Group, t.Col),
			"its pages have %d of %s, and nothing shows that they are where they were written: their rows are "+
				"not known", t.values, fault.Count(t.Meta.Values, "value"))
	case t.noChecksum && !t.File.NoVerify:
		p := &t.Pages[n-1]
		p.Lost = fault.Corruptf(t.At.Sub(p.Off, p.Size), layout.PagePath(t.Group, t.Col, n-1),
			"no page begins where it ends, and it has no checksum: its values are in doubt")
	case n > 1 && t.Pages[n-1].Values <= t.Pages[n-2].Values/2 && !t.File.NoVerify:
		p := &t.Pages[n-1]
		p.Lost = fault.Corruptf(t.At.Sub(p.Off, p.Size), layout.PagePath(t.Group, t.Col, n-1),
			"it has %s, the page before it %d, as if it were the last of a chunk, and no page begins where it "+
				"ends: it may be that of another one", fault.Count(p.Values, "value"), t.Pages[n-2].Values)
	}
	return nil
}

// checkRows gives up a repeated column's chunk with unchecksummed pages if the number of rows that begin in it differs
// from that of the row group: then a level is wrong in one of its pages, and would shift all rows after it. Pages that
// cannot be read are reported when they are read.
func (t *Table) checkRows(ctx context.Context) error {
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
			"expected %s, %d begin in the chunk: without checksums any of its pages may be wrong",
			fault.Count(t.rows, "row"), rows)
	}
	return nil
}

// followsStructure reports whether a structure ends at offset at of the chunk's first page: the magic, the metadata of
// a column, a sync block, or all pages of another chunk. If not, bytes were inserted or removed before it, and the page
// there may be any page of the chunk.
func (t *Table) followsStructure(ctx context.Context, at int64) (bool, error) {
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

// isDamage reports whether err is about the contents of the file, not about the store or a limit.
func isDamage(err error) bool {
	return errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported)
}

// checkEnd gives up a chunk with unchecksummed pages unless these end where the next structure begins. If they do not,
// bytes were inserted or removed, perhaps in one of the pages, which nothing else would detect.
func (t *Table) checkEnd(ctx context.Context, end int64) error {
	f := t.File
	if !t.noChecksum || f.NoVerify || f.FromParts || f.Lost != nil && !f.Placed {
		return nil
	}
	begins, err := t.reaches(ctx, end)
	if begins && end < t.At.Len {
		begins, err = t.structureAt(ctx, end)
	}
	if err == nil && !begins {
		t.Pages, t.err = nil, fault.Corruptf(t.At.Sub(t.next, 0), layout.ChunkPath(t.Group, t.Col),
			"its pages end here, and no structure begins at %d, where the next one should: without checksums all its "+
				"values are in doubt", end)
	}
	return err
}

// reaches reports whether nothing but sync blocks lies between the chunk's last page and end.
func (t *Table) reaches(ctx context.Context, end int64) (bool, error) {
	next := t.next
	for next < end {
		h, head, err := layout.PageAt(ctx, t.Src, t.At.Sub(next, end-next), "")
		if err != nil && !isDamage(err) {
			return false, err
		}
		if err != nil || h.Kind == layout.DataPage {
			break
		}
		next += head + int64(h.Stored)
	}
	return next == end, nil
}

// structureAt reports whether the structure that the metadata locates at off begins there: a page or a column's
// metadata; or whether this chunk's metadata is where it should be, after off. If bytes have moved, the rest of a
// page's header may look like a header as well, but of a page type that no writer uses, or of an index page with fields
// that only data pages have. Such headers do not count.
func (t *Table) structureAt(ctx context.Context, off int64) (bool, error) {
	h, _, err := layout.PageAt(ctx, t.Src, t.At.Sub(off, t.At.Len-off), "")
	if err == nil && h.IsKnown() && (off != t.Meta.Index || h.Kind == layout.IndexPage) {
		return true, nil
	}
	if err != nil && !isDamage(err) {
		return false, err
	}
	own := t.File.Footer.Groups[t.Group].Columns[t.Col].Offset
	for _, at := range []int64{off, own} {
		if at < off || at >= t.At.Len {
			continue
		}
		m, _, err := container.ReadColumnMeta(ctx, t.Src, t.At.Sub(at, t.At.Len-at), t.File.Limits.Metadata, "")
		if err == nil && (at != own || slices.Equal(m.Path, t.Meta.Path)) {
			return true, nil
		}
		if err != nil && !isDamage(err) {
			return false, err
		}
	}
	return false, nil
}

// dataPageNext reports whether a data page begins where the next header is expected and ends by end.
func (t *Table) dataPageNext(ctx context.Context, end int64) bool {
	if t.next < layout.MagicLen || t.next >= end {
		return false
	}
	h, head, err := layout.PageAt(ctx, t.Src, t.At.Sub(t.next, end-t.next), "")
	return err == nil && h.Kind == layout.DataPage && t.next+head+int64(h.Stored) <= end
}

// contradictory returns the index of the only page that cannot be decoded as its header states, provided that it can
// with left more values; -1 if there is no such page, or more than one. A page whose own bytes are damaged can be
// decoded with neither number, and then the wrong header may be that of another page.
func (t *Table) contradictory(ctx context.Context, left int64) (found int, err error) {
	found = -1
	for i := range t.Pages {
		ok, err := t.decodes(ctx, i, 0)
		if err != nil || !ok && found >= 0 {
			return -1, err
		}
		if !ok {
			found = i
		}
	}
	if found < 0 || left < -t.Pages[found].Values || left > math.MaxInt32-t.Pages[found].Values {
		return -1, ctx.Err() // no header can have that number
	}
	if ok, err := t.decodes(ctx, found, left); err != nil || !ok {
		return -1, err
	}
	return found, ctx.Err()
}

// decodes reports whether page i can be decoded with more values than its header states.
func (t *Table) decodes(ctx context.Context, i int, more int64) (bool, error) {
	p := t.Pages[i]
	p.Values, p.recount = p.Values+more, more != 0
	if p.Size > t.File.Limits.Page {
		return false, nil
	}
	at := t.At.Sub(p.Off, p.Size)
	b := make([]byte, p.Size)
	if err := format.ReadFull(ctx, t.Src, at, "page", b); err != nil {
		return false, err
	}
	dst, err := vec.New(t.Leaf.Column.Type, memory.DefaultAllocator)
	if err != nil {
		return false, err
	}
	defer dst.Release()
	var arena vec.Arena
	c := chunk{t: t}
	own := format.Page{Ordinal: i, Spans: []fault.Span{at}, Own: &p}
	err = c.Decode(&format.Task{Page: own, N: min(MaxSub, p.Values), Bytes: [][]byte{b}, Scratch: &arena,
		Limits: t.File.Limits}, dst)
	return err == nil, nil
}
