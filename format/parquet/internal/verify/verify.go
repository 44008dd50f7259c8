package verify

import (
	"context"
	"fmt"
	"iter"
	"math"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/describe"
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/read"
	"stoa/region"
	"stoa/vec"
)

// File reads everything, unless only the structure is requested: footer, page headers, checksums, indexes, values. All
// redundant information is compared: numbers of rows and values, positions of pages, and bounds with values. Checksums
// would not suffice, because Parquet has them only for page bodies.
func File(ctx context.Context, t format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := newVerifier(ctx, t.Name, yield)
		v.noSums, v.depth = o.NoVerify || o.Depth == format.Quick, o.Depth
		f, err := file.New(ctx, t, o)
		if err != nil {
			v.find("parquet.footer", err)
			return
		}
		r := read.NewReader(f, nil)
		defer r.Close()
		r.Summaries = true
		if err := r.Start(ctx); err != nil {
			v.find("parquet.footer", err)
			return
		}
		v.r = r
		v.find("parquet.types", r.SchemaError)
		for _, err := range r.MissingParts {
			v.find("parquet.part", err)
		}
		if v.magic(); r.Summaries {
			v.summary(t)
			return
		}
		v.file(t, o)
	}
}

// Unchecked implements format.Format.Unchecked. Writers checksum all pages of a chunk or none, so the first page
// decides.
func Unchecked(ctx context.Context, t format.Target, o format.OpenOptions) (string, error) {
	r, err := file.New(ctx, t, o)
	if err != nil {
		return "", err
	}
	defer r.Close()
	r.Summaries = true
	if err := r.Start(ctx); err != nil || r.Summaries { // a summary has no pages
		return "", err
	}
	var unchecked []string
	leaves := r.Footer.Schema.NumColumns()
	for leaf := range leaves {
		for g := range r.Footer.RowGroups {
			at := r.ChunkSpan(g, leaf)
			if at.Len == 0 {
				continue
			}
			p, err := r.PageHeader(ctx, at, meta.IndexPath(g, leaf, "page[0]"),
				meta.PageModule{Cipher: r.Footer.RowGroups[g].Columns[leaf].Cipher, First: true}, nil)
			if err == nil && !p.HasCRC {
				unchecked = append(unchecked, r.Footer.Schema.Column(leaf).Path())
				break
			}
		}
	}
	return format.WithoutSums(leaves, unchecked), ctx.Err()
}

// magic checks the first bytes, on which no reader relies.
func (v *verifier) magic() {
	at := v.r.Span(0, 4)
	var b [4]byte
	err := format.ReadFull(v.ctx, v.r.Src, at, "magic", b[:])
	if err == nil && string(b[:]) != v.r.Magic() {
		err = fault.Corruptf(at, "magic", "%q instead of %q", b[:], v.r.Magic())
	}
	v.find("parquet.magic", err)
}

func (v *verifier) file(t format.Target, o format.OpenOptions) {
	v.r.Misplaced(func(err error) { v.find("parquet.misplaced", err) })
	v.copies()
	rows := int64(0)
	for g, rg := range v.r.Footer.RowGroups {
		group := region.Finding{Part: t.Name, Rows: [2]int64{rows, rows + rg.NumRows}, Lost: -1}
		v.base = group
		v.find("parquet.sizes", groupSizes(v.r, g))
		for f := range v.r.FieldLeaves {
			v.base.Column, v.base.Rows, v.base.Lost = v.r.Shown.Field(f).Name, [2]int64{rows, rows + rg.NumRows},
				rg.NumRows
			v.badPages = map[fault.Span]bool{}
			var pages []chunkWalk
			for _, leaf := range v.r.FieldLeaves[f] {
				pages = append(pages, v.chunk(g, leaf))
			}
			// Footer, indexes and page headers have no checksum: only reading the values shows whether they match the
			// pages.
			if v.depth != format.Quick {
				if !v.values(g, f, pages) { // decoding the rest would need as much memory
					continue
				}
				for i, leaf := range v.r.FieldLeaves[f] {
					if v.bloom(g, leaf); v.depth == format.Deep {
						v.dictionary(&pages[i])
						v.levels(&pages[i])
					}
				}
			}
			if v.Stopped() {
				return
			}
		}
		if v.base = group; v.depth == format.Deep {
			v.rowOrder(g)
		}
		rows += rg.NumRows
	}
	v.base = region.Finding{Part: t.Name, Rows: [2]int64{-1, -1}, Lost: -1}
	v.find("parquet.rows", v.r.CheckRows())
	for n, err := range describe.File(v.ctx, t, format.DescribeOptions{OpenOptions: o}) {
		v.findUnlessDamage("parquet.layout", err)
		if err == nil && n.Kind == region.Gap && n.Depth == 1 {
			v.find("parquet.layout", fault.Corruptf(n.At, "", "%d unclaimed bytes", n.At.Len))
		}
		if v.Stopped() {
			return
		}
	}
}

