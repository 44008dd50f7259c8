package table

import (
	"context"
	"io"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/codes"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/meta"
	"stoa/region"
	"stoa/vec"
)

// close closes the files.
func (x *Recovered) close() (first error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range x.Files {
		if f.r != nil {
			if err := f.r.Close(); err != nil && first == nil {
				first = err
			}
		}
	}
	x.Files = map[BlockOf]RecoveredFile{}
	return first
}

// recoverColumn opens a block for recovery, once, at the first of its places whose content can be the column's block.
// Rows that the block lacks are lost.
func (t *Table) recoverColumn(ctx context.Context, s *RowSet, col int, b meta.BlockRef,
	rows vec.Range) (*columnChunk, error) {
	places, err := t.places(ctx, s, b)
	if len(places) == 0 {
		return nil, err
	}
	x := t.Recovered
	x.mu.Lock()
	defer x.mu.Unlock()
	key := BlockOf{s.Tablet.FS, b.ID}
	f, ok := x.Files[key]
	if !t.whole(ctx, places[0]) {
		places = slices.DeleteFunc(places, func(p fs.Place) bool { return !p.Usable() })
	}
	for i := len(places) - 1; i > 0 && !t.whole(ctx, places[0]); i-- { // one without its footer is the last choice
		places = append(places[1:], places[0])
	}
	if !ok {
		for i := range places {
			if f = t.recoverBlock(ctx, s, col, b, places[i]); f.err == nil || !Damaged(f.err) {
				break
			}
		}
		if f.err != nil && !Damaged(f.err) {
			return nil, f.err
		}
		x.Files[key] = f
	}
	if f.err != nil {
		return nil, f.err
	}
	inner, err := f.r.Chunk(ctx, f.g, 0, rows)
	if err != nil {
		return nil, err
	}
	return t.newColumnChunk(&recoveredChunk{Chunk: inner, at: f.at, next: max(0, rows.From),
		end: min(rows.To, s.Rows)}, s, col, b, places, rows), nil
}

// recoverBlock opens a block for recovery, and checks what is left of its footer. A block that is not the column's is a
// finding and an error, and the cells are lost.
func (t *Table) recoverBlock(ctx context.Context, s *RowSet, col int, b meta.BlockRef, p fs.Place) (f RecoveredFile) {
	c := &t.Stored.Columns[col]
	o := t.cfileOptions()
	o.Opts = map[string]string{"kind": "column", "type": c.Type.String(), "encoding": encodingOption(c),
		"nullable": map[bool]string{true: "true", false: "false"}[c.Nullable]}
	if name := compressionOption[c.Compression]; name != "" {
		o.Opts["compression"] = name
	}
	report := func(x region.Finding) {
		x.Part, x.Column = s.Tablet.ID, c.Name
		t.Recovered.findings = append(t.Recovered.findings, x)
	}
	r, err := t.opener(s, b)(ctx, Source{t.Tree, p.At.Object, p.At.End()}, p.At, t.cfileOptions())
	if f.err = err; Damaged(err) && t.whole(ctx, p) {
		report(codes.Finding("kudu.rowset.uneven", err, s.Tablet.ID))
		return f
	}
	if Damaged(err) {
		if f.err = t.misplaced(ctx, s, b, p); f.err != nil {
			report(codes.Finding("kudu.rowset.uneven", f.err, s.Tablet.ID))
			return f
		}
	}
	tg := format.Target{Tree: t.Tree, Name: p.At.Object, At: vec.Range{From: p.At.Off, To: p.At.End()}}
	var found []region.Finding
	f.r, found, f.err = cfile.Format.Recover(ctx, tg, o)
	for _, x := range found {
		report(x)
	}
	if f.err != nil {
		return f
	}
	f.at = p.At
	if r == nil { // the footer is damaged; the parts that could be parsed were used
		foot, kind := cfile.Recovered(f.r)
		foot.NumValues = s.Rows // blocks may be missing
		if _, why := t.footerCheck(s, b, kind, &foot); why != "" {
			f.err = fault.Corruptf(p.At, "footer", "%s", why)
			return f
		}
	}
	f.err = f.group(ctx)
	return f
}

// If the bytes at a block's place do not end with a footer, intact CFiles are searched for up to carveReach bytes
// before and after that place, at multiples of carveAlign from its offset.
const (
	carveReach = 64 << 20
	carveAlign = 512
)

