package carbon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

const (
	magicV2  = "CARBONDATAVERSION#ColumnarFormatV2"
	tailLen  = 8 // offset of the footer, big-endian
	readHead = 16 << 10
	readTail = 64 << 10
)

// object is bytes by name, of which only pieces are read, each with its own opening: a table may have very many files.
type object struct {
	tree   store.Tree
	at     fault.Span // the whole object
	limits format.Limits
}

// openObject asks for the size of an object.
func openObject(ctx context.Context, tree store.Tree, name string, l format.Limits) (object, error) {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return object{}, err
	}
	defer src.Close()
	return object{tree: tree, at: fault.Span{Object: name, Len: src.Size()}, limits: l.WithDefaults()}, nil
}

// read reads n bytes at off. What is metadata is held against its limit.
func (o *object) read(ctx context.Context, off, n int64, path string) ([]byte, error) {
	at := o.at.Sub(off, n)
	if off < 0 || n < 0 || off > o.at.Len || n > o.at.Len-off {
		return nil, fault.Corruptf(at, path, "reaches past the end of the file (%d)", o.at.Len)
	}
	if n > o.limits.Metadata {
		return nil, fault.Limitf(at, path, "%d bytes are more than a piece of metadata may have (%d)", n, o.limits.Metadata)
	}
	src, err := o.tree.Open(ctx, o.at.Object)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	b := make([]byte, n)
	return b, format.ReadFull(ctx, src, at, path, b)
}

// growing parses a structure that begins at off and whose size nobody says: more bytes are read until parse is content.
// It gives the bytes that parse used.
func (o *object) growing(ctx context.Context, off int64, path string, parse func(c *wire.Cursor)) ([]byte, error) {
	for n := int64(readHead); ; n *= 8 {
		n = min(n, o.at.Len-off, o.limits.Metadata)
		b, err := o.read(ctx, off, n, path)
		if err != nil {
			return nil, err
		}
		c := wire.NewCursor(b, o.at.Sub(off, n), path)
		parse(c)
		if c.Err() == nil || n == min(o.at.Len-off, o.limits.Metadata) {
			return b[:c.Pos()], c.Err()
		}
	}
}

// column is a column of a table or file, with its children.
type column struct {
	*columnSchema
	chunk  int // number of the column chunk in a blocklet of its file
	kids   []*column
	parent *column
	// card is the cardinality that a file's segment_info says, -1 if none; formats 1 and 2 make key widths of it.
	card int32
}

// leafName is the last part of a child's name.
func (c *column) leafName() string {
	if c.parent != nil && len(c.name) > len(c.parent.name)+1 && c.name[:len(c.parent.name)] == c.parent.name {
		return c.name[len(c.parent.name)+1:]
	}
	return c.name
}

const maxNesting = 32

// columnTree makes trees of columns that are listed depth first, and numbers their chunks: dimensions in the order of the list,
// then measures.
func columnTree(list []columnSchema, at fault.Span, path string) (roots []*column, chunks int, err error) {
	dims := 0
	for i := range list {
		if list[i].dimension {
			dims++
		}
	}
	dim, measure := 0, dims
	pos := 0
	var next func(parent *column, depth int) (*column, error)
	next = func(parent *column, depth int) (*column, error) {
		if pos >= len(list) {
			return nil, fault.Corruptf(at, path, "column %s has more children than follow it", parent.name)
		}
		c := &column{columnSchema: &list[pos], parent: parent, card: -1}
		pos++
		if c.dimension {
			c.chunk = dim
			dim++
		} else {
			c.chunk = measure
			measure++
		}
		if depth > maxNesting {
			return nil, fault.Corruptf(at, path, "column %s is nested deeper than %d", c.name, maxNesting)
		}
		if c.children < 0 || int(c.children) > len(list)-pos {
			return nil, fault.Corruptf(at, path, "column %s has %d children, %d columns follow", c.name, c.children, len(list)-pos)
		}
		for range c.children {
			k, err := next(c, depth+1)
			if err != nil {
				return nil, err
			}
			c.kids = append(c.kids, k)
		}
		return c, c.check(at, path)
	}
	for pos < len(list) {
		c, err := next(nil, 0)
		if err != nil {
			return nil, 0, err
		}
		roots = append(roots, c)
	}
	return roots, len(list), nil
}

