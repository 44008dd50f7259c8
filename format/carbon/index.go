package carbon

import (
	"context"
	"fmt"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// indexHeader is IndexHeader, with which a .carbonindex begins.
type indexHeader struct {
	version int32
	columns []columnSchema
	segment segmentInfo
	bucket  int32 // -1: not said
	stamp   int64
	sorted  bool
}

func parseIndexHeader(r *thrift.Reader, name string) (h indexHeader) {
	h.bucket = -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			h.version = r.I32("version")
		case 2:
			h.columns = parseColumnSchemas(r, "table_columns")
		case 3:
			h.segment = parseSegmentInfo(r, "segment_info")
		case 4:
			h.bucket = r.I32("bucket_id")
		case 5:
			h.stamp = r.I64("schema_time_stamp")
		case 6:
			h.sorted = r.Bool("is_sort")
		}
	}
	return h
}

// blockIndex is BlockIndex: in new files of a blocklet, in old ones of a whole file.
type blockIndex struct {
	rows   int64
	file   string
	offset int64 // of the footer
	index  blockletIndex
	info   *blockletInfo
	size   int64
	at     fault.Span
}

func parseBlockIndex(r *thrift.Reader, name string) (b blockIndex) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.rows = r.I64("num_rows")
		case 2:
			b.file = r.String("file_name")
		case 3:
			b.offset = r.I64("offset")
		case 4:
			b.index = parseBlockletIndex(r, "block_index")
		case 5:
			info := parseBlockletInfo3(r, "blocklet_info")
			b.info = &info
		case 6:
			b.size = r.I64("file_size")
		}
	}
	return b
}

// indexFile is a .carbonindex: a header, then block after block to the end.
type indexFile struct {
	name   string // as the merged file calls it, or that of the object
	header indexHeader
	blocks []blockIndex
}

// parseIndex reads an index file that is all of c.
func parseIndex(c *wire.Cursor) (x indexFile) {
	r := thrift.NewReader(c, thrift.Compact)
	x.header = parseIndexHeader(r, "IndexHeader")
	for i := 0; c.Err() == nil && c.Left() > 0; i++ {
		from := c.Pos()
		b := parseBlockIndex(r, listed("BlockIndex", i))
		if b.at = c.SpanOf(from, c.Pos()-from); c.Err() == nil {
			x.blocks = append(x.blocks, b)
		}
	}
	return x
}

// parseMergedIndex reads a .carbonindexmerge: the names, then the files themselves in the same order.
func parseMergedIndex(c *wire.Cursor) (out []indexFile) {
	r := thrift.NewReader(c, thrift.Compact)
	var names []string
	for r.Struct("MergedBlockIndexHeader"); r.Next(); {
		if r.Field() == 1 {
			names = parseStrings(r, "file_names")
		}
	}
	var files [][]byte
	for r.Struct("MergedBlockIndex"); r.Next(); {
		if r.Field() == 1 {
			files = parseBinaries(r, "fileData")
		}
	}
	if c.Err() == nil && len(names) != len(files) {
		c.Fail(c.Pos(), 0, "fileData", "%d files, %d names", len(files), len(names))
	}
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes behind the last file", c.Left())
	}
	for i := range min(len(names), len(files)) {
		out = append(out, indexFile{name: names[i]})
		in := wire.NewCursor(files[i], c.SpanOf(offsetIn(c, files[i]), len(files[i])), listed("fileData", i))
		x := parseIndex(in)
		x.name = names[i]
		out[i] = x
		if in.Err() != nil && c.Err() == nil {
			c.FailClass(fault.Corrupt, offsetIn(c, files[i]), len(files[i]), listed("fileData", i), "%v", in.Err())
		}
	}
	return out
}

// offsetIn is where a part of c's bytes begins in them.
func offsetIn(c *wire.Cursor, part []byte) int { return c.Pos() + c.Left() + slack(c) - cap(part) }

// slack is the capacity behind c's bytes.
func slack(c *wire.Cursor) int { rest := c.Rest(); return cap(rest) - len(rest) }

// readIndex reads an index file of either kind.
func (o *object) readIndex(ctx context.Context, merged bool, trace func(region.Node)) ([]indexFile, error) {
	b, err := o.read(ctx, 0, o.at.Len, "")
	if err != nil {
		return nil, err
	}
	c := wire.NewCursor(b, o.at, "").Trace(trace, 1)
	if !merged {
		x := parseIndex(c)
		x.name = o.at.Object
		return []indexFile{x}, c.Err()
	}
	return parseMergedIndex(c), c.Err()
}

// String is a few words about a block's entry.
func (b *blockIndex) String() string {
	return fmt.Sprintf("%s: %d rows, footer at %d", b.file, b.rows, b.offset)
}
