package recovery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/table"
	"stoa/internal/check"
	"stoa/region"
	"stoa/wire"
)

// Recover opens the remainder of a file and returns findings about the losses. If the metadata at the end can be read,
// it opens the file as usual, and damage before the metadata is found when chunks are read. Otherwise
//
//  1. it searches for the last metadata in the file: our writer puts it after every N-th row group, and it names all
//     row groups before it;
//  2. from there on, or from the beginning, it walks the file structure by structure: pages, the metadata of columns,
//     which has the offset of its first page, and sync blocks, which name the columns of a row group. Where nothing can
//     be parsed, it searches for the next of these byte by byte;
//  3. it makes row groups of chunks by the sync blocks, or by the paths of the columns, which repeat in every row
//     group.
//     Columns that are missing in the last one are lost.
func Recover(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	opts, err := layout.ParseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	tg = container.InDir(ctx, tg)
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	f := table.New(tg.Tree, src, at, o, opts)
	f.Stamp, f.Recovering = table.StampOf(ctx, tg), true
	r := newRecoverer(ctx, f, tg.Name)
	err = f.Open(ctx, nil)
	opened := err == nil
	if out, err := r.moved(o, opts); out != nil || err != nil {
		return r.finish(out, err)
	}
	r.reportSchema(f)
	if opened && r.ofInnerFile() {
		err = fault.Corruptf(f.MetaAt, "file_metadata.row_groups",
			"most chunks are not at its offsets: it is the metadata of a file in a page, after which this one is cut")
	}
	if opened && err == nil && f.OwnGroupPath() != "" {
		if out, err := r.withStandIn(o, opts); err != nil || out != nil {
			return r.finish(out, err)
		}
	}
	if opened && err == nil && path.Base(tg.Name) == layout.MetadataFile {
		err = r.checkParts(o)
	}
	if opened && err == nil {
		if odd := f.RowsAgree(ctx); odd != nil {
			return r.disagree(o, opts, odd)
		}
	}
	if err == nil {
		r.renameColumns()
		f.CheckTable(ctx)
		f.CheckParts(ctx)
		return f, r.findings, nil
	}
	if !errors.Is(err, fault.Corrupt) {
		src.Close()
		return nil, nil, err
	}
	return r.withoutMetadata(o, opts, err, opened)
}

// withoutMetadata recovers a file whose metadata at the end cannot be used because of why. opened means that the
// metadata could be parsed.
func (r *recoverer) withoutMetadata(o format.OpenOptions, opts layout.ReadOptions, why error,
	opened bool) (format.Reader, []region.Finding, error) {
	f := r.f
	r.Blame("redfile.footer.damaged", why, -1, -1)
	if r.undecided {
		r.Report("redfile.part.other", f.MetaAt, "", "%s and the one part that can be read are of two tables, and it "+
			"is not known which is lost: the part is read", layout.MetadataFile)
	}
	if f.Footer.Check(f.MetaAt) == nil && f.MetaAt.Len > 0 && f.ResolveSchema(r.ctx) == nil &&
		strings.HasPrefix(PathOf(why), "magic") {
		if f.OwnGroupPath() != "" {
			if out, err := r.withStandIn(o, opts); err != nil || out != nil {
				return r.finish(out, err)
			}
		}
		return f, r.findings, nil // only the beginning is damaged
	}
	if path.Base(f.At.Object) == layout.MetadataFile { // it has no pages; each part has its own metadata
		if parts, err := r.fromParts(o, opts); err != nil || parts != nil {
			return r.finish(parts, err)
		}
	}
	out, err := r.run(o, opts)
	if opened && (err != nil || out == nil || len(out.Footer.Groups) == 0) { // the metadata is the best there is
		r.findings = nil
		r.reportSchema(f)
		return f, r.findings, nil
	}
	if err == nil && out == nil {
		err = why
	}
	return r.finish(out, err)
}

