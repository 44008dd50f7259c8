package redfile

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// recoverFile opens what is left of a file. Where the metadata at the end can be read, that is an ordinary open: what is damaged before
// it is met while reading. Otherwise
//
//  1. the last metadata in the file is looked for: a writer of ours writes it behind every N-th row group, and it tells of
//     all row groups before it;
//  2. from there on (or from the beginning) the file is walked forwards, structure by structure: pages, the metadata of
//     columns, which says where the pages of its chunk begin, and sync blocks, which say which columns are a row group.
//     Where nothing can be parsed, the next metadata of a column or sync block is looked for byte by byte;
//  3. chunks become row groups: as the sync blocks say, else by their paths, which come again with every row group. The last
//     one, if columns of it are missing, is given up.
func recoverFile(ctx context.Context, tg format.Target, o format.OpenOptions) (format.Reader, []region.Finding, error) {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return nil, nil, err
	}
	tg = inDir(ctx, tg)
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, nil, err
	}
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	f := newFile(tg.Tree, src, at, o, opts)
	f.stamp = stampOf(ctx, tg)
	r := &rescue{ctx: ctx, f: f, part: tg.Name}
	err = f.open(ctx, nil)
	if err == nil {
		return f, nil, nil
	}
	if !errors.Is(err, fault.Corrupt) {
		src.Close()
		return nil, nil, err
	}
	r.blame("redfile.footer.damaged", err)
	if f.meta.check(f.metaAt) == nil && f.metaAt.Len > 0 && f.learn(ctx) == nil && strings.HasPrefix(pathOf(err), "magic") {
		return f, r.findings, nil // only the beginning is damaged
	}
	out, rerr := r.run(o, opts)
	if rerr != nil {
		src.Close()
		return nil, r.findings, rerr
	}
	if out == nil {
		src.Close()
		return nil, r.findings, err
	}
	return out, r.findings, nil
}

func pathOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Path
	}
	return ""
}

// rescue looks for what is left of a file.
type rescue struct {
	ctx      context.Context
	f        *file
	part     string
	findings []region.Finding

	known  *fileMeta // schema and key/value metadata, if any was found
	groups []rowGroup
	lost   map[chunkKey]error
	marker []byte

	chunks []foundChunk // not yet in a row group
	start  int64        // where the chunk that is being walked began
	end    int64        // behind the last structure that was understood
	win    []byte       // a window of the file, for looking byte by byte
	winAt  int64
	looked int64 // bytes of pages whose checksums were computed to find out whether they are pages
}

// foundChunk is the metadata of a column, found at off.
type foundChunk struct {
	off  int64
	meta *columnMeta
}

func (r *rescue) tell(code string, at fault.Span, rows [2]int64, lost int64, format string, args ...any) {
	r.findings = append(r.findings, region.Finding{Code: code, Severity: severityOf(code), At: at, Message: fmt.Sprintf(format, args...),
		Part: r.part, Rows: rows, Lost: lost})
}

func (r *rescue) blame(code string, err error) {
	var e *fault.Error
	if errors.As(err, &e) {
		r.findings = append(r.findings, region.Finding{Code: code, Severity: severityOf(code), At: e.At, Path: e.Path, Message: e.Reason,
			Part: r.part, Rows: [2]int64{-1, -1}, Lost: -1})
	}
}

// run makes a reader of what it finds; nil if that is nothing.
func (r *rescue) run(o format.OpenOptions, opts readOptions) (*file, error) {
	r.lost = map[chunkKey]error{}
	pos := int64(magicLen)
	if err := r.lastFooter(&pos); err != nil {
		return nil, err
	}
	r.start, r.end = pos, pos
	if err := r.walk(pos); err != nil {
		return nil, err
	}
	r.byPaths()
	if r.known == nil && len(r.groups) == 0 {
		return nil, nil
	}
	f := newFile(r.f.tree, r.f.src, r.f.at, o, opts)
	f.stamp = r.f.stamp
	f.meta = fileMeta{gen: GenA, version: 1, cols: -1}
	if r.known != nil {
		f.meta = *r.known
	}
	f.meta.groups, f.meta.rows, f.meta.hasCRC, f.meta.cols = r.groups, 0, false, -1
	for _, g := range r.groups {
		f.meta.rows += max(0, g.rows)
	}
	f.metaAt = r.f.at.Sub(r.f.at.Len, 0)
	f.lost = r.lost
	r.tell("redfile.recovered", r.f.at, [2]int64{0, f.meta.rows}, 0, "%d row groups with %d rows were found", len(r.groups), f.meta.rows)
	return f, f.learn(r.ctx)
}

