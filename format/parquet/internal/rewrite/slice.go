package rewrite

import (
	"context"
	"hash/crc32"
	"maps"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/format/parquet/internal/write"
	"stoa/internal/nest"
)

// slice is some rows of a data page that also has rows of other parts: the page is decoded, and the rows are encoded as
// they were before.
type slice struct {
	from, to int64 // rows that begin in the page; -1 at an end where it is not cut

	whole         []byte // the encoded page with its header
	raw           int64  // its size with the header before compression
	values, nulls int64
	strings       int64      // bytes of strings, without lengths
	levels        [2][]int64 // numbers of entries by repetition and by definition level
	bounds        *meta.Stats
}

// makeSlices makes the slices of a part.
func (s *source) makeSlices(ctx context.Context, g, leaf int, x *chunkPart) error {
	if len(x.cut) == 0 {
		return nil
	}
	pages, err := s.r.StoredPages(ctx, g, leaf)
	if err != nil {
		return err
	}
	d := s.r.Footer.Schema.Column(leaf)
	c := slicer{pages: pages, s: s, leaf: leaf, codec: s.r.Footer.RowGroups[g].Columns[leaf].MetaData.Codec,
		how: write.Stored{MaxDef: uint8(d.MaxDefinitionLevel()), MaxRep: uint8(d.MaxRepetitionLevel()),
			Physical: d.PhysicalType()}}
	if dict := pages.Dict(); dict != nil && x.dict != nil {
		c.how.Codes = codesOf(dict, c.how.Physical)
	}
	index, err := s.r.ColumnIndex(ctx, g, leaf, x.of)
	if err != nil {
		return err
	}
	for _, i := range slices.Sorted(maps.Keys(x.cut)) {
		said := x.pages[i].Stats
		if index != nil {
			said = index.PageStats(x.from + i)
		}
		if err := c.make(ctx, x.from+i, &x.pages[i], said, x.cut[i]); err != nil {
			return fault.Locate(err, x.pages[i].Whole(), false, d.Path())
		}
	}
	return nil
}

// slicer cuts the pages of a column chunk.
type slicer struct {
	pages *read.StoredPages
	s     *source
	leaf  int
	how   write.Stored
	codec meta.Compression
}

// make makes a slice of data page number i; said are the known statistics of the page.
func (c *slicer) make(ctx context.Context, i int, p *meta.Page, said *meta.Stats, x *slice) error {
	v, err := c.pages.Vector()
	if err != nil {
		return err
	}
	defer v.Release()
	if err := c.pages.Page(ctx, i, v); err != nil {
		return err
	}
	from, to := 0, v.Len()
	if x.from >= 0 {
		from = nest.RowStart(v.Rep(), int(x.from))
	}
	if x.to >= 0 {
		to = nest.RowStart(v.Rep(), int(x.to))
	}
	if c.how.Width = v.Width(); c.how.Physical == meta.TypeBoolean {
		c.how.Width = 1
	}
	how := c.how
	how.Encoding = p.Encoding
	for k, encoding := range []int32{p.Levels[1], p.Levels[0]} {
		how.Packed[k] = p.Kind == meta.DataPage && encoding == meta.BitPacked
	}
	some := storedOf(v, from, to, how)
	x.values, x.nulls = int64(to-from), int64(to-from-some.Values())
	x.strings = some.Strings()
	x.levels = [2][]int64{counts(some.Rep, some.MaxRep), counts(some.Def, some.MaxDef)}
	x.bounds = c.bounds(some, said)
	if err := c.encode(ctx, p, some, x); err != nil {
		return err
	}
	return c.prove(some, x)
}

func counts(levels []byte, most uint8) []int64 {
	out := make([]int64, int(most)+1)
	for _, l := range levels {
		out[l]++
	}
	return out
}

// bounds returns the bounds of a slice; nil if the whole page has none. If there is no order, or the bounds are long,
// it returns those of the whole page, which are correct but may be wider than necessary.
func (c *slicer) bounds(some *write.Stored, said *meta.Stats) *meta.Stats {
	if said == nil || said.Min == nil || said.Max == nil || some.Values() == 0 {
		return said
	}
	out := &meta.Stats{Min: said.Min, Max: said.Max}
	if !c.s.r.Ordered(c.leaf) {
		return out
	}
	low, high := some.Bounds(c.s.r.LeafOf(c.leaf).Typ)
	if low != nil && len(low) <= max(write.MaxBound, len(said.Min)) {
		out.Min = low
	}
	if high != nil && len(high) <= max(write.MaxBound, len(said.Max)) {
		out.Max = high
	}
	return out
}