// finish returns the recovered file, or closes it if nothing was recovered.
func (r *recoverer) finish(out *table.File, err error) (format.Reader, []region.Finding, error) {
	if err != nil {
		r.f.Src.Close()
		return nil, r.findings, err
	}
	return out, r.findings, nil
}

// disagree recovers a file in which either num_rows or the list of row groups is damaged, since the sum over the row
// groups differs, which is the error odd. The file is walked using only the schema of the metadata; its row groups are
// used if the walk finds no more rows than they have.
func (r *recoverer) disagree(o format.OpenOptions, opts layout.ReadOptions,
	odd error) (format.Reader, []region.Finding, error) {
	f := r.f
	if !errors.Is(odd, fault.Corrupt) {
		f.Close()
		return nil, nil, odd
	}
	known := f.Footer
	known.Groups = nil
	r.known, r.distrusted = &known, f.MetaAt.Off-f.At.Off
	var out *table.File
	var err error
	switch {
	case f.Recount(r.ctx):
	case path.Base(f.At.Object) == layout.MetadataFile: // it has no pages, but the parts are whole files
		out, err = r.fromParts(o, opts)
	default:
		out, err = r.run(o, opts)
	}
	if err != nil && !errors.Is(err, fault.Corrupt) {
		f.Close()
		return nil, r.findings, err
	}
	f.Footer.Rows = -1 // each row group's own count is trusted
	if have := knownRows(r.ctx, f); err != nil || out == nil || knownRows(r.ctx, out) <= have {
		out, r.findings = f, nil
		r.reportSchema(f)
		f.CheckTable(r.ctx)
	}
	r.Blame("redfile.rows", odd, -1, -1)
	return out, r.findings, nil
}

// knownRows returns the total number of rows in the row groups whose number of rows is known.
func knownRows(ctx context.Context, f *table.File) (total int64) {
	for i := range f.Footer.Groups {
		if n, err := f.RowsOf(ctx, i); err == nil {
			total += max(0, n)
		}
	}
	return total
}

// PathOf returns the path of a fault.Error; "" if err is not one.
func PathOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Path
	}
	return ""
}

// recoverer recovers the remainder of a file.
type recoverer struct {
	*check.Reporter
	ctx       context.Context
	f         *table.File
	findings  []region.Finding
	undecided bool // the metadata and the only readable part belong to different tables
	standsIn  bool // the file has replaced a split table's metadata, and may be one of its parts

	known  *layout.FileMeta // schema and key/value metadata, if any was found
	groups []layout.RowGroup
	lost   map[container.ChunkKey]error
	marker []byte
	// distrusted is the offset of metadata that must not be used; 0 if there is none.
	distrusted int64

	chunks       []foundChunk                  // not yet in a row group, ordered by offset
	seen         map[string]*layout.ColumnMeta // the first chunk of each path
	repeated     bool                          // some path was found twice, so every path has been found
	headerValues map[*layout.ColumnMeta]int64  // of chunks whose num_values differs: the sum over the page headers
	cut          *cutFooter                    // the beginning of the metadata of the file; nil if there is none
	dataEnd      int64                         // where the last chunk that it describes ends, if others are lost
	flat         map[string]bool               // by pathKey: the column is not repeated
	start        int64                         // beginning of the chunk that is being walked
	end          int64                         // end of the last structure that was parsed
	win          []byte                        // a window of the file
	winAt        int64
	window       int64 // number of bytes that are read into win at a time
	walked       int   // data pages
	unsure       bool  // found by search and not after another structure: it may be inside a page of this file
	speculative  int64 // bytes read speculatively so far, see afford
	overBudget   bool  // the budget is exhausted, and this has been reported
}

// foundChunk is the metadata of a column, found in the bytes from off to end.
type foundChunk struct {
	off, end int64
	meta     *layout.ColumnMeta
}

