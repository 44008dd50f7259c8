package recovery

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/table"
	"stoa/internal/thrift"
	"stoa/wire"
)

// How recovery decides whether metadata belongs to the file, and how much it reads to find out.
//
// A page of a RedFile may contain another RedFile with its own magic and metadata, as in a table of attachments whose
// pages are not compressed. So metadata is accepted as this file's own only if it has the marker of the sync block at
// the beginning. Without sync blocks, its last chunk must be at its stated offset, and the structures from there to the
// metadata must follow one another without gaps. The offsets in an inner file are too small for its position. They may
// happen to be those of other structures, but hardly those of chunks with the same number of values.

// seekCost is the cost of reading a few bytes elsewhere, expressed in bytes of sequential reading.
const seekCost = 4 << 10

// budget returns the number of bytes that may still be read speculatively. Bytes that begin like metadata or a page
// must be read completely to find out, and crafted bytes could cause everything to be read again and again. So
// speculative reads are limited, in total, to a few times the size of the file.
func (r *recoverer) budget() int64 { return 8*r.f.At.Len + 1<<20 - r.speculative }

// afford subtracts n bytes from the budget, or returns false if the budget has fewer. The first failure is reported as
// a finding.
func (r *recoverer) afford(n int64) bool {
	if n <= r.budget() {
		r.speculative += n
		return true
	}
	if !r.overBudget {
		r.overBudget = true
		r.Rows("redfile.recover.limit", r.f.At, [2]int64{-1, -1}, 0,
			"%d bytes were read of what looked like pages or metadata and was not: from now on only short structures "+
				"are tried", r.speculative)
	}
	return false
}

// grow returns the largest size that a structure may have: limit if the budget has as many bytes, otherwise at most
// first.
func (r *recoverer) grow(first, limit int64) int64 {
	if limit <= first || !r.afford(0) {
		return min(first, limit)
	}
	return max(first, min(limit, r.budget()))
}

// spend subtracts from the budget the bytes of a structure that are read beyond the first ones.
func (r *recoverer) spend(c *wire.Cursor, first int64) {
	if n := int64(c.Left()); n > first {
		r.speculative += n
	}
}

// page reads the header of a page at pos; the page must end by end.
func (r *recoverer) page(pos, end int64) (layout.PageHeader, int64, error) {
	b, err := r.bytes(pos, int(min(layout.MaxFoundHeader, end-pos)))
	if err != nil {
		return layout.PageHeader{}, 0, err
	}
	return layout.HeaderIn(b, r.f.At.Sub(pos, end-pos))
}

// acceptsChunk reports whether a chunk can be one of this file. Its metadata was found at pos, among bytes that could
// not be parsed. If the chunk begins where the previous one ends, those bytes belong to it, and only parsable bytes are
// compared. If not, the metadata of the previous chunk was lost, and all pages of this one must be there, up to its
// metadata, since offsets of a file within a page may happen to be those of a structure. If there is no room for its
// pages, the metadata is a copy, such as the metadata of the file contains.
func (r *recoverer) acceptsChunk(m *layout.ColumnMeta, pos int64) bool {
	if m.Stored > pos-m.Data {
		return false
	}
	w := r.pages(m, pos)
	if m.Data != r.start {
		return w.whole && w.end == pos
	}
	return !w.contradicts && (!w.whole || w.end == pos) && r.matchesSeen(m)
}

// pageWalk is the result of walking the pages of a chunk.
type pageWalk struct {
	whole       bool  // the data pages have all values, and the sizes stated in the metadata
	contradicts bool  // there is a structure that cannot be in the chunk
	broken      bool  // the header of a page cannot be read
	end         int64 // after the last page
	values      int64 // of all data pages
}