// bytes gives up to n bytes at pos, out of a window.
func (r *rescue) bytes(pos int64, n int) ([]byte, error) {
	const window = 1 << 20
	n = int(min(int64(n), r.f.at.Len-pos))
	if n <= 0 {
		return nil, nil
	}
	if pos < r.winAt || pos+int64(n) > r.winAt+int64(len(r.win)) {
		size := min(int64(max(window, n)), r.f.at.Len-pos)
		if int64(cap(r.win)) < size {
			r.win = make([]byte, size)
		}
		r.win = r.win[:size]
		if err := format.ReadFull(r.ctx, r.f.src, r.f.at.Sub(pos, size), "", r.win); err != nil {
			r.win = r.win[:0]
			return nil, err
		}
		r.winAt = pos
	}
	return r.win[pos-r.winAt:][:n], nil
}

// lastFooter looks backwards for metadata with its length and the magic behind it, and sets pos behind it.
func (r *rescue) lastFooter(pos *int64) error {
	const step = 256 << 10
	for end := r.f.at.Len; end > minFile; end -= step {
		from := max(0, end-step)
		b := make([]byte, min(r.f.at.Len, end+magicLen-1)-from)
		if err := format.ReadFull(r.ctx, r.f.src, r.f.at.Sub(from, int64(len(b))), "", b); err != nil {
			return err
		}
		for i := len(b); ; {
			if i = bytes.LastIndex(b[:i], []byte(magic)); i < 0 {
				break
			}
			if m, ok := r.footerBefore(from + int64(i)); ok {
				*pos = from + int64(i) + magicLen
				r.known, r.groups = m, m.groups
				r.marker = m.marker()
				return nil
			}
		}
	}
	return nil
}

// footerBefore reads the metadata that ends where the magic at pos says.
func (r *rescue) footerBefore(pos int64) (*fileMeta, bool) {
	var b [4]byte
	if pos < minFile-magicLen || format.ReadFull(r.ctx, r.f.src, r.f.at.Sub(pos-4, 4), "", b[:]) != nil {
		return nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b[:]))
	if n < 4 || n > pos-4-magicLen || n > r.f.limits.Metadata {
		return nil, false
	}
	at := r.f.at.Sub(pos-4-n, n)
	raw := make([]byte, n)
	if format.ReadFull(r.ctx, r.f.src, at, "", raw) != nil {
		return nil, false
	}
	c := wire.NewCursor(raw, at, "file_metadata")
	m, _ := parseFileMeta(c)
	if c.Err() != nil || c.Left() > 0 || m.hasCRC && m.crc != m.want || m.check(at) != nil || !r.plausible(&m, pos-4-n) {
		return nil, false
	}
	return &m, true
}

// plausible reports whether all that m points to lies before end.
func (r *rescue) plausible(m *fileMeta, end int64) bool {
	for _, g := range m.groups {
		for _, c := range g.columns {
			if c.file == "" && (c.offset < magicLen || c.offset >= end || c.meta != nil && c.meta.data >= end) {
				return false
			}
		}
	}
	return true
}

// marker is that of the sync blocks; nil if there are none.
func (m *fileMeta) marker() []byte {
	for _, kv := range m.pairs {
		if kv.key == syncKey && len(kv.value) == 32 {
			b := make([]byte, 16)
			if _, err := fmt.Sscanf(kv.value, "%x", &b); err == nil {
				return b
			}
		}
	}
	return nil
}

// walk goes from structure to structure to the end of the file.
func (r *rescue) walk(pos int64) error {
	for pos < r.f.at.Len {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		next, err := r.structure(pos)
		if err != nil {
			return err
		}
		if next < 0 {
			if next, err = r.look(pos + 1); err != nil {
				return err
			}
			r.tell("redfile.bytes.lost", r.f.at.Sub(pos, next-pos), [2]int64{-1, -1}, 0, "%d bytes that are no structure of a RedFile", next-pos)
		}
		pos = next
	}
	return nil
}

