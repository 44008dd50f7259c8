package layout

import (
	"maps"
	"slices"

	"stoa/internal/thrift"
)

// The structures of format 3 in Thrift's compact protocol. Fields have the order, and optional fields the presence,
// that CarbonData 2.3 writes, so that a structure read from one of its files is written back with the same bytes.

// ThriftBytes returns the bytes that put writes.
func ThriftBytes(put func(w *thrift.Writer)) []byte {
	w := thrift.NewWriter(thrift.Compact)
	put(w)
	return w.Encoded()
}

// put writes a ColumnSchema; With v12 it has the form of formats 1 and 2: without an aggregate function, and with 0 in
// place of a scale or precision of -1.
func (s *ColumnSchema) put(w *thrift.Writer, v12 bool) {
	scale, precision := s.Scale, s.Precision
	if v12 {
		scale, precision = max(0, scale), max(0, precision)
	}
	w.Struct(thrift.Item)
	w.I32(1, int32(s.Type))
	w.String(2, s.Name)
	w.String(3, s.ID)
	w.Bool(4, true) // columnar
	putEncodings(w, 5, s.Encoders)
	w.Bool(6, s.Dimension)
	w.I32(7, s.Group)
	w.I32(8, scale)
	w.I32(9, precision)
	w.I32(10, s.NumChild)
	if !v12 {
		w.String(11, "") // aggregate_function
	}
	if s.Default != nil {
		w.Bytes(12, s.Default)
	}
	if len(s.Props) > 0 {
		putPairs(w, 13, s.Props)
	}
	w.Bool(14, s.Invisible)
	w.String(15, s.ID) // columnReferenceId
	w.I32(16, s.Ordinal)
	w.End()
}

func putSchemas(w *thrift.Writer, id int16, list []ColumnSchema, v12 bool) {
	w.List(id, thrift.Struct, len(list))
	for i := range list {
		list[i].put(w, v12)
	}
}

func putEncodings(w *thrift.Writer, id int16, e Encodings) {
	w.List(id, thrift.I32, len(e))
	for _, x := range e {
		w.I32(thrift.Item, int32(x))
	}
}

func putPairs(w *thrift.Writer, id int16, m map[string]string) {
	w.Map(id, thrift.Bytes, thrift.Bytes, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		w.String(thrift.Item, k)
		w.String(thrift.Item, m[k])
	}
}

// PutBinaries writes a list of binary values as field id.
func PutBinaries(w *thrift.Writer, id int16, list [][]byte) {
	w.List(id, thrift.Bytes, len(list))
	for _, b := range list {
		w.Bytes(thrift.Item, b)
	}
}

// PutI32s writes a list of i32 as field id.
func PutI32s(w *thrift.Writer, id int16, list []int32) {
	w.List(id, thrift.I32, len(list))
	for _, v := range list {
		w.I32(thrift.Item, v)
	}
}

func putI64s(w *thrift.Writer, id int16, list []int64) {
	w.List(id, thrift.I64, len(list))
	for _, v := range list {
		w.I64(thrift.Item, v)
	}
}

func (m *MinMax) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	PutBinaries(w, 1, m.Min)
	PutBinaries(w, 2, m.Max)
	if m.Written != nil {
		w.List(3, thrift.Bool, len(m.Written))
		for _, x := range m.Written {
			w.Bool(thrift.Item, x)
		}
	}
	w.End()
}

// put writes DataChunk2. rowid_page_length, rle_page_length and sort_state are written only for the encoders that set
// them.
func (d *OutPage) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.Struct(1)
	w.I32(1, 1) // DEPRECATED: the codec is compressor_name
	w.I64(2, d.Raw)
	w.I64(3, int64(len(d.Bytes)))
	w.String(4, d.Codec)
	w.End()
	w.Bool(2, false) // rowMajor
	w.I32(3, d.DataLen)
	if d.RowidLen > 0 || d.Adaptive {
		w.I32(4, d.RowidLen)
	}
	if d.RleLen > 0 {
		w.I32(5, d.RleLen)
	}
	w.Struct(6)
	w.Bool(1, false)
	w.Bytes(2, d.Nulls)
	w.End()
	if d.Sort != 0 {
		w.I32(7, d.Sort)
	}
	putEncodings(w, 8, d.Encoders)
	PutBinaries(w, 9, d.Meta)
	d.MinMax.put(w, 10)
	w.I32(11, int32(d.Rows))
	w.End()
}

