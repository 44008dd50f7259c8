package page

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
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

// MaxSub is how many entries of a page are given at a time: one that has more is given as several, so that a
// few bytes of runs never become very much memory.
const MaxSub = 128 << 10

// Page is a data page as walking the headers, or the index page, has found it.
type Page struct {
	Off, Size int64 // with its header
	Values    int64 // levels or values
	First     int64 // rows that begin before it; -1: not known
	Rows      int64 // rows that begin in it; -1: not known
	raw       int64 // bytes after decompression; 0: not known
	Bounds    *pred.Bounds
	Lost      error // why it cannot be read, if that is known
}

// Table is the data pages of a chunk, as far as they are known. It is shared by all who read the chunk.
type Table struct {
	File       *container.File
	Leaf       *schema.Leaf
	Group, Col int
	Meta       *layout.ColumnMeta
	rows       int64 // of the row group; -1: not known
	Src        store.Source
	At         fault.Span // where pages may lie: all of the object before its metadata
	Indexed    bool       // pages come from the index page

	mu         sync.Mutex
	Pages      []Page
	next       int64 // where the next header is
	values     int64 // of the pages so far
	err        error // why there are no more pages: io.EOF, or damage
	noChecksum bool  // one of the pages has no checksum
	begun      bool  // a page was asked for, see rowsBegin
}

// NewTable finds the pages of a chunk of a row group of so many rows, as far as that is done before the first is
// read.
func NewTable(ctx context.Context, f *container.File, l *schema.Leaf, group, col int, m *layout.ColumnMeta,
	rows int64) (*Table, error) {
	t := &Table{File: f, Leaf: l, Group: group, Col: col, Meta: m, rows: rows}
	if t.rows >= 0 && (l.MaxRep == 0 && m.Values != t.rows || m.Values < t.rows) {
		return nil, fault.Corruptf(f.ChunkSpan(group, col), layout.ChunkPath(group, col)+".column_metadata.num_values",
			"%d, the row group has %d rows", m.Values, t.rows)
	}
	var err error
	if t.Src, t.At, err = f.Place(ctx, group, col); err != nil {
		return nil, err
	}
	if t.next, err = f.FirstPage(ctx, group, col, m); err != nil {
		return nil, err
	}
	if m.Index >= 0 && !f.Opts.NoIndex {
		t.useIndex(ctx) // without it the headers are walked
	}
	if !t.Indexed {
		if err := t.resolvePages(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Again is t without any pages, to be found by their headers, the first of them at begin.
func (t *Table) Again(ctx context.Context) (out *Table, begin int64, err error) {
	out = &Table{File: t.File, Leaf: t.Leaf, Group: t.Group, Col: t.Col, Meta: t.Meta, rows: t.rows, Src: t.Src,
		At: t.At}
	out.next, err = t.File.FirstPage(ctx, t.Group, t.Col, t.Meta)
	return out, out.next, err
}

// Get is page i; io.EOF after the last one.
func (t *Table) Get(ctx context.Context, i int) (*Page, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.begun {
		if err := t.rowsBegin(ctx); err != nil {
			return nil, err
		}
		t.begun = true
	}
	for i >= len(t.Pages) && t.err == nil {
		err := t.walk(ctx)
		if err != nil && (errors.Is(err, io.EOF) || errors.Is(err, fault.Corrupt) ||
			errors.Is(err, fault.Unsupported)) {
			t.err = err // others, as of the store, may pass
		} else if err != nil {
			return nil, err
		}
	}
	if i < len(t.Pages) {
		p := t.Pages[i] // a copy: the slice may move
		return &p, nil
	}
	return nil, t.err
}

// walk reads the next header, of which the chunk has values left, and notes its page if it is one of data.
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
		"%d values, but the chunk has %d and %d came before", p.Values, t.Meta.Values, t.values)
}

// header reads the next header and notes its page if it is one of data.
func (t *Table) header(ctx context.Context) error {
	path := layout.PagePath(t.Group, t.Col, len(t.Pages))
	if t.next < layout.MagicLen || t.next >= t.At.Len {
		return fault.Corruptf(t.File.ChunkSpan(t.Group, t.Col), path,
			"it would begin at %d, where no page can be: %d of %d values are found", t.next, t.values, t.Meta.Values)
	}
	h, head, err := layout.PageAt(ctx, t.Src, t.At.Sub(t.next, t.At.Len-t.next), path)
	if err != nil {
		return err
	}
	off := t.next
	t.next += head + int64(h.Stored)
	if h.Kind != layout.DataPage {
		return nil
	}
	t.noChecksum = t.noChecksum || !h.HasCRC
	p := Page{Off: off, Size: head + int64(h.Stored), Values: int64(h.Values), raw: int64(h.Raw)}
	t.place(&p)
	t.Pages = append(t.Pages, p)
	return nil
}

// place puts a page after those before it.
func (t *Table) place(p *Page) {
	p.First, p.Rows = -1, -1
	if t.Leaf.MaxRep == 0 {
		p.First, p.Rows = t.values, p.Values
	}
	t.values += p.Values
}

// find is the number of the page to begin with for a row, as far as it is known.
func (t *Table) find(row int64) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if row <= 0 || len(t.Pages) == 0 || t.Pages[len(t.Pages)-1].First < 0 {
		return 0
	}
	i := sort.Search(len(t.Pages), func(i int) bool { return t.Pages[i].First > row })
	return max(0, i-1)
}

