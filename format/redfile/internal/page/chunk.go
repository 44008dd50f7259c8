package page

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sort"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/format/redfile/internal/unpack"
	"stoa/internal/codec"
	"stoa/internal/dremel"
	"stoa/internal/enc/redlevels"
	"stoa/internal/thrift"
	"stoa/pred"
	"stoa/store"
	"stoa/vec"
	"stoa/wire"
)

// MaxSub is the maximum number of entries that are decoded at a time. A page with more entries is returned in parts, so
// that a few bytes of runs do not need unbounded memory.
const MaxSub = 128 << 10

// Page is a data page that was located by its header or by the index page.
type Page struct {
	Off, Size int64 // bytes, including the header
	Values    int64 // entries, nulls and empty lists included
	First     int64 // rows that begin before it; -1 if unknown
	Rows      int64 // rows that begin in it; -1 if unknown
	raw       int64 // bytes after decompression; 0 if unknown
	Bounds    *pred.Bounds
	Lost      error // why it cannot be read; nil if no reason is known
	recount   bool  // Values is tried in place of the number in the page's header
}

// Table holds the data pages of a chunk that were found so far. All readers of the chunk share it.
type Table struct {
	File       *container.File
	Leaf       *schema.Leaf
	Group, Col int
	Meta       *layout.ColumnMeta
	rows       int64 // of the row group; -1 if unknown
	Src        store.Source
	At         fault.Span // where pages can be: everything in the object before its metadata
	Indexed    bool       // Pages come from the index page

	mu         sync.Mutex
	Pages      []Page
	next       int64 // offset of the next header
	values     int64 // of the pages so far
	err        error // why there are no more pages: io.EOF, or damage
	noChecksum bool  // one of the pages has no checksum
	other      int   // data pages before the first page of another type; -1 if there has been none
	begun      bool  // checkRows has been called
}

// NewTable finds the pages of a chunk, as far as that is done before the first page is read. rows is the number of rows
// in the row group.
func NewTable(ctx context.Context, f *container.File, l *schema.Leaf, group, col int, m *layout.ColumnMeta,
	rows int64) (*Table, error) {
	t := &Table{File: f, Leaf: l, Group: group, Col: col, Meta: m, rows: rows, other: -1}
	if t.rows >= 0 && (l.MaxRep == 0 && m.Values != t.rows || m.Values < t.rows) {
		return nil, fault.Corruptf(f.ChunkSpan(group, col), layout.ChunkPath(group, col)+".column_metadata.num_values",
			"expected %d, the rows of the row group, found %d", t.rows, m.Values)
	}
	var err error
	if t.Src, t.At, err = f.Place(ctx, group, col); err != nil {
		return nil, err
	}
	if t.next, err = f.FirstPage(ctx, group, col, m); err != nil {
		return nil, err
	}
	if m.Index >= 0 && !f.Opts.NoIndex {
		t.useIndex(ctx) // otherwise the headers are walked
	}
	if t.Indexed {
		return t, t.checkPlace(ctx, t.next, t.At.Len)
	}
	return t, t.resolvePages(ctx)
}

// Unindexed returns a Table of the same chunk without any pages. They will be found by their headers, the first of
// which is at begin.
func (t *Table) Unindexed(ctx context.Context) (out *Table, begin int64, err error) {
	out = &Table{File: t.File, Leaf: t.Leaf, Group: t.Group, Col: t.Col, Meta: t.Meta, rows: t.rows, Src: t.Src,
		At: t.At, other: -1}
	out.next, err = t.File.FirstPage(ctx, t.Group, t.Col, t.Meta)
	return out, out.next, err
}

// Get returns page i, or io.EOF after the last one. If damage prevents it from finding further pages, it returns that
// error.
func (t *Table) Get(ctx context.Context, i int) (*Page, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		if err := t.checkRows(ctx); err != nil {
			return nil, err
		}
		t.begun = true
	}
	for i >= len(t.Pages) && t.err == nil {
		err := t.walk(ctx)
		if errors.Is(err, io.EOF) || isDamage(err) {
			t.err = err
		} else if err != nil { // an error of the store, which may be transient
			return nil, err
		}
	}
	if i < len(t.Pages) {
		p := t.Pages[i] // a copy: the slice may move
		return &p, nil
	}
	return nil, t.err
}

