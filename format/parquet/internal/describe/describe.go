package describe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/describe"
	"stoa/internal/sorted"
	"stoa/internal/thrift"
	"stoa/region"
)

// File describes the column chunks with their pages, the indexes and Bloom filters, and the footer field by field; with
// d.Pages also the fields of page headers and indexes. If the footer is damaged, its intact part is described.
func File(ctx context.Context, t format.Target, d format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		o := &outline{pages: d.Pages, yield: yield}
		open := d.OpenOptions
		open.Tracer = o.footer.Add
		r, err := file.Open(ctx, t, open)
		if err != nil {
			for n := range o.footer.All() {
				if n.Depth--; !yield(n, nil) {
					return
				}
			}
			yield(region.Node{}, err)
			return
		}
		defer r.Close()
		o.r = r
		if err := o.run(ctx); err != nil && err != errStopped {
			yield(region.Node{}, err)
		}
	}
}

var errStopped = errors.New("left")

// outline emits the regions of a file.
type outline struct {
	r       *file.File
	pages   bool
	yield   func(region.Node, error) bool
	footer  describe.Nodes
	stopped bool
	readErr error   // errors while reading Bloom filters
	ends    []int64 // the rows after each row group; nil: not added up yet
}

// emit is a tracer.
func (o *outline) emit(n region.Node) { o.stopped = o.stopped || !o.yield(n, nil) }

func (o *outline) node(depth int, kind region.Kind, name, value string, at fault.Span) error {
	if o.emit(region.Node{Depth: depth, Kind: kind, Name: name, Value: value, At: at, Inner: -1}); o.stopped {
		return errStopped
	}
	return nil
}

// piece is a region of the file, one level below the root.
type piece struct {
	name, value string
	at          fault.Span
	show        func(context.Context, piece) error // nil for a leaf
}

func (o *outline) run(ctx context.Context) error {
	r := o.r
	if err := o.node(0, region.Struct, "file", r.Footer.CreatedBy, r.Span(0, r.Size)); err != nil {
		return err
	}
	pieces := append([]piece{{name: "magic", value: r.Magic(), at: r.Span(0, 4)}}, o.pieces(ctx)...)
	sorted.StablyBy(pieces, func(a, b piece) int { return cmp.Compare(a.at.Off, b.at.Off) })
	end := r.Base
	var damage error
	for _, p := range pieces {
		if p.at.Off > end {
			if err := o.node(1, region.Gap, "unclaimed", "",
				fault.Span{Object: p.at.Object, Off: end, Len: p.at.Off - end}); err != nil {
				return err
			}
		}
		end = max(end, p.at.End())
		err := error(nil)
		if p.show != nil {
			err = p.show(ctx, p)
		} else {
			err = o.node(1, region.Data, p.name, p.value, p.at)
		}
		if o.stopped {
			return errStopped
		}
		damage = errors.Join(damage, err)
	}
	return errors.Join(damage, o.readErr)
}

// pieces lists everything that the footer points to, and the footer.
func (o *outline) pieces(ctx context.Context) (out []piece) {
	r := o.r
	add := func(name, value string, at fault.Span, show func(context.Context, piece) error) {
		if at.Len > 0 && at.Off >= r.Base && at.End() <= r.Base+r.Size {
			out = append(out, piece{name, value, at, show})
		}
	}
	for g, rg := range r.Footer.RowGroups {
		for c, chunk := range rg.Columns {
			name := fmt.Sprintf("row_groups[%d].%s", g, r.Footer.Schema.Column(c).Path())
			m := chunk.MetaData
			add(name, "encrypted", chunk.EncryptedSpan, nil)
			value := fmt.Sprintf("%s, %s", fault.Count(m.NumValues, "value"), m.Codec)
			add(name, value, r.ChunkSpan(g, c),
				func(ctx context.Context, p piece) error { return o.chunk(ctx, p, g, c) })
			if chunk.ColumnIndexOffset != nil && chunk.ColumnIndexLength != nil {
				at := r.Span(*chunk.ColumnIndexOffset, int64(*chunk.ColumnIndexLength))
				add(name+".column_index", "", at,
					o.index(func(r *thrift.Reader) { meta.ParseColumnIndex(r) }, chunk.Crypto, chunk.Cipher,
						meta.ColumnIndexModule))
			}
			if chunk.OffsetIndexOffset != nil && chunk.OffsetIndexLength != nil {
				at := r.Span(*chunk.OffsetIndexOffset, int64(*chunk.OffsetIndexLength))
				add(name+".offset_index", "", at,
					o.index(func(r *thrift.Reader) { meta.ParseOffsetIndex(r) }, chunk.Crypto, chunk.Cipher,
						meta.OffsetIndexModule))
			}
			if m.BloomFilterOffset != nil {
				f, err := r.Bloom(ctx, chunk)
				o.readErr = errors.Join(o.readErr, err)
				add(name+".bloom_filter_header", "", f.Header,
					o.index(func(r *thrift.Reader) { meta.ParseBloomHeader(r) }, chunk.Crypto, chunk.Cipher,
						meta.BloomHeaderModule))
				add(name+".bloom_filter", "", f.Bits, nil)
			}
		}
	}
	copies, err := r.Copies(ctx)
	o.readErr = errors.Join(o.readErr, err)
	for _, x := range copies {
		name := fmt.Sprintf("row_groups[%d].%s.meta_data", x.Group, r.Footer.Schema.Column(x.Leaf).Path())
		is := meta.ColumnMetaData
		if x.Chunk {
			is = meta.ColumnChunk
		}
		add(name, "", x.At, o.index(func(r *thrift.Reader) { meta.Walk(r, "meta_data", is) }, nil, nil, 0))
	}
	add("footer", fmt.Sprintf("%s, %s", fault.Count(len(r.Footer.RowGroups), "row group"),
		fault.Count(r.Footer.Schema.NumColumns(), "column")),
		r.FooterAt, o.metadata)
	add("footer.length", fmt.Sprint(r.FooterAt.Len), r.Span(r.Size-8, 4), nil)
	add("footer.magic", r.Magic(), r.Span(r.Size-4, 4), nil)
	return out
}