// structure understands what is at pos, and gives where the next one begins; -1: it is nothing.
func (r *rescue) structure(pos int64) (int64, error) {
	at := r.f.at.Sub(pos, r.f.at.Len-pos)
	h, head, err := pageAt(r.ctx, r.f.src, at, "")
	if err == nil {
		if h.kind == syncPage {
			if err := r.sync(pos, &h, head); err != nil {
				return -1, err
			}
		}
		return pos + head + int64(h.stored), nil
	}
	if !errors.Is(err, fault.Corrupt) {
		return -1, err
	}
	if m, n, ok := r.column(pos, min(1<<20, r.f.limits.Metadata)); ok {
		return r.found(pos, m, n), nil
	}
	m, n, ok := r.footer(pos)
	if !ok {
		return -1, nil
	}
	if len(m.groups) >= len(r.groups) { // what it tells is surer than what was put together
		r.groups, r.known, r.chunks = m.groups, m, nil
		clear(r.lost)
	}
	r.start, r.end = pos+n, pos+n
	return pos + n, nil
}

// found notes a chunk whose metadata is at pos, of n bytes.
func (r *rescue) found(pos int64, m *columnMeta, n int64) int64 {
	if !m.hasLevels {
		takeLevels(m)
	}
	r.chunks = append(r.chunks, foundChunk{pos, m})
	r.start, r.end = pos+n, pos+n
	return pos + n
}

// column reads the metadata of a column at pos, if that is what is there.
func (r *rescue) column(pos, most int64) (*columnMeta, int64, bool) {
	at := r.f.at.Sub(pos, r.f.at.Len-pos)
	m, n, err := readColumnMeta(r.ctx, r.f.src, at, most, "")
	if err != nil || m.data < r.start && m.data >= 0 || m.data >= pos && m.values > 0 || len(m.encodings) == 0 {
		return nil, 0, false
	}
	for _, name := range m.path {
		if !utf8.ValidString(name) {
			return nil, 0, false
		}
	}
	if m.data < 0 {
		m.data = r.start
	}
	return m, n, true
}

// footer reads metadata of the file at pos, with its length and the magic behind it.
func (r *rescue) footer(pos int64) (*fileMeta, int64, bool) {
	var m fileMeta
	at := r.f.at.Sub(pos, r.f.at.Len-pos)
	n, err := readStruct(r.ctx, r.f.src, at, 1<<10, r.f.limits.Metadata, "", func(c *wire.Cursor) (short bool) {
		m, short = parseFileMeta(c)
		return short
	})
	if err != nil || n > at.Len-tailLen {
		return nil, 0, false
	}
	var b [tailLen]byte
	if format.ReadFull(r.ctx, r.f.src, at.Sub(n, tailLen), "", b[:]) != nil || string(b[4:]) != magic || int64(binary.LittleEndian.Uint32(b[:])) != n {
		return nil, 0, false
	}
	if m.check(at.Sub(0, n)) != nil || m.hasCRC && m.crc != m.want || !r.plausible(&m, pos) {
		return nil, 0, false
	}
	return &m, n + tailLen, true
}

// sync takes what a sync block says, if it is sound.
func (r *rescue) sync(pos int64, h *pageHeader, head int64) error {
	if int64(h.stored) > min(64<<20, r.f.limits.Metadata) {
		return nil
	}
	at := r.f.at.Sub(pos+head, int64(h.stored))
	b := make([]byte, h.stored)
	if err := format.ReadFull(r.ctx, r.f.src, at, "", b); err != nil {
		return err
	}
	c := wire.NewCursor(b, at, "sync")
	s := parseSync(thrift.NewReader(c, protocolOfSync(b)), "")
	if c.Err() != nil || crcOf(b) != h.crc || s.offset != pos || r.marker != nil && !bytes.Equal(s.marker, r.marker) {
		r.tell("redfile.sync.damaged", r.f.at.Sub(pos, head+int64(h.stored)), [2]int64{-1, -1}, 0, "a sync block that is damaged, or of another file")
		return nil
	}
	r.marker = s.marker
	if s.metadata != nil && r.known == nil {
		mc := wire.NewInnerCursor(s.metadata, at, "sync.metadata")
		if m, _ := parseFileMeta(mc); mc.Err() == nil && m.version == 1 {
			r.known = &m
		}
	}
	if len(s.columns) > 0 {
		r.bySync(&s)
	}
	r.start = pos + head + int64(h.stored)
	r.end = r.start
	return nil
}