// walk reads the next header and adds its page if it is a data page. It returns io.EOF if the chunk has no values left.
func (t *Table) walk(ctx context.Context) error {
	if t.values >= t.Meta.Values {
		return io.EOF
	}
	before := len(t.Pages)
	if err := t.header(ctx); err != nil || t.values <= t.Meta.Values {
		return err
	}
	p := t.Pages[before]
	t.Pages = t.Pages[:before]
	t.values -= p.Values
	return fault.Corruptf(t.At.Sub(p.Off, p.Size),
		layout.PagePath(t.Group, t.Col, before)+".header.data_page.num_values",
		"%s, but the chunk has %d and %d came before", fault.Count(p.Values, "value"), t.Meta.Values, t.values)
}

// header reads the next header and adds its page if it is a data page.
func (t *Table) header(ctx context.Context) error {
	path := layout.PagePath(t.Group, t.Col, len(t.Pages))
	if t.next < layout.MagicLen || t.next >= t.At.Len {
		return fault.Corruptf(t.File.ChunkSpan(t.Group, t.Col), path,
			"it would begin at %d, where no page can be: found %d of %s", t.next, t.values,
			fault.Count(t.Meta.Values, "value"))
	}
	h, head, err := layout.PageAt(ctx, t.Src, t.At.Sub(t.next, t.At.Len-t.next), path)
	if err != nil {
		return err
	}
	if h.Foreign && t.File.Lost != nil { // recovered without metadata, so nothing else says whose page this is
		return fault.Corruptf(t.At.Sub(t.next, head), path+".header", "it has fields that no version of the format "+
			"has: the headers of two pages may have run together")
	}
	off := t.next
	t.next += head + int64(h.Stored)
	if h.Kind != layout.DataPage {
		if t.other < 0 && h.Kind != layout.SyncPage {
			t.other = len(t.Pages)
		}
		return nil
	}
	t.noChecksum = t.noChecksum || !h.HasCRC
	p := Page{Off: off, Size: head + int64(h.Stored), Values: int64(h.Values), raw: int64(h.Raw)}
	t.number(&p)
	t.Pages = append(t.Pages, p)
	return nil
}

// number computes the rows of a page from those of the preceding pages, and counts its values.
func (t *Table) number(p *Page) {
	p.First, p.Rows = -1, -1
	if t.Leaf.MaxRep == 0 {
		p.First, p.Rows = t.values, p.Values
	}
	t.values += p.Values
}

// find returns the index of the page at which to begin reading for row, as far as pages are known.
func (t *Table) find(row int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row <= 0 || len(t.Pages) == 0 || t.Pages[len(t.Pages)-1].First < 0 {
		return 0
	}
	i := sort.Search(len(t.Pages), func(i int) bool { return t.Pages[i].First > row })
	return max(0, i-1)
}

// chunk iterates over the pages of a Table. It is a format.Chunk.
type chunk struct {
	t    *Table
	rows vec.Range
	i    int   // number of the next page
	sub  int64 // entries of that page that have been returned

	mu   sync.Mutex
	open *opened // a page of several parts, between two of them
}

// opened is a page whose checksum has been verified and whose body has been decompressed and decoded up to some entry.
type opened struct {
	page  int
	entry int
	h     layout.PageHeader
	body  []byte
	at    fault.Span // of the stored body
	exact bool       // body is not compressed: its offsets are offsets in at

	defs   redlevels.DefReader
	levels int // bytes of all levels
	before int // values before entry
	all    int // values in the page
}

// NewChunk returns the pages of t from the one that contains row rows.From, if that is known, to row rows.To.
func NewChunk(t *Table, rows vec.Range) *chunk {
	return &chunk{t: t, rows: rows, i: t.find(rows.From)}
}

// Listed implements format.Lister.
func (c *chunk) Listed(rows vec.Range) (format.Chunk, bool) {
	out, t := NewChunk(c.t, rows), c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	return out, t.Indexed || t.begun && (t.err != nil || t.values >= t.Meta.Values)
}

// resume returns the page if it was suspended at entry, nil otherwise.
func (c *chunk) resume(page, entry int) *opened {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.open
	if o == nil || o.page != page || o.entry != entry {
		return nil
	}
	c.open = nil
	return o
}

