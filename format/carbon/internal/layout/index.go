package layout

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"stoa/fault"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/wire"
)

// IndexHeader is IndexHeader, with which a .carbonindex begins.
type IndexHeader struct {
	Version int32
	Columns []ColumnSchema
	Segment SegmentInfo
	Bucket  int32 // -1: not said
	Stamp   int64
	Sorted  bool
}

func parseIndexHeader(r *thrift.Reader, name string) (h IndexHeader) {
	h.Bucket = -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			h.Version = r.I32("version")
		case 2:
			h.Columns = parseColumnSchemas(r, "table_columns")
		case 3:
			h.Segment = parseSegmentInfo(r, "segment_info")
		case 4:
			h.Bucket = r.I32("bucket_id")
		case 5:
			h.Stamp = r.I64("schema_time_stamp")
		case 6:
			h.Sorted = r.Bool("is_sort")
		}
	}
	return h
}

// BlockIndex is BlockIndex: in new files of a blocklet, in old ones of a whole file.
type BlockIndex struct {
	Rows   int64
	File   string
	Offset int64 // of the footer
	Index  BlockletIndex
	Info   *BlockletInfo
	Size   int64
	At     fault.Span
}

func parseBlockIndex(r *thrift.Reader, name string) (b BlockIndex) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			b.Rows = r.I64("num_rows")
		case 2:
			b.File = r.String("file_name")
		case 3:
			b.Offset = r.I64("offset")
		case 4:
			b.Index = ParseBlockletIndex(r, "block_index")
		case 5:
			info := parseBlockletInfo3(r, "blocklet_info")
			b.Info = &info
		case 6:
			b.Size = r.I64("file_size")
		}
	}
	return b
}

// Count is the rows that the entry stands for: of its blocklet, if it has one. num_rows is then the whole
// file's, in each entry.
func (b *BlockIndex) Count() int64 {
	if b.Info != nil {
		return b.Info.Rows
	}
	return b.Rows
}

// IndexFile is a .carbonindex: a header, then block after block to the end. That of a streaming segment has no header.
type IndexFile struct {
	Name   string // as the merged file calls it, or that of the object
	Header IndexHeader
	Blocks []BlockIndex
}

// blockFirst is the first byte of a BlockIndex: field 1, an i64, where an IndexHeader has an i32.
const blockFirst = 0x16

// ParseIndex reads an index file that is all of c.
func ParseIndex(c *wire.Cursor) (x IndexFile) {
	r := thrift.NewReader(c, thrift.Compact)
	if b := c.Rest(); len(b) == 0 || b[0] != blockFirst {
		x.Header = parseIndexHeader(r, "IndexHeader")
	}
	for i := 0; c.Err() == nil && c.Left() > 0; i++ {
		from := c.Pos()
		name := Listed("BlockIndex", i)
		b := parseBlockIndex(r, name)
		if n := c.Pos() - from; c.Err() == nil && (!strings.HasSuffix(b.File, DataExt) || b.Rows < 0) {
			c.Fail(from, n, name, "%d rows of a data file called %.80q", b.Rows, b.File) // it is no entry at all
		}
		if b.At = c.SpanOf(from, c.Pos()-from); c.Err() == nil {
			x.Blocks = append(x.Blocks, b)
		}
	}
	return x
}

// ParseMergedIndex reads a .carbonindexmerge: the names, then the files themselves in the same order. trace
// (may be nil) is told what is in the files, which are binary values to Thrift, one level below depth.
func ParseMergedIndex(c *wire.Cursor, trace func(region.Node)) (out []IndexFile) {
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
			in := wire.NewCursor(file, c.SpanOf(off, len(file)), Listed("fileData", i))
			if trace != nil { // the length before the file, then the file
				n := len(binary.AppendUvarint(nil, uint64(len(file))))
				trace(region.Node{Depth: fileDepth, Kind: region.Data, Name: "length", Value: fmt.Sprint(len(file)),
					At: c.SpanOf(off-n, n), Inner: -1})
				trace(region.Node{Depth: fileDepth, Kind: region.Struct, Name: "file", At: c.SpanOf(off, len(file)),
					Inner: -1})
				in.Trace(trace, fileDepth+1)
			}
			x := ParseIndex(in)
			if i < len(names) {
				x.Name = names[i]
			}
			out = append(out, x)
			c.Join(in)
		}
	}
	if c.Err() == nil && len(names) != len(out) {
		c.Fail(c.Pos(), 0, "fileData", "%d files, %d names", len(out), len(names))
	}
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes after the last file", c.Left())
	}
	return out
}

// fileDepth is the depth of what is in an element of fileData: below struct, list and element.
const fileDepth = 4

// String is a few words about a block's entry.
func (b *BlockIndex) String() string {
	return fmt.Sprintf("%s: %d rows, footer at %d", b.File, b.Rows, b.Offset)
}

const (
	DataExt   = ".carbondata"
	IndexExt  = ".carbonindex"
	MergedExt = ".carbonindexmerge"
	DeltaExt  = ".deletedelta"
)

// SameBounds compares bounds; an index may have been told to keep those of some columns only.
func SameBounds(a, b *MinMax) bool {
	if a == nil || b == nil || len(a.Min) != len(b.Min) || len(a.Max) != len(b.Max) {
		return true
	}
	for i := range a.Min {
		if len(a.Min[i]) > 0 && !bytes.Equal(a.Min[i], b.Min[i]) {
			return false
		}
	}
	for i := range a.Max {
		if len(a.Max[i]) > 0 && !bytes.Equal(a.Max[i], b.Max[i]) {
			return false
		}
	}
	return true
}