// copies reports copies of chunk metadata that differ from the footer.
func (v *verifier) copies() {
	copies, err := v.r.Copies(v.ctx)
	v.findUnlessDamage("parquet.copy", err)
	for _, x := range copies {
		if x.Differs != "" {
			v.find("parquet.copy", fault.Corruptf(x.At, meta.IndexPath(x.Group, x.Leaf, "meta_data"), "%s", x.Differs))
		}
	}
}

// chunk checks the pages of a column chunk: headers, checksums, sizes and number of values, and the claims of footer
// and indexes about them.
func (v *verifier) chunk(group, leaf int) chunkWalk {
	whole := v.base
	defer func() { v.base = whole }()
	x, indexErr := v.r.OffsetIndex(v.ctx, group, leaf)
	w := chunkWalk{x: x, group: group, leaf: leaf, rows: v.r.Footer.RowGroups[group].NumRows,
		flat: v.r.Footer.Schema.Column(leaf).MaxRepetitionLevel() == 0, at: v.r.ChunkSpan(group, leaf)}
	at := w.at
	for w.at.Len > 0 && !v.Stopped() {
		path := meta.IndexPath(group, leaf, fmt.Sprintf("page[%d]", w.n))
		p, err := v.r.PageHeader(v.ctx, w.at, path, w.module(v.r), nil)
		if err != nil {
			from, to := w.skipDamaged(v.r.Base)
			v.rows(whole, from, to)
			v.find("parquet.page", err)
			v.base = whole
			continue
		}
		if p.IsData() && w.flat {
			v.rows(whole, w.values, w.values+p.Values)
		}
		v.page(&w, &p)
		v.base = whole
		w.take(&p)
	}
	if v.Stopped() || w.damaged {
		return w
	}
	if n := v.r.Footer.RowGroups[group].Columns[leaf].MetaData.NumValues; n != w.values {
		v.find("parquet.values", fault.Corruptf(at, meta.IndexPath(group, leaf, "num_values"),
			"%d, but the pages say %d", n, w.values))
	}
	v.find("parquet.values", w.checkRows(at))
	v.find("parquet.sizes", v.checkSizes(&w, at))
	v.find("parquet.encodings", v.checkEncodings(&w))
	if indexErr == nil && x != nil {
		if indexErr = w.compare(v.r.Base); indexErr == nil && x.Trailing.Len > 0 {
			indexErr = fault.Corruptf(x.Trailing, meta.IndexPath(group, leaf, "offset_index"),
				"%d bytes after its end", x.Trailing.Len)
		}
	}
	if v.find("parquet.index", indexErr); indexErr != nil {
		w.x = nil
	}
	c, err := v.r.ColumnIndex(v.ctx, group, leaf, len(w.data))
	if err == nil && c != nil && c.Trailing.Len > 0 {
		err = fault.Corruptf(c.Trailing, meta.IndexPath(group, leaf, "column_index"), "%d bytes after its end",
			c.Trailing.Len)
	}
	v.find("parquet.index", err)
	return w
}

