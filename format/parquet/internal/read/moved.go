package read

import (
	"cmp"
	"context"
	"errors"
	"math"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/sorted"
)

// Pages do not name their column, and a checksum covers them wherever they lie: if bytes were inserted or removed,
// whole pages of one column may be where the footer has those of another. An encrypted page is authenticated with its
// place.

// checkNotMoved gives up a chunk if bytes were inserted or removed before the footer and nothing shows that this was
// after the chunk: its pages may be those of another column, or, without checksums, its last page may have wrong
// values. There are two signs of that: bytes between the last structure and the footer that belong to nothing, and
// indexes that are not where the footer says. A single damaged index proves nothing; a single intact one proves that
// nothing has moved. In a file without indexes, copies of the chunks' metadata prove that, or all chunks must be whole,
// the last one by its checksums. If less than a page was inserted or removed, the chunks before the first torn one are
// where they were.
func (t *pageTable) checkNotMoved(ctx context.Context) error {
	r := t.r
	if t.cipher() != nil || r.NoVerify || r.Lost != nil || r.EncryptedFooter {
		return nil
	}
	gap := r.GapBeforeFooter()
	if gap == 0 && (!t.unchecked || !t.isLast()) {
		return nil // without checksums, the header of the next chunk protects it
	}
	bad, found, err := t.misplacedIndexes(ctx)
	if err != nil || found {
		return err
	}
	if bad < 2 && gap == 0 {
		return nil
	}
	if bad == 0 {
		if proven, err := r.ProvenBefore(ctx); err != nil || t.at.End() <= proven {
			return err
		}
	}
	if gap != 0 {
		w, err := r.wholeChunks(ctx)
		// pages that have moved by less than a page are nowhere where another page should be
		little := gap < smallestPage && -gap < smallestPage
		if err != nil || bad == 0 && w.all(t) || little && w.have(t) {
			return err
		}
	}
	t.pages = nil
	return fault.Corruptf(t.at, meta.IndexPath(t.group, t.leaf, ""), "bytes were inserted or removed before the "+
		"footer, and its pages may be those of another column: %d bytes before the footer belong to nothing, and no "+
		"index is where the footer says", gap)
}

// GapBeforeFooter is unclaimedBeforeFooter, computed once: it looks at every chunk, and is asked of each.
func (r *Reader) GapBeforeFooter() int64 {
	r.proving.Lock()
	defer r.proving.Unlock()
	if r.gap == nil {
		gap := r.unclaimedBeforeFooter()
		r.gap = &gap
	}
	return *r.gap
}

// smallestPage is less than a page header has.
const smallestPage = 12

// wholeChunks is how far a file's chunks, in their order, are whole.
type wholeChunks struct {
	torn int64 // where the first one begins that is not; math.MaxInt64: all are
	last int64 // where the one before it begins
	more bool  // behind the last chunk is a page, which may be that chunk's own: others may have been inserted
}

// all reports whether all chunks are whole, so that what belongs to nothing lies behind them. Without checksums, it may
// as well lie within the last page of the last chunk. Where two chunks claim a place, the page behind is another one's.
func (w *wholeChunks) all(t *pageTable) bool {
	if w.more {
		return w.torn == math.MaxInt64 && len(t.r.Claimed) > 0
	}
	return w.torn == math.MaxInt64 && (!t.unchecked || t.at.Off != w.last)
}

// PagesFollow reports whether a page follows the last chunk although all chunks consist of pages.
func (r *Reader) PagesFollow(ctx context.Context) (bool, error) {
	w, err := r.wholeChunks(ctx)
	return err == nil && w.more, err
}

// have reports whether the pages of a chunk are in their places and whole. Without checksums, the header of the next
// chunk protects a chunk.
func (w *wholeChunks) have(t *pageTable) bool {
	return t.at.End() <= w.torn && (!t.unchecked || t.at.Off < w.last)
}

// wholeChunks is findWhole, computed once: it reads the file.
func (r *Reader) wholeChunks(ctx context.Context) (*wholeChunks, error) {
	r.proving.Lock()
	defer r.proving.Unlock()
	if r.whole == nil {
		whole, err := r.findWhole(ctx)
		if err != nil {
			return nil, err
		}
		r.whole = whole
	}
	return r.whole, nil
}

// ProvenBefore returns the offset of the last copy of a chunk's metadata that is where the footer says: nothing before
// it has moved. It is -1 if there is none.
func (r *Reader) ProvenBefore(ctx context.Context) (int64, error) {
	r.proving.Lock()
	defer r.proving.Unlock()
	if r.proven != 0 {
		return r.proven, nil
	}
	copies, err := r.Copies(ctx)
	if err != nil {
		return -1, err
	}
	r.proven = -1
	for _, c := range copies {
		if c.Differs == "" {
			r.proven = max(r.proven, c.At.Off)
		}
	}
	return r.proven, nil
}

