package carbon

import (
	"context"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// A file of format 2 without a footer: the index file beside it knows the columns and how great the codes are, and the column chunks
// follow each other, each with its lengths. How many rows a blocklet has stands nowhere else; the values of a measure tell. In format 1
// everything that says what the bytes are was in the footer.

// recover2 finds the blocklets of a file of format 2, one after the other.
func (f *dataFile) recover2(ctx context.Context) (*dataFile, []region.Finding, error) {
	x, known := f.indexOf(ctx)
	if x == nil {
		return nil, nil, fault.Corruptf(f.at, "footer", "without it only the index file knows the columns, and none beside the file names it")
	}
	g := &dataFile{object: f.object, version: 2, headLen: f.headLen, footAt: f.at.Len, noVerify: f.noVerify}
	g.footer = footer{version: 2, columns: x.header.columns, segment: x.header.segment}
	var chunks int
	var err error
	if g.roots, chunks, err = columnTree(g.footer.columns, f.at, "table_columns"); err != nil {
		return nil, nil, err
	}
	g.columns = make([]*column, chunks)
	for _, r := range g.roots {
		r.all(func(c *column) { g.columns[c.chunk] = c })
	}
	g.dimCount = g.dims()
	g.cardinalities()
	at := g.headLen
	for ctx.Err() == nil {
		b, end, ok := g.blockletHere(ctx, at)
		if !ok {
			break
		}
		g.footer.blocklet = append(g.footer.blocklet, b)
		g.footer.index = append(g.footer.index, blockletIndex{})
		if b.rows, err = g.countRows(ctx, len(g.footer.blocklet)-1); err != nil {
			n := len(g.footer.blocklet) - 1
			g.footer.blocklet, g.footer.index = g.footer.blocklet[:n], g.footer.index[:n]
			break
		}
		g.footer.blocklet[len(g.footer.blocklet)-1].rows = b.rows
		g.footer.rows += b.rows
		at = end
	}
	g.footAt = at
	var lost []region.Finding
	if n := known - g.footer.rows; n != 0 {
		l := saying("carbon.rows.lost", f.at.Sub(at, f.at.Len-at), f.at.Object, "%d rows were found, the index says %d", g.footer.rows, known)
		l.Rows, l.Lost = [2]int64{g.footer.rows, max(known, g.footer.rows)}, max(n, 0)
		lost = append(lost, l)
	}
	return g, lost, ctx.Err()
}

// indexOf is the index file in the same directory that names the file, and the rows it says the file has.
func (f *dataFile) indexOf(ctx context.Context) (*indexFile, int64) {
	for info, err := range f.tree.List(ctx, path.Dir(f.at.Object)) {
		if err != nil {
			return nil, 0
		}
		if !strings.HasSuffix(info.Name, indexExt) {
			continue
		}
		o, err := openObject(ctx, f.tree, info.Name, f.limits)
		if err != nil {
			continue
		}
		files, err := o.readIndex(ctx, false, nil)
		if err != nil {
			continue
		}
		for i := range files[0].blocks {
			if b := &files[0].blocks[i]; path.Base(b.file) == path.Base(f.at.Object) && len(files[0].header.columns) > 0 {
				return &files[0], b.rows
			}
		}
	}
	return nil, 0
}

// blockletHere reads the column chunks that begin at an offset; ok is false if they are not all there.
func (f *dataFile) blockletHere(ctx context.Context, at int64) (b blockletInfo, end int64, ok bool) {
	for range f.columns {
		if at >= f.at.Len {
			return b, at, false
		}
		var d dataChunk
		head, err := f.growing(ctx, at, "chunk", func(c *wire.Cursor) { d = parseDataChunk2(thrift.NewReader(c, thrift.Compact), "") })
		if err != nil || d.dataLen < 0 || d.rowidLen < 0 || d.rleLen < 0 || len(head) > 1<<15 {
			return b, at, false
		}
		b.offsets, b.lengths = append(b.offsets, at), append(b.lengths, int32(len(head)))
		at += int64(len(head)) + int64(d.dataLen) + int64(d.rowidLen) + int64(d.rleLen)
		if at > f.at.Len {
			return b, at, false
		}
	}
	return b, at, true
}

// countRows decodes a measure of blocklet g, whose values are as many as its rows.
func (f *dataFile) countRows(ctx context.Context, g int) (int64, error) {
	for _, col := range f.columns {
		if col.dimension || col.parent != nil {
			continue
		}
		c, err := f.readChunk12(ctx, g, col)
		if err != nil {
			return 0, err
		}
		var spans []fault.Span
		p := (&chunkTree{chunkAt: c, col: col}).page(f, 0, -1, dateRule{}, &spans)
		t, err := col.arrow()
		if err != nil {
			return 0, err
		}
		dst, err := vec.New(t, memory.DefaultAllocator)
		if err != nil {
			return 0, err
		}
		defer dst.Release()
		task := format.Task{N: -1, Scratch: &vec.Arena{}, Limits: f.limits}
		for _, s := range spans {
			stored, err := f.read(ctx, s.Off, s.Len, c.path)
			if err != nil {
				return 0, err
			}
			task.Bytes = append(task.Bytes, stored)
		}
		if err := p.decode(&task, task.Bytes, -1, dst); err != nil {
			return 0, err
		}
		if n := int64(dst.Len()); n > 0 && n <= maxPageRows {
			return n, nil
		}
	}
	return 0, fault.Corruptf(f.at, "footer", "no measure tells how many rows blocklet %d has", g)
}
