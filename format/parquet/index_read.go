package parquet

import (
	"context"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/wire"
	"sync"
)

// indexCursor is a cursor over an index at off, which the footer names; s, which may be nil, opens it. There is
// none if the footer names none.
func (r *reader) indexCursor(ctx context.Context, off *int64, length *int32, path string, s *sealed,
	m module) (*wire.Cursor, error) {
	if off == nil || length == nil {
		return nil, nil
	}
	n := int64(*length)
	if *off < 0 || n < 0 || *off > r.size || n > r.size-*off {
		return nil, fault.Corruptf(r.footer, path, "%d bytes at %d do not lie in the file (%d)", n, *off, r.size)
	}
	if n > r.limits.Metadata {
		return nil, fault.Limitf(r.footer, path, "%d bytes, and at most %d are read (--max-metadata)", n,
			r.limits.Metadata)
	}
	b := make([]byte, n)
	at := r.span(*off, n)
	if err := format.ReadFull(ctx, r.src, at, path, b); err != nil {
		return nil, err
	}
	c, err := indexBytes(b, at, path, s, m)
	if err != nil {
		return nil, err
	}
	return c.Within(r.limits.Memory()), nil
}

// keptPages is of how many pages in all the offset indexes are kept.
const keptPages = 1 << 19

// offsets keeps offset indexes that were read: a scan asks for each of them several times. Nobody changes them.
type offsets struct {
	mu    sync.Mutex
	kept  map[chunkKey]*offsetIndex
	pages int
}

func (o *offsets) get(k chunkKey) *offsetIndex {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept[k]
}

// keep keeps an index. If they are too many, those of before go: a scan does not come back to them.
func (o *offsets) keep(k chunkKey, x *offsetIndex) {
	n := len(x.offsets)
	if n > keptPages {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.kept == nil || o.pages+n > keptPages || len(o.kept) >= keptPages {
		o.kept, o.pages = map[chunkKey]*offsetIndex{}, 0
	}
	if o.kept[k] == nil {
		o.kept[k] = x
		o.pages += n
	}
}

// forget is for a reader that gets another footer.
func (o *offsets) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept, o.pages = nil, 0
}

// offsetIndex is the offset index of a chunk; nil if there is none.
func (r *reader) offsetIndex(ctx context.Context, group, leaf int) (*offsetIndex, error) {
	k := chunkKey{group, leaf}
	if x := r.offsets.get(k); x != nil {
		return x, ctx.Err()
	}
	x, err := r.readOffsetIndex(ctx, group, leaf)
	if err == nil && x != nil {
		r.offsets.keep(k, x)
	}
	return x, err
}

func (r *reader) readOffsetIndex(ctx context.Context, group, leaf int) (*offsetIndex, error) {
	c, path := r.meta.RowGroups[group].Columns[leaf], indexPath(group, leaf, "offset_index")
	if c.encrypted {
		return nil, nil
	}
	cur, err := r.indexCursor(ctx, c.OffsetIndexOffset, c.OffsetIndexLength, path, c.sealed, offsetIndexModule)
	if cur == nil || err != nil {
		return nil, err
	}
	x := parseOffsetIndex(thrift.NewReader(cur, thrift.Compact))
	if cur.Err() != nil {
		return nil, cur.Err()
	}
	x.at = r.span(*c.OffsetIndexOffset, int64(*c.OffsetIndexLength))
	if cur.Left() > 0 {
		x.behind = cur.SpanOf(cur.Pos(), cur.Left())
	}
	if err := x.check(r.chunkSpan(group, leaf), r.base, r.meta.RowGroups[group].NumRows, path); err != nil {
		return nil, err // its pages may be those of another chunk, and sound
	}
	return &x, nil
}

// columnIndex reads the column index of a chunk of so many data pages; nil if there is none.
func (r *reader) columnIndex(ctx context.Context, group, leaf, pages int) (*columnIndex, error) {
	c, path := r.meta.RowGroups[group].Columns[leaf], indexPath(group, leaf, "column_index")
	if c.encrypted {
		return nil, nil
	}
	cur, err := r.indexCursor(ctx, c.ColumnIndexOffset, c.ColumnIndexLength, path, c.sealed, columnIndexModule)
	if cur == nil || err != nil {
		return nil, err
	}
	x := parseColumnIndex(thrift.NewReader(cur, thrift.Compact))
	if cur.Err() != nil {
		return nil, cur.Err()
	}
	x.at = r.span(*c.ColumnIndexOffset, int64(*c.ColumnIndexLength))
	if cur.Left() > 0 {
		x.behind = cur.SpanOf(cur.Pos(), cur.Left())
	}
	if len(x.nullPages) != pages || len(x.min) != pages || len(x.max) != pages || x.nulls != nil &&
		len(x.nulls) != pages {
		return nil, fault.Corruptf(x.at, path,
			"%d null_pages, %d min_values, %d max_values and %d null_counts for %d pages",
			len(x.nullPages), len(x.min), len(x.max), len(x.nulls), pages)
	}
	return &x, nil
}