// suspend keeps a page so that it can be continued at its entry. own means that its body is not in the task's memory.
func (c *chunk) suspend(o *opened, own bool) {
	if !own {
		o.body = append(make([]byte, 0, len(o.body)+vec.Slack), o.body...)
		o.defs.Move(o.body[:o.levels])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = o
}

// Next returns the next page, or the next MaxSub entries of a page that has more.
func (c *chunk) Next(ctx context.Context) (format.Page, error) {
	p, err := c.t.Get(ctx, c.i)
	if err != nil {
		return format.Page{}, err
	}
	if p.First >= c.rows.To {
		return format.Page{}, io.EOF
	}
	out := format.Page{Ordinal: c.i, Sub: c.sub, First: p.First, Rows: p.Rows, Entries: p.Values, Raw: p.raw,
		Bounds: p.Bounds, Starts: c.t.Indexed && c.sub == 0,
		Spans: []fault.Span{c.t.At.Sub(p.Off, p.Size)}, Own: p, Lost: p.Lost}
	if p.Values > MaxSub {
		out.Entries = min(MaxSub, p.Values-c.sub)
		if c.t.Leaf.MaxRep == 0 && p.First >= 0 {
			out.First, out.Rows, out.Bounds = p.First+c.sub, out.Entries, nil
		} else {
			out.First, out.Rows = -1, -1
		}
		if c.sub += out.Entries; c.sub < p.Values {
			return out, nil
		}
	}
	c.i, c.sub = c.i+1, 0
	return out, nil
}

// Dict returns false: RedFile has no dictionaries.
func (c *chunk) Dict() (format.Page, bool) { return format.Page{}, false }

// Decode appends the entries of a page to dst.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	p, ok := t.Page.Own.(*Page)
	if !ok || len(t.Bytes) != 1 {
		return fault.Bugf("redfile: a page that is not of this file")
	}
	at := t.Page.Spans[0]
	d := decoding{l: c.t.Leaf, t: t, meta: c.t.Meta, limits: c.t.File.Limits, verify: !t.NoVerify &&
		!c.t.File.NoVerify}
	d.opened = opened{page: t.Page.Ordinal, at: at, exact: true}
	var err error
	kept := c.resume(t.Page.Ordinal, int(t.Page.Sub))
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
		return fault.Locate(err, d.at, d.exact, layout.PagePath(c.t.Group, c.t.Col, t.Page.Ordinal))
	}
	if d.entry < int(d.h.Values) && p.Values > MaxSub { // unless it is a lookup of one row
		c.suspend(&d.opened, kept != nil)
	}
	return nil
}

// decoding is one page, or part of one, being decoded.
type decoding struct {
	opened
	l       *schema.Leaf
	t       *format.Task
	meta    *layout.ColumnMeta
	limits  format.Limits
	verify  bool
	sumOnly bool // open does not decompress
}

// open reads the header, verifies the checksum and decompresses.
func (d *decoding) open(b []byte, at fault.Span, p *Page) error {
	n, ok := d.h.ParseFast(b)
	if !ok {
		c := wire.NewCursor(b, at, "")
		d.h = layout.ParsePageHeader(thrift.NewReader(c, layout.ProtocolOf(b)), "header")
		if c.Err() != nil {
			return c.Err()
		}
		n = c.Pos()
	}
	h := &d.h
	if p.recount {
		h.Values = int32(p.Values)
	}
	stored := b[n:]
	head := at.Sub(0, int64(n))
	d.at = at.Sub(int64(n), int64(len(stored)))
	if field, reason := h.Problem(); field != "" {
		return fault.Corruptf(head, "header."+field, "%s", reason)
	}
	if h.Kind != layout.DataPage || int64(h.Stored) != int64(len(stored)) || int64(h.Values) != p.Values {
		return fault.Corruptf(head, "header",
			"expected a data page of %s and %d bytes, found a %s of %s and %d bytes", fault.Count(p.Values, "value"),
			len(stored), layout.PageKind(h.Kind), fault.Count(h.Values, "value"), h.Stored)
	}
	if d.verify && h.HasCRC {
		if crc := layout.CRC(stored); crc != h.CRC {
			return fault.Corruptf(at, "header.crc", "expected %#08x, computed %#08x", h.CRC, crc)
		}
	}
	// No checksum covers the header.
	if all := d.meta.Encodings; len(all) > 0 && !slices.Contains(all, h.Encoding) {
		return fault.Corruptf(head, "header.data_page.encoding", "%s, and the metadata of the column has %s",
			h.Encoding, all)
	}
	if err := d.l.Value.CheckEncoding(h.Encoding, head, "header.data_page.encoding"); err != nil {
		return err
	}
	if d.sumOnly && d.meta.Codec != layout.Uncompressed && rawSizeAgrees(d.meta.Codec, stored, h.Raw) {
		return nil
	}
	body, exact, err := Inflate(stored, int64(h.Raw), d.meta.Codec, d.limits.Page, d.t.Scratch.Bytes)
	if err != nil {
		return fault.Locate(err, d.at, true, "")
	}
	d.body, d.exact = body, exact
	return nil
}

