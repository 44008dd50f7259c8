package redfile

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sort"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/unpack"
	"stoa/internal/codec"
	"stoa/internal/enc/redlevels"
	"stoa/internal/thrift"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// maxSub is how many entries of a page are given at a time: one that has more is given as several, so that a
// few bytes of runs never become very much memory.
const maxSub = 128 << 10

// page is a data page as walking the headers, or the index page, has found it.
type page struct {
	off, size int64 // with its header
	values    int64 // levels or values
	first     int64 // rows that begin before it; -1: not known
	rows      int64 // rows that begin in it; -1: not known
	raw       int64 // bytes after decompression; 0: not known
	bounds    *pred.Bounds
	lost      error // why it cannot be read, if that is known
}

// pageTable is the data pages of a chunk, as far as they are known. It is shared by all who read the chunk.
type pageTable struct {
	f          *content
	l          *leaf
	group, col int
	meta       *columnMeta
	rows       int64 // of the row group; -1: not known
	src        store.Source
	at         fault.Span // where pages may lie: all of the object before its metadata
	indexed    bool       // pages come from the index page

	mu     sync.Mutex
	pages  []page
	next   int64 // where the next header is
	values int64 // of the pages so far
	err    error // why there are no more pages: io.EOF, or damage
}

// newPageTable finds the pages of a chunk of a row group of so many rows, as far as that is done before the first is
// read.
func newPageTable(ctx context.Context, f *content, l *leaf, group, col int, m *columnMeta,
	rows int64) (*pageTable, error) {
	t := &pageTable{f: f, l: l, group: group, col: col, meta: m, rows: rows}
	if t.rows >= 0 && (l.maxRep == 0 && m.values != t.rows || m.values < t.rows) {
		return nil, fault.Corruptf(f.chunkSpan(group, col), chunkPath(group, col)+".column_metadata.num_values",
			"%d, the row group has %d rows", m.values, t.rows)
	}
	var err error
	if t.src, t.at, err = f.place(ctx, group, col); err != nil {
		return nil, err
	}
	if t.next, err = f.firstPage(ctx, group, col, m); err != nil {
		return nil, err
	}
	if m.index >= 0 && !f.opts.noIndex {
		t.useIndex(ctx) // without it the headers are walked
	}
	if !t.indexed {
		if err := t.settle(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// again is t without any pages, to be found by their headers, the first of them at begin.
func (t *pageTable) again(ctx context.Context) (out *pageTable, begin int64, err error) {
	out = &pageTable{f: t.f, l: t.l, group: t.group, col: t.col, meta: t.meta, rows: t.rows, src: t.src, at: t.at}
	out.next, err = t.f.firstPage(ctx, t.group, t.col, t.meta)
	return out, out.next, err
}

// get is page i; io.EOF behind the last one.
func (t *pageTable) get(ctx context.Context, i int) (*page, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i >= len(t.pages) && t.err == nil {
		err := t.walk(ctx)
		if err != nil && (errors.Is(err, io.EOF) || errors.Is(err, fault.Corrupt) ||
			errors.Is(err, fault.Unsupported)) {
			t.err = err // others, as of the store, may pass
		} else if err != nil {
			return nil, err
		}
	}
	if i < len(t.pages) {
		p := t.pages[i] // a copy: the slice may move
		return &p, nil
	}
	return nil, t.err
}

// walk reads the next header, of which the chunk has values left, and notes its page if it is one of data.
func (t *pageTable) walk(ctx context.Context) error {
	if t.values >= t.meta.values {
		return io.EOF
	}
	before := len(t.pages)
	if err := t.header(ctx); err != nil || t.values <= t.meta.values {
		return err
	}
	p := t.pages[before]
	t.pages = t.pages[:before]
	t.values -= p.values
	return fault.Corruptf(t.at.Sub(p.off, p.size), pagePath(t.group, t.col, before)+".header.data_page.num_values",
		"%d values, but the chunk has %d and %d came before", p.values, t.meta.values, t.values)
}

// header reads the next header and notes its page if it is one of data.
func (t *pageTable) header(ctx context.Context) error {
	path := pagePath(t.group, t.col, len(t.pages))
	if t.next < magicLen || t.next >= t.at.Len {
		return fault.Corruptf(t.f.chunkSpan(t.group, t.col), path,
			"it would begin at %d, where no page can be: %d of %d values are found", t.next, t.values, t.meta.values)
	}
	h, head, err := pageAt(ctx, t.src, t.at.Sub(t.next, t.at.Len-t.next), path)
	if err != nil {
		return err
	}
	off := t.next
	t.next += head + int64(h.stored)
	if h.kind != dataPage {
		return nil
	}
	p := page{off: off, size: head + int64(h.stored), values: int64(h.values), raw: int64(h.raw)}
	t.place(&p)
	t.pages = append(t.pages, p)
	return nil
}

// place puts a page behind those before it.
func (t *pageTable) place(p *page) {
	p.first, p.rows = -1, -1
	if t.l.maxRep == 0 {
		p.first, p.rows = t.values, p.values
	}
	t.values += p.values
}

// find is the number of the page to begin with for a row, as far as it is known.
func (t *pageTable) find(row int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row <= 0 || len(t.pages) == 0 || t.pages[len(t.pages)-1].first < 0 {
		return 0
	}
	i := sort.Search(len(t.pages), func(i int) bool { return t.pages[i].first > row })
	return max(0, i-1)
}

// chunk gives the pages of a table. It is a format.Chunk.
type chunk struct {
	t    *pageTable
	rows vec.Range
	i    int   // number of the next page
	sub  int64 // entries of it that were given

	mu   sync.Mutex
	open *opened // a page that is given in several parts, between two of them
}

// opened is a page whose checksum was compared and whose body is decompressed, read up to some entry.
type opened struct {
	page  int
	entry int
	h     pageHeader
	body  []byte
	at    fault.Span // where it lies, or where it was decompressed from
	exact bool

	defs   redlevels.DefReader
	levels int // bytes of all levels
	before int // values of the entries before entry
	all    int // of the page
}

// newChunk gives the pages of t, from the one that holds rows.From on where that is known.
func newChunk(t *pageTable, rows vec.Range) *chunk {
	return &chunk{t: t, rows: rows, i: t.find(rows.From)}
}

// take gives the page if it was left open at the entry.
func (c *chunk) take(page, entry int) *opened {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open
	if o == nil || o.page != page || o.entry != entry {
		return nil
	}
	c.open = nil
	return o
}

// leave keeps a page that goes on behind the entry. own says that its body is not the task's.
func (c *chunk) leave(o *opened, own bool) {
	if !own {
		o.body = append(make([]byte, 0, len(o.body)+vec.Slack), o.body...)
		o.defs.Move(o.body[:o.levels])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = o
}

// Next gives the next page, or a part of one with very many entries.
func (c *chunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.t.get(ctx, c.i)
	if err != nil {
		return format.Page{}, err
	}
	if p.first >= c.rows.To {
		return format.Page{}, io.EOF
	}
	out := format.Page{Ordinal: c.i, Sub: c.sub, First: p.first, Rows: p.rows, Entries: p.values, Raw: p.raw,
		Bounds: p.bounds, Starts: c.t.indexed && c.sub == 0,
		Spans: []fault.Span{c.t.at.Sub(p.off, p.size)}, Own: p, Lost: p.lost}
	if p.values > maxSub {
		out.Entries = min(maxSub, p.values-c.sub)
		if c.t.l.maxRep == 0 && p.first >= 0 {
			out.First, out.Rows, out.Bounds = p.first+c.sub, out.Entries, nil
		} else {
			out.First, out.Rows = -1, -1
		}
		if c.sub += out.Entries; c.sub < p.values {
			return out, nil
		}
	}
	c.i, c.sub = c.i+1, 0
	return out, nil
}

// Dict: RedFile has no dictionaries.
func (c *chunk) Dict() (format.Page, bool) { return format.Page{}, false }

// Decode appends a page to dst.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	p, ok := t.Page.Own.(*page)
	if !ok || len(t.Bytes) != 1 {
		return fault.Bugf("redfile: a page that is not of this file")
	}
	at := t.Page.Spans[0]
	d := decoding{l: c.t.l, t: t, codec: c.t.meta.codec, limits: c.t.f.limits, verify: !t.NoVerify &&
		!c.t.f.noVerify}
	d.opened = opened{page: t.Page.Ordinal, at: at, exact: true}
	var err error
	kept := c.take(t.Page.Ordinal, int(t.Page.Sub))
	if kept != nil {
		d.opened = *kept
	} else {
		err = d.open(t.Bytes[0], at, p)
	}
	if err == nil {
		t.Raw = int64(len(d.body))
		err = d.decode(dst)
	}
	if err != nil {
		return fault.Locate(err, d.at, d.exact, pagePath(c.t.group, c.t.col, t.Page.Ordinal))
	}
	if d.entry < int(d.h.values) && p.values > maxSub { // and not a look-up of one row
		c.leave(&d.opened, kept != nil)
	}
	return nil
}

// decoding is one page, or part of one, being decoded.
type decoding struct {
	opened
	l       *leaf
	t       *format.Task
	codec   Compression
	limits  format.Limits
	verify  bool
	sumOnly bool // open does not decompress
}

// open reads the header, verifies the checksum and decompresses.
func (d *decoding) open(b []byte, at fault.Span, p *page) error {
	n, ok := d.h.usual(b)
	if !ok {
		c := wire.NewCursor(b, at, "")
		d.h = parsePageHeader(thrift.NewReader(c, protocolOf(b)), "header")
		if c.Err() != nil {
			return c.Err()
		}
		n = c.Pos()
	}
	h := &d.h
	stored := b[n:]
	head := at.Sub(0, int64(n))
	d.at = at.Sub(int64(n), int64(len(stored)))
	if field, reason := h.bad(); field != "" {
		return fault.Corruptf(head, "header."+field, "%s", reason)
	}
	if h.kind != dataPage || int64(h.stored) != int64(len(stored)) || int64(h.values) != p.values {
		return fault.Corruptf(head, "header",
			"a %s of %d values and %d bytes, where a data page of %d values and %d bytes should be",
			pageKind(h.kind), h.values, h.stored, p.values, len(stored))
	}
	if d.verify && h.hasCRC {
		if crc := crcOf(stored); crc != h.crc {
			return fault.Corruptf(at, "header.crc", "%#08x is stored, %#08x is right", h.crc, crc)
		}
	}
	if d.sumOnly && d.codec != Uncompressed && saysRaw(d.codec, stored, h.raw) {
		return nil
	}
	body, exact, err := inflate(stored, int64(h.raw), d.codec, d.limits.Page, d.t.Scratch.Bytes)
	if err != nil {
		return fault.Locate(err, d.at, true, "")
	}
	d.body, d.exact = body, exact
	return nil
}

// saysRaw reports whether compressed bytes say themselves that they are so many raw: a bare Snappy block in
// front, a GZIP member, of which there is one, at the end. Others must be decompressed to know.
func saysRaw(c Compression, b []byte, raw int32) bool {
	switch c {
	case Snappy:
		return unpack.SnappySize(b) == int(raw)
	case Gzip:
		return len(b) >= 18 && binary.LittleEndian.Uint32(b[len(b)-4:]) == uint32(raw)
	}
	return false
}

// inflate gives the raw bytes of a page's body, in memory that room gives. Nothing is taken on the word of the
// header that the method cannot reach.
func inflate(stored []byte, raw int64, c Compression, limit int64, room func(n int) []byte) (body []byte,
	exact bool, err error) {
	if c == Uncompressed {
		if raw != int64(len(stored)) {
			return nil, true, fault.Rel(0, len(stored), "uncompressed_page_size",
				"%d, but %d bytes are stored without compression", raw, len(stored))
		}
		return stored, true, nil
	}
	most := int64(1100) // what Deflate can reach; Snappy reaches 22
	if raw > limit {
		return nil, false, fault.New(fault.Limit, fault.Span{Len: int64(len(stored))}, "uncompressed_page_size",
			"%d bytes are more than a page may have (%d)", raw, limit)
	}
	if raw > most*int64(len(stored)) {
		return nil, false, fault.Rel(0, len(stored), "uncompressed_page_size", "%d bytes cannot come of %d", raw,
			len(stored))
	}
	body = room(int(raw))
	switch c {
	case Snappy:
		return body, false, unSnappy(body, stored)
	case Gzip:
		return body, false, unpack.UnGzip(body, stored)
	}
	return nil, false, fault.New(fault.Unsupported, fault.Span{Len: int64(len(stored))}, "codec", "%s", c)
}

// fresh gives memory of its own.
func fresh(n int) []byte { return make([]byte, n) }

// unSnappy takes a bare Snappy block, or Hadoop's framing: u32 big-endian raw size, then for each block u32 big-endian
// stored size and the block, until the raw size is reached.
func unSnappy(dst, src []byte) error {
	z, _ := codec.ByName("snappy")
	bare := z.Decompress(dst, src)
	if bare == nil {
		return nil
	}
	if !framed(z, dst, src) {
		return bare
	}
	return nil
}

func framed(z *codec.Codec, dst, src []byte) bool {
	for len(dst) > 0 {
		if len(src) < 4 {
			return false
		}
		raw := int64(unpack.Be32(src))
		src = src[4:]
		if raw > int64(len(dst)) || raw == 0 {
			return false
		}
		for out := dst[:raw]; len(out) > 0; {
			if len(src) < 4 || int64(unpack.Be32(src)) > int64(len(src)-4) {
				return false
			}
			block := src[4 : 4+unpack.Be32(src)]
			src = src[4+unpack.Be32(src):]
			n := unpack.SnappySize(block)
			if n <= 0 || n > len(out) || z.Decompress(out[:n], block) != nil {
				return false
			}
			out = out[n:]
		}
		dst = dst[raw:]
	}
	return len(src) == 0
}

// decode appends the entries [sub, sub+n) of the page.
func (d *decoding) decode(dst *vec.Vector) error {
	l := d.l
	total, skip := int(d.h.values), int(d.t.Page.Sub)
	n := total - skip
	if d.t.N >= 0 {
		n = min(n, int(d.t.N))
	}
	if n < 0 {
		return fault.Bugf("redfile: entry %d of a page of %d", skip, total)
	}
	var def, rep []byte
	used := 0
	if l.maxRep > 0 {
		rep = d.t.Scratch.Bytes(n)
		var err error
		if used, err = redlevels.UnpackRep(rep, d.body, skip, total, l.maxRep); err != nil {
			return err
		}
	}
	present := n // values of the entries wanted
	if l.maxDef > 0 {
		def = d.t.Scratch.Bytes(n)
		var err error
		if present, err = d.definitions(def, used, skip, total); err != nil {
			return fault.Locate(err, fault.Span{Off: int64(used), Len: int64(len(d.body) - used)}, true, "")
		}
	} else {
		d.levels, d.before, d.all = used, skip, total
	}
	data := d.body[d.levels:]
	place := func(err error) error {
		return fault.Locate(err, fault.Span{Off: int64(d.levels), Len: int64(len(data))}, true, "")
	}
	if err := l.value.counts(data, d.h.encoding, d.all); err != nil {
		return place(err)
	}
	var valid []byte
	if present < n {
		valid = validity(def, l.maxDef, d.t.Scratch)
	}
	if err := l.value.decode(dst, data, d.h.encoding, d.before, present, d.all, n, valid, d.t.Scratch); err != nil {
		return place(err)
	}
	if i := dst.Overlong(dst.Len() - n); i >= 0 {
		return place(fault.Rel(0, len(data), "values", "entry %d has more digits than %s", skip+i-(dst.Len()-n),
			dst.Type))
	}
	if l.column.Has&format.Levels != 0 {
		dd, rr := dst.ExtendLevels(n)
		copy(dd, def)
		copy(rr, rep)
	}
	d.entry, d.before = skip+n, d.before+present
	return nil
}

// definitions reads the levels of len(def) entries behind skip ones, of total in all, from body[used:] on, and
// counts those with a value.
func (d *decoding) definitions(def []byte, used, skip, total int) (present int, err error) {
	begun := d.entry > 0
	if !begun {
		var k int
		if d.defs, k, err = redlevels.NewDefReader(d.body[used:], d.l.maxDef); err != nil {
			return 0, err
		}
		d.levels = used + k
		if d.before, err = d.defs.Skip(skip); err != nil {
			return 0, err
		}
	}
	if present, err = d.defs.Read(def); err != nil || begun {
		return present, err
	}
	behind := d.defs // a copy: the next part goes on
	d.all, err = behind.Skip(total - skip - len(def))
	d.all += d.before + present
	if err == nil {
		err = behind.End()
	}
	return present, err
}

// validity is the bitmap of the entries whose level is the greatest.
func validity(def []byte, max uint8, a *vec.Arena) []byte {
	const ones = 0x0101010101010101
	b := a.Bytes((len(def) + 7) / 8)
	i := 0
	for ; 8*i+8 <= len(def); i++ {
		// a byte is 0 where the level is max; none is above 127
		x := binary.LittleEndian.Uint64(def[8*i:]) ^ ones*uint64(max)
		x = ^(x + 0x7f*ones) >> 7 & ones
		b[i] = byte(x * 0x0102040810204080 >> 56) // the eight lowest bits, together
	}
	if 8*i < len(def) {
		var x byte
		for j, d := range def[8*i:] {
			if d == max {
				x |= 1 << j
			}
		}
		b[i] = x
	}
	return b
}

// levels reads the levels of a page, of which b are the bytes, into memory of a.
func (t *pageTable) levels(p *page, b []byte, a *vec.Arena) (def, rep []byte, err error) {
	at := t.at.Sub(p.off, p.size)
	d := decoding{l: t.l, t: &format.Task{Scratch: a}, codec: t.meta.codec, limits: t.f.limits, verify: !t.f.noVerify}
	if err := d.open(b, at, p); err != nil {
		return nil, nil, err
	}
	n := int(d.h.values)
	if n > 8*len(d.body) { // a repetition level takes a bit
		return nil, nil, fault.Corruptf(at, "repetition_levels", "%d of them in %d bytes", n, len(d.body))
	}
	def, rep = a.Bytes(n), a.Bytes(n)
	used, err := redlevels.UnpackRep(rep, d.body, 0, n, d.l.maxRep)
	if err == nil {
		_, err = d.definitions(def, used, 0, n)
	}
	return def, rep, err
}

// sum holds a page, of which b are the bytes, against its checksum, and its header against the page; the values are not
// looked at. summed: there is a checksum.
func (t *pageTable) sum(p *page, b []byte, a *vec.Arena) (summed bool, err error) {
	d := decoding{l: t.l, t: &format.Task{Scratch: a}, codec: t.meta.codec, limits: t.f.limits, verify: true,
		sumOnly: true}
	err = d.open(b, t.at.Sub(p.off, p.size), p)
	if err == nil && d.h.encoding > GroupVarInt { // no checksum is over the header
		err = fault.Unsupportedf(fault.Span{}, "header.data_page.encoding", "%s", d.h.encoding)
	}
	return d.h.hasCRC, err
}

// holding is the page in which a row begins.
func (t *pageTable) holding(ctx context.Context, row int64) (int, *page, error) {
	for i := t.find(row); ; i++ {
		p, err := t.get(ctx, i)
		if err == io.EOF {
			return 0, nil, fault.Corruptf(t.f.chunkSpan(t.group, t.col), chunkPath(t.group, t.col),
				"row %d is in none of its pages", row)
		}
		if err != nil {
			return 0, nil, err
		}
		if p.first < 0 {
			return 0, nil, fault.Unsupportedf(t.f.chunkSpan(t.group, t.col), chunkPath(t.group, t.col),
				"rows by number of a column that repeats, without an index page")
		}
		if row < p.first+p.rows {
			return i, p, nil
		}
	}
}