// chunk gives the pages of a table. It is a format.Chunk.
type chunk struct {
	t    *Table
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
	h     layout.PageHeader
	body  []byte
	at    fault.Span // where it lies, or where it was decompressed from
	exact bool

	defs   redlevels.DefReader
	levels int // bytes of all levels
	before int // values of the entries before entry
	all    int // of the page
}

// NewChunk returns the pages of t, from the one that holds rows.From on where that is known.
func NewChunk(t *Table, rows vec.Range) *chunk {
	return &chunk{t: t, rows: rows, i: t.find(rows.From)}
}

// take returns the page if it was left open at the entry.
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

// leave keeps a page that continues behind the entry. own says that its body is not the task's.
func (c *chunk) leave(o *opened, own bool) {
	if !own {
		o.body = append(make([]byte, 0, len(o.body)+vec.Slack), o.body...)
		o.defs.Move(o.body[:o.levels])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = o
}

// Next returns the next page, or a part of one with very many entries.
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

// Dict: RedFile has no dictionaries.
func (c *chunk) Dict() (format.Page, bool) { return format.Page{}, false }

// Decode appends a page to dst.
func (c *chunk) Decode(t *format.Task, dst *vec.Vector) error {
	p, ok := t.Page.Own.(*Page)
	if !ok || len(t.Bytes) != 1 {
		return fault.Bugf("redfile: a page that is not of this file")
	}
	at := t.Page.Spans[0]
	d := decoding{l: c.t.Leaf, t: t, codec: c.t.Meta.Codec, limits: c.t.File.Limits, verify: !t.NoVerify &&
		!c.t.File.NoVerify}
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
		return fault.Locate(err, d.at, d.exact, layout.PagePath(c.t.Group, c.t.Col, t.Page.Ordinal))
	}
	if d.entry < int(d.h.Values) && p.Values > MaxSub { // and not a look-up of one row
		c.leave(&d.opened, kept != nil)
	}
	return nil
}

// decoding is one page, or part of one, being decoded.
type decoding struct {
	opened
	l       *schema.Leaf
	t       *format.Task
	codec   layout.Compression
	limits  format.Limits
	verify  bool
	sumOnly bool // open does not decompress
}

// open reads the header, verifies the checksum and decompresses.
func (d *decoding) open(b []byte, at fault.Span, p *Page) error {
	n, ok := d.h.Usual(b)
	if !ok {
		c := wire.NewCursor(b, at, "")
		d.h = layout.ParsePageHeader(thrift.NewReader(c, layout.ProtocolOf(b)), "header")
		if c.Err() != nil {
			return c.Err()
		}
		n = c.Pos()
	}
	h := &d.h
	stored := b[n:]
	head := at.Sub(0, int64(n))
	d.at = at.Sub(int64(n), int64(len(stored)))
	if field, reason := h.Problem(); field != "" {
		return fault.Corruptf(head, "header."+field, "%s", reason)
	}
	if h.Kind != layout.DataPage || int64(h.Stored) != int64(len(stored)) || int64(h.Values) != p.Values {
		return fault.Corruptf(head, "header",
			"a %s of %d values and %d bytes, where a data page of %d values and %d bytes should be",
			layout.PageKind(h.Kind), h.Values, h.Stored, p.Values, len(stored))
	}
	if d.verify && h.HasCRC {
		if crc := layout.CRC(stored); crc != h.CRC {
			return fault.Corruptf(at, "header.crc", "%#08x is stored, %#08x is right", h.CRC, crc)
		}
	}
	if d.sumOnly && d.codec != layout.Uncompressed && rawSizeAgrees(d.codec, stored, h.Raw) {
		return nil
	}
	body, exact, err := Inflate(stored, int64(h.Raw), d.codec, d.limits.Page, d.t.Scratch.Bytes)
	if err != nil {
		return fault.Locate(err, d.at, true, "")
	}
	d.body, d.exact = body, exact
	return nil
}

