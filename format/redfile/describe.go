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
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/recovery"
	"stoa/format/redfile/internal/table"
	"stoa/internal/describe"
	"stoa/internal/enc/redlevels"
	"stoa/internal/sorted"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// anatomy streams the structures of a file: magic, column chunks with their pages, index pages, sync blocks,
// intermediate metadata, and the footer.
func anatomy(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, o.Pages, func(out *describe.Outline) error {
		return (&describer{Outline: out}).object(tg, o.OpenOptions)
	})
}

type describer struct {
	*describe.Outline
	f    *table.File
	at   int64      // everything before this offset has been described
	rows [][2]int64 // of row groups, as far as they are added up
	// report receives the findings that only verify reports; nil while describing.
	report func(code string, at fault.Span, path, format string, args ...any)
}

// extent is a chunk to describe, from its first page to the end of its metadata.
type extent struct {
	group, col int
	from       int64
	meta       *layout.ColumnMeta
	metaOff    int64 // -1 if there is none after the pages
}

// object describes a file.
func (d *describer) object(tg format.Target, o format.OpenOptions) error {
	var footer describe.Nodes
	o.Tracer = footer.Add
	f, err := table.OpenTarget(d.Ctx, tg, o)
	if f == nil {
		return err
	}
	d.f = f
	defer f.Close()
	if err != nil {
		for n := range footer.All() {
			d.Emit(n)
		}
		return err
	}
	d.node(0, region.Data, "magic", layout.Magic, 0, layout.MagicLen)
	d.at = layout.MagicLen
	for _, x := range d.extents() {
		if d.Left() {
			return d.Ctx.Err()
		}
		d.between(x.from)
		d.chunk(x)
	}
	d.between(f.MetaAt.Off - f.At.Off)
	for n := range footer.All() {
		d.Emit(n)
	}
	tail := f.At.Len - layout.TailLen
	if after := f.MetaAt.End() - f.At.Off; after < tail {
		d.node(0, region.Gap, "gap", "", after, tail-after)
	}
	value := "length of the metadata"
	if f.Literal {
		value = "offset of the metadata from the end"
	}
	d.node(0, region.Data, "metadata_length", value, tail, 4)
	d.node(0, region.Data, "magic", layout.Magic, tail+4, layout.MagicLen)
	return cmp.Or(d.First(), f.NameDamage)
}

func (d *describer) node(depth int, kind region.Kind, name, value string, off, n int64) {
	d.Emit(region.Node{Depth: depth, Kind: kind, Name: name, Value: value, At: d.f.At.Sub(off, n), Inner: -1})
}