// rawSizeAgrees reports whether compressed bytes state raw as their raw size: a single Snappy block states it at the
// beginning, a GZIP member at the end. Other streams would have to be decompressed to find out.
func rawSizeAgrees(c layout.Compression, b []byte, raw int32) bool {
	switch c {
	case layout.Snappy:
		return unpack.SnappySize(b) == int(raw)
	case layout.Gzip:
		return len(b) >= 18 && binary.LittleEndian.Uint32(b[len(b)-4:]) == uint32(raw)
	}
	return false
}

// Inflate decompresses the body of a page to raw bytes, at most limit, in memory from alloc. A raw size that the codec
// cannot reach is an error before anything is allocated. exact means that body is stored itself, which is not
// compressed.
func Inflate(stored []byte, raw int64, c layout.Compression, limit int64, alloc func(n int) []byte) (body []byte,
	exact bool, err error) {
	if c == layout.Uncompressed {
		if raw != int64(len(stored)) {
			return nil, true, fault.Rel(0, len(stored), "uncompressed_page_size",
				"expected %d, the bytes that are stored without compression, found %d", len(stored), raw)
		}
		return stored, true, nil
	}
	const maxRatio = 1100 // of Deflate; Snappy reaches 22
	if raw > maxRatio*int64(len(stored)) {
		return nil, false, fault.Rel(0, len(stored), "uncompressed_page_size", "%d bytes cannot come of %d", raw,
			len(stored))
	}
	if raw > limit {
		return nil, false, fault.New(fault.Limit, fault.Span{Len: int64(len(stored))}, "uncompressed_page_size",
			"%d bytes are more than a page may have (%d, page limit or memory limit)", raw, limit)
	}
	body = alloc(int(raw))
	switch c {
	case layout.Snappy:
		return body, false, unSnappy(body, stored)
	case layout.Gzip:
		return body, false, unpack.Gunzip(body, stored)
	}
	return nil, false, fault.New(fault.Unsupported, fault.Span{Len: int64(len(stored))}, "codec", "%s", c)
}

// Alloc allocates n bytes, for Inflate.
func Alloc(n int) []byte { return make([]byte, n) }

// unSnappy decompresses either one Snappy block, or Hadoop's framing: the raw size as big-endian u32, then for each
// block its stored size as big-endian u32 and the block, until the raw size is reached.
func unSnappy(dst, src []byte) error {
	z, _ := codec.ByName("snappy")
	err := z.Decompress(dst, src)
	if err != nil && hadoopFrames(z, dst, src) {
		return nil
	}
	return err
}