func newRecoverer(ctx context.Context, f *table.File, part string) *recoverer {
	r := &recoverer{ctx: ctx, f: f}
	r.Reporter = layout.Reporter(ctx, part, func(f region.Finding) bool {
		r.findings = append(r.findings, f)
		return true
	})
	return r
}

// run walks the file and makes a reader of the row groups found; nil if there are none and there is no schema.
func (r *recoverer) run(o format.OpenOptions, opts layout.ReadOptions) (*table.File, error) {
	r.lost, r.seen = map[container.ChunkKey]error{}, map[string]*layout.ColumnMeta{}
	pos := int64(layout.MagicLen)
	if err := r.firstSync(); err != nil {
		return nil, err
	}
	if err := r.lastFooter(&pos); err != nil {
		return nil, err
	}
	if err := r.findCut(pos); err != nil {
		return nil, err
	}
	r.window, r.start, r.end = 1<<20, pos, pos
	if err := r.walk(pos, r.cut.begin(r.f.At.Len)); err != nil {
		return nil, err
	}
	if len(r.seen) == 0 && r.known == nil && len(r.groups) == 0 && r.cut == nil {
		return nil, r.schemaLost()
	}
	if err := r.useSchemaOption(o, opts); err != nil {
		return nil, err
	}
	if err := r.useCut(opts); err != nil {
		return nil, err
	}
	r.byPaths()
	if r.known == nil && len(r.groups) == 0 {
		return nil, nil
	}
	f := table.New(r.f.Tree, r.f.Src, r.f.At, o, opts)
	f.Stamp, f.Recovering = r.f.Stamp, true
	f.Footer = layout.FileMeta{Gen: layout.GenA, Version: 1, NumCols: -1}
	if r.known != nil {
		f.Footer = r.known.Finished()
	}
	if f.Footer.Groups == nil || len(f.Footer.Groups) != len(r.groups) { // else its metadata spoke of just these
		f.Footer.Rows = -1
	}
	f.Footer.Groups, f.Footer.HasCRC, f.Footer.NumCols = r.groups, false, -1
	f.MetaAt = r.f.At.Sub(r.f.At.Len, 0)
	if r.dataEnd > 0 {
		f.MetaAt = r.f.At.Sub(r.dataEnd, 0)
	}
	f.Lost = r.lost
	if err := f.ResolveSchema(r.ctx); err != nil {
		return f, err
	}
	r.reportSchema(f)
	err := r.count(f)
	if err == nil && (r.known == nil || r.cut.untyped(r)) {
		r.reportUntyped(f)
	}
	return f, err
}

// count reports the number of recovered rows, which in generation A is often stated only in column metadata.
func (r *recoverer) count(f *table.File) error {
	rows, more := int64(0), ""
	for i := range f.Footer.Groups {
		n, err := f.RowsOf(r.ctx, i)
		if err != nil {
			return err
		}
		if rows += max(0, n); n < 0 {
			more = "at least "
		}
	}
	if more == "" {
		f.Footer.Rows = rows
	}
	r.Rows("redfile.recovered", r.f.At, [2]int64{0, rows}, 0, "%s with %s%d rows were found",
		fault.Count(len(r.groups), "row group"), more, rows)
	return nil
}

// bytes returns up to n bytes at pos, fewer at the end of the file, from a window that the next call may overwrite.
func (r *recoverer) bytes(pos int64, n int) ([]byte, error) {
	n = int(min(int64(n), r.f.At.Len-pos))
	if n <= 0 {
		return nil, nil
	}
	if pos < r.winAt || pos+int64(n) > r.winAt+int64(len(r.win)) {
		size := min(max(r.window, int64(n)), r.f.At.Len-pos)
		if int64(cap(r.win)) < size {
			r.win = make([]byte, size)
		}
		r.win = r.win[:size]
		if err := format.ReadFull(r.ctx, r.f.Src, r.f.At.Sub(pos, size), "", r.win); err != nil {
			r.win = r.win[:0]
			return nil, err
		}
		r.winAt = pos
	}
	return r.win[pos-r.winAt:][:n], nil
}

