package datafile

import (
	"context"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/internal/thrift"
)

// Files of formats 1 and 2. A blocklet has one page of each column. In format 1 the footer has all metadata, and a
// blocklet is all data, then all row ids, then all runs. In format 2 a blocklet has column chunks: DataChunk2, data,
// row ids, runs.

// cardinalities sets the cardinalities of the columns from the footer. The footer has one for each dimension: the
// number of codes of a dictionary, 0 for a list or struct, -1 for a column without a dictionary.
func (f *DataFile) cardinalities() {
	for i, c := range f.Columns {
		if c.Dimension && i < len(f.Footer.Segment.Cardinalities) {
			c.Cardinality = f.Footer.Segment.Cardinalities[i]
		}
	}
}

// checkFooter12 checks the parts that every footer of formats 1 and 2 must have.
func (f *DataFile) checkFooter12() error {
	switch {
	case int(f.Footer.Version) != f.Version:
		return fault.Corruptf(f.FootSpan(), "footer.version", "expected %d by the header, found %d", f.Version,
			f.Footer.Version)
	case len(f.Columns) == 0:
		return fault.Corruptf(f.FootSpan(), "footer.table_columns", "expected columns, found none")
	case len(f.Footer.Blocklet) == 0:
		return fault.Corruptf(f.FootSpan(), "footer.blocklet_info_list", "expected blocklets, found none")
	}
	return nil
}

// columnGroups returns Unsupported if columns form a group, whose codes are packed into one chunk.
func (f *DataFile) columnGroups(at fault.Span) error {
	seen := map[int32]string{}
	for _, c := range f.Columns {
		if c.Group < 0 || !c.Dimension {
			continue
		}
		if other, ok := seen[c.Group]; ok {
			return fault.Unsupportedf(at, "footer.table_columns",
				"columns %s and %s are a column group, stored row by row", other, c.Name)
		}
		seen[c.Group] = c.Name
	}
	return nil
}

// inData checks that n bytes at off are between the header and the footer.
func (f *DataFile) inData(at fault.Span, path string, off, n int64) error {
	if off < f.HeadLen || n < 0 || off > f.FootAt || n > f.FootAt-off {
		return fault.Corruptf(at, path, "%d bytes at %d do not lie between header (%d) and footer (%d)", n, off,
			f.HeadLen, f.FootAt)
	}
	return nil
}