// rawSizeAgrees reports whether compressed bytes say themselves that they are so many raw: a bare Snappy block in
// front, a GZIP member, of which there is one, at the end. Others must be decompressed to know.
func rawSizeAgrees(c layout.Compression, b []byte, raw int32) bool {
	switch c {
	case layout.Snappy:
		return unpack.SnappySize(b) == int(raw)
	case layout.Gzip:
		return len(b) >= 18 && binary.LittleEndian.Uint32(b[len(b)-4:]) == uint32(raw)
	}
	return false
}

// Inflate gives the raw bytes of a page's body, in memory that room gives. Nothing is taken on the word of the
// header that the method cannot reach.
func Inflate(stored []byte, raw int64, c layout.Compression, limit int64, room func(n int) []byte) (body []byte,
	exact bool, err error) {
	if c == layout.Uncompressed {
		if raw != int64(len(stored)) {
			return nil, true, fault.Rel(0, len(stored), "uncompressed_page_size",
				"%d, but %d bytes are stored without compression", raw, len(stored))
		}
		return stored, true, nil
	}
	most := int64(1100) // what Deflate can reach; Snappy reaches 22
	if raw > limit {
		return nil, false, fault.New(fault.Limit, fault.Span{Len: int64(len(stored))}, "uncompressed_page_size",
			"%d bytes are more than a page may have (%d, page limit or memory limit)", raw, limit)
	}
	if raw > most*int64(len(stored)) {
		return nil, false, fault.Rel(0, len(stored), "uncompressed_page_size", "%d bytes cannot come of %d", raw,
			len(stored))
	}
	body = room(int(raw))
	switch c {
	case layout.Snappy:
		return body, false, unSnappy(body, stored)
	case layout.Gzip:
		return body, false, unpack.UnGzip(body, stored)
	}
	return nil, false, fault.New(fault.Unsupported, fault.Span{Len: int64(len(stored))}, "codec", "%s", c)
}

// Fresh returns memory of its own.
func Fresh(n int) []byte { return make([]byte, n) }

// unSnappy takes a bare Snappy block, or Hadoop's framing: u32 big-endian raw size, then for each block u32 big-endian
// stored size and the block, until the raw size is reached.
func unSnappy(dst, src []byte) error {
	z, _ := codec.ByName("snappy")
	err := z.Decompress(dst, src)
	if err == nil {
		return nil
	}
	if !framed(z, dst, src) {
		return err
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
	present := n // values of the entries wanted
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
	if err := l.Value.Counts(data, d.h.Encoding, d.all); err != nil {
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

// definitions reads the levels of len(def) entries after skip ones, of total in all, from body[used:] on, and
// counts those with a value.
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
	rest := d.defs // a copy: the next part continues
	d.all, err = rest.Skip(total - skip - len(def))
	d.all += d.before + present
	if err == nil {
		err = rest.End()
	}
	return present, err
}

// Levels reads the levels of a page, of which b are the bytes, into memory of a.
func (t *Table) Levels(p *Page, b []byte, a *vec.Arena) (def, rep []byte, err error) {
	at := t.At.Sub(p.Off, p.Size)
	d := decoding{l: t.Leaf, t: &format.Task{Scratch: a}, codec: t.Meta.Codec, limits: t.File.Limits,
		verify: !t.File.NoVerify}
	if err := d.open(b, at, p); err != nil {
		return nil, nil, err
	}
	n := int(d.h.Values)
	if n > 8*len(d.body) { // a repetition level takes a bit
		return nil, nil, fault.Corruptf(at, "repetition_levels", "%d of them in %d bytes", n, len(d.body))
	}
	def, rep = a.Bytes(n), a.Bytes(n)
	used, err := redlevels.UnpackRep(rep, d.body, 0, n, d.l.MaxRep)
	if err == nil {
		_, err = d.definitions(def, used, 0, n)
	}
	return def, rep, err
}

// Sum compares a page, of which b are the bytes, with its checksum, and its header against the page; the values are not
// looked at. summed: there is a checksum.
func (t *Table) Sum(p *Page, b []byte, a *vec.Arena) (summed bool, err error) {
	d := decoding{l: t.Leaf, t: &format.Task{Scratch: a}, codec: t.Meta.Codec, limits: t.File.Limits, verify: true,
		sumOnly: true}
	err = d.open(b, t.At.Sub(p.Off, p.Size), p)
	if err == nil && d.h.Encoding > layout.GroupVarInt { // no checksum is over the header
		err = fault.Unsupportedf(fault.Span{}, "header.data_page.encoding", "%s", d.h.Encoding)
	}
	return d.h.HasCRC, err
}

// PageOfRow is the page in which a row begins.
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