// misplaced returns an error if the content of p, which cannot be opened, is not the block b: it does not end with a
// footer, and it overlaps an intact CFile that begins or ends elsewhere or is another block. This happens if a
// container has the metadata of another one; the checksums of that CFile's pages would match.
func (t *Table) misplaced(ctx context.Context, s *RowSet, b meta.BlockRef, p fs.Place) error {
	info, err := t.Tree.Stat(ctx, p.At.Object)
	if err != nil {
		return err
	}
	src := Source{t.Tree, p.At.Object, info.Size}
	var end [12]byte
	if at := p.At.Sub(p.At.Len-int64(len(end)), int64(len(end))); p.At.Len < int64(len(end)) ||
		format.ReadFull(ctx, src, at, "footer", end[:]) != nil || fs.IsMagic(end[:]) {
		return ctx.Err()
	}
	from := max(p.At.Off%carveAlign, p.At.Off-carveReach)
	found, err := fs.CarveRange(ctx, src, p.At.Object, from, min(info.Size, p.At.End()+carveReach), carveAlign)
	if err != nil {
		return err
	}
	for _, at := range found {
		if at.End() <= p.At.Off || at.Off >= p.At.End() {
			continue
		}
		r, err := cfile.OpenAt(ctx, src, at, t.cfileOptions())
		if err != nil || !begins(ctx, r) { // the header and the footer may belong to two files
			continue
		}
		if at.Off != p.At.Off || s.Tablet.FS.BlockManager == fs.LogManager { // a block with its own file may be longer
			return fault.Corruptf(p.At, "", "the block is recorded here, but an intact CFile lies from %d to %d",
				at.Off, at.End())
		}
		foot := r.Footer()
		if field, why := t.footerCheck(s, b, r.Kind(), &foot); why != "" {
			return fault.Corruptf(r.FooterAt(), field, "%s", why)
		}
	}
	return ctx.Err()
}

// begins reports whether the first value of a column or an index can be found and read.
func begins(ctx context.Context, r *cfile.Reader) bool {
	if r.Kind() != cfile.KindColumn && r.Kind() != cfile.KindIndex || r.Len() == 0 {
		return true
	}
	it, err := r.SeekToOrdinal(ctx, 0)
	if err != nil {
		return false
	}
	defer it.Close()
	first, err := it.Next(ctx, 1)
	if err != nil {
		return false
	}
	first.Release()
	return true
}

// whole reports whether the footer of the block at p can be read.
func (t *Table) whole(ctx context.Context, p fs.Place) bool {
	_, err := cfile.OpenAt(ctx, Source{t.Tree, p.At.Object, p.At.End()}, p.At, t.cfileOptions())
	return err == nil
}

// group finds the only row group of a file.
func (f *RecoveredFile) group(ctx context.Context) error {
	for part, err := range f.r.Parts(ctx, format.Query{}) {
		if err != nil {
			return err
		}
		groups, err := f.r.RowGroups(ctx, part, format.Query{})
		if err != nil || len(groups) != 1 {
			return fault.Corruptf(f.at, "", "the block is not a column file: %v", err)
		}
		f.g = groups[0]
	}
	return nil
}

// recoveredChunk is a column of a block that was opened for recovery. If its pages end before the rowset does, a lost
// page stands for the rest.
type recoveredChunk struct {
	format.Chunk
	at        fault.Span // the block
	next, end int64      // rows whose page has not been returned yet
}

func (x *recoveredChunk) Next(ctx context.Context) (format.Page, error) {
	p, err := x.Chunk.Next(ctx)
	switch {
	case err == nil && p.First >= 0 && p.Rows >= 0:
		x.next = p.First + p.Rows
	case err == io.EOF && x.next < x.end:
		p = format.Page{Ordinal: -2, First: x.next, Rows: x.end - x.next, Entries: x.end - x.next,
			Spans: []fault.Span{x.at},
			Lost:  fault.Corruptf(x.at, "", "the blocks of rows %d to %d were not found", x.next, x.end)}
		x.next, err = x.end, nil
	}
	return p, err
}

// compressionOption and encodingOption are values of the options compression and encoding of package cfile's Recover.
var compressionOption = map[cfile.Compression]string{cfile.NoCompression: "none", cfile.Snappy: "snappy",
	cfile.LZ4: "lz4", cfile.Zlib: "zlib", cfile.DefaultCompression: "none"}

func encodingOption(c *meta.Column) string {
	switch c.Encoding {
	case cfile.Plain:
		return "plain"
	case cfile.Prefix:
		return "prefix"
	case cfile.RLE:
		return "rle"
	case cfile.Dict:
		return "dict"
	case cfile.BitShuffle:
		return "bitshuffle"
	case cfile.GroupVarint:
		return "group-varint"
	}
	switch { // by Kudu's defaults
	case c.Type.IsBinary():
		return "dict"
	case c.Type == cfile.Bool:
		return "rle"
	}
	return "bitshuffle"
}