// walk parses structure after structure from pos to end, and reports the bytes between structures.
func (r *recoverer) walk(pos, end int64) error {
	for pos < end {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		next, err := r.parseAt(pos)
		if err != nil {
			return err
		}
		if next < 0 {
			r.unsure = true
			if next, err = r.search(pos + 1); err != nil {
				return err
			}
			next = min(next, end)
			r.Rows("redfile.bytes.lost", r.f.At.Sub(pos, next-pos), [2]int64{-1, -1}, 0,
				"%d bytes that are no structure of a RedFile", next-pos)
		}
		pos = next
	}
	return nil
}

// parseAt parses the structure at pos and returns the offset of the byte after it; -1 if there is none.
func (r *recoverer) parseAt(pos int64) (int64, error) {
	h, head, err := r.page(pos, r.f.At.Len)
	if err == nil {
		switch h.Kind {
		case layout.SyncPage:
			if err := r.sync(pos, &h, head); err != nil {
				return -1, err
			}
		case layout.DataPage:
			r.walked++
		}
		return pos + head + int64(h.Stored), nil
	}
	if !errors.Is(err, fault.Corrupt) {
		return -1, err
	}
	if m, n, ok := r.column(pos, min(1<<20, r.f.Limits.Metadata)); ok {
		return r.addChunk(pos, m, n), nil
	}
	m, n, ok := r.footer(pos)
	if !ok || r.unsure && !r.isOwn(m, pos) || r.marker != nil && !bytes.Equal(m.Marker(), r.marker) {
		return -1, nil
	}
	if !r.trusts(m, pos) {
		return pos + n, nil
	}
	if len(m.Groups) >= len(r.groups) { // more reliable than row groups assembled from chunks
		r.groups, r.known, r.chunks = m.Groups, m, nil
		clear(r.lost)
	}
	r.start, r.end, r.unsure = pos+n, pos+n, false
	return pos + n, nil
}

// trusts reports whether the row groups of metadata at pos may be used, which is not the case if it contradicts its own
// num_rows.
func (r *recoverer) trusts(m *layout.FileMeta, pos int64) bool {
	return m.CountsAgree() && (r.distrusted == 0 || pos != r.distrusted)
}

// addChunk adds the chunk whose metadata, of n bytes, is at pos, and returns the offset after it.
func (r *recoverer) addChunk(pos int64, m *layout.ColumnMeta, n int64) int64 {
	if !m.HasLevels {
		takeLevels(m)
	}
	if w := r.pages(m, pos); w.end == pos && w.values > 0 && w.values != m.Values {
		if r.headerValues == nil {
			r.headerValues = map[*layout.ColumnMeta]int64{}
		}
		r.headerValues[m] = w.values
	}
	r.chunks = append(r.chunks, foundChunk{pos, pos + n, m})
	if k := pathKey(m.Path); r.seen[k] == nil {
		r.seen[k] = m
	} else {
		r.repeated = true
	}
	r.start, r.end, r.unsure = pos+n, pos+n, false
	return pos + n
}

// column parses the metadata of a column at pos, of at most limit bytes; ok reports that it is metadata and its pages
// precede it.
func (r *recoverer) column(pos, limit int64) (*layout.ColumnMeta, int64, bool) {
	m, n, err := r.columnMeta(pos, r.f.At.Len, limit)
	if err != nil || m.Data < r.start && m.Data >= 0 || m.Data >= pos && m.Values > 0 || len(m.Encodings) == 0 {
		return nil, 0, false
	}
	for _, name := range m.Path {
		if !utf8.ValidString(name) {
			return nil, 0, false
		}
	}
	if m.Data < 0 {
		if r.unsure { // without an offset it may be the rest of a copy
			return nil, 0, false
		}
		m.Data = r.start
	}
	return m, n, !r.unsure || r.acceptsChunk(m, pos)
}