// pages walks the pages of a chunk; they must end by end.
func (r *recoverer) pages(m *layout.ColumnMeta, end int64) (w pageWalk) {
	var values, raw, stored int64
	for w.end = m.Data; w.end < end; {
		if !r.afford(seekCost / 16) {
			return pageWalk{contradicts: true, end: w.end}
		}
		h, head, err := r.page(w.end, end)
		if field, _ := h.Problem(); err != nil && head > 0 && field == "" || h.Kind == layout.SyncPage && err == nil {
			w.contradicts = true // the chunk's metadata is inside a page, or in another row group
			return w
		}
		if err != nil { // a damaged page header, unless it is the metadata of another chunk
			_, _, err := r.columnMeta(w.end, end, 4<<10)
			w.contradicts, w.broken = err == nil, err != nil
			break
		}
		if h.Kind == layout.DataPage {
			if values == m.Values && values > 0 && m.Raw == raw && m.Stored == stored { // the next chunk
				break
			}
			values, raw, stored = values+int64(h.Values), raw+int64(h.Raw), stored+int64(h.Stored)
		}
		w.end += head + int64(h.Stored)
	}
	w.whole = values == m.Values && (m.Raw < 0 || m.Raw == raw && m.Stored == stored)
	w.contradicts, w.values = w.contradicts || values > m.Values, values
	return w
}

// matchesSeen reports whether m has the type and levels of the column with the same path. A path that has not been seen
// before can be right only in the first row group, before any path repeats.
func (r *recoverer) matchesSeen(m *layout.ColumnMeta) bool {
	if c := r.seen[pathKey(m.Path)]; c != nil {
		return c.Type == m.Type && c.MaxDef == m.MaxDef && c.MaxRep == m.MaxRep
	}
	return !r.repeated
}

// columnMeta reads metadata of a column at pos. It must end by end and have at most limit bytes.
func (r *recoverer) columnMeta(pos, end, limit int64) (*layout.ColumnMeta, int64, error) {
	const first = 512
	at := r.f.At.Sub(pos, end-pos)
	var m layout.ColumnMeta
	parse := func(c *wire.Cursor) bool {
		r.spend(c, first)
		t := thrift.NewReader(c, layout.ProtocolOf(c.Rest()))
		m = layout.ParseColumnMeta(t, "")
		return t.Short()
	}
	b, err := r.bytes(pos, int(min(first, at.Len)))
	if err != nil {
		return nil, 0, err
	}
	c := wire.NewCursor(b, at.Sub(0, int64(len(b))), "")
	short := parse(c)
	n, err := int64(c.Pos()), c.Err()
	if limit = r.grow(first, limit); short && err != nil && limit > first && at.Len > first {
		n, err = layout.ReadStruct(r.ctx, r.f.Src, at, min(4<<10, limit), limit, "", parse)
	}
	if err == nil {
		err = container.CheckColumn(&m, at.Sub(0, n), "")
	}
	return &m, n, err
}

// fileMeta reads metadata of a file at pos. It must end by end, and have its required fields and a correct checksum.
func (r *recoverer) fileMeta(pos, end int64) (*layout.FileMeta, int64, bool) {
	const first = 1 << 10
	at := r.f.At.Sub(pos, end-pos)
	var m layout.FileMeta
	n, err := layout.ReadStruct(r.ctx, r.f.Src, at, first, r.grow(first, r.f.Limits.Metadata), "",
		func(c *wire.Cursor) (short bool) {
			r.spend(c, first)
			m, short = layout.ParseFileMeta(c.Within(r.f.Limits.Memory()))
			return short
		})
	if err != nil || m.Check(at.Sub(0, n)) != nil || m.HasCRC && m.CRC != m.Want {
		return nil, 0, false
	}
	return &m, n, true
}

