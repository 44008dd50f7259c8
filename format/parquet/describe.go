package parquet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// page is one page of a column chunk, found by its header.
type page struct {
	header fault.Span
	body   fault.Span
	kind   int64 // 0 data, 1 index, 2 dictionary, 3 data v2
	values int64
	raw    int64 // bytes of the body uncompressed
	crc    uint32
	hasCRC bool
}

var pageKinds = []string{"data page", "index page", "dictionary page", "data page v2"}

func (p *page) String() string {
	kind := fmt.Sprintf("page of kind %d", p.kind)
	if p.kind >= 0 && p.kind < int64(len(pageKinds)) {
		kind = pageKinds[p.kind]
	}
	return fmt.Sprintf("%s, %d values, %d bytes uncompressed", kind, p.values, p.raw)
}

// pages walks the page headers of a column chunk. An error comes last.
func (r *reader) pages(ctx context.Context, group, column int) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		at := r.chunkSpan(group, column)
		for i := 0; at.Len > 0; i++ {
			p, err := r.pageAt(ctx, at, fmt.Sprintf("row_groups[%d].columns[%d].page[%d]", group, column, i))
			if err != nil {
				yield(page{}, err)
				return
			}
			if !yield(p, nil) {
				return
			}
			at = at.Sub(p.body.End()-at.Off, at.End()-p.body.End())
		}
	}
}

// pageAt reads the header of the page at the start of at.
func (r *reader) pageAt(ctx context.Context, at fault.Span, path string) (p page, err error) {
	const most = 16 << 20 // of a header: statistics may be long
	for n := int64(1 << 10); ; n *= 16 {
		n = min(n, at.Len, most)
		b := make([]byte, n)
		if err := format.ReadFull(ctx, r.src, at.Sub(0, n), path, b); err != nil {
			return p, err
		}
		c := compact{b: b}
		size := int64(-1)
		err = c.structure(0, path+".header", p.number(&size), p.inner(&c, path))
		if err != nil && n < min(at.Len, most) {
			continue // perhaps it is only longer
		}
		if err != nil {
			return p, fault.Locate(err, at.Sub(0, n), true, "")
		}
		p.header = at.Sub(0, int64(c.pos))
		if size < 0 || size > at.Len-p.header.Len {
			return p, fault.Corruptf(p.header, path+".compressed_page_size", "%d bytes, the column chunk has %d left", size, at.Len-p.header.Len)
		}
		p.body = at.Sub(p.header.Len, size)
		return p, nil
	}
}

// number takes the fields of PageHeader.
func (p *page) number(size *int64) func(id int16, v int64) {
	return func(id int16, v int64) {
		switch id {
		case 1:
			p.kind = v
		case 2:
			p.raw = v
		case 3:
			*size = v
		case 4:
			p.crc, p.hasCRC = uint32(v), true
		}
	}
}

// inner takes the number of values out of the header of a data or dictionary page.
func (p *page) inner(c *compact, path string) func(id int16) (bool, error) {
	return func(id int16) (bool, error) {
		if id != 5 && id != 7 && id != 8 {
			return false, nil
		}
		return true, c.structure(1, path, func(id int16, v int64) {
			if id == 1 {
				p.values = v
			}
		}, nil)
	}
}

// piece is a region of the file below its root.
type piece struct {
	name, value   string
	at            fault.Span
	group, column int // of a column chunk; group -1 otherwise
}

// describe shows the column chunks with their pages, the indexes, and the footer.
func describe(ctx context.Context, t format.Target, d format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		r, err := openReader(ctx, t, d.OpenOptions)
		if err != nil {
			yield(region.Node{}, err)
			return
		}
		defer r.Close()
		o := &outline{r: r, yield: yield}
		if err := o.all(ctx); err != nil && err != errLeft {
			yield(region.Node{}, err)
		}
	}
}

var errLeft = errors.New("left")

type outline struct {
	r     *reader
	yield func(region.Node, error) bool
}

func (o *outline) node(depth int, kind region.Kind, name, value string, at fault.Span) error {
	if !o.yield(region.Node{Depth: depth, Kind: kind, Name: name, Value: value, At: at, Inner: -1}, nil) {
		return errLeft
	}
	return nil
}

