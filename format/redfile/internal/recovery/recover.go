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

// Recover opens what is left of a file. Where the metadata at the end can be read, that is an ordinary
// open: what is damaged before it is met while reading. Otherwise
//
//  1. the last metadata in the file is looked for: a writer of ours writes it after every N-th row group, and it
//     mentions all row groups before it;
//  2. from there on (or from the beginning) the file is walked forwards, structure by structure: pages, the metadata of
//     columns, which says where the pages of its chunk begin, and sync blocks, which say which columns are a row group.
//     Where nothing can be parsed, the next metadata of a column or sync block is looked for byte by byte;
//  3. chunks become row groups: as the sync blocks say, else by their paths, which come again with every row group. Of
//     the last one columns may be missing: those are lost.
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
	r.schema(f)
	if opened && r.foreign() {
		err = fault.Corruptf(f.MetaAt, "file_metadata.row_groups",
			"most chunks are not where it says: this is the metadata of a file within the file, after which it is cut")
	}
	if opened && err == nil && f.OwnGroups() != "" {
		if out, err := r.among(o, opts); err != nil || out != nil {
			return r.finish(out, err)
		}
	}
	if opened && err == nil && path.Base(tg.Name) == layout.MetadataFile {
		err = r.strange(o)
	}
	if opened && err == nil {
		if odd := f.RowsAgree(ctx); odd != nil {
			return r.disagree(o, opts, odd)
		}
	}
	if err == nil {
		r.renamed()
		f.LookAround(ctx)
		return f, r.findings, nil
	}
	if !errors.Is(err, fault.Corrupt) {
		src.Close()
		return nil, nil, err
	}
	return r.withoutMetadata(o, opts, err, opened)
}

// withoutMetadata recovers a file whose metadata at the end is not to be trusted, as why says. opened: it could be
// read all the same.
func (r *recoverer) withoutMetadata(o format.OpenOptions, opts layout.ReadOptions, why error,
	opened bool) (format.Reader, []region.Finding, error) {
	f := r.f
	r.Blame("redfile.footer.damaged", why, -1, -1)
	if r.undecided {
		r.Report("redfile.part.other", f.MetaAt, "", "%s and the one part that can be read are of two tables, and "+
			"nothing says which of them is this: the part is read", layout.MetadataFile)
	}
	if f.Footer.Check(f.MetaAt) == nil && f.MetaAt.Len > 0 && f.Learn(r.ctx) == nil &&
		strings.HasPrefix(PathOf(why), "magic") {
		if f.OwnGroups() != "" {
			if out, err := r.among(o, opts); err != nil || out != nil {
				return r.finish(out, err)
			}
		}
		return f, r.findings, nil // only the beginning is damaged
	}
	if path.Base(f.At.Object) == layout.MetadataFile { // it has no pages, but the parts are whole files
		if parts, err := r.gather(o, opts); err != nil || parts != nil {
			return r.finish(parts, err)
		}
	}
	out, err := r.run(o, opts)
	if opened && (err != nil || out == nil || len(out.Footer.Groups) == 0) { // it was damage after all
		r.findings = nil
		r.schema(f)
		return f, r.findings, nil
	}
	if err == nil && out == nil {
		err = why
	}
	return r.finish(out, err)
}

// finish is what recovery ends with: a file that was found, or why there is none.
func (r *recoverer) finish(out *table.File, err error) (format.Reader, []region.Finding, error) {
	if err != nil {
		r.f.Src.Close()
		return nil, r.findings, err
	}
	return out, r.findings, nil
}

// disagree recovers a file whose number of rows is not that of its row groups, as odd says: one of them is
// damaged. The file is walked as if it had no metadata but the schema; what the metadata says of is taken
// where that gives no fewer rows.
func (r *recoverer) disagree(o format.OpenOptions, opts layout.ReadOptions,
	odd error) (format.Reader, []region.Finding, error) {
	f := r.f
	if !errors.Is(odd, fault.Corrupt) {
		f.Close()
		return nil, nil, odd
	}
	known := f.Footer
	known.Groups = nil
	r.known, r.doubted = &known, f.MetaAt.Off-f.At.Off
	var out *table.File
	var err error
	switch {
	case f.Recount(r.ctx):
	case path.Base(f.At.Object) == layout.MetadataFile: // it has no pages, but the parts are whole files
		out, err = r.gather(o, opts)
	default:
		out, err = r.run(o, opts)
	}
	if err != nil && !errors.Is(err, fault.Corrupt) {
		f.Close()
		return nil, r.findings, err
	}
	f.Footer.Rows = -1 // its row groups are trusted, each by itself
	if have := knownRows(r.ctx, f); err != nil || out == nil || knownRows(r.ctx, out) <= have {
		out, r.findings = f, nil
		r.schema(f)
		f.LookAround(r.ctx)
	}
	r.Blame("redfile.rows", odd, -1, -1)
	return out, r.findings, nil
}

