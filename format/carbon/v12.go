package carbon

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/wire"
)

// Files of formats 1 and 2. A blocklet has one page of each column. In format 1 everything that describes it is in the footer,
// and the pages lie grouped: all data, then all row ids, then all runs. In format 2 the column chunk of format 3 begins:
// DataChunk2, data, row ids, runs.

// cardinalities gives the columns what the footer says of them: how many values a dictionary had. The list is that of the
// dimensions; 0 of a list or struct, -1 of a column without a dictionary.
func (f *dataFile) cardinalities() {
	for i, c := range f.columns {
		if c.dimension && i < len(f.footer.segment.cardinalities) {
			c.card = f.footer.segment.cardinalities[i]
		}
	}
}

// checkFooter12 looks for what every footer says.
func (f *dataFile) checkFooter12() error {
	switch {
	case int(f.footer.version) != f.version:
		return fault.Corruptf(f.footSpan(), "footer.version", "%d, the beginning of the file says %d", f.footer.version, f.version)
	case len(f.columns) == 0:
		return fault.Corruptf(f.footSpan(), "footer.table_columns", "there are none")
	case len(f.footer.blocklet) == 0:
		return fault.Corruptf(f.footSpan(), "footer.blocklet_info_list", "there are none")
	}
	return nil
}

// columnGroups refuses files with column groups: several columns whose codes are packed into one chunk.
func (f *dataFile) columnGroups(at fault.Span) error {
	seen := map[int32]string{}
	for _, c := range f.columns {
		if c.group < 0 || !c.dimension {
			continue
		}
		if other, ok := seen[c.group]; ok {
			return fault.Unsupportedf(at, "footer.table_columns", "columns %s and %s are a column group, kept row by row", other, c.name)
		}
		seen[c.group] = c.name
	}
	return nil
}

// inData checks that n bytes at off are between the header and the footer.
func (f *dataFile) inData(at fault.Span, path string, off, n int64) error {
	if off < f.headLen || n < 0 || off > f.footAt || n > f.footAt-off {
		return fault.Corruptf(at, path, "%d bytes at %d do not lie between header (%d) and footer (%d)", n, off, f.headLen, f.footAt)
	}
	return nil
}

// checkBlocklet1 holds the places of the pages of a blocklet of format 1 against the file.
func (f *dataFile) checkBlocklet1(b *blockletInfo, at fault.Span, path string) error {
	if err := f.columnGroups(at); err != nil {
		return err
	}
	if len(b.chunks) != len(f.columns) {
		return fault.Corruptf(at, path, "%d column chunks, the file has %d columns", len(b.chunks), len(f.columns))
	}
	for i := range b.chunks {
		d := &b.chunks[i]
		path := fmt.Sprintf("%s.column_data_chunks[%d]", path, i)
		for _, x := range []struct {
			name string
			off  int64
			n    int32
		}{{"data_page", d.dataAt, d.dataLen}, {"rowid_page", d.rowidAt, d.rowidLen}, {"rle_page", d.rleAt, d.rleLen}} {
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

// checkBlocklet2 holds the places of the column chunks of a blocklet of format 2 against the file.
func (f *dataFile) checkBlocklet2(b *blockletInfo, at fault.Span, path string) error {
	if err := f.columnGroups(at); err != nil {
		return err
	}
	if len(b.offsets) != len(f.columns) || len(b.lengths) != len(f.columns) {
		return fault.Corruptf(at, path, "%d offsets and %d lengths of column chunks, the file has %d columns", len(b.offsets), len(b.lengths), len(f.columns))
	}
	for i, off := range b.offsets {
		if err := f.inData(at, fmt.Sprintf("%s.column_data_chunks_offsets[%d]", path, i), off, int64(b.lengths[i])); err != nil {
			return err
		}
	}
	return nil
}

// readChunk12 gives a column chunk of formats 1 and 2 as one of format 3 with one page.
func (f *dataFile) readChunk12(ctx context.Context, g int, col *column) (*chunkAt, error) {
	path := fmt.Sprintf("blocklet[%d].%s", g, col.name)
	b := &f.footer.blocklet[g]
	if f.version == 1 {
		c, err := f.chunk1(b, col, path)
		return f.bounded(c, g, col), err
	}
	c, err := f.chunk2(ctx, b, col, path)
	return f.bounded(c, g, col), err
}

// bounded gives the page the bounds that the footer has of the blocklet's chunk: it is the only page. Those of lists, structs and
// what is in them are the first and the last value, and mean nothing.
func (f *dataFile) bounded(c *chunkAt, g int, col *column) *chunkAt {
	lo, hi, ok := f.footer.index[g].minMax.at(col.chunk)
	if ok && col.dimension && !col.typ.complex() && col.parent == nil && len(c.pages) == 1 {
		c.pages[0].minMax = &minMax{min: [][]byte{lo}, max: [][]byte{hi}}
	}
	return c
}

func (f *dataFile) chunk1(b *blockletInfo, col *column, path string) (*chunkAt, error) {
	d := b.chunks[col.chunk]
	c := &chunkAt{path: path, at: f.at.Sub(d.dataAt, int64(d.dataLen)), columnChunk: columnChunk{pages: []dataChunk{d}}}
	c.old = append(c.old, c.at)
	if d.rowidLen > 0 {
		c.old = append(c.old, f.at.Sub(d.rowidAt, int64(d.rowidLen)))
	}
	if d.rleLen > 0 {
		c.old = append(c.old, f.at.Sub(d.rleAt, int64(d.rleLen)))
	}
	return c, c.rowMajor()
}

func (f *dataFile) chunk2(ctx context.Context, b *blockletInfo, col *column, path string) (*chunkAt, error) {
	off, n := b.offsets[col.chunk], int64(b.lengths[col.chunk])
	c := &chunkAt{path: path, at: f.at.Sub(off, n)}
	head, err := f.read(ctx, off, n, path)
	if err != nil {
		return c, err
	}
	c.head = head
	cur := wire.NewCursor(head, c.at, path)
	d := parseDataChunk2(thrift.NewReader(cur, thrift.Compact), "")
	if cur.Err() == nil && cur.Left() > 0 {
		cur.Fail(cur.Pos(), cur.Left(), "", "%d bytes behind it, before the data", cur.Left())
	}
	if cur.Err() != nil {
		return c, cur.Err()
	}
	total := int64(d.dataLen) + int64(d.rowidLen) + int64(d.rleLen)
	if d.dataLen < 0 || d.rowidLen < 0 || d.rleLen < 0 {
		return c, fault.Corruptf(c.at, path, "%d bytes of data, %d of row ids, %d of runs", d.dataLen, d.rowidLen, d.rleLen)
	}
	if err := f.inData(c.at, path+".data_page_length", c.at.End(), total); err != nil {
		return c, err
	}
	c.end = c.at.End() + total
	c.columnChunk = columnChunk{pages: []dataChunk{d}}
	c.old = []fault.Span{f.at.Sub(c.at.End(), total)}
	return c, c.rowMajor()
}

// rowMajor refuses a chunk that is kept row by row.
func (c *chunkAt) rowMajor() error {
	if c.pages[0].rowMajor {
		return fault.Unsupportedf(c.at, c.path+".rowMajor", "a column group, kept row by row")
	}
	return nil
}
