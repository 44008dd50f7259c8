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
	Bucket  int32 // -1: not stated
	Stamp   int64 // milliseconds since 1970: time of the last schema change
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

// BlockIndex is an entry of an index file: for a blocklet or, if Info is absent, for a whole data file.
type BlockIndex struct {
	Rows   int64  // of the data file, even in the entry of a blocklet
	File   string // name of the data file
	Offset int64  // of its footer
	Index  BlockletIndex
	Info   *BlockletInfo
	Size   int64 // of the data file in bytes; 0 in formats 1 and 2
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

// Count is the number of rows of the blocklet, or of the file, that the entry is for.
func (b *BlockIndex) Count() int64 {
	if b.Info != nil {
		return b.Info.Rows
	}
	return b.Rows
}

// IndexFile is a .carbonindex: a header, then entry after entry to the end. The index file of a streaming segment has
// no header.
type IndexFile struct {
	Name   string // name of the object, or its name in the merged file
	Header IndexHeader
	Blocks []BlockIndex
}

// blockFirst is the first byte of a BlockIndex: field 1, an i64, where an IndexHeader has an i32.
const blockFirst = 0x16

// ParseIndex reads an index file that fills c. The error is that of c; Blocks has the entries before it.
func ParseIndex(c *wire.Cursor) (x IndexFile) {
	r := thrift.NewReader(c, thrift.Compact)
	if b := c.Rest(); len(b) == 0 || b[0] != blockFirst {
		x.Header = parseIndexHeader(r, "IndexHeader")
	}
	for i := 0; c.Err() == nil && c.Left() > 0; i++ {
		from := c.Pos()
		name := ElementName("BlockIndex", i)
		b := parseBlockIndex(r, name)
		if n := c.Pos() - from; c.Err() == nil && (!strings.HasSuffix(b.File, DataExt) || b.Rows < 0) {
			c.Fail(from, n, name, "expected the rows of a file called *%s, found %d of %.80q", DataExt, b.Rows, b.File)
		}
		if b.At = c.SpanOf(from, c.Pos()-from); c.Err() == nil {
			x.Blocks = append(x.Blocks, b)
		}
	}
	return x
}

// ParseMergedIndex reads a .carbonindexmerge: the names, then the files in the same order. trace, if not nil, receives
// the nodes of the files, which Thrift treats as binary values. The error is that of c; out has the files before it.
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
			in := wire.NewCursor(file, c.SpanOf(off, len(file)), ElementName("fileData", i))
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
		c.Fail(c.Pos(), 0, "fileData", "expected %s, one a name, found %d", fault.Count(len(names), "file"), len(out))
	}
	if c.Err() == nil && c.Left() > 0 {
		c.Fail(c.Pos(), c.Left(), "", "%d bytes after the last file", c.Left())
	}
	return out
}

// fileDepth is the depth of nodes inside an element of fileData: they are below struct, list and element.
const fileDepth = 4

// String summarizes an entry on one line.
func (b *BlockIndex) String() string {
	return fmt.Sprintf("%s: %s, footer at %d", b.File, fault.Count(b.Rows, "row"), b.Offset)
}

// Extensions of the files of a table.
const (
	DataExt   = ".carbondata"
	IndexExt  = ".carbonindex"
	MergedExt = ".carbonindexmerge"
	DeltaExt  = ".deletedelta"
)

// SameBounds reports whether a agrees with b. An index may be configured to have bounds of some columns only, so empty
// bounds in a are skipped.
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