// check says whether a column can be what it says.
func (c *column) check(at fault.Span, path string) error {
	want := -1
	switch c.typ {
	case typeArray, typeMap:
		want = 1
	case typeStruct:
		if len(c.kids) == 0 {
			want = 1
		}
	default:
		want = 0
	}
	if want >= 0 && len(c.kids) != want {
		return fault.Corruptf(at, path, "column %s, of type %s, has %d children", c.name, c.typ, len(c.kids))
	}
	if c.typ == typeMap && (c.kids[0].typ != typeStruct || len(c.kids[0].kids) != 2) {
		return fault.Corruptf(at, path, "the map %s has no struct of key and value", c.name)
	}
	if _, ok := typeNames[c.typ]; !ok {
		return fault.Unsupportedf(at, path, "column %s: %s", c.name, c.typ)
	}
	return nil
}

// all calls f with c and every column below it, depth first.
func (c *column) all(f func(*column)) {
	f(c)
	for _, k := range c.kids {
		k.all(f)
	}
}

// dataFile is an open data file: its header, its footer, and what they say of the columns.
type dataFile struct {
	object
	version  int // of the format: 1, 2, 3
	header   header
	footer   footer
	headLen  int64
	footAt   int64
	roots    []*column
	columns  []*column // by chunk
	dimCount int       // how many of them are dimensions
	noVerify bool
	widths   keyWidths   // formats 1 and 2
	stream   *streamFile // rows instead of columns
	rebuilt  bool        // recovering: the footer is not the file's own
}

// openFile reads the header and the footer of a data file. What it understood is in f also when it fails.
func openFile(ctx context.Context, tree store.Tree, name string, o format.OpenOptions) (f *dataFile, err error) {
	f = &dataFile{noVerify: o.NoVerify, footAt: -1}
	if f.object, err = openObject(ctx, tree, name, o.Limits); err != nil {
		return f, err
	}
	if f.at.Len < tailLen+2 {
		return f, fault.Corruptf(f.at, "", "%d bytes are too few for a data file", f.at.Len)
	}
	headErr := f.readHeader(ctx, o.Tracer)
	if e := (*fault.Error)(nil); headErr != nil && !errors.As(headErr, &e) { // it was not read: that says nothing of the file
		return f, headErr
	}
	if headErr == nil && f.version == 3 && f.header.hasFooter && !f.header.footer {
		return f, f.readStream(ctx, o.Tracer)
	}
	if err := f.readFooter(ctx, o.Tracer); err != nil {
		return f, err
	}
	if f.version == 3 && headErr != nil {
		return f, headErr
	}
	return f, f.layout()
}

// readHeader reads what stands at the beginning: a FileHeader, or the text of format 2, or nothing in format 1.
func (f *dataFile) readHeader(ctx context.Context, trace func(region.Node)) error {
	b, err := f.read(ctx, 0, min(f.at.Len, int64(len(magicV2))), "header")
	if err != nil {
		return err
	}
	if bytes.Equal(b, []byte(magicV2)) {
		f.version, f.headLen = 2, int64(len(magicV2))
		tell(trace, region.Node{Kind: region.Struct, Name: "header", Value: magicV2, At: f.at.Sub(0, f.headLen), Inner: -1})
		return nil
	}
	var h header
	head, err := f.growing(ctx, 0, "header", func(c *wire.Cursor) { h = parseHeader(thrift.NewReader(c, thrift.Compact), "") })
	if err == nil && h.version == 3 {
		f.version, f.header, f.headLen = 3, h, int64(len(head))
		if trace != nil {
			trace(region.Node{Kind: region.Struct, Name: "header", Value: fmt.Sprintf("%d columns", len(h.columns)), At: f.at.Sub(0, f.headLen), Inner: -1})
			parseHeader(thrift.NewReader(wire.NewCursor(head, f.at.Sub(0, f.headLen), "header").Trace(trace, 1), thrift.Compact), "FileHeader")
		}
		return nil
	}
	f.version = 1 // no header: the footer will say otherwise if there should be one
	if err == nil {
		err = fault.Corruptf(f.at.Sub(0, int64(len(head))), "header.version", "%d, format 3 is known", h.version)
	}
	return err
}