// hadoopFrames decompresses src in Hadoop's framing. It reports whether src has that framing and fills dst.
func hadoopFrames(z *codec.Codec, dst, src []byte) bool {
	for len(dst) > 0 {
		if len(src) < 4 {
			return false
		}
		raw := int64(binary.BigEndian.Uint32(src))
		src = src[4:]
		if raw > int64(len(dst)) || raw == 0 {
			return false
		}
		for out := dst[:raw]; len(out) > 0; {
			if len(src) < 4 || int64(binary.BigEndian.Uint32(src)) > int64(len(src)-4) {
				return false
			}
			end := 4 + binary.BigEndian.Uint32(src)
			block := src[4:end]
			src = src[end:]
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

// decode appends the entries that the task requests, which begin at Page.Sub.
func (d *decoding) decode(dst *vec.Vector) error {
	l := d.l
	total, skip := int(d.h.Values), int(d.t.Page.Sub)
	n := total - skip
	if d.t.N >= 0 {
		n = min(n, int(d.t.N))
	}
	if n < 0 {
		return fault.Bugf("redfile: entry %d of a page of %d", skip, total)
	}
	var def, rep []byte
	used := 0
	if l.MaxRep > 0 {
		rep = d.t.Scratch.Bytes(n)
		var err error
		if used, err = redlevels.UnpackRep(rep, d.body, skip, total, l.MaxRep); err != nil {
			return err
		}
	}
	present := n // number of values among the requested entries
	if l.MaxDef > 0 {
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
	if err := l.Value.CheckSize(data, d.h.Encoding, d.all); err != nil {
		return place(err)
	}
	var valid []byte
	if present < n {
		valid = dremel.Present(def, l.MaxDef, d.t.Scratch)
	}
	if err := l.Value.Decode(dst, data, d.h.Encoding, d.before, present, d.all, n, valid, d.t.Scratch); err != nil {
		return place(err)
	}
	if i := dst.TooManyDigits(dst.Len() - n); i >= 0 {
		return place(fault.Rel(0, len(data), "values", "entry %d has more digits than %s", skip+i-(dst.Len()-n),
			dst.Type))
	}
	if l.Column.Has&format.Levels != 0 {
		dd, rr := dst.ExtendLevels(n)
		copy(dd, def)
		copy(rr, rep)
	}
	d.entry, d.before = skip+n, d.before+present
	return nil
}

// definitions reads the definition levels of the len(def) entries after the first skip, out of total in the page. The
// levels begin at body[used]. present is the number of these entries that have a value.
func (d *decoding) definitions(def []byte, used, skip, total int) (present int, err error) {
	begun := d.entry > 0
	if !begun {
		var k int
		if d.defs, k, err = redlevels.NewDefReader(d.body[used:], d.l.MaxDef); err != nil {
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
	rest := d.defs // a copy, so that the next part can continue from here
	d.all, err = rest.Skip(total - skip - len(def))
	d.all += d.before + present
	if err == nil {
		err = rest.End()
	}
	return present, err
}

// Levels decodes the levels of a page whose bytes are b, in memory of a.
func (t *Table) Levels(p *Page, b []byte, a *vec.Arena) (def, rep []byte, err error) {
	at := t.At.Sub(p.Off, p.Size)
	d := decoding{l: t.Leaf, t: &format.Task{Scratch: a}, meta: t.Meta, limits: t.File.Limits,
		verify: !t.File.NoVerify}
	if err := d.open(b, at, p); err != nil {
		return nil, nil, err
	}
	n := int(d.h.Values)
	if n > 8*len(d.body) { // a repetition level takes at least a bit
		return nil, nil, fault.Corruptf(at, "repetition_levels", "%d of them in %d bytes", n, len(d.body))
	}
	def, rep = a.Bytes(n), a.Bytes(n)
	used, err := redlevels.UnpackRep(rep, d.body, 0, n, d.l.MaxRep)
	if err == nil {
		_, err = d.definitions(def, used, 0, n)
	}
	return def, rep, err
}

// Sum compares the bytes b of a page with its checksum, and its header with p, without decoding values. summed reports
// whether there is a checksum.
func (t *Table) Sum(p *Page, b []byte, a *vec.Arena) (summed bool, err error) {
	d := decoding{l: t.Leaf, t: &format.Task{Scratch: a}, meta: t.Meta, limits: t.File.Limits, verify: true,
		sumOnly: true}
	err = d.open(b, t.At.Sub(p.Off, p.Size), p)
	return d.h.HasCRC, err
}

// PageOfRow returns the page in which a row of the row group begins, and its index. If the column is repeated and has
// no index page, the error is Unsupported.
func (t *Table) PageOfRow(ctx context.Context, row int64) (int, *Page, error) {
	for i := t.find(row); ; i++ {
		p, err := t.Get(ctx, i)
		if err == io.EOF {
			return 0, nil, fault.Corruptf(t.File.ChunkSpan(t.Group, t.Col), layout.ChunkPath(t.Group, t.Col),
				"row %d is in none of its pages", row)
		}
		if err != nil {
			return 0, nil, err
		}
		if p.First < 0 {
			return 0, nil, fault.Unsupportedf(t.File.ChunkSpan(t.Group, t.Col), layout.ChunkPath(t.Group, t.Col),
				"rows by number of a column that repeats, without an index page")
		}
		if row < p.First+p.Rows {
			return i, p, nil
		}
	}
}
