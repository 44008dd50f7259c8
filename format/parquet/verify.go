package parquet

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/check"
	"stoa/region"
	"stoa/vec"
)

// verify reads everything, unless only the structure is wanted: footer, page headers, checksums, indexes,
// values. What the file says twice is compared: the numbers of rows and values, the places of pages, and the
// bounds of row groups and pages against the values. Checksums alone would not do: Parquet has them of the
// bodies of pages only.
func verify(ctx context.Context, t format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := newVerifier(ctx, t.Name, yield)
		v.noSums, v.depth = o.NoVerify || o.Depth == format.Quick, o.Depth
		r, err := newReader(ctx, t, o)
		if err != nil {
			v.find("parquet.footer", err)
			return
		}
		defer r.Close()
		r.summaries = true
		if err := r.start(ctx); err != nil {
			v.find("parquet.footer", err)
			return
		}
		v.r = r
		v.find("parquet.types", r.untyped)
		for _, err := range r.missing {
			v.find("parquet.part", err)
		}
		if v.magic(); r.summaries {
			v.summary(t)
			return
		}
		v.file(t, o)
	}
}

// unchecked is format.Format.Unchecked. Writers give checksums to all pages of a chunk or to none, so the first
// ones tell.
func unchecked(ctx context.Context, t format.Target, o format.OpenOptions) (string, error) {
	r, err := openReader(ctx, t, o)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var bare []string
	leaves := r.meta.Schema.NumColumns()
	for leaf := range leaves {
		for g := range r.meta.RowGroups {
			at := r.chunkSpan(g, leaf)
			if at.Len == 0 {
				continue
			}
			p, err := r.pageOf(ctx, at, meta.IndexPath(g, leaf, "page[0]"),
				meta.SealedPage{Sealed: r.meta.RowGroups[g].Columns[leaf].Sealed, First: true}, nil)
			if err == nil && !p.HasCRC {
				bare = append(bare, r.meta.Schema.Column(leaf).Path())
				break
			}
		}
	}
	return format.WithoutSums(leaves, bare), ctx.Err()
}

// verifier checks one file.
type verifier struct {
	*check.Reporter
	ctx    context.Context
	r      *reader
	noSums bool
	depth  format.Depth
	base   region.Finding // what findings have in common where we are
	buf    []byte
	told   map[fault.Span]bool // pages of which the checksum was told
}

func newVerifier(ctx context.Context, part string, yield func(region.Finding) bool) *verifier {
	r := check.New(ctx, part, codes, yield)
	r.Read, r.CodeOf = "parquet.unreadable", codeOf
	return &verifier{Reporter: r, ctx: ctx, base: region.Finding{Part: part, Rows: [2]int64{-1, -1}, Lost: -1}}
}

// collector is a verifier that appends to findings.
func (r *reader) collector(findings *[]region.Finding) *verifier {
	return newVerifier(context.Background(), r.target.Name, func(f region.Finding) bool {
		*findings = append(*findings, f)
		return true
	})
}

// codeOf is code for damage; an error that is none is parquet.unreadable or parquet.unsupported, whatever was
// looked at.
func codeOf(code string, e *fault.Error) string {
	switch e.Class {
	case fault.Corrupt:
		return code
	case fault.Unsupported:
		return "parquet.unsupported"
	}
	return "parquet.unreadable"
}

// find reports an error about where we are.
func (v *verifier) find(code string, err error) {
	var e *fault.Error
	if code == "parquet.column" && errors.As(err, &e) && v.told[e.At] {
		return
	}
	v.About(v.base, code, err)
}

// magic looks at the first bytes, which nobody needs who reads.
func (v *verifier) magic() {
	at := v.r.span(0, 4)
	var b [4]byte
	err := format.ReadFull(v.ctx, v.r.src, at, "magic", b[:])
	if err == nil && string(b[:]) != v.r.magic() {
		err = fault.Corruptf(at, "magic", "%q instead of %q", b[:], v.r.magic())
	}
	v.find("parquet.magic", err)
}

