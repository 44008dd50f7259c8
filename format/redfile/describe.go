package redfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/enc/redlevels"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// describe shows magic, column chunks with their pages, index pages, sync blocks, metadata in between, and the footer.
func describe(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		d := &describer{ctx: ctx, yield: yield, pages: o.Pages}
		if err := d.object(tg, o.OpenOptions); err != nil && !d.stopped {
			yield(region.Node{}, err)
		}
	}
}

type describer struct {
	ctx     context.Context
	yield   func(region.Node, error) bool
	stopped bool
	pages   bool
	cover   region.Coverage
	f       *file
	at      int64 // what lies before is described
	first   error // that was met; it is told last
	odd     func(code string, at fault.Span, path, format string, args ...any)
}

func (d *describer) emit(n region.Node) {
	if d.stopped || d.ctx.Err() != nil {
		return
	}
	d.cover.Add(n)
	d.stopped = !d.yield(n, nil)
}

func (d *describer) keep(err error) {
	if d.first == nil {
		d.first = err
	}
}

// extent is a chunk to describe: from its first page to behind its metadata.
type extent struct {
	group, col int
	from       int64
	meta       *columnMeta
	metaOff    int64 // -1: none behind the pages
}

// object describes a file.
func (d *describer) object(tg format.Target, o format.OpenOptions) error {
	var late []region.Node
	o.Tracer = func(n region.Node) { late = append(late, n) }
	f, err := openTarget(d.ctx, tg, o)
	if f == nil {
		return err
	}
	d.f = f
	defer f.Close()
	if err != nil {
		for _, n := range late {
			d.emit(n)
		}
		return err
	}
	d.node(0, region.Data, "magic", magic, 0, magicLen)
	d.at = magicLen
	for _, x := range d.extents() {
		if d.stopped || d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		d.between(x.from)
		d.chunk(x)
	}
	d.between(f.metaAt.Off - f.at.Off)
	for _, n := range late {
		d.emit(n)
	}
	tail := f.at.Len - tailLen
	if behind := f.metaAt.End() - f.at.Off; behind < tail {
		d.node(0, region.Gap, "gap", "", behind, tail-behind)
	}
	value := "length of the metadata"
	if f.literal {
		value = "offset of the metadata from the end"
	}
	d.node(0, region.Data, "metadata_length", value, tail, 4)
	d.node(0, region.Data, "magic", magic, tail+4, magicLen)
	return cmp.Or(d.ctx.Err(), d.first)
}

func (d *describer) node(depth int, kind region.Kind, name, value string, off, n int64) {
	d.emit(region.Node{Depth: depth, Kind: kind, Name: name, Value: value, At: d.f.at.Sub(off, n), Inner: -1})
}

