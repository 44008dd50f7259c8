package file

import (
	"context"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// indexCursor returns a cursor over an index to which the footer points, decrypted by s, which may be nil. It returns
// nil if the footer points to none.
func (r *File) indexCursor(ctx context.Context, off *int64, length *int32, path string, s *meta.Cipher,
	m meta.Module) (*wire.Cursor, error) {
	if off == nil || length == nil {
		return nil, nil
	}
	n := int64(*length)
	if *off < 0 || n < 0 || *off > r.Size || n > r.Size-*off {
		return nil, fault.Corruptf(r.FooterAt, path, "%d bytes at %d do not lie in the file (%d)", n, *off, r.Size)
	}
	if n > r.Limits.Metadata {
		return nil, fault.Limitf(r.FooterAt, path, "%d bytes, and at most %d are read (metadata limit)", n,
			r.Limits.Metadata)
	}
	b := make([]byte, n)
	at := r.Span(*off, n)
	if err := format.ReadFull(ctx, r.Src, at, path, b); err != nil {
		return nil, err
	}
	c, err := meta.IndexCursor(b, at, path, s, m)
	if err != nil {
		return nil, err
	}
	return c.Within(r.Limits.Memory()), nil
}

// maxCachedPages limits the cached offset indexes, as the total number of their pages.
const maxCachedPages = 1 << 19

// offsetIndexCache caches offset indexes, which a scan asks for several times. They are immutable.
type offsetIndexCache struct {
	mu    sync.Mutex
	kept  map[ChunkKey]*meta.OffsetIndex
	pages int
}

func (o *offsetIndexCache) get(k ChunkKey) *meta.OffsetIndex {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept[k]
}

// keep adds an index. If that makes too many, earlier ones are dropped: a scan does not return to them.
func (o *offsetIndexCache) keep(k ChunkKey, x *meta.OffsetIndex) {
	n := len(x.Offsets)
	if n > maxCachedPages {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept == nil || o.pages+n > maxCachedPages || len(o.kept) >= maxCachedPages {
		o.kept, o.pages = map[ChunkKey]*meta.OffsetIndex{}, 0
	}
	if o.kept[k] == nil {
		o.kept[k] = x
		o.pages += n
	}
}

// clear must be called when a file gets another footer.
func (o *offsetIndexCache) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept, o.pages = nil, 0
}

// OffsetIndex returns the offset index of a chunk, nil if there is none.
func (r *File) OffsetIndex(ctx context.Context, group, leaf int) (*meta.OffsetIndex, error) {
	k := ChunkKey{group, leaf}
	if x := r.offsets.get(k); x != nil {
		return x, ctx.Err()
	}
	x, err := r.readOffsetIndex(ctx, group, leaf)
	if err == nil && x != nil {
		r.offsets.keep(k, x)
	}
	return x, err
}

func (r *File) readOffsetIndex(ctx context.Context, group, leaf int) (*meta.OffsetIndex, error) {
	c, path := r.Footer.RowGroups[group].Columns[leaf], meta.IndexPath(group, leaf, "offset_index")
	if c.Encrypted {
		return nil, nil
	}
	cur, err := r.indexCursor(ctx, c.OffsetIndexOffset, c.OffsetIndexLength, path, c.Cipher, meta.OffsetIndexModule)
	if cur == nil || err != nil {
		return nil, err
	}
	x := meta.ParseOffsetIndex(thrift.NewReader(cur, thrift.Compact))
	if cur.Err() != nil {
		return nil, cur.Err()
	}
	x.At = r.Span(*c.OffsetIndexOffset, int64(*c.OffsetIndexLength))
	if cur.Left() > 0 {
		x.Trailing = cur.SpanOf(cur.Pos(), cur.Left())
	}
	if err := x.Check(r.ChunkSpan(group, leaf), r.Base, r.Footer.RowGroups[group].NumRows, path); err != nil {
		return nil, err // the pages may be intact but belong to another chunk
	}
	return &x, nil
}

// ColumnIndex reads the column index of a chunk that has the given number of data pages; nil if there is none.
func (r *File) ColumnIndex(ctx context.Context, group, leaf, pages int) (*meta.ColumnIndex, error) {
	c, path := r.Footer.RowGroups[group].Columns[leaf], meta.IndexPath(group, leaf, "column_index")
	if c.Encrypted {
		return nil, nil
	}
	cur, err := r.indexCursor(ctx, c.ColumnIndexOffset, c.ColumnIndexLength, path, c.Cipher, meta.ColumnIndexModule)
	if cur == nil || err != nil {
		return nil, err
	}
	x := meta.ParseColumnIndex(thrift.NewReader(cur, thrift.Compact))
	if cur.Err() != nil {
		return nil, cur.Err()
	}
	x.At = r.Span(*c.ColumnIndexOffset, int64(*c.ColumnIndexLength))
	if cur.Left() > 0 {
		x.Trailing = cur.SpanOf(cur.Pos(), cur.Left())
	}
	if len(x.NullPages) != pages || len(x.Min) != pages || len(x.Max) != pages || x.Nulls != nil &&
		len(x.Nulls) != pages {
		return nil, fault.Corruptf(x.At, path,
			"%d null_pages, %d min_values, %d max_values and %d null_counts for %s",
			len(x.NullPages), len(x.Min), len(x.Max), len(x.Nulls), fault.Count(pages, "page"))
	}
	return &x, nil
}

// ChunkKey identifies a column chunk.
type ChunkKey struct{ Group, Leaf int }
