package parquet

import (
	"context"
	"fmt"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/wire"
)

// offsetIndex says where the data pages of a column chunk are, and with which row each begins (parquet.thrift,
// OffsetIndex).
type offsetIndex struct {
	at       fault.Span
	offsets  []int64 // in the file
	sizes    []int32 // with the header
	firstRow []int64
	bytes    []int64    // per page, of strings without their lengths; nil: not said
	behind   fault.Span // bytes that the footer counts to the index, and that are not of it
}

// columnIndex says what is in the data pages of a column chunk (parquet.thrift, ColumnIndex).
type columnIndex struct {
	at        fault.Span
	nullPages []bool   // nothing but nulls
	min, max  [][]byte // without meaning for pages of nulls
	nulls     []int64  // nil: not known
	order     int32    // of the bounds from page to page: see orders
	repLevels []int64  // entries per page and level; nil: not said
	defLevels []int64
	behind    fault.Span
}

func parseOffsetIndex(r *thrift.Reader) (x offsetIndex) {
	for r.Struct("offset_index"); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("page_locations", thrift.Struct) {
				var at, row int64
				var size int32
				for r.Struct(""); r.Next(); {
					switch r.Field() {
					case 1:
						at = r.I64("offset")
					case 2:
						size = r.I32("compressed_page_size")
					case 3:
						row = r.I64("first_row_index")
					}
				}
				x.offsets, x.sizes, x.firstRow = append(x.offsets, at), append(x.sizes, size), append(x.firstRow, row)
			}
		case 2:
			for range r.List("unencoded_byte_array_data_bytes", thrift.I64) {
				x.bytes = append(x.bytes, r.I64(""))
			}
		}
	}
	return x
}

func parseColumnIndex(r *thrift.Reader) (x columnIndex) {
	for r.Struct("column_index"); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("null_pages", thrift.Bool) {
				x.nullPages = append(x.nullPages, r.Bool(""))
			}
		case 2:
			for range r.List("min_values", thrift.Bytes) {
				x.min = append(x.min, r.Bytes(""))
			}
		case 3:
			for range r.List("max_values", thrift.Bytes) {
				x.max = append(x.max, r.Bytes(""))
			}
		case 4:
			x.order = r.Enum("boundary_order", func(v int32) string { return named(orders, v) })
		case 5:
			for range r.List("null_counts", thrift.I64) {
				x.nulls = append(x.nulls, r.I64(""))
			}
		case 6:
			for range r.List("repetition_level_histograms", thrift.I64) {
				x.repLevels = append(x.repLevels, r.I64(""))
			}
		case 7:
			for range r.List("definition_level_histograms", thrift.I64) {
				x.defLevels = append(x.defLevels, r.I64(""))
			}
		}
	}
	return x
}

// parseBloomHeader reads a BloomFilterHeader and gives the length of the filter behind it.
func parseBloomHeader(r *thrift.Reader) (n int64) {
	union := func(name, only string) { walk(r, name, structure{1: {name: only}}) }
	for r.Struct("header"); r.Next(); {
		switch r.Field() {
		case 1:
			n = int64(r.I32("num_bytes"))
		case 2:
			union("algorithm", "BLOCK")
		case 3:
			union("hash", "XXHASH")
		case 4:
			union("compression", "UNCOMPRESSED")
		}
	}
	return n
}

// indexPath names an index in errors.
func indexPath(group, leaf int, name string) string {
	return fmt.Sprintf("row_groups[%d].columns[%d].%s", group, leaf, name)
}

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

// indexBytes is a cursor over the bytes of an index.
func indexBytes(b []byte, at fault.Span, path string, s *sealed, m module) (*wire.Cursor, error) {
	if s == nil {
		return wire.NewCursor(b, at, path), nil
	}
	plain, used, err := s.open(b, m, 0, room)
	if err == nil && used != len(b) {
		err = fault.Rel(used, len(b)-used, "", "%d bytes behind the encrypted index", len(b)-used)
	}
	if err != nil {
		return nil, fault.Locate(err, at, true, path)
	}
	return wire.NewInnerCursor(plain, at, path), nil
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

// check holds an offset index against the chunk that it is of.
func (x *offsetIndex) check(chunk fault.Span, base, rows int64, path string) error {
	end, last := chunk.Off, int64(-1)
	for i, off := range x.offsets {
		path := fmt.Sprintf("%s.page_locations[%d]", path, i)
		if size := int64(x.sizes[i]); off < end-base || size < 0 || size > chunk.End()-base-off {
			return fault.Corruptf(x.at, path,
				"%d bytes at %d do not lie in the column chunk behind the page before", size, off)
		}
		end = base + off + int64(x.sizes[i])
		if f := x.firstRow[i]; i == 0 && f != 0 || f < last || f >= max(rows, 1) {
			return fault.Corruptf(x.at, path+".first_row_index", "%d behind %d in a row group of %d rows", f, last,
				rows)
		}
		last = x.firstRow[i]
	}
	return nil
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