// compressor returns the page's compressor, with the framing that the page has.
func (c *slicer) compressor(ctx context.Context, p *meta.Page) (func(dst, src []byte) ([]byte, error), error) {
	framed := false
	if c.codec == meta.CodecLZ4 && !p.Uncompressed {
		levels := int64(0) // length of the levels, which are not compressed
		if p.Kind == meta.DataPageV2 {
			levels = int64(p.Levels[0]) + int64(p.Levels[1])
		}
		b := make([]byte, p.Body.Len-levels)
		if err := format.ReadFull(ctx, c.s.r.Src, p.Body.Sub(levels, p.Body.Len-levels), "page", b); err != nil {
			return nil, err
		}
		framed = meta.Framed(b, p.Raw-levels)
	}
	compress, ok := write.CompressorOf(c.codec, framed)
	if !ok {
		return nil, fault.Unsupportedf(p.Whole(), "", "codec %s", c.codec)
	}
	return compress, nil
}

// encode encodes the page of a slice.
func (c *slicer) encode(ctx context.Context, p *meta.Page, some *write.Stored, x *slice) error {
	b := make([]byte, p.Header.Len)
	if err := format.ReadFull(ctx, c.s.r.Src, p.Header, "page header", b); err != nil {
		return err
	}
	head, _, err := decode(b)
	if err != nil {
		return err
	}
	v2 := p.Kind == meta.DataPageV2
	levels, rep, def := some.Levels(nil, !v2)
	values, err := some.Encode(nil)
	if err != nil {
		return err
	}
	compress, err := c.compressor(ctx, p)
	if err != nil {
		return err
	}
	raw, body, packed := len(levels)+len(values), append(levels[:len(levels):len(levels)], values...), false
	switch {
	case compress == nil:
	case v2: // as in our writer, levels are not compressed, and values only if that saves bytes
		var z []byte
		if z, err = compress(nil, values); err == nil && len(z) < len(values) {
			packed, body = true, append(levels, z...)
		}
	default:
		body, err = compress(nil, body)
	}
	if err != nil {
		return err
	}
	id, stats := int16(5), int16(5)
	if v2 {
		id, stats = 8, 8
	}
	h := head.at(id)
	h.set(1, i32(x.values))
	if v2 {
		h.set(2, i32(x.nulls))
		h.set(3, i32(int64(nest.CountRows(some.Rep))))
		h.set(5, i32(int64(def)))
		h.set(6, i32(int64(rep)))
		if h.set(7, node{typ: isFalse}); packed {
			h.set(7, node{typ: isTrue})
		}
	}
	x.restateHeader(h, stats)
	head.set(2, i32(int64(raw)))
	head.set(3, i32(int64(len(body))))
	if head.at(4) != nil {
		head.set(4, i32(int64(int32(crc32.ChecksumIEEE(body)))))
	}
	x.whole = head.append(nil)
	x.raw = int64(len(x.whole) + raw)
	x.whole = append(x.whole, body...)
	return nil
}

// restateHeader replaces the statistics in the header of a page.
func (x *slice) restateHeader(h *node, id int16) {
	was := h.at(id)
	if was == nil {
		return
	}
	now := node{typ: isStruct}
	if was.at(3) != nil {
		now.set(3, i64(x.nulls))
	}
	if was.at(5) != nil && was.at(6) != nil && x.bounds != nil && x.nulls < x.values {
		now.set(5, node{typ: isBytes, b: x.bounds.Max})
		now.set(6, node{typ: isBytes, b: x.bounds.Min})
	}
	if h.drop(id); len(now.fields) > 0 {
		h.set(id, now)
	}
}

// prove decodes a slice and compares it with the entries from which it was made.
func (c *slicer) prove(some *write.Stored, x *slice) error {
	v, err := c.pages.Vector()
	if err != nil {
		return err
	}
	defer v.Release()
	if err := c.pages.Parse(x.whole, x.values, v); err != nil {
		return err
	}
	if !storedOf(v, 0, v.Len(), c.how).Same(some) {
		return fault.Bugf("parquet: a page that was cut has other entries")
	}
	return nil
}

// write copies the pages of a part, adjacent ones in one go, and writes its slices.
func (x *chunkPart) write(ctx context.Context, out *counted, r *file.File, sum uint32) (uint32, error) {
	var err error
	x.at = nil
	for i := 0; i < len(x.pages); {
		if cut := x.cut[i]; cut != nil {
			x.at = append(x.at, written{out.off, int64(len(cut.whole))})
			sum = crc32.Update(sum, crc32.IEEETable, cut.whole)
			if _, err = out.Write(cut.whole); err != nil {
				return 0, err
			}
			cut.whole = nil // its statistics are still needed for the indexes, after all pages
			i++
			continue
		}
		at := fault.Span{Object: x.pages[i].Header.Object, Off: x.pages[i].Header.Off}
		for ; i < len(x.pages) && x.cut[i] == nil; i++ {
			p := x.pages[i].Whole()
			x.at = append(x.at, written{out.off + p.Off - at.Off, p.Len})
			at.Len = p.End() - at.Off
		}
		if sum, err = copySpan(ctx, out, r, at, sum); err != nil {
			return 0, err
		}
	}
	return sum, nil
}
