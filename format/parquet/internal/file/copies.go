package file

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// Polars, and Arrow C++ before 17, write the metadata of a column chunk twice: in the footer, and after the chunk,
// where ColumnChunk.file_offset points. Arrow C++ of 2017 writes the whole ColumnChunk there. In other writers' files
// file_offset is the start of the chunk, or 0. Polars leaves out the dictionary when it computes the offset.

// metaCopy is such a copy. Differs describes the difference from the footer, "" if there is none.
type metaCopy struct {
	Group, Leaf int
	At          fault.Span
	Differs     string
	Chunk       bool // it is a whole ColumnChunk
}

// copySlack is the number of bytes by which a copy may be longer than the metadata in the footer.
const copySlack = 256

// Copies finds the copies in the file. Bytes that cannot be a chunk's metadata are ignored.
func (r *File) Copies(ctx context.Context) (out []metaCopy, err error) {
	var own [][][]byte
	for g, rg := range r.Footer.RowGroups {
		for k, c := range rg.Columns {
			off, chunk := r.Base+c.FileOffset, r.ChunkSpan(g, k)
			if c.FileOffset == c.MetaData.DataPageOffset+c.MetaData.TotalCompressedSize {
				off = chunk.End()
			}
			if c.FileOffset <= 0 || c.FileOffset >= r.Size || off >= chunk.Off && off < chunk.End() ||
				off >= r.FooterAt.Off {
				continue
			}
			if own == nil {
				if own, err = r.ownMetas(ctx); err != nil {
					return nil, err
				}
			}
			x, ok, err := r.copyAt(ctx, off, own[g][k])
			if err != nil {
				return out, err
			}
			if ok {
				x.Group, x.Leaf = g, k
				out = append(out, x)
			}
		}
	}
	return out, nil
}

// copyAt looks at off for a copy of own, which is a chunk's metadata as stored in the footer.
func (r *File) copyAt(ctx context.Context, off int64, own []byte) (x metaCopy, ok bool, err error) {
	at := r.Span(off-r.Base, min(int64(len(own))+copySlack, r.FooterAt.Off-off))
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, r.Src, at, "file_offset", b); err != nil {
		return x, false, err
	}
	head := chunkHead(b)
	have, n := parseMeta(b[head:], at)
	want, m := parseMeta(own, at)
	if n == 0 || m == 0 {
		return x, false, nil
	}
	if n += head; head > 0 {
		if x.Chunk = true; n == len(b) || b[n] != byte(thrift.Stop) {
			return x, false, nil
		}
		n++
	}
	if x.At = at.Sub(0, int64(n)); bytes.HasPrefix(b[head:], own) {
		return x, true, nil
	}
	for _, f := range metaFields {
		if have[f.id] != want[f.id] {
			x.Differs = fmt.Sprintf("%s %s, but the footer has %s", f.name, have[f.id], want[f.id])
			break
		}
	}
	return x, true, nil
}

// chunkHead returns the length of the bytes before the metadata in a ColumnChunk, in Thrift's compact protocol:
// file_offset and the header of meta_data. It returns 0 if b is not a ColumnChunk.
func chunkHead(b []byte) int {
	if len(b) < 3 || b[0] != 2<<4|6 {
		return 0
	}
	if _, n := binary.Varint(b[1:]); n > 0 && 1+n < len(b) && b[1+n] == 1<<4|12 {
		return 2 + n
	}
	return 0
}

// metaFields are the fields of ColumnMetaData that locate and describe the pages. required is as in parquet.thrift.
var metaFields = []struct {
	id       int
	name     string
	is       thrift.Type
	required bool
}{
	{1, "type", thrift.I32, true}, {3, "path_in_schema", thrift.List, true}, {4, "codec", thrift.I32, true},
	{5, "num_values", thrift.I64, true},
	{6, "total_uncompressed_size", thrift.I64, true}, {7, "total_compressed_size", thrift.I64, true},
	{9, "data_page_offset", thrift.I64, true},
	{11, "dictionary_page_offset", thrift.I64, false},
}

// parseMeta reads the ColumnMetaData at the start of b. n is its length in bytes, 0 if there is none.
func parseMeta(b []byte, at fault.Span) (fields map[int]string, n int) {
	c := wire.NewCursor(b, at.Sub(0, min(at.Len, int64(len(b)))), "meta_data")
	t := thrift.NewReader(c, thrift.Compact)
	fields = map[int]string{}
	for t.Struct("meta_data"); t.Next(); {
		for _, f := range metaFields {
			if t.Field() == f.id && t.Type() == f.is {
				fields[f.id] = metaText(t, f.is)
				break
			}
		}
	}
	if c.Err() != nil {
		return nil, 0
	}
	for _, f := range metaFields {
		if _, ok := fields[f.id]; f.required && !ok {
			return nil, 0
		}
	}
	return fields, c.Pos()
}

func metaText(t *thrift.Reader, is thrift.Type) (text string) {
	switch is {
	case thrift.I32:
		return fmt.Sprint(t.I32(""))
	case thrift.I64:
		return fmt.Sprint(t.I64(""))
	}
	for range t.List("", thrift.Bytes) {
		text += fmt.Sprintf("%q ", t.Bytes(""))
	}
	return text
}

// ownMetas returns the bytes of the chunks' metadata in the footer, by row group and column.
func (r *File) ownMetas(ctx context.Context) (out [][][]byte, err error) {
	b := make([]byte, r.FooterAt.Len)
	if err := format.ReadFull(ctx, r.Src, r.FooterAt, "footer", b); err != nil {
		return nil, err
	}
	c := wire.NewCursor(b, r.FooterAt, "footer")
	t := thrift.NewReader(c, thrift.Compact)
	for t.Struct(""); t.Next(); {
		if t.Field() != 4 {
			continue
		}
		for range t.List("row_groups", thrift.Struct) {
			out = append(out, metasOf(t, c, b))
		}
	}
	for len(out) < len(r.Footer.RowGroups) { // the list that was read is another one with that field number
		out = append(out, nil)
	}
	for g, rg := range r.Footer.RowGroups {
		out[g] = append(out[g], make([][]byte, max(0, len(rg.Columns)-len(out[g])))...)
	}
	return out, c.Err()
}

// metasOf returns the metadata of the chunks of one row group.
func metasOf(t *thrift.Reader, c *wire.Cursor, b []byte) (out [][]byte) {
	for t.Struct(""); t.Next(); {
		if t.Field() != 1 {
			continue
		}
		for range t.List("columns", thrift.Struct) {
			var own []byte
			for t.Struct(""); t.Next(); {
				if t.Field() == 3 {
					from := c.Pos()
					meta.Walk(t, "", meta.ColumnMetaData)
					own = withoutHead(b[from:c.Pos()])
				}
			}
			out = append(out, own)
		}
	}
	return out
}

// withoutHead removes the header of a field in Thrift's compact protocol: one byte, then the field's number as a varint
// unless it is in the byte's upper half.
func withoutHead(b []byte) []byte {
	if len(b) == 0 || b[0]>>4 != 0 {
		return b[min(1, len(b)):]
	}
	_, n := binary.Varint(b[1:])
	return b[1+max(n, 0):]
}