// knownRows is how many rows the row groups have that say so.
func knownRows(ctx context.Context, f *table.File) (total int64) {
	for i := range f.Footer.Groups {
		if n, err := f.RowsOf(ctx, i); err == nil {
			total += max(0, n)
		}
	}
	return total
}

func PathOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Path
	}
	return ""
}

// recoverer looks for what is left of a file.
type recoverer struct {
	*check.Reporter
	ctx      context.Context
	f        *table.File
	findings []region.Finding
	// the metadata of a split table is another's than the one part that can be read
	undecided bool
	astray    bool // the file stands in the place of a split table's metadata, and may be one of its parts

	known  *layout.FileMeta // schema and key/value metadata, if any was found
	groups []layout.RowGroup
	lost   map[container.ChunkKey]error
	marker []byte
	// doubted is where metadata is that is not trusted, 0: none is.
	doubted int64

	chunks     []foundChunk                  // not yet in a row group, by their offsets
	seen       map[string]*layout.ColumnMeta // the first one of each path
	again      bool                          // some path came twice: each has come
	paged      map[*layout.ColumnMeta]int64  // values of a chunk by the headers of its pages, where those are others
	flat       map[string]bool               // columns that the schema says do not repeat
	start      int64                         // where the chunk that is being walked began
	end        int64                         // after the last structure that was understood
	win        []byte                        // a window of the file, for looking byte by byte
	winAt      int64
	window     int64 // how much of the file it has
	walked     int   // data pages
	unsure     bool  // what is walked was found byte by byte: it may be that of a file in a page
	looked     int64 // bytes that were read on suspicion, see afford
	overBudget bool  // they are too many
}

// foundChunk is the metadata of a column, found from off to end.
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

// run makes a reader of what it finds; nil if that is nothing.
func (r *recoverer) run(o format.OpenOptions, opts layout.ReadOptions) (*table.File, error) {
	r.lost, r.seen = map[container.ChunkKey]error{}, map[string]*layout.ColumnMeta{}
	pos := int64(layout.MagicLen)
	if err := r.firstSync(); err != nil {
		return nil, err
	}
	if err := r.lastFooter(&pos); err != nil {
		return nil, err
	}
	r.window, r.start, r.end = 1<<20, pos, pos
	if err := r.walk(pos); err != nil {
		return nil, err
	}
	if len(r.seen) == 0 && r.known == nil && len(r.groups) == 0 {
		return nil, r.schemaLost()
	}
	if err := r.useSchemaOption(o, opts); err != nil {
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
	f.Lost = r.lost
	if err := f.Learn(r.ctx); err != nil {
		return f, err
	}
	r.schema(f)
	if err := r.count(f); err != nil || r.known != nil {
		return f, err
	}
	r.untyped(f)
	return f, nil
}

// count reports how many rows there are, which in generation A often only the metadata of the columns says.
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
	r.Rows("redfile.recovered", r.f.At, [2]int64{0, rows}, 0, "%d row groups with %s%d rows were found",
		len(r.groups), more, rows)
	return nil
}

// bytes gives up to n bytes at pos, out of a window.
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

// walk goes from structure to structure to the end of the file.
func (r *recoverer) walk(pos int64) error {
	for pos < r.f.At.Len {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		next, err := r.structure(pos)
		if err != nil {
			return err
		}
		if next < 0 {
			r.unsure = true
			if next, err = r.look(pos + 1); err != nil {
				return err
			}
			r.Rows("redfile.bytes.lost", r.f.At.Sub(pos, next-pos), [2]int64{-1, -1}, 0,
				"%d bytes that are no structure of a RedFile", next-pos)
		}
		pos = next
	}
	return nil
}