// PutDataChunk3 writes DataChunk3, the metadata that precedes the pages of a column; dict may be nil.
func PutDataChunk3(w *thrift.Writer, pages []*OutPage, dict *LocalDictionary) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(pages))
	var offsets, lengths []int32
	at := int32(0)
	for _, p := range pages {
		p.put(w)
		offsets, lengths = append(offsets, at), append(lengths, int32(len(p.Bytes)))
		at += int32(len(p.Bytes))
	}
	PutI32s(w, 2, offsets)
	PutI32s(w, 3, lengths)
	if dict != nil {
		w.Struct(4)
		w.Struct(1)
		putEncodings(w, 1, dict.Encoders)
		PutBinaries(w, 2, dict.Meta)
		w.End()
		w.Bytes(2, dict.Data)
		w.Bytes(3, dict.Used)
		w.End()
	}
	w.End()
}

// EmptyKey is the start and end key of every blocklet of format 3: two lengths of 0.
var EmptyKey = make([]byte, 8)

func (x *BlockletIndex) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	if x.MinMax != nil {
		x.MinMax.put(w, 1)
	}
	if x.Start != nil {
		w.Struct(2)
		w.Bytes(1, x.Start)
		w.Bytes(2, x.End)
		w.End()
	}
	w.End()
}

// put writes BlockletInfo3.
func (b *BlockletInfo) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	w.I32(1, int32(b.Rows))
	putI64s(w, 2, b.Offsets)
	PutI32s(w, 3, b.Lengths)
	w.I64(4, b.DimensionsEnd)
	w.I64(5, b.MeasuresEnd)
	w.I32(6, b.Pages)
	if b.PageRows != nil {
		PutI32s(w, 7, b.PageRows)
	}
	w.End()
}

func (s *SegmentInfo) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	w.I32(1, s.Columns)
	PutI32s(w, 2, s.Cardinalities)
	w.End()
}

// Put writes FileHeader.
func (h *Header) Put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, h.Version)
	putSchemas(w, 2, h.Columns, false)
	w.Bool(3, h.Footer)
	w.I64(4, h.Stamp)
	if h.Sync != nil { // a row-format file
		w.Bool(5, true) // is_splitable
		w.Bytes(6, h.Sync)
		w.String(7, h.Compressor)
	}
	w.End()
}

// Put writes FileFooter3.
func (f *Footer) Put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I64(1, f.Rows)
	f.Segment.put(w, 2)
	w.List(3, thrift.Struct, len(f.Index))
	for i := range f.Index {
		f.Index[i].put(w, thrift.Item)
	}
	w.List(4, thrift.Struct, len(f.Blocklet))
	for i := range f.Blocklet {
		f.Blocklet[i].put(w, thrift.Item)
	}
	w.Bool(6, f.Sorted)
	putPairs(w, 7, f.Extra)
	w.End()
}

// Put writes a .carbonindex of format 3: IndexHeader, then a BlockIndex for each blocklet.
func (x *IndexFile) Put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, x.Header.Version)
	putSchemas(w, 2, x.Header.Columns, false)
	x.Header.Segment.put(w, 3)
	w.I32(4, x.Header.Bucket)
	w.I64(5, x.Header.Stamp)
	w.Bool(6, x.Header.Sorted)
	w.End()
	for i := range x.Blocks {
		x.Blocks[i].Put(w)
	}
}

// Put writes BlockIndex.
func (b *BlockIndex) Put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I64(1, b.Rows)
	w.String(2, b.File)
	w.I64(3, b.Offset)
	b.Index.put(w, 4)
	if b.Info != nil {
		b.Info.put(w, 5)
	}
	w.I64(6, b.Size)
	w.End()
}

// OutPage is an encoded page of format 3: its DataChunk2 and its bytes.
type OutPage struct {
	DataChunk
	Nulls    []byte   // PresenceMeta's bits, compressed
	Bytes    []byte   // data, row ids, runs
	Adaptive bool     // rowid_page_length is written even if it is 0
	Codes    []uint32 // codes of the local dictionary, one per value; nil: the page has values
}

// Size estimates the bytes that the page takes in a blocklet, with its metadata.
func (p *OutPage) Size() int64 {
	n := len(p.Bytes) + len(p.Nulls) + 64
	for _, m := range p.Meta {
		n += len(m)
	}
	return int64(n + len(p.MinMax.Min[0]) + len(p.MinMax.Max[0]))
}