func tell(trace func(region.Node), n region.Node) {
	if trace != nil {
		trace(n)
	}
}

// readFooter finds the footer by the last eight bytes and reads it. The type of its first field tells FileFooter from FileFooter3.
func (f *dataFile) readFooter(ctx context.Context, trace func(region.Node)) error {
	end, err := f.read(ctx, f.at.Len-tailLen, tailLen, "footer_offset")
	if err != nil {
		return err
	}
	off := int64(binary.BigEndian.Uint64(end))
	if off < f.headLen || off >= f.at.Len-tailLen {
		return fault.Corruptf(f.at.Sub(f.at.Len-tailLen, tailLen), "footer_offset", "%d is not between the header's end (%d) and %d", off, f.headLen, f.at.Len-tailLen)
	}
	f.footAt = off
	b, err := f.read(ctx, off, f.at.Len-tailLen-off, "footer")
	if err != nil {
		return err
	}
	c := wire.NewCursor(b, f.at.Sub(off, int64(len(b))), "footer")
	f.footer = f.parseFooter(c)
	if trace != nil {
		trace(region.Node{Kind: region.Struct, Name: "footer", Value: fmt.Sprintf("%d rows, %d blocklets", f.footer.rows, len(f.footer.blocklet)), At: f.at.Sub(off, int64(len(b))), Inner: -1})
		f.parseFooter(wire.NewCursor(b, f.at.Sub(off, int64(len(b))), "footer").Trace(trace, 1))
		trace(region.Node{Kind: region.Data, Name: "footer_offset", Value: fmt.Sprint(off), At: f.at.Sub(f.at.Len-tailLen, tailLen), Inner: -1})
	}
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes behind the footer", c.Left())
	}
	return c.Err()
}

// isFooter3 tells by the first field: i64 num_rows, not i32 version.
func isFooter3(b []byte) bool { return len(b) > 0 && b[0] == 0x16 }

func (f *dataFile) parseFooter(c *wire.Cursor) footer {
	r := thrift.NewReader(c, thrift.Compact)
	if isFooter3(c.Rest()) {
		f.version = 3
		return parseFooter3(r, "FileFooter3")
	}
	if f.version == 3 {
		f.version = 1
	}
	return parseFooter12(r, "FileFooter")
}

// layout checks what header and footer say of each other and of the file.
func (f *dataFile) layout() (err error) {
	list, at, path := f.footer.columns, f.footSpan(), "footer.table_columns"
	if f.version == 3 {
		list, at, path = f.header.columns, f.at.Sub(0, f.headLen), "header.column_schema"
	}
	var chunks int
	if f.roots, chunks, err = columnTree(list, at, path); err != nil {
		return err
	}
	f.columns = make([]*column, chunks)
	for _, r := range f.roots {
		r.all(func(c *column) { f.columns[c.chunk] = c })
	}
	f.dimCount = f.dims()
	if f.version < 3 {
		f.cardinalities()
		if err := f.checkFooter12(); err != nil {
			return err
		}
	}
	return f.checkBlocklets()
}

func (f *dataFile) footSpan() fault.Span { return f.at.Sub(f.footAt, f.at.Len-tailLen-f.footAt) }