// sync uses the sync block at pos if it is intact and belongs to this file.
func (r *recoverer) sync(pos int64, h *layout.PageHeader, head int64) error {
	if int64(h.Stored) > min(64<<20, r.f.Limits.Metadata) {
		return nil
	}
	s, at, err := r.f.ReadSync(r.ctx, pos, h, head)
	if err != nil {
		return err
	}
	if s == nil || r.marker != nil && !bytes.Equal(s.Marker, r.marker) {
		r.Rows("redfile.sync.damaged", r.f.At.Sub(pos, head+int64(h.Stored)), [2]int64{-1, -1}, 0,
			"a sync block with a wrong checksum or offset, or of another file")
		return nil
	}
	r.marker = s.Marker
	if s.Metadata != nil && r.known == nil {
		mc := wire.NewInnerCursor(s.Metadata, at, "sync.metadata")
		if m, _ := layout.ParseFileMeta(mc.Within(r.f.Limits.Memory())); mc.Err() == nil && m.Version == 1 {
			r.known = &m
		}
	}
	if len(s.Columns) > 0 {
		r.bySync(s)
	}
	r.start = pos + head + int64(h.Stored)
	r.end, r.unsure = r.start, false
	return nil
}

// search returns the offset, at or after pos, of the next column metadata, sync block, or page with a correct checksum;
// the length of the file if there is none.
func (r *recoverer) search(pos int64) (int64, error) {
	for ; pos < r.f.At.Len; pos++ {
		b, err := r.bytes(pos, 3)
		if err != nil {
			return 0, err
		}
		if len(b) < 3 {
			break
		}
		compact, binary := b[0] == 0x15, b[0] == 8 && b[1] == 0 && b[2] == 1
		if !compact && !binary {
			continue
		}
		if _, _, ok := r.column(pos, 4<<10); ok {
			return pos, nil
		}
		h, head, err := r.page(pos, r.f.At.Len)
		if err == nil && (h.Kind == layout.SyncPage || h.Kind == layout.DataPage && h.HasCRC) &&
			r.checksumMatches(pos, &h, head) {
			return pos, nil
		}
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
	}
	return r.f.At.Len, nil
}

// checksumMatches reports whether the body of a page at pos matches the checksum in its header.
func (r *recoverer) checksumMatches(pos int64, h *layout.PageHeader, head int64) bool {
	n := int64(h.Stored)
	if n > 16<<20 || !r.afford(n) {
		return false
	}
	b, err := r.bytes(pos+head, int(n))
	return err == nil && int64(len(b)) == n && layout.CRC(b) == h.CRC
}

// bySync makes the row group that ends at a sync block. Columns whose metadata was not found are recorded as lost.
func (r *recoverer) bySync(s *layout.SyncBlock) {
	if int(s.Groups) <= len(r.groups) { // the intermediate metadata already contains it
		r.chunks = nil
		return
	}
	if len(r.groups) > 0 && len(s.Columns) != len(r.groups[0].Columns) || s.GroupRows < 0 || !s.Ascending() {
		r.Rows("redfile.sync.damaged", r.f.At.Sub(s.Offset, 1), [2]int64{-1, -1}, 0,
			"a sync block of %s and %s, which contradicts the row groups before it",
			fault.Count(len(s.Columns), "column"), fault.Count(s.GroupRows, "row"))
		return
	}
	group := len(r.groups)
	g := layout.RowGroup{Rows: s.GroupRows}
	for i, off := range s.Columns {
		k, ok := slices.BinarySearchFunc(r.chunks, off,
			func(c foundChunk, off int64) int { return cmp.Compare(c.off, off) })
		if ok {
			g.Columns = append(g.Columns, layout.ColumnChunk{Offset: off, Meta: r.chunks[k].meta})
			continue
		}
		g.Columns = append(g.Columns, r.lostChunk(group, i, off))
	}
	r.groups = append(r.groups, g)
	r.chunks = nil
}