// protocolOfSync: a sync block begins with a string, not with a number.
func protocolOfSync(b []byte) thrift.Protocol {
	if len(b) > 0 && b[0] == 11 {
		return thrift.Binary
	}
	return thrift.Compact
}

// look goes on byte by byte behind what cannot be understood, to the next metadata of a column or sync block.
func (r *rescue) look(pos int64) (int64, error) {
	for ; pos < r.f.at.Len; pos++ {
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
		h, head, err := pageAt(r.ctx, r.f.src, r.f.at.Sub(pos, r.f.at.Len-pos), "")
		if err == nil && (h.kind == syncPage || h.kind == dataPage && h.hasCRC) && r.sound(pos, &h, head) {
			return pos, nil
		}
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
	}
	return r.f.at.Len, nil
}

// sound reports whether the checksum of a page is right: then it is one, wherever it was found. So that bytes made for it
// cannot keep us for ever, all pages that are looked at together have a few times the size of the file.
func (r *rescue) sound(pos int64, h *pageHeader, head int64) bool {
	n := int64(h.stored)
	if r.looked += n; n > 16<<20 || r.looked > 8*r.f.at.Len {
		return false
	}
	b, err := r.bytes(pos+head, int(n))
	return err == nil && int64(len(b)) == n && crcOf(b) == h.crc
}

// bySync makes the row group that a sync block closes. A column whose metadata cannot be read is lost.
func (r *rescue) bySync(s *syncBlock) {
	if int(s.groups) <= len(r.groups) { // the metadata that was found tells of it
		r.chunks = nil
		return
	}
	if len(r.groups) > 0 && len(s.columns) != len(r.groups[0].columns) || s.group < 0 {
		r.tell("redfile.sync.damaged", r.f.at.Sub(s.offset, 1), [2]int64{-1, -1}, 0, "a sync block tells of %d columns and %d rows, which does not fit the row groups before", len(s.columns), s.group)
		return
	}
	group := len(r.groups)
	g := rowGroup{rows: s.group}
	for i, off := range s.columns {
		k := slices.IndexFunc(r.chunks, func(c foundChunk) bool { return c.off == off })
		if k >= 0 {
			g.columns = append(g.columns, columnChunk{offset: off, meta: r.chunks[k].meta})
			continue
		}
		g.columns = append(g.columns, r.lose(group, i, off))
	}
	r.groups = append(r.groups, g)
	r.chunks = nil
}

// lose notes that a chunk cannot be read.
func (r *rescue) lose(group, col int, off int64) columnChunk {
	at := r.f.at.Sub(min(max(off, 0), r.f.at.Len), 0)
	r.lost[chunkKey{group, col}] = fault.Corruptf(at, chunkPath(group, col)+".column_metadata", "the metadata of the column was not found")
	return columnChunk{offset: off}
}