// checkSizes compares the size and the start of a chunk in the footer with its pages.
func (v *verifier) checkSizes(w *chunkWalk, at fault.Span) error {
	m := v.r.Footer.RowGroups[w.group].Columns[w.leaf].MetaData
	if m.TotalUncompressedSize != w.raw {
		return fault.Corruptf(v.r.FooterAt, meta.IndexPath(w.group, w.leaf, "total_uncompressed_size"),
			"%d, but the pages have %d bytes", m.TotalUncompressedSize, w.raw)
	}
	d := m.DictionaryPageOffset
	if len(w.data) == 0 || d == nil || *d <= 0 {
		return nil // some writers point data_page_offset at the dictionary and omit the dictionary's own offset
	}
	if first := w.data[0].Header.Off - v.r.Base; m.DataPageOffset != first {
		return fault.Corruptf(v.r.FooterAt, meta.IndexPath(w.group, w.leaf, "data_page_offset"),
			"%d, but the first data page is at %d", m.DataPageOffset, first)
	}
	return nil
}

// groupSizes compares the sizes of a row group with those of its chunks.
func groupSizes(r *read.Reader, g int) error {
	rg := r.Footer.RowGroups[g]
	var raw, stored int64
	first := int64(math.MaxInt64)
	for k, c := range rg.Columns {
		if c.Encrypted { // its sizes cannot be read
			return nil
		}
		raw += c.MetaData.TotalUncompressedSize
		if stored += c.MetaData.TotalCompressedSize; c.MetaData.TotalCompressedSize > 0 {
			first = min(first, r.ChunkStart(g, k))
		}
	}
	if n := rg.TotalByteSize; n != 0 && n != raw { // some writers omit it
		return fault.Corruptf(r.FooterAt, fmt.Sprintf("row_groups[%d].total_byte_size", g),
			"%d, but its columns have %d", n, raw)
	}
	if n := rg.TotalCompressedSize; n != nil && *n != 0 && *n != stored {
		return fault.Corruptf(r.FooterAt, fmt.Sprintf("row_groups[%d].total_compressed_size", g),
			"%d, but its columns have %d", *n, stored)
	}
	if n := rg.FileOffset; n != nil && *n != 0 && stored > 0 && *n != first {
		return fault.Corruptf(r.FooterAt, fmt.Sprintf("row_groups[%d].file_offset", g),
			"%d, but its first page is at %d", *n, first)
	}
	return nil
}

// page compares the checksum of a page with its bytes and, since no checksum covers the header, the header with the
// body. The page is decoded later.
func (v *verifier) page(w *chunkWalk, p *meta.Page) {
	if p.IsData() && meta.EnumName(meta.Encodings, p.Encoding) == fmt.Sprint(p.Encoding) {
		v.find("parquet.unsupported", fault.Unsupportedf(p.Header, meta.IndexPath(w.group, w.leaf, "page"),
			"encoding %d", p.Encoding))
	}
	if !p.HasCRC || v.noSums {
		return
	}
	if err := v.r.CheckCRC(v.ctx, *p, "page", &v.buf); err != nil {
		v.find("parquet.page.checksum", err)
		v.badPages[p.Body] = true
		return
	}
	if p.Raw > v.r.Limits.Page {
		v.find("parquet.page", fault.Limitf(p.Header, meta.IndexPath(w.group, w.leaf, "page"),
			"%d bytes, the limit is %d", p.Raw, v.r.Limits.Page))
		return
	}
	code := v.r.Footer.RowGroups[w.group].Columns[w.leaf].MetaData.Codec
	// The size of encrypted bytes is checked when they are decoded.
	if v.r.Footer.RowGroups[w.group].Columns[w.leaf].Cipher == nil {
		v.find("parquet.page", checkRawSize(p, code, v.buf[:p.Body.Len]))
	}
}

