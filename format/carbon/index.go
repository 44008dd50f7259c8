package carbon

import (
	"context"
	"encoding/binary"
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

// count is the rows that the entry stands for: of its blocklet, if it has one. num_rows is then the whole file's, in each entry.
func (b *blockIndex) count() int64 {
	if b.info != nil {
		return b.info.rows
	}
	return b.rows
}

// indexFile is a .carbonindex: a header, then block after block to the end. That of a streaming segment has no header.
type indexFile struct {
	name   string // as the merged file calls it, or that of the object
	header indexHeader
	blocks []blockIndex
}

// blockFirst is the first byte of a BlockIndex: field 1, an i64, where an IndexHeader has an i32.
const blockFirst = 0x16

// parseIndex reads an index file that is all of c.
func parseIndex(c *wire.Cursor) (x indexFile) {
	r := thrift.NewReader(c, thrift.Compact)
	if b := c.Rest(); len(b) == 0 || b[0] != blockFirst {
		x.header = parseIndexHeader(r, "IndexHeader")
	}
	for i := 0; c.Err() == nil && c.Left() > 0; i++ {
		from := c.Pos()
		b := parseBlockIndex(r, listed("BlockIndex", i))
		if b.at = c.SpanOf(from, c.Pos()-from); c.Err() == nil {
			x.blocks = append(x.blocks, b)
		}
	}
	return x
}

// parseMergedIndex reads a .carbonindexmerge: the names, then the files themselves in the same order. trace (may be nil) is told
// what is in the files, which are binary values to Thrift, one level below depth.
func parseMergedIndex(c *wire.Cursor, trace func(region.Node)) (out []indexFile) {
	r := thrift.NewReader(c, thrift.Compact)
	var names []string
	for r.Struct("MergedBlockIndexHeader"); r.Next(); {
		if r.Field() == 1 {
			names = parseStrings(r, "file_names")
		}
	}
	for r.Struct("MergedBlockIndex"); r.Next(); {
		if r.Field() != 1 {
			continue
		}
		for i := range r.List("fileData", thrift.Bytes) {
			file := r.Bytes("")
			if c.Err() != nil {
				break
			}
			off := c.Pos() - len(file)
			in := wire.NewCursor(file, c.SpanOf(off, len(file)), listed("fileData", i))
			if trace != nil { // the length before the file, then the file
				n := len(binary.AppendUvarint(nil, uint64(len(file))))
				trace(region.Node{Depth: fileDepth, Kind: region.Data, Name: "length", Value: fmt.Sprint(len(file)), At: c.SpanOf(off-n, n), Inner: -1})
				trace(region.Node{Depth: fileDepth, Kind: region.Struct, Name: "file", At: c.SpanOf(off, len(file)), Inner: -1})
				in.Trace(trace, fileDepth+1)
			}
			x := parseIndex(in)
			if i < len(names) {
				x.name = names[i]
			}
			out = append(out, x)
			c.Join(in)
		}
	}
	if c.Err() == nil && len(names) != len(out) {
		c.Fail(c.Pos(), 0, "fileData", "%d files, %d names", len(out), len(names))
	}
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes behind the last file", c.Left())
	}
	return out
}

// fileDepth is the depth of what is in an element of fileData: below struct, list and element.
const fileDepth = 4

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
	return parseMergedIndex(c, trace), c.Err()
}

// String is a few words about a block's entry.
func (b *blockIndex) String() string {
	return fmt.Sprintf("%s: %d rows, footer at %d", b.file, b.rows, b.offset)
}