// checkBlocklets holds rows and offsets against the file.
func (f *dataFile) checkBlocklets() error {
	at := f.footSpan()
	if n, k := len(f.footer.blocklet), len(f.footer.index); n != k {
		return fault.Corruptf(at, "footer", "%d blocklets, but %d of them are indexed", n, k)
	}
	var rows int64
	for i := range f.footer.blocklet {
		b := &f.footer.blocklet[i]
		path := fmt.Sprintf("footer.blocklet[%d]", i)
		if b.rows < 0 {
			return fault.Corruptf(at, path+".num_rows", "%d", b.rows)
		}
		rows += b.rows
		if f.version < 3 && b.rows > maxPageRows {
			return fault.Limitf(at, path+".num_rows", "%d rows, a blocklet has at most %d", b.rows, maxPageRows)
		}
		var err error
		switch f.version {
		case 3:
			err = f.checkBlocklet3(b, at, path)
		case 2:
			err = f.checkBlocklet2(b, at, path)
		default:
			err = f.checkBlocklet1(b, at, path)
		}
		if err != nil {
			return err
		}
	}
	if rows != f.footer.rows {
		return fault.Corruptf(at, "footer.num_rows", "%d, the blocklets have %d", f.footer.rows, rows)
	}
	return nil
}

func (f *dataFile) checkBlocklet3(b *blockletInfo, at fault.Span, path string) error {
	if len(b.offsets) != len(f.columns) || len(b.lengths) != len(f.columns) {
		return fault.Corruptf(at, path, "%d offsets and %d lengths of column chunks, the header has %d columns", len(b.offsets), len(b.lengths), len(f.columns))
	}
	for i, off := range b.offsets {
		if b.whole > 0 && i >= b.whole {
			break
		}
		end := b.chunkEnd(i, f.dimCount)
		if off < f.headLen || b.lengths[i] < 1 || end > f.footAt || off > end || int64(b.lengths[i]) > end-off {
			return fault.Corruptf(at, fmt.Sprintf("%s.column_data_chunks_offsets[%d]", path, i), "a chunk from %d to %d whose metadata has %d bytes does not lie between header (%d) and footer (%d)",
				off, end, b.lengths[i], f.headLen, f.footAt)
		}
	}
	for i, n := range b.lengths { // each page takes some bytes of each chunk's metadata
		if int64(len(b.inPage)) > int64(n) && (b.whole == 0 || i < b.whole) {
			return fault.Corruptf(at, path+".row_count_in_page", "%d pages, the metadata of chunk %d has %d bytes", len(b.inPage), i, n)
		}
	}
	if b.inPage != nil {
		var n int64
		for _, k := range b.inPage {
			if k < 0 || k > maxPageRows3 {
				return fault.Corruptf(at, path+".row_count_in_page", "%d rows, a page has at most %d", k, maxPageRows3)
			}
			n += int64(k)
		}
		if n != b.rows || int(b.pages) != len(b.inPage) {
			return fault.Corruptf(at, path+".row_count_in_page", "%d rows in %d pages, the blocklet says %d rows in %d", n, len(b.inPage), b.rows, b.pages)
		}
	}
	return nil
}

// dims is the number of chunks of dimensions.
func (f *dataFile) dims() int {
	n := 0
	for _, c := range f.columns {
		if c.dimension {
			n++
		}
	}
	return n
}

// chunkEnd is where chunk i of a blocklet of format 3 ends.
func (b *blockletInfo) chunkEnd(i, dims int) int64 {
	switch {
	case i == dims-1:
		return b.dims
	case i == len(b.offsets)-1:
		return b.end
	}
	return b.offsets[i+1]
}

// readFull is for what is not metadata.
func readSome(ctx context.Context, src store.Source, p []byte, off int64) error {
	n, err := src.ReadAt(ctx, p, off)
	if n == len(p) || err == io.EOF {
		return nil
	}
	return err
}