// emitFooter emits the decrypted footer.
func (o *outline) emitFooter() error {
	for n := range o.footer.All() {
		if o.emit(n); o.stopped {
			return errStopped
		}
	}
	return nil
}

// metadata describes the footer, which was parsed when the file was opened.
func (o *outline) metadata(_ context.Context, p piece) error {
	if o.r.EncryptedFooter { // the decrypted fields have no place in the file
		return errors.Join(o.node(1, region.Data, p.name, p.value+", encrypted", p.at), o.emitFooter())
	}
	end := p.at.Off
	for n := range o.footer.All() {
		end = max(end, n.At.End())
		o.emit(n)
	}
	if a := o.r.Footer.Algorithm; a != nil && p.at.End()-end == meta.SignatureSize {
		return o.node(1, region.Data, "footer.signature", "",
			fault.Span{Object: p.at.Object, Off: end, Len: meta.SignatureSize})
	}
	if end < p.at.End() {
		return o.node(1, region.Gap, "unclaimed", "", fault.Span{Object: p.at.Object, Off: end, Len: p.at.End() - end})
	}
	return nil
}

// index describes an index with the given parser. An encrypted index is decrypted by s if its key is known.
func (o *outline) index(parse func(*thrift.Reader), locked *meta.ChunkCrypto, s *meta.Cipher,
	m meta.Module) func(context.Context,
	piece) error {
	return func(ctx context.Context, p piece) error {
		if !o.pages || locked != nil && s == nil || p.at.Len > o.r.Limits.Metadata {
			return o.node(1, region.Data, p.name, p.value, p.at)
		}
		b := make([]byte, p.at.Len)
		if err := format.ReadFull(ctx, o.r.Src, p.at, p.name, b); err != nil {
			return err
		}
		if err := o.node(1, region.Struct, p.name, p.value, p.at); err != nil {
			return err
		}
		c, err := meta.IndexCursor(b, p.at, p.name, s, m)
		if err != nil {
			return err
		}
		c.Trace(o.emit, 2)
		parse(thrift.NewReader(c, thrift.Compact))
		if c.Left() > 0 {
			rest := c.SpanOf(c.Pos(), c.Left())
			return errors.Join(c.Err(), o.node(2, region.Gap, "unclaimed", "", rest))
		}
		return c.Err()
	}
}

// rowsOf returns the rows of a row group, half-open.
func (o *outline) rowsOf(group int) (from, to int64) {
	if o.ends == nil {
		for _, g := range o.r.Footer.RowGroups {
			to += g.NumRows
			o.ends = append(o.ends, to)
		}
	}
	if group > 0 {
		from = o.ends[group-1]
	}
	return from, o.ends[group]
}

// chunk describes the pages of a column chunk.
func (o *outline) chunk(ctx context.Context, p piece, group, column int) error {
	rg := o.r.Footer.RowGroups[group]
	codec := rg.Columns[column].MetaData.Codec.String()
	first, last := o.rowsOf(group)
	flat := o.r.Footer.Schema.Column(column).MaxRep == 0
	chunk := region.Node{Depth: 1, Kind: region.Struct, Name: p.name, Value: p.value, At: p.at, Inner: -1, Codec: codec,
		Rows: [2]int64{first, last}}
	if o.emit(chunk); o.stopped {
		return errStopped
	}
	at, s := p.at, meta.PageModule{Cipher: o.r.Footer.RowGroups[group].Columns[column].Cipher, First: true}
	for i := 0; at.Len > 0; i++ {
		path := fmt.Sprintf("row_groups[%d].columns[%d].page[%d]", group, column, i)
		pg, err := o.r.PageHeader(ctx, at, path, s, nil)
		if err != nil {
			return errors.Join(o.node(2, region.Gap, "unclaimed", "", at), err)
		}
		whole := pg.Header
		whole.Len += pg.Body.Len
		n := region.Node{Depth: 2, Kind: region.Struct, Name: fmt.Sprintf("page[%d]", i), Value: pg.String(), At: whole,
			Inner: -1}
		if pg.IsData() && first >= 0 {
			rows := pg.Rows
			if flat { // a value of each row
				rows = pg.Values
			}
			if rows < 0 || rows > last-first {
				first = -1 // where those of the next page begin is not known
			} else {
				n.Rows = [2]int64{first, first + rows}
				first += rows
			}
		}
		if o.emit(n); o.stopped {
			return errStopped
		}
		if o.pages {
			_, err = o.r.PageHeader(ctx, at, path, s, o.emit)
		} else {
			err = o.node(3, region.Data, "header", "", pg.Header)
		}
		if err == nil && pg.Body.Len > 0 {
			err = o.node(3, region.Data, "body", "", pg.Body)
		}
		if err != nil {
			return err
		}
		at = at.Sub(whole.Len, at.Len-whole.Len)
		s.Advance(&pg)
	}
	return nil
}