// footer reads metadata of a file at pos, followed by its length and the magic, and returns the total size of the
// three.
func (r *recoverer) footer(pos int64) (*layout.FileMeta, int64, bool) {
	end := r.f.At.Len - layout.TailLen
	var b [layout.TailLen]byte
	if begin, err := r.bytes(pos, layout.TailLen); end-pos < layout.TailLen || err != nil || !beginsMeta(begin) {
		return nil, 0, false
	}
	m, n, ok := r.fileMeta(pos, end)
	if !ok || format.ReadFull(r.ctx, r.f.Src, r.f.At.Sub(pos+n, layout.TailLen), "", b[:]) != nil ||
		string(b[4:]) != layout.Magic || int64(binary.LittleEndian.Uint32(b[:])) != n || !r.plausible(m, pos) {
		return nil, 0, false
	}
	return m, n + layout.TailLen, true
}

// beginsMeta reports whether b begins like the metadata of a file: with field 1, an i32 with value 1.
func beginsMeta(b []byte) bool {
	return bytes.HasPrefix(b, []byte{0x15, 2}) || bytes.HasPrefix(b, []byte{8, 0, 1, 0, 0, 0, 1})
}

// firstSync sets the marker to that of the sync block at the beginning of the file, if there is one.
func (r *recoverer) firstSync() error {
	h, head, err := r.page(layout.MagicLen, r.f.At.Len)
	if err != nil || h.Kind != layout.SyncPage || int64(h.Stored) > r.f.Limits.Metadata {
		return r.ctx.Err()
	}
	s, _, err := r.f.ReadSync(r.ctx, layout.MagicLen, &h, head)
	if s != nil {
		r.marker = s.Marker
	}
	return err
}

// lastFooter searches backwards for metadata of this file with its length and the magic, adopts its row groups, and
// sets pos to the byte after it.
func (r *recoverer) lastFooter(pos *int64) error {
	const step = 256 << 10
	r.window = seekCost
	for end := r.f.At.Len; end > layout.MinFile; end -= step {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		from := max(0, end-step)
		b := make([]byte, min(r.f.At.Len, end+layout.MagicLen-1)-from)
		if err := format.ReadFull(r.ctx, r.f.Src, r.f.At.Sub(from, int64(len(b))), "", b); err != nil {
			return err
		}
		// peek returns n bytes at off, most of which are already in b.
		peek := func(off, n int64) []byte {
			if off >= from && off+n <= from+int64(len(b)) {
				return b[off-from:][:n]
			}
			p := make([]byte, n)
			if !r.afford(seekCost) || format.ReadFull(r.ctx, r.f.Src, r.f.At.Sub(off, n), "", p) != nil {
				return nil
			}
			return p
		}
		for i := len(b); ; {
			if i = bytes.LastIndex(b[:i], []byte(layout.Magic)); i < 0 {
				break
			}
			if m := r.footerBefore(from+int64(i), peek); m != nil {
				*pos = from + int64(i) + layout.MagicLen
				r.known, r.groups = m, m.Groups
				r.marker = m.Marker()
				return nil
			}
		}
	}
	return nil
}

// footerBefore reads the metadata of this file that precedes the magic at pos; nil if there is none.
func (r *recoverer) footerBefore(pos int64, peek func(off, n int64) []byte) *layout.FileMeta {
	const minFooter = 8
	if pos < layout.MinFile-layout.MagicLen {
		return nil
	}
	b := peek(pos-4, 4)
	if b == nil {
		return nil
	}
	n := int64(binary.LittleEndian.Uint32(b))
	start := pos - 4 - n
	if n < minFooter || start < layout.MagicLen || n > r.f.Limits.Metadata || !beginsMeta(peek(start, minFooter)) {
		return nil
	}
	m, size, ok := r.fileMeta(start, pos-4)
	if !ok || size != n || !r.trusts(m, start) || !r.plausible(m, start) || !r.isOwn(m, start) {
		return nil
	}
	return m
}

// plausible reports whether all offsets in m are less than end.
func (r *recoverer) plausible(m *layout.FileMeta, end int64) bool {
	for _, g := range m.Groups {
		for _, c := range g.Columns {
			if c.File == "" && (c.Offset < layout.MagicLen || c.Offset >= end || c.Meta != nil && c.Meta.Data >= end) {
				return false
			}
		}
	}
	return true
}