// extents are the chunks of this file, by their place.
func (d *describer) extents() []extent {
	var out []extent
	for g := range d.f.meta.groups {
		for col := range d.f.leaves {
			c := &d.f.meta.groups[g].columns[col]
			if c.file != "" {
				continue
			}
			m, err := d.f.columnMeta(d.ctx, g, col)
			if err != nil {
				d.keep(err)
				continue
			}
			x := extent{group: g, col: col, meta: m, metaOff: -1}
			if x.from, err = d.f.firstPage(d.ctx, g, col, m); err != nil {
				d.keep(err)
				continue
			}
			if c.offset > x.from || c.meta == nil || m.values == 0 && d.describes(c.offset, m) {
				x.metaOff = c.offset
			}
			out = append(out, x)
		}
	}
	slices.SortStableFunc(out, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	return out
}

// describes reports whether a copy of m stands at off: behind a chunk without pages it is where these would begin.
func (d *describer) describes(off int64, m *columnMeta) bool {
	f := d.f
	end := f.metaAt.Off - f.at.Off
	if off < magicLen || off >= end {
		return false
	}
	copied, _, err := readColumnMeta(d.ctx, f.src, f.at.Sub(off, end-off), f.limits.Metadata, "")
	return err == nil && copied.values == 0 && slices.Equal(copied.path, m.path)
}

// chunk describes a column chunk.
func (d *describer) chunk(x extent) {
	f := d.f
	from := max(x.from, d.at)
	end := f.metaAt.Off - f.at.Off
	if x.metaOff >= from && x.metaOff < end {
		end = x.metaOff
	}
	// The pages first, so that the node can tell the size of the chunk.
	type found struct {
		off, head int64
		h         pageHeader
	}
	var pages []found
	values, pos := int64(0), x.from
	for n := 0; pos < end && (x.metaOff >= 0 || values < x.meta.values || x.meta.index == pos); n++ {
		h, head, err := pageAt(d.ctx, f.src, f.at.Sub(pos, end-pos), pagePath(x.group, x.col, n))
		if err != nil {
			d.keep(err)
			break
		}
		pages = append(pages, found{pos, head, h})
		if h.kind == dataPage {
			values += int64(h.values)
		}
		pos += head + int64(h.stored)
	}
	metaLen := int64(0)
	if x.metaOff >= 0 && x.metaOff < f.metaAt.Off-f.at.Off {
		at := f.at.Sub(x.metaOff, f.metaAt.Off-f.at.Off-x.metaOff)
		_, n, err := readColumnMeta(d.ctx, f.src, at, f.limits.Metadata, chunkPath(x.group, x.col)+".column_metadata")
		if metaLen = n; err != nil {
			d.keep(err)
		}
	}
	size := pos - x.from
	if metaLen > 0 {
		size = x.metaOff + metaLen - x.from
	}
	d.node(0, region.Struct, chunkPath(x.group, x.col),
		fmt.Sprintf("%s, %d values", f.leaves[x.col].column.Name, x.meta.values), x.from, size)
	for i, p := range pages {
		d.page(x, fmt.Sprintf("page[%d]", i), p.off, p.head, &p.h)
	}
	if metaLen > 0 {
		if pos < x.metaOff {
			d.node(1, region.Gap, "gap", "", pos, x.metaOff-pos)
		}
		d.node(1, region.Struct, "column_metadata", "", x.metaOff, metaLen)
		d.trace(x.metaOff, metaLen, 2, "column_metadata", func(r *thrift.Reader) { parseColumnMeta(r, "") })
	}
	d.at = max(d.at, x.from+size)
}

// trace reads n bytes at off with the parser that decodes them and shows the parts.
func (d *describer) trace(off, n int64, depth int, name string, parse func(*thrift.Reader)) {
	at := d.f.at.Sub(off, n)
	b := make([]byte, n)
	if err := format.ReadFull(d.ctx, d.f.src, at, name, b); err != nil {
		d.keep(err)
		return
	}
	parse(thrift.NewReader(wire.NewCursor(b, at, name).Trace(d.emit, depth), protocolOf(b)))
}

// page describes a page.
func (d *describer) page(x extent, name string, off, head int64, h *pageHeader) {
	value := pageKind(h.kind)
	if h.kind == dataPage {
		value = fmt.Sprintf("%s, %d values, %s", value, h.values, h.encoding)
	}
	d.node(1, region.Struct, name, value, off, head+int64(h.stored))
	if d.odd != nil && h.kind != dataPage && (h.kind != indexPage || h.entries < 0) {
		d.odd("redfile.page.unknown", d.f.at.Sub(off, head), chunkPath(x.group, x.col)+"."+name,
			"%s, or an index page of another layout", pageKind(h.kind))
	}
	if !d.pages {
		return
	}
	d.node(2, region.Struct, "header", "", off, head)
	d.trace(off, head, 3, "header", func(r *thrift.Reader) { parsePageHeader(r, "") })
	d.node(2, region.Struct, "body", fmt.Sprintf("%d bytes raw", h.raw), off+head, int64(h.stored))
	if err := d.body(x, off+head, h); err != nil {
		d.keep(err)
	}
}

// body shows what is in a page: where levels and values are, or the entries of an index.
func (d *describer) body(x extent, off int64, h *pageHeader) error {
	at := d.f.at.Sub(off, int64(h.stored))
	if int64(h.stored) > d.f.limits.Page {
		return fault.Limitf(at, "body", "%d bytes are more than a page may have (%d)", h.stored, d.f.limits.Page)
	}
	b := make([]byte, h.stored)
	if err := format.ReadFull(d.ctx, d.f.src, at, "body", b); err != nil {
		return err
	}
	if h.kind != dataPage && h.kind != indexPage {
		return nil
	}
	raw, exact, err := inflate(b, int64(h.raw), x.meta.codec, d.f.limits.Page, fresh)
	if err != nil {
		return fault.Locate(err, at, true, pagePath(x.group, x.col, 0))
	}
	c := wire.NewInnerCursor(raw, at, "body")
	if exact {
		c = wire.NewCursor(raw, at, "body")
	}
	c.Trace(d.emit, 3)
	if h.kind == indexPage {
		if h.entries >= 0 {
			parseIndex(thrift.NewReader(c, d.f.meta.protocol), "pages")
		}
		return nil
	}
	l := &d.f.leaves[x.col]
	if l.maxRep > 0 {
		n, err := redlevels.UnpackRep(nil, raw, 0, int(h.values), l.maxRep)
		if err != nil {
			return fault.Locate(err, at, exact, "body")
		}
		c.Bytes("repetition_levels", n)
	}
	if l.maxDef > 0 {
		_, n, err := redlevels.NewDefReader(c.Rest(), l.maxDef)
		if err != nil {
			return fault.Locate(err, at, exact, "body")
		}
		c.Bytes("definition_levels", n)
	}
	c.Bytes("values", c.Left())
	return c.Err()
}

// between describes what lies between chunks, up to end: sync blocks, metadata so far, or bytes that nothing claims.
func (d *describer) between(end int64) {
	for d.at < end && !d.stopped && d.ctx.Err() == nil {
		n := d.known(end)
		if n <= 0 {
			d.node(0, region.Gap, "gap", "", d.at, end-d.at)
			d.at = end
			return
		}
		d.at += n
	}
}

// known describes a structure at d.at that ends at or before end, and gives its size; 0: there is none.
func (d *describer) known(end int64) int64 {
	f := d.f
	at := f.at.Sub(d.at, end-d.at)
	h, head, err := pageAt(d.ctx, f.src, at, "")
	if err != nil && !errors.Is(err, fault.Corrupt) {
		d.keep(err) // it may be a structure
	}
	if err == nil && h.kind == syncPage {
		d.node(0, region.Struct, "sync", "", d.at, head+int64(h.stored))
		d.node(1, region.Struct, "header", "", d.at, head)
		d.trace(d.at, head, 2, "header", func(r *thrift.Reader) { parsePageHeader(r, "") })
		d.node(1, region.Struct, "body", "", d.at+head, int64(h.stored))
		b := make([]byte, h.stored)
		body := f.at.Sub(d.at+head, int64(h.stored))
		if err := format.ReadFull(d.ctx, f.src, body, "sync", b); err != nil {
			d.keep(err)
			return head + int64(h.stored)
		}
		if d.odd != nil && crcOf(b) != h.crc {
			d.odd("redfile.sync.damaged", body, "sync", "%#08x is stored, %#08x is right", h.crc, crcOf(b))
		}
		c := wire.NewCursor(b, body, "sync").Trace(d.emit, 2)
		parseSync(thrift.NewReader(c, protocolOfSync(b)), "")
		if c.Err() == nil && c.Left() > 0 {
			c.Bytes("rest", c.Left())
		}
		return head + int64(h.stored)
	}
	m, n, ok := footerAt(d.ctx, f, d.at)
	if !ok || n > end-d.at {
		return 0
	}
	d.node(0, region.Struct, "metadata so far", fmt.Sprintf("%d row groups, %d rows", len(m.groups), m.rows), d.at, n)
	d.node(1, region.Struct, "file_metadata", "", d.at, n-tailLen)
	b := make([]byte, n-tailLen)
	if err := format.ReadFull(d.ctx, f.src, f.at.Sub(d.at, n-tailLen), "file_metadata", b); err == nil {
		parseFileMeta(wire.NewCursor(b, f.at.Sub(d.at, n-tailLen), "file_metadata").Within(f.limits.Memory()).
			Trace(d.emit, 2))
	}
	d.node(1, region.Data, "metadata_length", "", d.at+n-tailLen, 4)
	d.node(1, region.Data, "magic", magic, d.at+n-magicLen, magicLen)
	return n
}