func (o *outline) all(ctx context.Context) error {
	r := o.r
	if err := o.node(0, region.Struct, "file", r.meta.GetCreatedBy(), r.span(0, r.size)); err != nil {
		return err
	}
	if err := o.node(1, region.Data, "magic", magic, r.span(0, 4)); err != nil {
		return err
	}
	pieces := o.pieces(ctx)
	slices.SortStableFunc(pieces, func(a, b piece) int { return cmp.Compare(a.at.Off, b.at.Off) })
	end := r.base + 4
	var damage error
	for _, p := range pieces {
		if p.at.Off > end {
			if err := o.node(1, region.Gap, "unclaimed", "", fault.Span{Object: p.at.Object, Off: end, Len: p.at.Off - end}); err != nil {
				return err
			}
		}
		end = max(end, p.at.End())
		if err := o.piece(ctx, p); err == errLeft {
			return err
		} else if err != nil {
			damage = errors.Join(damage, err)
		}
	}
	return damage
}

func (o *outline) piece(ctx context.Context, p piece) error {
	if p.group < 0 {
		return o.node(1, region.Data, p.name, p.value, p.at)
	}
	if err := o.node(1, region.Struct, p.name, p.value, p.at); err != nil {
		return err
	}
	i, at := 0, p.at.Off
	for pg, err := range o.r.pages(ctx, p.group, p.column) {
		if err != nil {
			rest := fault.Span{Object: p.at.Object, Off: at, Len: p.at.End() - at}
			return errors.Join(o.node(2, region.Gap, "unclaimed", "", rest), err)
		}
		at = pg.body.End()
		whole := pg.header
		whole.Len += pg.body.Len
		err := o.node(2, region.Struct, fmt.Sprintf("page[%d]", i), pg.String(), whole)
		if err == nil {
			err = o.node(3, region.Data, "header", "", pg.header)
		}
		if err == nil && pg.body.Len > 0 {
			err = o.node(3, region.Data, "body", "", pg.body)
		}
		if err != nil {
			return err
		}
		i++
	}
	return nil
}

// pieces lists everything that the footer names, and the footer.
func (o *outline) pieces(ctx context.Context) (out []piece) {
	r := o.r
	other := func(name, value string, at fault.Span) {
		if at.Len > 0 && at.Off >= r.base && at.End() <= r.base+r.size {
			out = append(out, piece{name: name, value: value, at: at, group: -1})
		}
	}
	for g, rg := range r.meta.RowGroups {
		for c, chunk := range rg.Columns {
			name := fmt.Sprintf("row_groups[%d].%s", g, r.meta.Schema.Column(c).Path())
			m := chunk.MetaData
			value := fmt.Sprintf("%d values, %s", m.NumValues, m.Codec)
			out = append(out, piece{name, value, r.chunkSpan(g, c), g, c})
			if chunk.ColumnIndexOffset != nil && chunk.ColumnIndexLength != nil {
				other(name+".column_index", "", r.span(*chunk.ColumnIndexOffset, int64(*chunk.ColumnIndexLength)))
			}
			if chunk.OffsetIndexOffset != nil && chunk.OffsetIndexLength != nil {
				other(name+".offset_index", "", r.span(*chunk.OffsetIndexOffset, int64(*chunk.OffsetIndexLength)))
			}
			if m.BloomFilterOffset != nil {
				other(name+".bloom_filter", "", r.bloomSpan(ctx, *m.BloomFilterOffset))
			}
		}
	}
	other("footer.metadata", fmt.Sprintf("%d row groups, %d columns", len(r.meta.RowGroups), r.meta.Schema.NumColumns()), r.footer)
	other("footer.length", fmt.Sprint(r.footer.Len), r.span(r.size-8, 4))
	other("footer.magic", magic, r.span(r.size-4, 4))
	return out
}

// bloomSpan is a Bloom filter with its header, which has its length in field 1; empty if there is none.
func (r *reader) bloomSpan(ctx context.Context, off int64) fault.Span {
	if off < 0 || off >= r.size {
		return fault.Span{}
	}
	b := make([]byte, min(64, r.size-off))
	c, n := compact{b: b}, int64(0)
	if format.ReadFull(ctx, r.src, r.span(off, int64(len(b))), "bloom_filter", b) != nil ||
		c.structure(0, "", func(id int16, v int64) { n = max(n, v*int64(bool2int(id == 1))) }, nil) != nil {
		return fault.Span{}
	}
	return r.span(off, int64(c.pos)+n)
}

func bool2int(b bool) int {
	if b {
		return 1
	}
	return 0
}