// checkBlocklet1 checks that the pages of a blocklet of format 1 are within the file.
func (f *DataFile) checkBlocklet1(b *layout.BlockletInfo, at fault.Span, path string) error {
	if err := f.columnGroups(at); err != nil {
		return err
	}
	if len(b.Chunks) != len(f.Columns) {
		return fault.Corruptf(at, path, "expected a column chunk for each of %s, found %d",
			fault.Count(len(f.Columns), "column"),
			len(b.Chunks))
	}
	for i := range b.Chunks {
		d := &b.Chunks[i]
		path := fmt.Sprintf("%s.column_data_chunks[%d]", path, i)
		for _, x := range []struct {
			name string
			off  int64
			n    int32
		}{{"data_page", d.DataAt, d.DataLen}, {"rowid_page", d.RowidAt, d.RowidLen}, {"rle_page", d.RleAt, d.RleLen}} {
			if x.n == 0 && x.name != "data_page" {
				continue
			}
			if err := f.inData(at, path+"."+x.name+"_offset", x.off, int64(x.n)); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBlocklet2 checks that the metadata of the column chunks of a blocklet of format 2 is within the file.
func (f *DataFile) checkBlocklet2(b *layout.BlockletInfo, at fault.Span, path string) error {
	if err := f.columnGroups(at); err != nil {
		return err
	}
	if len(b.Offsets) != len(f.Columns) || len(b.Lengths) != len(f.Columns) {
		return fault.Corruptf(at, path, "expected an offset and a length for each of %s, found %d and %d",
			fault.Count(len(f.Columns), "column"), len(b.Offsets), len(b.Lengths))
	}
	for i, off := range b.Offsets {
		if err := f.inData(at, fmt.Sprintf("%s.column_data_chunks_offsets[%d]", path, i), off,
			int64(b.Lengths[i])); err != nil {
			return err
		}
	}
	return nil
}

// readChunk12 reads a column chunk of formats 1 and 2 and shows it as one of format 3 with one page.
func (f *DataFile) readChunk12(ctx context.Context, g int, col *schema.Column) (*ChunkAt, error) {
	path := fmt.Sprintf("blocklet[%d].%s", g, col.Name)
	b := &f.Footer.Blocklet[g]
	if f.Version == 1 {
		c, err := f.chunk1(b, col, path)
		return f.bounded(c, g, col), err
	}
	c, err := f.chunk2(ctx, b, col, path)
	return f.bounded(c, g, col), err
}

// bounded sets the bounds of the chunk's only page to those that the footer has for the chunk. For lists, structs and
// their children the footer has the first and the last value, which are not bounds.
func (f *DataFile) bounded(c *ChunkAt, g int, col *schema.Column) *ChunkAt {
	lo, hi, ok := f.Footer.Index[g].MinMax.At(col.Chunk)
	if ok && col.Dimension && !col.Type.Complex() && col.Parent == nil && len(c.Pages) == 1 {
		c.Pages[0].MinMax = &layout.MinMax{Min: [][]byte{lo}, Max: [][]byte{hi}}
	}
	return c
}

func (f *DataFile) chunk1(b *layout.BlockletInfo, col *schema.Column, path string) (*ChunkAt, error) {
	d := b.Chunks[col.Chunk]
	c := &ChunkAt{Path: path, At: f.At.Sub(d.DataAt, int64(d.DataLen)),
		ColumnChunk: layout.ColumnChunk{Pages: []layout.DataChunk{d}}}
	c.V12Spans = append(c.V12Spans, c.At)
	if d.RowidLen > 0 {
		c.V12Spans = append(c.V12Spans, f.At.Sub(d.RowidAt, int64(d.RowidLen)))
	}
	if d.RleLen > 0 {
		c.V12Spans = append(c.V12Spans, f.At.Sub(d.RleAt, int64(d.RleLen)))
	}
	return c, c.rowMajor()
}

func (f *DataFile) chunk2(ctx context.Context, b *layout.BlockletInfo, col *schema.Column, path string) (*ChunkAt,
	error) {
	off, n := b.Offsets[col.Chunk], int64(b.Lengths[col.Chunk])
	c := &ChunkAt{Path: path, At: f.At.Sub(off, n)}
	head, err := f.Read(ctx, off, n, path)
	if err != nil {
		return c, err
	}
	c.Head = head
	cur := f.Cursor(head, c.At, path)
	d := layout.ParseDataChunk2(thrift.NewReader(cur, thrift.Compact), "")
	if cur.Err() == nil && cur.Left() > 0 {
		cur.Fail(cur.Pos(), cur.Left(), "", "%d bytes between the metadata and the data", cur.Left())
	}
	if cur.Err() != nil {
		return c, cur.Err()
	}
	total := int64(d.DataLen) + int64(d.RowidLen) + int64(d.RleLen)
	if d.DataLen < 0 || d.RowidLen < 0 || d.RleLen < 0 {
		return c, fault.Corruptf(c.At, path, "a negative length of data (%d), row ids (%d) or runs (%d)", d.DataLen,
			d.RowidLen, d.RleLen)
	}
	if err := f.inData(c.At, path+".data_page_length", c.At.End(), total); err != nil {
		return c, err
	}
	c.End = c.At.End() + total
	if next := f.follows(off); c.End != next && !f.Rebuilt {
		return c, fault.Corruptf(c.At, path+".data_page_length",
			"expected the page to end at %d, where the next chunk "+
				"begins, found %d", next, c.End)
	}
	c.ColumnChunk = layout.ColumnChunk{Pages: []layout.DataChunk{d}}
	c.V12Spans = []fault.Span{f.At.Sub(c.At.End(), total)}
	return c, c.rowMajor()
}

// follows returns the offset of the first column chunk after off, or of the footer.
func (f *DataFile) follows(off int64) int64 {
	f.sorting.Do(func() {
		for i := range f.Footer.Blocklet {
			f.starts = append(f.starts, f.Footer.Blocklet[i].Offsets...)
		}
		slices.Sort(f.starts)
	})
	if i, _ := slices.BinarySearch(f.starts, off+1); i < len(f.starts) {
		return f.starts[i]
	}
	return f.FootAt
}

// rowMajor returns Unsupported if the chunk is stored row by row.
func (c *ChunkAt) rowMajor() error {
	if c.Pages[0].RowMajor {
		return fault.Unsupportedf(c.At, c.Path+".rowMajor", "a column group, stored row by row")
	}
	return nil
}