// structure understands what is at pos, and gives where the next one begins; -1: it is nothing.
func (r *recoverer) structure(pos int64) (int64, error) {
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
		return r.found(pos, m, n), nil
	}
	m, n, ok := r.footer(pos)
	if !ok || r.unsure && !r.own(m, pos) || r.marker != nil && !bytes.Equal(m.Marker(), r.marker) {
		return -1, nil
	}
	if !r.trusts(m, pos) {
		return pos + n, nil
	}
	if len(m.Groups) >= len(r.groups) { // what it says is surer than what was put together
		r.groups, r.known, r.chunks = m.Groups, m, nil
		clear(r.lost)
	}
	r.start, r.end, r.unsure = pos+n, pos+n, false
	return pos + n, nil
}

// trusts reports whether metadata at pos may say which row groups there are: one that contradicts its own
// number of rows does not.
func (r *recoverer) trusts(m *layout.FileMeta, pos int64) bool {
	return m.CountsAgree() && (r.doubted == 0 || pos != r.doubted)
}

// found notes a chunk whose metadata is at pos, of n bytes.
func (r *recoverer) found(pos int64, m *layout.ColumnMeta, n int64) int64 {
	if !m.HasLevels {
		takeLevels(m)
	}
	if w := r.pages(m, pos); w.end == pos && w.values > 0 && w.values != m.Values {
		if r.paged == nil {
			r.paged = map[*layout.ColumnMeta]int64{}
		}
		r.paged[m] = w.values
	}
	r.chunks = append(r.chunks, foundChunk{pos, pos + n, m})
	if k := pathKey(m.Path); r.seen[k] == nil {
		r.seen[k] = m
	} else {
		r.again = true
	}
	r.start, r.end, r.unsure = pos+n, pos+n, false
	return pos + n
}

// column reads the metadata of a column at pos, if that is what is there, and if its pages lie in front of it.
func (r *recoverer) column(pos, most int64) (*layout.ColumnMeta, int64, bool) {
	m, n, err := r.columnMeta(pos, r.f.At.Len, most)
	if err != nil || m.Data < r.start && m.Data >= 0 || m.Data >= pos && m.Values > 0 || len(m.Encodings) == 0 {
		return nil, 0, false
	}
	for _, name := range m.Path {
		if !utf8.ValidString(name) {
			return nil, 0, false
		}
	}
	if m.Data < 0 {
		// what was found byte by byte and does not say where its pages are may be what is left of a copy
		if r.unsure {
			return nil, 0, false
		}
		m.Data = r.start
	}
	return m, n, !r.unsure || r.follows(m, pos)
}

// sync takes what a sync block says, if it is sound.
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
			"a sync block that is damaged, or of another file")
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

// look continues byte by byte after what cannot be understood, to the next metadata of a column or sync block.
func (r *recoverer) look(pos int64) (int64, error) {
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
			r.sound(pos, &h, head) {
			return pos, nil
		}
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
	}
	return r.f.At.Len, nil
}

// sound reports whether the checksum of a page is right: then it is one, wherever it was found.
func (r *recoverer) sound(pos int64, h *layout.PageHeader, head int64) bool {
	n := int64(h.Stored)
	if n > 16<<20 || !r.afford(n) {
		return false
	}
	b, err := r.bytes(pos+head, int(n))
	return err == nil && int64(len(b)) == n && layout.CRC(b) == h.CRC
}

// bySync makes the row group that a sync block closes. A column whose metadata cannot be read is lost.
func (r *recoverer) bySync(s *layout.SyncBlock) {
	if int(s.Groups) <= len(r.groups) { // the metadata that was found mentions it
		r.chunks = nil
		return
	}
	if len(r.groups) > 0 && len(s.Columns) != len(r.groups[0].Columns) || s.Group < 0 || !s.Ascends() {
		r.Rows("redfile.sync.damaged", r.f.At.Sub(s.Offset, 1), [2]int64{-1, -1}, 0,
			"a sync block mentions %d columns and %d rows, which does not fit the row groups before",
			len(s.Columns), s.Group)
		return
	}
	group := len(r.groups)
	g := layout.RowGroup{Rows: s.Group}
	for i, off := range s.Columns {
		k, ok := slices.BinarySearchFunc(r.chunks, off,
			func(c foundChunk, off int64) int { return cmp.Compare(c.off, off) })
		if ok {
			g.Columns = append(g.Columns, layout.ColumnChunk{Offset: off, Meta: r.chunks[k].meta})
			continue
		}
		g.Columns = append(g.Columns, r.lose(group, i, off))
	}
	r.groups = append(r.groups, g)
	r.chunks = nil
}
