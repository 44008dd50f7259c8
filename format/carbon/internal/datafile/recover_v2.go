package datafile

import (
	"context"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// recover2 returns f with a footer made from the blocklets that follow the header. Only the index file has the columns,
// so without it the error is Corrupt. If the index has more rows than the blocklets, that is a finding.
func (f *DataFile) recover2(ctx context.Context) (*DataFile, []region.Finding, error) {
	x, known := f.indexOf(ctx)
	if x == nil {
		return nil, nil, fault.Corruptf(f.At, "footer",
			"expected an index file with the columns in the same directory, found none that names the file")
	}
	g := &DataFile{Object: f.Object, Version: 2, HeadLen: f.HeadLen, FootAt: f.At.Len, noVerify: f.noVerify,
		Rebuilt: true}
	g.Footer = layout.Footer{Version: 2, Columns: x.Header.Columns, Segment: x.Header.Segment}
	var chunks int
	var err error
	if g.Roots, chunks, err = schema.ColumnTree(g.Footer.Columns, f.At, "table_columns"); err != nil {
		return nil, nil, err
	}
	g.Columns = schema.ByChunk(g.Roots, chunks)
	g.dimCount = g.dims()
	g.cardinalities()
	at := g.HeadLen
	for ctx.Err() == nil {
		b, end, ok := g.blockletHere(ctx, at)
		if !ok {
			break
		}
		g.Footer.Blocklet = append(g.Footer.Blocklet, b)
		g.Footer.Index = append(g.Footer.Index, layout.BlockletIndex{})
		if b.Rows, err = g.countRows(ctx, len(g.Footer.Blocklet)-1); err != nil {
			n := len(g.Footer.Blocklet) - 1
			g.Footer.Blocklet, g.Footer.Index = g.Footer.Blocklet[:n], g.Footer.Index[:n]
			break
		}
		g.Footer.Blocklet[len(g.Footer.Blocklet)-1].Rows = b.Rows
		g.Footer.Rows += b.Rows
		at = end
	}
	g.FootAt = at
	var lost []region.Finding
	if n := known - g.Footer.Rows; n != 0 {
		l := layout.Findingf("carbon.rows.lost", f.At.Sub(at, f.At.Len-at), f.At.Object,
			"expected the %s of the index, found %d", fault.Count(known, "row"), g.Footer.Rows)
		l.Rows, l.Lost = [2]int64{g.Footer.Rows, max(known, g.Footer.Rows)}, max(n, 0)
		lost = append(lost, l)
	}
	return g, lost, ctx.Err()
}

// indexOf returns the index file in the same directory that names f, and the number of rows that it states for f; nil
// if there is none.
func (f *DataFile) indexOf(ctx context.Context) (*layout.IndexFile, int64) {
	for files, err := range f.indexes(ctx, false) {
		if err != nil {
			continue
		}
		for i := range files[0].Blocks {
			if b := &files[0].Blocks[i]; path.Base(b.File) == path.Base(f.At.Object) &&
				len(files[0].Header.Columns) > 0 {
				return &files[0], b.Rows
			}
		}
	}
	return nil, 0
}

// blockletHere reads the column chunks of a blocklet at offset at; ok is false if some are missing.
func (f *DataFile) blockletHere(ctx context.Context, at int64) (b layout.BlockletInfo, end int64, ok bool) {
	for range f.Columns {
		if at >= f.At.Len {
			return b, at, false
		}
		var d layout.DataChunk
		head, err := f.ParseGrowing(ctx, at, "chunk",
			func(c *wire.Cursor) { d = layout.ParseDataChunk2(thrift.NewReader(c, thrift.Compact), "") })
		if err != nil || d.DataLen < 0 || d.RowidLen < 0 || d.RleLen < 0 || len(head) > 1<<15 {
			return b, at, false
		}
		b.Offsets, b.Lengths = append(b.Offsets, at), append(b.Lengths, int32(len(head)))
		at += int64(len(head)) + int64(d.DataLen) + int64(d.RowidLen) + int64(d.RleLen)
		if at > f.At.Len {
			return b, at, false
		}
	}
	return b, at, true
}

// countRows counts the rows of blocklet g by decoding a measure, whose pages have one value per row.
func (f *DataFile) countRows(ctx context.Context, g int) (int64, error) {
	for _, col := range f.Columns {
		if col.Dimension || col.Parent != nil {
			continue
		}
		c, err := f.readChunk12(ctx, g, col)
		if err != nil {
			return 0, err
		}
		var spans []fault.Span
		p := (&chunkTree{ChunkAt: c, col: col}).page(f, 0, -1, page.DateRule{}, &spans)
		t, err := col.Arrow()
		if err != nil {
			return 0, err
		}
		dst, err := vec.New(t, memory.DefaultAllocator)
		if err != nil {
			return 0, err
		}
		defer dst.Release()
		task := format.Task{N: -1, Scratch: &vec.Arena{}, Limits: f.Limits}
		for _, s := range spans {
			stored, err := f.Read(ctx, s.Off, s.Len, c.Path)
			if err != nil {
				return 0, err
			}
			task.Bytes = append(task.Bytes, stored)
		}
		if err := p.Decode(&task, task.Bytes, -1, dst); err != nil {
			return 0, err
		}
		if n := int64(dst.Len()); n > 0 && n <= page.MaxPageRows {
			return n, nil
		}
	}
	return 0, fault.Corruptf(f.At, "footer", "no measure of blocklet %d can be decoded to count its rows", g)
}
