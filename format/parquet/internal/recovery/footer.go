package recovery

import (
	"encoding/binary"
	"slices"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
	"stoa/wire"
)

// footerLeft is the remainder of a footer (FileMetaData), whose fields are stored in this order: 1 version, 2 schema, 3
// num_rows, 4 row_groups, 5 key_value_metadata, …
type footerLeft struct {
	b      []byte
	at     int64 // in the file
	end    int
	whole  bool     // it is complete
	wrong  bool     // it is not a footer, whatever follows
	prefix int      // where the schema ends; 0 if the schema is incomplete
	rows   int64    // -1 if missing
	groups [][2]int // offsets [from, to) of complete row groups
}

// footerParts finds the parts of a footer in b, which may be truncated or overwritten at its end.
func footerParts(b []byte) (f footerLeft) {
	f.rows = -1
	c := wire.NewCursor(b, fault.Span{Len: int64(len(b))}, "footer")
	r := thrift.NewReader(c, thrift.Compact)
	last, broken := 0, false
	for r.Struct(""); r.Next(); {
		if broken = broken || r.Field() <= last; broken {
			break
		}
		switch last = r.Field(); last {
		case 2:
			for range r.List("schema", thrift.Struct) {
				meta.Walk(r, "", meta.SchemaElement)
			}
			if c.Err() == nil {
				f.prefix = c.Pos()
			}
		case 3:
			if n := r.I64("num_rows"); c.Err() == nil {
				f.rows = n
			}
		case 4:
			for range r.List("row_groups", thrift.Struct) {
				from := c.Pos()
				if meta.Walk(r, "", meta.RowGroup); c.Err() != nil {
					break
				}
				f.groups = append(f.groups, [2]int{from, c.Pos()})
			}
		}
	}
	f.end, f.whole = c.Pos(), c.Err() == nil && !broken
	// after a complete schema, the rest may have been overwritten
	f.wrong = f.prefix == 0 && (broken || c.Err() != nil && !r.Short()) || f.whole && f.rows < 0
	return f
}

// synthesize builds a footer from the schema, the row groups that are left, and more.
func (f *footerLeft) synthesize(more []madeGroup) []byte {
	out := slices.Clone(f.b[:f.prefix])
	rows := int64(0)
	for _, g := range f.groups {
		rows += groupRows(f.b[g[0]:g[1]])
	}
	for _, g := range more {
		rows += g.rows
	}
	out = binary.AppendVarint(append(out, 0x16), rows) // field 3, i64
	out = append(out, listField)                       // field 4
	const elem = 0xC                                   // struct
	if n := len(f.groups) + len(more); n < 15 {
		out = append(out, byte(n<<4|elem))
	} else {
		out = binary.AppendUvarint(append(out, 0xF0|elem), uint64(n))
	}
	for _, g := range f.groups {
		out = append(out, f.b[g[0]:g[1]]...)
	}
	for _, g := range more {
		out = append(out, g.encode()...)
	}
	return append(out, 0)
}

// groupRows returns num_rows of a RowGroup.
func groupRows(b []byte) (n int64) {
	r := thrift.NewReader(wire.NewCursor(b, fault.Span{Len: int64(len(b))}, ""), thrift.Compact)
	for r.Struct(""); r.Next(); {
		if r.Field() == 3 {
			n = r.I64("num_rows")
		}
	}
	return n
}

// madeGroup is a row group assembled from pages.
type madeGroup struct {
	rows   int64
	chunks []madeChunk
}

type madeChunk struct {
	typ, codec  int32
	path        []string
	encodings   []int32
	values      int64
	raw, stored int64 // bytes including headers
	data, dict  int64 // offsets in the file; dict is -1 if there is no dictionary
}

// encode returns a RowGroup: 1 columns, 2 total_byte_size, 3 num_rows.
func (g *madeGroup) encode() []byte {
	w := thrift.NewWriter(thrift.Compact)
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(g.chunks))
	size := int64(0)
	for i := range g.chunks {
		g.chunks[i].write(w)
		size += g.chunks[i].raw
	}
	w.I64(2, size)
	w.I64(3, g.rows)
	w.End()
	return w.Encoded()
}

// write writes a ColumnChunk: 2 file_offset, 3 meta_data.
func (c *madeChunk) write(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I64(2, 0)
	w.Struct(3)
	w.I32(1, c.typ)
	w.List(2, thrift.I32, len(c.encodings))
	for _, e := range c.encodings {
		w.I32(thrift.Item, e)
	}
	w.List(3, thrift.Bytes, len(c.path))
	for _, p := range c.path {
		w.String(thrift.Item, p)
	}
	w.I32(4, c.codec)
	w.I64(5, c.values)
	w.I64(6, c.raw)
	w.I64(7, c.stored)
	w.I64(9, c.data)
	if c.dict >= 0 {
		w.I64(11, c.dict)
	}
	w.End()
	w.End()
}