// extents returns the chunks of this file in file order.
func (d *describer) extents() []extent {
	var out []extent
	for g := range d.f.Footer.Groups {
		for col := range d.f.Leaves {
			c := &d.f.Footer.Groups[g].Columns[col]
			if c.File != "" {
				continue
			}
			m, err := d.f.ColumnMeta(d.Ctx, g, col)
			if err != nil {
				d.Keep(err)
				continue
			}
			if err := d.f.Contradiction(m, g, col); err != nil {
				d.Keep(err)
			}
			x := extent{group: g, col: col, meta: m, metaOff: -1}
			if x.from, err = d.f.FirstPage(d.Ctx, g, col, m); err != nil {
				d.Keep(err)
				continue
			}
			if c.Offset > x.from || c.Meta == nil || m.Values == 0 && d.describes(c.Offset, m) {
				x.metaOff = c.Offset
			}
			out = append(out, x)
		}
	}
	sorted.StablyBy(out, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	return out
}

// describes reports whether there is a copy of m at off, where the first page would begin, as in a chunk without pages.
func (d *describer) describes(off int64, m *layout.ColumnMeta) bool {
	f := d.f
	end := f.MetaAt.Off - f.At.Off
	if off < layout.MagicLen || off >= end {
		return false
	}
	copied, _, err := container.ReadColumnMeta(d.Ctx, f.Src, f.At.Sub(off, end-off), f.Limits.Metadata, "")
	return err == nil && copied.Values == 0 && slices.Equal(copied.Path, m.Path)
}

// chunk describes a column chunk.
func (d *describer) chunk(x extent) {
	f := d.f
	from := max(x.from, d.at)
	end := f.MetaAt.Off - f.At.Off
	if x.metaOff >= from && x.metaOff < end {
		end = x.metaOff
	}
	// Pages are read before the node of the chunk is emitted, because they determine its size.
	type found struct {
		off, head int64
		h         layout.PageHeader
	}
	var pages []found
	values, pos := int64(0), x.from
	for n := 0; pos < end && (x.metaOff >= 0 || values < x.meta.Values || x.meta.Index == pos); n++ {
		h, head, err := layout.PageAt(d.Ctx, f.Src, f.At.Sub(pos, end-pos), layout.PagePath(x.group, x.col, n))
		if err != nil {
			d.Keep(err)
			break
		}
		pages = append(pages, found{pos, head, h})
		if h.Kind == layout.DataPage {
			values += int64(h.Values)
		}
		pos += head + int64(h.Stored)
	}
	metaLen := d.metaLen(x)
	size := pos - x.from
	if metaLen > 0 {
		size = x.metaOff + metaLen - x.from
	}
	group := d.rowsOf(x.group)
	whole := region.Node{Kind: region.Struct, Name: layout.ChunkPath(x.group, x.col), At: f.At.Sub(x.from, size),
		Value: fmt.Sprintf("%s, %s", f.Leaves[x.col].Column.Name, fault.Count(x.meta.Values, "value")), Inner: -1,
		Codec: x.meta.Codec.String(), Rows: group}
	d.Emit(whole)
	next := group[0]
	for i, p := range pages {
		var rows [2]int64
		n := int64(p.h.Values)
		if f.Leaves[x.col].MaxRep == 0 && p.h.Kind == layout.DataPage && n >= 0 && n <= group[1]-next {
			rows = [2]int64{next, next + n} // a value of each row
			next = rows[1]
		}
		d.page(x, fmt.Sprintf("page[%d]", i), p.off, p.head, &p.h, rows)
	}
	if metaLen > 0 {
		if pos < x.metaOff {
			d.node(1, region.Gap, "gap", "", pos, x.metaOff-pos)
		}
		d.node(1, region.Struct, "column_metadata", "", x.metaOff, metaLen)
		d.trace(x.metaOff, metaLen, 2, "column_metadata", func(r *thrift.Reader) { layout.ParseColumnMeta(r, "") })
	}
	d.at = max(d.at, x.from+size)
}

// metaLen returns the length of the metadata after the pages of a chunk; 0 if there are none.
func (d *describer) metaLen(x extent) int64 {
	f := d.f
	if x.metaOff < 0 || x.metaOff >= f.MetaAt.Off-f.At.Off {
		return 0
	}
	at := f.At.Sub(x.metaOff, f.MetaAt.Off-f.At.Off-x.metaOff)
	_, n, err := container.ReadColumnMeta(d.Ctx, f.Src, at, f.Limits.Metadata,
		layout.ChunkPath(x.group, x.col)+".column_metadata")
	if err != nil {
		d.Keep(err)
	}
	return n
}

// rowsOf returns the rows of a row group; none if that is not known. A footer may leave out their number, which is then
// that of the values of a column without lists.
func (d *describer) rowsOf(group int) [2]int64 {
	for g := len(d.rows); g <= group; g++ {
		first, n := int64(0), d.f.Footer.Groups[g].Rows
		for col := 0; n < 0 && col < len(d.f.Leaves); col++ {
			if m, err := d.f.ColumnMeta(d.Ctx, g, col); err == nil && d.f.Leaves[col].MaxRep == 0 {
				n = m.Values
			}
		}
		if g > 0 {
			if first = d.rows[g-1][1]; first == 0 {
				n = -1 // nor is where it begins
			}
		}
		if n < 0 {
			first, n = 0, 0
		}
		d.rows = append(d.rows, [2]int64{first, first + n})
	}
	return d.rows[group]
}

// trace reads n bytes at off and emits their parts, using the parser that also decodes them.
func (d *describer) trace(off, n int64, depth int, name string, parse func(*thrift.Reader)) {
	at := d.f.At.Sub(off, n)
	b := make([]byte, n)
	if err := format.ReadFull(d.Ctx, d.f.Src, at, name, b); err != nil {
		d.Keep(err)
		return
	}
	parse(thrift.NewReader(wire.NewCursor(b, at, name).Trace(d.Emit, depth), layout.ProtocolOf(b)))
}

// page describes a page.
func (d *describer) page(x extent, name string, off, head int64, h *layout.PageHeader, rows [2]int64) {
	value := layout.PageKind(h.Kind)
	if h.Kind == layout.DataPage {
		value = fmt.Sprintf("%s, %s, %s", value, fault.Count(h.Values, "value"), h.Encoding)
	}
	d.Emit(region.Node{Depth: 1, Kind: region.Struct, Name: name, Value: value, Rows: rows, Inner: -1,
		At: d.f.At.Sub(off, head+int64(h.Stored))})
	if d.report != nil && h.Kind != layout.DataPage && (h.Kind != layout.IndexPage || h.Entries < 0) {
		d.report("redfile.page.unknown", d.f.At.Sub(off, head), layout.ChunkPath(x.group, x.col)+"."+name,
			"%s, or an index page of another layout", layout.PageKind(h.Kind))
	}
	if !d.Pages {
		return
	}
	d.node(2, region.Struct, "header", "", off, head)
	d.trace(off, head, 3, "header", func(r *thrift.Reader) { layout.ParsePageHeader(r, "") })
	d.node(2, region.Struct, "body", fmt.Sprintf("%d bytes raw", h.Raw), off+head, int64(h.Stored))
	if err := d.body(x, off+head, h); err != nil {
		d.Keep(err)
	}
}

// body describes the body of a page: the positions of levels and values, or the entries of an index.
func (d *describer) body(x extent, off int64, h *layout.PageHeader) error {
	at := d.f.At.Sub(off, int64(h.Stored))
	b, err := format.ReadPage(d.Ctx, d.f.Src, at, d.f.Limits, "body", page.Alloc)
	if err != nil {
		return err
	}
	if h.Kind != layout.DataPage && h.Kind != layout.IndexPage {
		return nil
	}
	raw, exact, err := page.Inflate(b, int64(h.Raw), x.meta.Codec, d.f.Limits.Page, page.Alloc)
	if err != nil {
		return fault.Locate(err, at, true, layout.PagePath(x.group, x.col, 0))
	}
	c := wire.NewInnerCursor(raw, at, "body")
	if exact {
		c = wire.NewCursor(raw, at, "body")
	}
	c.Trace(d.Emit, 3)
	if h.Kind == layout.IndexPage {
		if h.Entries >= 0 {
			layout.ParseIndex(thrift.NewReader(c, d.f.Footer.Protocol), "pages")
		}
		return nil
	}
	l := &d.f.Leaves[x.col]
	if l.MaxRep > 0 {
		n, err := redlevels.UnpackRep(nil, raw, 0, int(h.Values), l.MaxRep)
		if err != nil {
			return fault.Locate(err, at, exact, "body")
		}
		c.Bytes("repetition_levels", n)
	}
	if l.MaxDef > 0 {
		_, n, err := redlevels.NewDefReader(c.Rest(), l.MaxDef)
		if err != nil {
			return fault.Locate(err, at, exact, "body")
		}
		c.Bytes("definition_levels", n)
	}
	c.Bytes("values", c.Left())
	return c.Err()
}

// between describes the bytes between chunks, up to end: sync blocks, intermediate metadata, or unclaimed bytes.
func (d *describer) between(end int64) {
	for d.at < end && !d.Left() {
		n := d.structure(end)
		if n <= 0 {
			d.node(0, region.Gap, "gap", "", d.at, end-d.at)
			d.at = end
			return
		}
		d.at += n
	}
}

// structure describes the structure at d.at, which must end at or before end, and returns its size; 0 if there is none.
func (d *describer) structure(end int64) int64 {
	f := d.f
	at := f.At.Sub(d.at, end-d.at)
	h, head, err := layout.PageAt(d.Ctx, f.Src, at, "")
	if err != nil && !errors.Is(err, fault.Corrupt) {
		d.Keep(err) // the store failed, so there may be a structure here
	}
	if err == nil && h.Kind == layout.SyncPage {
		d.node(0, region.Struct, "sync", "", d.at, head+int64(h.Stored))
		d.node(1, region.Struct, "header", "", d.at, head)
		d.trace(d.at, head, 2, "header", func(r *thrift.Reader) { layout.ParsePageHeader(r, "") })
		d.node(1, region.Struct, "body", "", d.at+head, int64(h.Stored))
		b := make([]byte, h.Stored)
		body := f.At.Sub(d.at+head, int64(h.Stored))
		if err := format.ReadFull(d.Ctx, f.Src, body, "sync", b); err != nil {
			d.Keep(err)
			return head + int64(h.Stored)
		}
		if d.report != nil && layout.CRC(b) != h.CRC {
			d.report("redfile.sync.damaged", body, "sync", "expected %#08x, computed %#08x", h.CRC, layout.CRC(b))
		}
		c := wire.NewCursor(b, body, "sync").Trace(d.Emit, 2)
		layout.ParseSync(thrift.NewReader(c, layout.ProtocolOfSync(b)), "")
		if c.Err() == nil && c.Left() > 0 {
			c.Bytes("rest", c.Left())
		}
		return head + int64(h.Stored)
	}
	m, n, ok := recovery.FooterAt(d.Ctx, f, d.at)
	if !ok || n > end-d.at {
		return 0
	}
	d.node(0, region.Struct, "metadata so far", fmt.Sprintf("%s, %s", fault.Count(len(m.Groups), "row group"),
		fault.Count(m.Rows, "row")), d.at, n)
	d.node(1, region.Struct, "file_metadata", "", d.at, n-layout.TailLen)
	b := make([]byte, n-layout.TailLen)
	if err := format.ReadFull(d.Ctx, f.Src, f.At.Sub(d.at, n-layout.TailLen), "file_metadata", b); err == nil {
		at := f.At.Sub(d.at, n-layout.TailLen)
		layout.ParseFileMeta(wire.NewCursor(b, at, "file_metadata").Within(f.Limits.Memory()).
			Trace(d.Emit, 2))
	}
	d.node(1, region.Data, "metadata_length", "", d.at+n-layout.TailLen, 4)
	d.node(1, region.Data, "magic", layout.Magic, d.at+n-layout.MagicLen, layout.MagicLen)
	return n
}