// byPaths makes row groups of the chunks that no sync block tells of.
func (r *rescue) byPaths() {
	if len(r.chunks) == 0 {
		return
	}
	paths := r.paths()
	if len(r.groups) > 0 && len(paths) != len(r.groups[0].columns) {
		r.tell("redfile.rows.lost", r.f.at.Sub(r.end, r.f.at.Len-r.end), [2]int64{-1, -1}, -1, "chunks of %d columns, the row groups before have %d; they are given up", len(paths), len(r.groups[0].columns))
		return
	}
	var g rowGroup
	last := -1
	begin := func() {
		g, last = rowGroup{rows: -1, columns: make([]columnChunk, len(paths))}, -1
		for i := range g.columns {
			g.columns[i].offset = -1
		}
	}
	finish := func() {
		group := len(r.groups)
		for i := range g.columns {
			if g.columns[i].meta == nil {
				g.columns[i] = r.lose(group, i, r.end)
			}
		}
		g.rows = rowsOfColumns(g.columns, r.repeats)
		r.groups = append(r.groups, g)
	}
	begin()
	for _, c := range r.chunks {
		i := indexPath(paths, c.meta.path, last+1)
		if i < 0 { // it is one that was there already: the next row group has begun
			finish()
			begin()
			if i = indexPath(paths, c.meta.path, 0); i < 0 {
				continue
			}
		}
		g.columns[i], last = columnChunk{offset: c.off, meta: c.meta}, i
		if last == len(paths)-1 {
			finish()
			begin()
		}
	}
	if last >= 0 {
		r.tell("redfile.rows.lost", r.f.at.Sub(r.end, r.f.at.Len-r.end), [2]int64{-1, -1}, -1, "the last row group is not whole: %d of %d columns were found; it is given up", count(g.columns), len(paths))
	}
}

func count(cols []columnChunk) (n int) {
	for _, c := range cols {
		if c.meta != nil {
			n++
		}
	}
	return n
}

func indexPath(paths [][]string, p []string, from int) int {
	for i := from; i < len(paths); i++ {
		if slices.Equal(paths[i], p) {
			return i
		}
	}
	return -1
}

// paths are those of the columns in their order: as the schema says, or as they come.
func (r *rescue) paths() (out [][]string) {
	if r.known != nil && len(r.known.schema) > 0 {
		if t, err := treeOfElements(r.known.schema, r.known.gen, r.f.at); err == nil {
			for _, l := range leavesOf(t) {
				out = append(out, l.path)
			}
			return out
		}
	}
	for _, g := range r.groups {
		for _, c := range g.columns {
			if c.meta != nil && indexPath(out, c.meta.path, 0) < 0 {
				out = append(out, c.meta.path)
			}
		}
	}
	if len(r.groups) > 0 && len(out) == len(r.groups[0].columns) {
		return out
	}
	out = nil
	if r.known != nil {
		if n, ok := r.arrowPaths(); ok {
			return n
		}
	}
	for _, c := range r.chunks {
		if indexPath(out, c.meta.path, 0) < 0 {
			out = append(out, c.meta.path)
		}
	}
	return out
}

// arrowPaths are the paths of the Arrow schema that the writer kept.
func (r *rescue) arrowPaths() (out [][]string, ok bool) {
	i := slices.IndexFunc(r.known.pairs, func(kv keyValue) bool { return kv.key == schemaKey })
	if i < 0 {
		return nil, false
	}
	sc, err := schemaOfText(r.known.pairs[i].value)
	if err != nil {
		return nil, false
	}
	t, err := treeOf(sc)
	if err != nil {
		return nil, false
	}
	for _, l := range leavesOf(t) {
		out = append(out, l.path)
	}
	return out, true
}

// repeats reports whether a column may have more values than rows.
func (r *rescue) repeats(m *columnMeta) bool {
	if r.known != nil && !m.hasLevels && len(r.known.schema) > 0 {
		if t, err := treeOfElements(r.known.schema, r.known.gen, r.f.at); err == nil {
			ls := leavesOf(t)
			i := slices.IndexFunc(ls, func(l leaf) bool { return slices.Equal(l.path, m.path) })
			return i < 0 || ls[i].maxRep > 0
		}
	}
	return !m.hasLevels || m.maxRep > 0
}

// takeLevels takes the levels that our writer of generation E puts in the metadata of a column.
func takeLevels(m *columnMeta) {
	for _, kv := range m.pairs {
		var d, p int32
		if n, _ := fmt.Sscanf(kv.value, "%d,%d", &d, &p); kv.key == levelsKey && n == 2 && p >= 0 && d >= p && d < 128 {
			m.hasLevels, m.maxDef, m.maxRep = true, d, p
		}
	}
}

// rowsOfColumns is the number of values of a column that does not repeat; -1 if there is none.
func rowsOfColumns(cols []columnChunk, repeats func(*columnMeta) bool) int64 {
	for _, c := range cols {
		if c.meta != nil && !repeats(c.meta) {
			return c.meta.values
		}
	}
	return -1
}