// isOwn reports whether m, which begins at start and is plausible, is metadata of this file and not of a file within a
// page.
func (r *recoverer) isOwn(m *layout.FileMeta, start int64) bool {
	if r.marker != nil {
		return bytes.Equal(m.Marker(), r.marker)
	}
	pos, last := int64(layout.MagicLen), (*layout.ColumnChunk)(nil)
	for _, g := range m.Groups {
		for i := range g.Columns {
			if c := &g.Columns[i]; c.File == "" && c.Offset >= pos {
				pos, last = c.Offset, c
			}
		}
	}
	if last != nil && last.Meta != nil {
		pos = max(pos, last.Meta.Data)
	}
	return (last == nil || r.confirms(last, start)) && r.tiled(pos, start)
}

// tiled reports whether structures follow one another from pos to end.
func (r *recoverer) tiled(pos, end int64) bool {
	for pos < end {
		n := r.structureSize(pos, end)
		if n <= 0 {
			return false
		}
		pos += n
	}
	return pos == end
}

// confirms reports whether the chunk is where the metadata of the file places it. It checks the pages, one by one, and
// the metadata after them, which some writers put only into the metadata of the file.
func (r *recoverer) confirms(c *layout.ColumnChunk, start int64) bool {
	m, _, err := r.columnMeta(c.Offset, start, 1<<20)
	if c.Meta == nil {
		if err != nil || m.Data < layout.MagicLen {
			return false
		}
		w := r.pages(m, c.Offset)
		return w.whole && w.end == c.Offset
	}
	if err == nil {
		w := r.pages(c.Meta, c.Offset)
		return m.Data == c.Meta.Data && m.Raw == c.Meta.Raw && slices.Equal(m.Path, c.Meta.Path) && w.whole &&
			w.end == c.Offset
	}
	// Any writer that stores levels in pairs also writes the metadata after the pages.
	ours := slices.ContainsFunc(c.Meta.Pairs, func(kv layout.KeyValue) bool { return kv.Key == layout.LevelsKey })
	return !ours && r.pages(c.Meta, start).whole
}

// ofInnerFile reports whether the metadata at the end is that of a file within a page, provided that there are no sync
// blocks: it is if fewer than half of the first chunks are where it places them. A single one may match by chance, for
// instance if both tables begin with the same column.
func (r *recoverer) ofInnerFile() bool {
	const maxTries = 64
	m, tries, matched := &r.f.Footer, 0, 0
	if r.firstSync() != nil || r.marker != nil {
		return false
	}
	start := r.f.MetaAt.Off - r.f.At.Off
	for _, g := range m.Groups {
		for i := range g.Columns {
			c := &g.Columns[i]
			if c.File != "" || c.Offset < layout.MagicLen {
				return false
			}
			if tries == maxTries {
				return 2*matched < tries
			}
			if tries++; r.confirms(c, start) {
				matched++
			}
		}
	}
	if tries == 0 { // no row groups: then nothing may precede the metadata
		return !r.isOwn(m, start)
	}
	return 2*matched < tries
}

// structureSize returns the size of the structure at pos that ends by end; 0 if there is none.
func (r *recoverer) structureSize(pos, end int64) int64 {
	if !r.afford(seekCost / 16) {
		return 0
	}
	if h, head, err := r.page(pos, end); err == nil {
		return head + int64(h.Stored)
	}
	if _, n, err := r.columnMeta(pos, end, 1<<20); err == nil {
		return n
	}
	if _, n, ok := r.footer(pos); ok && pos+n <= end {
		return n
	}
	return 0
}

// FooterAt reads metadata of a file at pos of f, followed by its length and the magic, and returns the total size of
// the three; ok is false if there is none.
func FooterAt(ctx context.Context, f *table.File, pos int64) (*layout.FileMeta, int64, bool) {
	return newRecoverer(ctx, f, f.At.Object).footer(pos)
}