// checkRawSize compares uncompressed_page_size with the body. Most compressed data state their raw size; they are
// decompressed only if they do not, or if they state a different one.
func checkRawSize(p *meta.Page, code meta.Compression, b []byte) error {
	raw := p.Raw
	if p.Kind == meta.DataPageV2 {
		n := int64(p.Levels[0]) + int64(p.Levels[1])
		if p.Levels[0] < 0 || p.Levels[1] < 0 || n > int64(len(b)) || n > raw {
			return fault.Corruptf(p.Header, "page.levels",
				"%d and %d bytes of levels in a page of %d bytes, %d raw", p.Levels[0], p.Levels[1], len(b), raw)
		}
		b, raw = b[n:], raw-n
	}
	if len(b) == 0 && raw == 0 {
		return nil
	}
	if p.Uncompressed {
		code = meta.CodecNone
	}
	if !code.Supported() {
		return nil // reported when the column is read
	}
	if n, ok := code.DeclaredSize(b); ok && n == raw {
		return nil
	}
	if _, err := code.Decompress(b, raw, raw, meta.Alloc); err != nil {
		return fault.Corruptf(p.Body, "page.uncompressed_page_size", "%d, and it does not decompress to that: %v",
			raw, err)
	}
	return nil
}

// values decodes a field of a row group and checks all claims about its leaves. It returns false if that needs more
// memory than allowed.
func (v *verifier) values(group, f int, pages []chunkWalk) (affordable bool) {
	claims := v.claims(group, f, pages)
	var count *counter
	if len(pages) == 1 {
		count = v.counterOf(&pages[0])
	}
	at := int64(0)
	for b, err := range v.r.RowBatches(v.ctx, group, []int{f}) {
		if err != nil {
			v.find("parquet.column", err)
			return !fault.OverBudget(err)
		}
		for _, c := range claims {
			err := c.check(b, at)
			v.findCell(c, err)
			if err != nil && c.within != nil {
				c.within.implied = false
				v.findCell(c.within, c.within.checkBoundsOf(b, at))
			}
		}
		if count != nil {
			count.count(b.Column(0), at)
		}
		at += b.NumRows()
	}
	if count != nil {
		count.done()
	}
	for _, c := range claims {
		v.finish(c)
	}
	return true
}

// findCell reports a value outside the bounds of a claim, with the rows of its page. Either is wrong. The rows can be
// read, so none counts as lost: reading and recovery write them, and report the same finding.
func (v *verifier) findCell(c *claim, err error) {
	whole := v.base
	if c.reported {
		in, _ := c.inDoubt()
		v.rows(whole, in.From, in.To)
		v.base.Lost = 0
	}
	v.find(c.code, err)
	v.base = whole
}

// claims returns the claims about field f in the statistics of the row group and its pages and in the column indexes.
// Pages whose rows are unknown, such as those of lists without an offset index, have none.
func (v *verifier) claims(group, f int, pages []chunkWalk) (out []*claim) {
	for i, l := range leavesOf(v.r, f) {
		var chunk *claim
		rows := pages[i].pageRows()
		path := fmt.Sprintf("row_groups[%d].columns[%d]", group, l.Column)
		if s := groupStats(v.r, group, l.Column); s != nil {
			c := claim{code: "parquet.statistics", path: path + ".statistics", at: v.r.FooterAt,
				rows: vec.Range{To: v.r.Footer.RowGroups[group].NumRows}, pages: rows}
			all := v.claimsFrom(l, c, s)
			chunk, out = all[0], append(out, all...)
		}
		w := &pages[i]
		for k, p := range w.data {
			if rows == nil || p.Stats == nil {
				continue
			}
			c := claim{code: "parquet.index.bounds", path: fmt.Sprintf("%s.page[%d].header", path, k), at: p.Header,
				rows: rows[k], pages: rows[k : k+1]}
			out = append(out, v.claimsFrom(l, c, p.Stats)...)
		}
		if rows == nil || w.damaged {
			continue
		}
		x, err := v.r.ColumnIndex(v.ctx, group, l.Column, len(w.data))
		if v.findUnlessDamage("parquet.index", err); err != nil || x == nil {
			continue // damage was reported by chunk
		}
		v.boundaryOrder(l, x, path)
		var each []*claim
		for k := range w.data {
			c := claim{code: "parquet.index.bounds", path: fmt.Sprintf("%s.column_index[%d]", path, k), at: x.At,
				rows: rows[k], pages: rows[k : k+1]}
			each = append(each, v.claimsFrom(l, c, x.PageStats(k))...)
		}
		chunk.implyBy(each)
		out = append(out, each...)
	}
	return out
}
