package datafile

import (
	"context"
	"errors"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// RecoverFile searches for the blocklets of a file that OpenFile could not open; f and why are its results. It uses, in
// this order, the sync markers of a row-format file, the index file in the same directory, and a walk over the column
// chunks from the header on. The findings state what was lost. The error is why if nothing could be recovered.
func RecoverFile(ctx context.Context, f *DataFile, why error) (*DataFile, []region.Finding, error) {
	if f.At.Object == "" || f.At.Len == 0 {
		return nil, nil, why
	}
	part := f.At.Object
	code, at := "carbon.footer.damaged", f.At
	if e := (*fault.Error)(nil); errors.As(why, &e) && e.At.Object == f.At.Object {
		at = e.At
		if strings.HasPrefix(e.Path, "header") {
			code = "carbon.header.damaged"
		}
	}
	out := []region.Finding{layout.Findingf(code, at, part, "%v", why)}
	if f.Stream != nil && len(f.Stream.Fields) > 0 {
		lost, err := f.resync(ctx)
		for _, at := range lost {
			out = append(out, layout.Findingf("carbon.rows.lost", at, part,
				"%d bytes between readable blocklets", at.Len))
		}
		return f, append(out, layout.Findingf("carbon.recovered", f.At, part,
			"%s with %s, by their sync markers", fault.Count(len(f.Stream.Blocklets), "blocklet"),
			fault.Count(f.Footer.Rows, "row"))), err
	}
	if f.Version == 2 && f.HeadLen > 0 {
		g, lost, err := f.recover2(ctx)
		if err == nil && len(g.Footer.Blocklet) > 0 {
			err = g.resolve()
		}
		if err != nil || len(g.Footer.Blocklet) == 0 {
			return nil, out, why
		}
		return g, append(append(out, layout.Findingf("carbon.recovered", f.At, part,
			"%s with %s, by walking from the header on", fault.Count(len(g.Footer.Blocklet), "blocklet"),
			fault.Count(g.Footer.Rows, "row"))),
			lost...), nil
	}
	if f.Version == 2 || f.Version == 1 && f.HeadLen == 0 && f.FootAt >= 0 && len(f.Footer.Columns) > 0 {
		return nil, out, why
	}
	if known := f.fromIndex(ctx); known != nil {
		g, lost := f.byIndex(known)
		if g != nil {
			out = append(out, layout.Findingf("carbon.recovered", f.At, part,
				"%s, by the index file", fault.Count(len(g.Footer.Blocklet), "blocklet")))
			return g, append(out, lost...), g.resolve()
		}
	}
	if f.HeadLen == 0 {
		return nil, out, why
	}
	g, lost := f.walk(ctx)
	out = append(out, lost...)
	if err := g.resolve(); err != nil {
		return nil, out, why
	}
	out = append(out, layout.Findingf("carbon.recovered", f.At, part,
		"%s with %s, by walking from the header on", fault.Count(len(g.Footer.Blocklet), "blocklet"),
		fault.Count(g.Footer.Rows, "row")))
	return g, out, nil
}

// fromIndex returns the entries for f in an index file in the same directory; nil if no index file has its blocklets.
func (f *DataFile) fromIndex(ctx context.Context) *Indexed {
	for files := range f.indexes(ctx, true) {
		known := map[string]*Indexed{}
		Collect(known, files)
		if x := known[path.Base(f.At.Object)]; x != nil && x.Blocks[0].Info != nil {
			return x
		}
	}
	return nil
}

// byIndex returns f with a footer made from the entries x; blocklets beyond the end of the file are lost.
func (f *DataFile) byIndex(x *Indexed) (*DataFile, []region.Finding) {
	g := &DataFile{Object: f.Object, Version: 3, Header: f.Header, HeadLen: f.HeadLen, FootAt: f.At.Len,
		noVerify: f.noVerify}
	g.Header.Columns = x.Columns
	g.Footer.Version = 3
	var lost []region.Finding
	var rows int64
	for i := range x.Blocks {
		b := &x.Blocks[i]
		if b.Info == nil {
			return nil, nil
		}
		if end := max(b.Info.MeasuresEnd, b.Info.DimensionsEnd); end > f.At.Len {
			l := layout.Findingf("carbon.rows.lost", f.At.Sub(f.At.Len, 0), f.At.Object,
				"blocklet %d ends at byte %d, the file at %d", i, end, f.At.Len)
			l.Rows, l.Lost = [2]int64{rows, rows + b.Info.Rows}, b.Info.Rows
			lost = append(lost, l)
			continue
		}
		rows += b.Info.Rows
		g.Footer.Blocklet = append(g.Footer.Blocklet, *b.Info)
		g.Footer.Index = append(g.Footer.Index, layout.BlockletIndex{})
	}
	g.Footer.Rows = rows
	return g, lost
}

// walk returns f with a footer made from the column chunks that follow the header. Columns missing from the last
// blocklet are a finding, as is a chunk that is not at the offset where the previous one ends.
func (f *DataFile) walk(ctx context.Context) (*DataFile, []region.Finding) {
	g := &DataFile{Object: f.Object, Version: 3, Header: f.Header, HeadLen: f.HeadLen, FootAt: f.HeadLen,
		noVerify: f.noVerify}
	g.Footer.Version = 3
	n := len(f.Header.Columns)
	dims := 0
	for i := range f.Header.Columns {
		if f.Header.Columns[i].Dimension {
			dims++
		}
	}
	at, top := f.HeadLen, wholeColumns(f.Header.Columns)
	var moved []region.Finding
	for n > 0 && ctx.Err() == nil {
		b := layout.BlockletInfo{Rows: -1}
		var chunks []layout.ColumnChunk // top-level columns only: chunks of children have their own row counts
		for i := range n {
			near, head, cc, ok := f.chunkNear(ctx, at)
			if ok && near != at {
				moved = append(moved, layout.Findingf("carbon.chunk.damaged", f.At.Sub(at, 0), f.At.Object,
					"expected a column chunk here, found it %d bytes from here: bytes of the chunk before it are "+
						"missing, or were added to it, and its pages that still decode may have other values", near-at))
				at = near
			}
			if !ok {
				break
			}
			if i == 0 || top[i] {
				chunks = append(chunks, cc)
			}
			b.Offsets, b.Lengths = append(b.Offsets, at), append(b.Lengths, int32(head))
			at += head
			for _, p := range cc.Lengths {
				at += int64(p)
			}
			if len(b.Offsets) == dims {
				b.DimensionsEnd = at
			}
		}
		if len(b.Offsets) == 0 {
			return g, moved
		}
		b.SetPages(chunks)
		if len(b.Offsets) < n {
			l := layout.Findingf("carbon.rows.lost", f.At.Sub(b.Offsets[0], f.At.Len-b.Offsets[0]), f.At.Object,
				"the blocklet that begins here has %d of %d column chunks: cells of the other columns are lost",
				len(b.Offsets), n)
			l.Rows, l.Lost = [2]int64{g.Footer.Rows, g.Footer.Rows + b.Rows}, b.Rows
			if len(moved) > 0 || f.footerHere(ctx, at) { // none was written so: chunks were added, or are missing
				l.Message += ", and as the file is not cut here, it is not known whose those found are"
				l.Rows, l.Lost = [2]int64{-1, -1}, -1
			} else {
				g.add(incomplete(b, n, dims, at), dims, at)
			}
			return g, append(moved, l)
		}
		g.add(b, dims, at)
	}
	return g, moved
}

// incomplete completes a blocklet in which only some of n columns were found: reading the others fails. See
// BlockletInfo.ChunksFound.
func incomplete(b layout.BlockletInfo, n, dims int, end int64) layout.BlockletInfo {
	b.ChunksFound = len(b.Offsets)
	for len(b.Offsets) < n {
		if len(b.Offsets) == dims {
			b.DimensionsEnd = end
		}
		b.Offsets, b.Lengths = append(b.Offsets, end), append(b.Lengths, 0)
	}
	return b
}

// wholeColumns reports which of a header's columns are top-level.
func wholeColumns(columns []layout.ColumnSchema) []bool {
	top := make([]bool, len(columns))
	inside := 0 // number of following columns that are children of an earlier one
	for i := range columns {
		if top[i] = inside == 0; !top[i] {
			inside--
		}
		inside += int(max(columns[i].NumChild, 0))
	}
	return top
}

// add adds to the footer a blocklet that ends at offset end and has dims dimensions.
func (g *DataFile) add(b layout.BlockletInfo, dims int, end int64) {
	b.MeasuresEnd = end
	switch {
	case dims == 0:
		b.DimensionsEnd = b.Offsets[0]
	case b.DimensionsEnd == 0:
		b.DimensionsEnd = end
	}
	g.FootAt = end
	g.Footer.Rows += b.Rows
	g.Footer.Blocklet = append(g.Footer.Blocklet, b)
	g.Footer.Index = append(g.Footer.Index, layout.BlockletIndex{})
}

// chunkHere reads the metadata of a column chunk at offset at; head is its size. ok is false if there is no chunk, or
// if its pages reach beyond the end of the file.
func (f *DataFile) chunkHere(ctx context.Context, at int64) (head int64, cc layout.ColumnChunk, ok bool) {
	if at >= f.At.Len {
		return 0, cc, false
	}
	b, err := f.ParseGrowing(ctx, at, "chunk",
		func(c *wire.Cursor) { cc = layout.ParseDataChunk3(thrift.NewReader(c, thrift.Compact), "") })
	if err != nil || len(cc.Pages) == 0 || len(cc.Lengths) != len(cc.Pages) || len(cc.Offsets) != len(cc.Pages) {
		return 0, cc, false
	}
	end := at + int64(len(b))
	for i := range cc.Pages {
		p := &cc.Pages[i]
		if p.DataLen < 0 || p.RowidLen < 0 || p.RleLen < 0 ||
			int64(p.DataLen)+int64(p.RowidLen)+int64(p.RleLen) != int64(cc.Lengths[i]) ||
			at+int64(len(b))+int64(cc.Offsets[i]) != end || p.Rows < 0 || p.Rows > page.MaxPageRows3 {
			return 0, cc, false
		}
		end += int64(cc.Lengths[i])
	}
	return int64(len(b)), cc, end <= f.At.Len
}

// footerHere reports whether a footer that can be parsed begins at an offset.
func (f *DataFile) footerHere(ctx context.Context, at int64) bool {
	if at >= f.At.Len {
		return false
	}
	var foot layout.Footer
	_, err := f.ParseGrowing(ctx, at, "footer",
		func(c *wire.Cursor) { foot = layout.ParseFooter3(thrift.NewReader(c, thrift.Compact), "") })
	return err == nil && len(foot.Blocklet) > 0
}

// nearChunk is the distance from its expected offset within which a column chunk is searched for. It is less than the
// size of the metadata of one chunk, so that no chunk is skipped.
const nearChunk = 32

// chunkNear is chunkHere for the chunk at offset at or, if there is none, the nearest one: bytes before it may have
// been lost or added.
func (f *DataFile) chunkNear(ctx context.Context, at int64) (near, head int64, cc layout.ColumnChunk, ok bool) {
	if head, cc, ok = f.chunkHere(ctx, at); ok || at == f.HeadLen {
		return at, head, cc, ok
	}
	for d := int64(1); d <= nearChunk; d++ {
		for _, near := range []int64{at - d, at + d} {
			if near < f.HeadLen {
				continue
			}
			if head, cc, ok = f.chunkHere(ctx, near); ok {
				return near, head, cc, true
			}
		}
	}
	return at, 0, cc, false
}

// Indexed are the entries of index files for one data file, and the columns of the index.
type Indexed struct {
	Blocks  []layout.BlockIndex
	Columns []layout.ColumnSchema
}

// Rows returns the number of rows of the data file according to its entries.
func (x *Indexed) Rows() (n int64) {
	for i := range x.Blocks {
		n += x.Blocks[i].Count()
	}
	return n
}

// Collect adds the entries of index files to out. Keys are the names of data files without directories.
func Collect(out map[string]*Indexed, files []layout.IndexFile) {
	for _, f := range files {
		for _, b := range f.Blocks {
			base := path.Base(b.File)
			if out[base] == nil {
				out[base] = &Indexed{Columns: f.Header.Columns}
			}
			out[base].Blocks = append(out[base].Blocks, b)
		}
	}
}