// isLast reports whether no chunk ends after this one.
func (t *pageTable) isLast() bool {
	for g, rg := range t.r.Footer.RowGroups {
		for k := range rg.Columns {
			if t.r.ChunkSpan(g, k).End() > t.at.End() {
				return false
			}
		}
	}
	return true
}

// unclaimedBeforeFooter returns the number of bytes between the last structure that the footer names and the footer,
// negative if they overlap; 0 if it is unknown where a structure ends.
func (r *Reader) unclaimedBeforeFooter() int64 {
	end := r.Base + int64(len(meta.Magic))
	reach := func(off *int64, size *int32) {
		if off != nil && size != nil {
			end = max(end, r.Base+*off+int64(*size))
		}
	}
	for g := range r.Footer.RowGroups {
		for k := range r.Footer.RowGroups[g].Columns {
			c := r.Footer.RowGroups[g].Columns[k]
			if c.FilePath != "" || c.MetaData.BloomFilterOffset != nil && c.MetaData.BloomFilterLength == nil ||
				r.padded(r.ChunkSpan(g, k)) != r.ChunkSpan(g, k) {
				return 0
			}
			end = max(end, r.ChunkSpan(g, k).End())
			reach(c.OffsetIndexOffset, c.OffsetIndexLength)
			reach(c.ColumnIndexOffset, c.ColumnIndexLength)
			reach(c.MetaData.BloomFilterOffset, c.MetaData.BloomFilterLength)
		}
	}
	return r.FooterAt.Off - end
}

// misplacedIndexes counts the indexes that are not where the footer says; found is true if one is.
func (t *pageTable) misplacedIndexes(ctx context.Context) (bad int, found bool, err error) {
	look := func(there, whole bool, err error) error {
		if errors.Is(err, fault.Corrupt) || err == nil && there && !whole {
			bad++
			return nil
		}
		found = err == nil && there
		return err
	}
	for g, rg := range t.r.Footer.RowGroups {
		for k := range rg.Columns {
			x, err := t.r.OffsetIndex(ctx, g, k)
			if err := look(x != nil, t.r.IsIndexOf(x, g, k), err); err != nil || found {
				return bad, found, err
			}
		}
	}
	if t.r.GapBeforeFooter() != 0 { // it may be another column's, as nothing in it tells
		return bad, false, nil
	}
	c, err := t.r.ColumnIndex(ctx, t.group, t.leaf, len(t.pages))
	err = look(c != nil, c != nil && c.Trailing.Len == 0, err)
	return bad, found, err
}

// IsIndexOf reports whether an offset index, which may be nil, is that of a chunk: many are of the same size.
func (r *Reader) IsIndexOf(x *meta.OffsetIndex, group, leaf int) bool {
	return x != nil && x.Trailing.Len == 0 && len(x.Offsets) > 0 &&
		x.Offsets[0] == r.Footer.RowGroups[group].Columns[leaf].MetaData.DataPageOffset
}

// findWhole looks for the first chunk that does not consist of pages, whose checksums, if they have any, are right.
func (r *Reader) findWhole(ctx context.Context) (*wholeChunks, error) {
	type chunk struct {
		off        int64
		group, col int
	}
	var all []chunk
	for g, rg := range r.Footer.RowGroups {
		for k := range rg.Columns {
			all = append(all, chunk{r.ChunkSpan(g, k).Off, g, k})
		}
	}
	sorted.By(all, func(a, b chunk) int { return cmp.Compare(a.off, b.off) })
	var buf []byte
	w, end := &wholeChunks{torn: math.MaxInt64}, int64(0)
	for _, c := range all {
		whole, err := r.isWhole(ctx, c.group, c.col, &buf)
		if err != nil {
			return nil, err
		}
		if !whole {
			w.torn = c.off
			break
		}
		w.last, end = c.off, r.ChunkSpan(c.group, c.col).End()
	}
	if w.torn == math.MaxInt64 && end < r.FooterAt.Off {
		_, err := r.PlainPageHeader(ctx, fault.Span{Object: r.FooterAt.Object, Off: end, Len: r.FooterAt.Off - end},
			"page", nil)
		if err != nil && !errors.Is(err, fault.Corrupt) { // it says nothing about the bytes, and must not be kept
			return nil, err
		}
		w.more = err == nil
	}
	return w, nil
}

// isWhole reports whether a chunk consists of pages, whose checksums, if they have any, are right.
func (r *Reader) isWhole(ctx context.Context, group, col int, buf *[]byte) (bool, error) {
	values := int64(0)
	for p, err := range r.Pages(ctx, group, col) {
		if err == nil && p.HasCRC {
			err = r.CheckCRC(ctx, p, "", buf)
		}
		if errors.Is(err, fault.Corrupt) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		if p.IsData() {
			values += p.Values
		}
	}
	return values == r.Footer.RowGroups[group].Columns[col].MetaData.NumValues, nil
}