func (v *verifier) file(t format.Target, o format.OpenOptions) {
	v.r.misplaced(func(err error) { v.find("parquet.misplaced", err) })
	v.copies()
	rows := int64(0)
	for g, rg := range v.r.meta.RowGroups {
		group := region.Finding{Part: t.Name, Rows: [2]int64{rows, rows + rg.NumRows}, Lost: -1}
		v.base = group
		v.find("parquet.sizes", v.r.groupSizes(g))
		for f := range v.r.leaves {
			v.base.Column, v.base.Rows, v.base.Lost = v.r.schema.Field(f).Name, [2]int64{rows, rows + rg.NumRows},
				rg.NumRows
			v.told = map[fault.Span]bool{}
			var pages []chunkWalk
			for _, leaf := range v.r.leaves[f] {
				pages = append(pages, v.chunk(g, leaf))
			}
			// footer, indexes and headers of pages have no checksum: only reading tells whether they fit the pages
			if v.depth != format.Quick {
				if !v.values(g, f, pages) { // nothing more that takes as much is decoded
					continue
				}
				for i, leaf := range v.r.leaves[f] {
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
	v.find("parquet.rows", v.r.rowsAgree())
	for n, err := range describe(v.ctx, t, format.DescribeOptions{OpenOptions: o}) {
		v.unlessDamaged("parquet.layout", err)
		if err == nil && n.Kind == region.Gap && n.Depth == 1 {
			v.find("parquet.layout", fault.Corruptf(n.At, "", "%d bytes that nothing claims", n.At.Len))
		}
		if v.Stopped() {
			return
		}
	}
}

// copies tells of those that are not what the footer has.
func (v *verifier) copies() {
	copies, err := v.r.copies(v.ctx)
	v.unlessDamaged("parquet.copy", err)
	for _, x := range copies {
		if x.differs != "" {
			v.find("parquet.copy", fault.Corruptf(x.at, meta.IndexPath(x.group, x.leaf, "meta_data"), "%s", x.differs))
		}
	}
}

// chunk checks the pages of a column chunk: their headers, checksums, sizes and number of values, and what
// footer and indexes say of them.
func (v *verifier) chunk(group, leaf int) chunkWalk {
	whole := v.base
	defer func() { v.base = whole }()
	x, indexErr := v.r.offsetIndex(v.ctx, group, leaf)
	w := chunkWalk{x: x, group: group, leaf: leaf, rows: v.r.meta.RowGroups[group].NumRows,
		flat: v.r.meta.Schema.Column(leaf).MaxRepetitionLevel() == 0, at: v.r.chunkSpan(group, leaf)}
	at := w.at
	for w.at.Len > 0 && !v.Stopped() {
		p, err := v.r.pageOf(v.ctx, w.at, meta.IndexPath(group, leaf, fmt.Sprintf("page[%d]", w.n)), w.sealed(v.r), nil)
		if err != nil {
			from, to := w.behind(v.r.base)
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
	if n := v.r.meta.RowGroups[group].Columns[leaf].MetaData.NumValues; n != w.values {
		v.find("parquet.values", fault.Corruptf(at, meta.IndexPath(group, leaf, "num_values"),
			"%d, but the pages say %d", n, w.values))
	}
	v.find("parquet.values", w.rowsFit(at))
	v.find("parquet.sizes", v.sizesFit(&w, at))
	v.find("parquet.encodings", v.encodingsFit(&w))
	if indexErr == nil && x != nil {
		if indexErr = w.compare(v.r.base); indexErr == nil && x.Behind.Len > 0 {
			indexErr = fault.Corruptf(x.Behind, meta.IndexPath(group, leaf, "offset_index"), "%d bytes behind its end",
				x.Behind.Len)
		}
	}
	if v.find("parquet.index", indexErr); indexErr != nil {
		w.x = nil
	}
	c, err := v.r.columnIndex(v.ctx, group, leaf, len(w.data))
	if err == nil && c != nil && c.Behind.Len > 0 {
		err = fault.Corruptf(c.Behind, meta.IndexPath(group, leaf, "column_index"), "%d bytes behind its end",
			c.Behind.Len)
	}
	v.find("parquet.index", err)
	return w
}

// sealed is which page is next.
func (w *chunkWalk) sealed(r *reader) meta.SealedPage {
	return meta.SealedPage{Sealed: r.meta.RowGroups[w.group].Columns[w.leaf].Sealed, First: w.n == 0,
		Ordinal: len(w.data)}
}

// rowsFit holds the numbers of rows that data pages v2 have against the row group.
func (w *chunkWalk) rowsFit(at fault.Span) error {
	rows, all := int64(0), true
	for i, p := range w.data {
		if all = all && p.Rows >= 0; p.Rows < 0 {
			continue
		}
		if rows += p.Rows; w.flat && p.Rows != p.Values {
			return fault.Corruptf(p.Header, meta.IndexPath(w.group, w.leaf, fmt.Sprintf("page[%d].header.num_rows", i)),
				"%d, but num_values is %d", p.Rows, p.Values)
		}
	}
	if all && len(w.data) > 0 && rows != w.rows {
		return fault.Corruptf(at, meta.IndexPath(w.group, w.leaf, "num_rows"), "the pages say %d, the row group has %d",
			rows, w.rows)
	}
	return nil
}

// sizesFit holds what the footer says of the size and the beginning of a chunk against its pages.
func (v *verifier) sizesFit(w *chunkWalk, at fault.Span) error {
	m := v.r.meta.RowGroups[w.group].Columns[w.leaf].MetaData
	if m.TotalUncompressedSize != w.raw {
		return fault.Corruptf(v.r.footer, meta.IndexPath(w.group, w.leaf, "total_uncompressed_size"),
			"%d, but the pages have %d bytes", m.TotalUncompressedSize, w.raw)
	}
	d := m.DictionaryPageOffset
	if len(w.data) == 0 || d == nil || *d <= 0 {
		return nil // without the offset of a dictionary, some writers begin with it at data_page_offset
	}
	if first := w.data[0].Header.Off - v.r.base; m.DataPageOffset != first {
		return fault.Corruptf(v.r.footer, meta.IndexPath(w.group, w.leaf, "data_page_offset"),
			"%d, but the first data page is at %d", m.DataPageOffset, first)
	}
	return nil
}

// groupSizes holds the sizes of a row group against those of its chunks.
func (r *reader) groupSizes(g int) error {
	rg := r.meta.RowGroups[g]
	var raw, stored int64
	first := int64(math.MaxInt64)
	for k, c := range rg.Columns {
		if c.Encrypted { // what it says of itself cannot be read
			return nil
		}
		raw += c.MetaData.TotalUncompressedSize
		if stored += c.MetaData.TotalCompressedSize; c.MetaData.TotalCompressedSize > 0 {
			first = min(first, r.chunkStart(g, k))
		}
	}
	if n := rg.TotalByteSize; n != 0 && n != raw { // some writers leave it out
		return fault.Corruptf(r.footer, fmt.Sprintf("row_groups[%d].total_byte_size", g),
			"%d, but its columns have %d", n, raw)
	}
	if n := rg.TotalCompressedSize; n != nil && *n != 0 && *n != stored {
		return fault.Corruptf(r.footer, fmt.Sprintf("row_groups[%d].total_compressed_size", g),
			"%d, but its columns have %d", *n, stored)
	}
	if n := rg.FileOffset; n != nil && *n != 0 && stored > 0 && *n != first {
		return fault.Corruptf(r.footer, fmt.Sprintf("row_groups[%d].file_offset", g),
			"%d, but its first page is at %d", *n, first)
	}
	return nil
}

// pageRows is the rows of the row group that each data page has; nil if that is not known.
func (w *chunkWalk) pageRows() []vec.Range {
	out, row := make([]vec.Range, len(w.data)), int64(0)
	for i, p := range w.data {
		n := p.Rows
		switch {
		case w.damaged:
			return nil
		case w.flat:
			n = p.Values
		case w.x != nil && i+1 < len(w.data):
			n = w.x.FirstRow[i+1] - row
		case w.x != nil:
			n = w.rows - row
		case n < 0:
			return nil
		}
		out[i] = vec.Range{From: row, To: row + n}
		row += n
	}
	if row != w.rows {
		return nil // told by other names
	}
	return out
}

// rows says that findings are about rows [from, to) of the row group.
func (v *verifier) rows(whole region.Finding, from, to int64) {
	v.base.Rows, v.base.Lost = [2]int64{whole.Rows[0] + from, whole.Rows[0] + to}, to-from
}

// chunkWalk goes through the pages of a chunk.
type chunkWalk struct {
	x           *meta.OffsetIndex // nil: none
	group, leaf int
	rows        int64 // of the row group
	flat        bool

	at      fault.Span // what is not passed yet
	n       int        // pages before it, of all kinds
	data    []meta.Page
	dict    *meta.Page // nil: none
	values  int64
	raw     int64 // bytes of all pages, uncompressed, with their headers
	damaged bool  // pages were passed over
}

func (w *chunkWalk) take(p *meta.Page) {
	w.at = w.at.Sub(p.Body.End()-w.at.Off, w.at.End()-p.Body.End())
	w.raw += p.Header.Len + p.Raw
	if w.n++; p.IsData() {
		w.data = append(w.data, *p)
		w.values += p.Values
	}
	if p.Kind == meta.DictionaryPage {
		d := *p
		w.dict = &d
	}
}

// behind goes on with the next page that the offset index has behind a damaged header, as reading does, and
// gives the rows that are passed over. Without an index, these are all that follow.
func (w *chunkWalk) behind(base int64) (from, to int64) {
	w.damaged = true
	at, n := w.at.Off-base, len(w.data)
	if from = 0; w.flat {
		from = w.values
	}
	if w.x == nil || len(w.x.Offsets) == 0 {
		w.at = w.at.Sub(w.at.Len, 0)
		return from, w.rows
	}
	next, same := slices.BinarySearch(w.x.Offsets, at)
	switch {
	case at < w.x.Offsets[0]: // a dictionary
		from, to = 0, w.rows
	case same:
		from = w.x.FirstRow[next]
		next++
	default: // the header of the page before sent us here
		from = w.x.FirstRow[min(max(n-1, 0), next-1)]
	}
	end := w.at.End()
	if next == len(w.x.Offsets) {
		w.at, to = w.at.Sub(w.at.Len, 0), w.rows
		return from, to
	}
	off := base + w.x.Offsets[next]
	w.at = w.at.Sub(off-w.at.Off, end-off)
	if w.values = w.x.FirstRow[next]; to == 0 {
		to = w.x.FirstRow[next]
	}
	w.data = make([]meta.Page, next)
	return from, to
}

// compare holds the offset index against the pages. Rows are known of flat columns and of data pages v2.
func (w *chunkWalk) compare(base int64) error {
	x, path := w.x, meta.IndexPath(w.group, w.leaf, "offset_index")
	if len(x.Offsets) != len(w.data) {
		return fault.Corruptf(x.At, path, "%d pages, the column chunk has %d", len(x.Offsets), len(w.data))
	}
	row := int64(0)
	for i, p := range w.data {
		if x.Offsets[i] != p.Header.Off-base || int64(x.Sizes[i]) != p.Header.Len+p.Body.Len || row >= 0 &&
			x.FirstRow[i] != row {
			return fault.Corruptf(x.At, fmt.Sprintf("%s.page_locations[%d]", path, i),
				"%d bytes at %d from row %d on; the page has %d bytes at %d", x.Sizes[i], x.Offsets[i],
				x.FirstRow[i], p.Header.Len+p.Body.Len, p.Header.Off-base)
		}
		if row += p.Values; !w.flat {
			row = -1
			if p.Rows >= 0 {
				row = x.FirstRow[i] + p.Rows
			}
		}
	}
	return nil
}

// page compares the checksum of a page, and, as no checksum is over the header, holds that against the body. It
// is decoded later.
func (v *verifier) page(w *chunkWalk, p *meta.Page) {
	if p.IsData() && meta.Named(meta.Encodings, p.Encoding) == fmt.Sprint(p.Encoding) {
		v.find("parquet.unsupported", fault.Unsupportedf(p.Header, meta.IndexPath(w.group, w.leaf, "page"),
			"encoding %d", p.Encoding))
	}
	if !p.HasCRC || v.noSums {
		return
	}
	if err := v.r.checkSum(v.ctx, *p, "page", &v.buf); err != nil {
		v.find("parquet.page.checksum", err)
		v.told[p.Body] = true
		return
	}
	if p.Raw > v.r.limits.Page {
		v.find("parquet.page", fault.Limitf(p.Header, meta.IndexPath(w.group, w.leaf, "page"),
			"%d bytes, the limit is %d", p.Raw, v.r.limits.Page))
		return
	}
	code := v.r.meta.RowGroups[w.group].Columns[w.leaf].MetaData.Codec
	// what is encrypted is held against its size when it is decoded
	if v.r.meta.RowGroups[w.group].Columns[w.leaf].Sealed == nil {
		v.find("parquet.page", rawFits(p, code, v.buf[:p.Body.Len]))
	}
}

// rawFits holds uncompressed_page_size against the body: what is compressed mostly says itself how long it is
// raw, and is decompressed only if it does not, or says something else.
func rawFits(p *meta.Page, code meta.Compression, b []byte) error {
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
	if p.Bare {
		code = meta.CodecNone
	}
	if !code.Known() {
		return nil // told when the column is read
	}
	if n, ok := code.Says(b); ok && n == raw {
		return nil
	}
	if _, err := code.Inflate(b, raw, raw, meta.Room); err != nil {
		return fault.Corruptf(p.Body, "page.uncompressed_page_size", "%d, and it does not decompress to that: %v",
			raw, err)
	}
	return nil
}

// values decodes a field of a row group and holds what is said of its leaves against the values. false: that takes more
// than it may.
func (v *verifier) values(group, f int, pages []chunkWalk) (affordable bool) {
	claims := v.claims(group, f, pages)
	at := int64(0)
	for b, err := range v.r.rowBatches(v.ctx, group, []int{f}) {
		if err != nil {
			v.find("parquet.column", err)
			return !errors.Is(err, fault.Limit)
		}
		for _, c := range claims {
			v.find(c.code, c.hold(b, at))
		}
		at += b.NumRows()
	}
	for _, c := range claims {
		v.conclude(c)
	}
	return true
}

// claims are the statements about field f in the statistics of the row group and its pages, and in the column
// indexes. Of pages whose rows are not known, as of lists without an offset index, there are none.
func (v *verifier) claims(group, f int, pages []chunkWalk) (out []*claim) {
	for i, l := range v.r.leavesOf(f) {
		path := fmt.Sprintf("row_groups[%d].columns[%d]", group, l.Column)
		if s := v.r.groupSaid(group, l.Column); s != nil {
			c := claim{code: "parquet.statistics", path: path + ".statistics", at: v.r.footer,
				rows: vec.Range{To: v.r.meta.RowGroups[group].NumRows}}
			out = append(out, v.statements(l, c, s)...)
		}
		w := &pages[i]
		rows := w.pageRows()
		for k, p := range w.data {
			if rows == nil || p.Stats == nil {
				continue
			}
			c := claim{code: "parquet.index.bounds", path: fmt.Sprintf("%s.page[%d].header", path, k), at: p.Header,
				rows: rows[k]}
			out = append(out, v.statements(l, c, p.Stats)...)
		}
		if rows == nil || w.damaged {
			continue
		}
		x, err := v.r.columnIndex(v.ctx, group, l.Column, len(w.data))
		if v.unlessDamaged("parquet.index", err); err != nil || x == nil {
			continue // damage was told by chunk
		}
		v.boundaryOrder(l, x, path)
		for k := range w.data {
			c := claim{code: "parquet.index.bounds", path: fmt.Sprintf("%s.column_index[%d]", path, k), at: x.At,
				rows: rows[k]}
			out = append(out, v.statements(l, c, x.Said(k))...)
		}
	}
	return out
}
