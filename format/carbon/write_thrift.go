package carbon

import (
	"maps"
	"slices"

	"stoa/internal/thrift"
)

// The structures of format 3 as Thrift's compact protocol has them. Fields are written in the order and with the optional ones
// that CarbonData 2.3 writes, so that what was read from a file of its own becomes the same bytes again.

// thriftBytes is a structure that put writes.
func thriftBytes(put func(w *thrift.Writer)) []byte {
	w := thrift.NewWriter(thrift.Compact)
	put(w)
	return w.Encoded()
}

// put writes a ColumnSchema; old, as files of formats 1 and 2 have it: without an aggregate function, and no digits are 0.
func (s *columnSchema) put(w *thrift.Writer, old bool) {
	scale, precision := s.scale, s.precision
	if old {
		scale, precision = max(0, scale), max(0, precision)
	}
	w.Struct(thrift.Item)
	w.I32(1, int32(s.typ))
	w.String(2, s.name)
	w.String(3, s.id)
	w.Bool(4, true) // columnar
	putEncodings(w, 5, s.encoders)
	w.Bool(6, s.dimension)
	w.I32(7, s.group)
	w.I32(8, scale)
	w.I32(9, precision)
	w.I32(10, s.children)
	if !old {
		w.String(11, "") // aggregate_function
	}
	if s.def != nil {
		w.Bytes(12, s.def)
	}
	if len(s.props) > 0 {
		putPairs(w, 13, s.props)
	}
	w.Bool(14, s.invisible)
	w.String(15, s.id) // columnReferenceId
	w.I32(16, s.ordinal)
	w.End()
}

func putSchemas(w *thrift.Writer, id int16, list []columnSchema, old bool) {
	w.List(id, thrift.Struct, len(list))
	for i := range list {
		list[i].put(w, old)
	}
}

func putEncodings(w *thrift.Writer, id int16, e encodings) {
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

func putBinaries(w *thrift.Writer, id int16, list [][]byte) {
	w.List(id, thrift.Bytes, len(list))
	for _, b := range list {
		w.Bytes(thrift.Item, b)
	}
}

func putI32s(w *thrift.Writer, id int16, list []int32) {
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

func (m *minMax) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	putBinaries(w, 1, m.min)
	putBinaries(w, 2, m.max)
	if m.written != nil {
		w.List(3, thrift.Bool, len(m.written))
		for _, x := range m.written {
			w.Bool(thrift.Item, x)
		}
	}
	w.End()
}

// put writes DataChunk2. rowid_page_length, rle_page_length and sort_state are there only where the page's encoder knows of them.
func (d *outPage) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.Struct(1)
	w.I32(1, 1) // DEPRECATED: the method is compressor_name
	w.I64(2, d.raw)
	w.I64(3, int64(len(d.bytes)))
	w.String(4, d.codec)
	w.End()
	w.Bool(2, false) // rowMajor
	w.I32(3, d.dataLen)
	if d.rowidLen > 0 || d.adaptive {
		w.I32(4, d.rowidLen)
	}
	if d.rleLen > 0 {
		w.I32(5, d.rleLen)
	}
	w.Struct(6)
	w.Bool(1, false)
	w.Bytes(2, d.nulls)
	w.End()
	if d.sort != 0 {
		w.I32(7, d.sort)
	}
	putEncodings(w, 8, d.encoders)
	putBinaries(w, 9, d.meta)
	d.minMax.put(w, 10)
	w.I32(11, int32(d.rows))
	w.End()
}

// putDataChunk3 writes what stands before the pages of a column.
func putDataChunk3(w *thrift.Writer, pages []*outPage, dict *localDictionary) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(pages))
	var offsets, lengths []int32
	at := int32(0)
	for _, p := range pages {
		p.put(w)
		offsets, lengths = append(offsets, at), append(lengths, int32(len(p.bytes)))
		at += int32(len(p.bytes))
	}
	putI32s(w, 2, offsets)
	putI32s(w, 3, lengths)
	if dict != nil {
		w.Struct(4)
		w.Struct(1)
		putEncodings(w, 1, dict.encoders)
		putBinaries(w, 2, dict.meta)
		w.End()
		w.Bytes(2, dict.data)
		w.Bytes(3, dict.used)
		w.End()
	}
	w.End()
}

// deprecatedKey are the start and end keys of format 3: two lengths of nothing.
var deprecatedKey = make([]byte, 8)

func (x *blockletIndex) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	if x.minMax != nil {
		x.minMax.put(w, 1)
	}
	if x.start != nil {
		w.Struct(2)
		w.Bytes(1, x.start)
		w.Bytes(2, x.end)
		w.End()
	}
	w.End()
}

// put writes BlockletInfo3.
func (b *blockletInfo) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	w.I32(1, int32(b.rows))
	putI64s(w, 2, b.offsets)
	putI32s(w, 3, b.lengths)
	w.I64(4, b.dims)
	w.I64(5, b.end)
	w.I32(6, b.pages)
	if b.inPage != nil {
		putI32s(w, 7, b.inPage)
	}
	w.End()
}

func (s *segmentInfo) put(w *thrift.Writer, id int16) {
	w.Struct(id)
	w.I32(1, s.columns)
	putI32s(w, 2, s.cardinalities)
	w.End()
}

// put writes FileHeader.
func (h *header) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, h.version)
	putSchemas(w, 2, h.columns, false)
	w.Bool(3, h.footer)
	w.I64(4, h.stamp)
	w.End()
}

// put writes FileFooter3.
func (f *footer) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I64(1, f.rows)
	f.segment.put(w, 2)
	w.List(3, thrift.Struct, len(f.index))
	for i := range f.index {
		f.index[i].put(w, thrift.Item)
	}
	w.List(4, thrift.Struct, len(f.blocklet))
	for i := range f.blocklet {
		f.blocklet[i].put(w, thrift.Item)
	}
	w.Bool(6, f.sorted)
	putPairs(w, 7, f.extra)
	w.End()
}

// put writes a .carbonindex: IndexHeader, then a BlockIndex for each blocklet.
func (x *indexFile) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, x.header.version)
	putSchemas(w, 2, x.header.columns, false)
	x.header.segment.put(w, 3)
	w.I32(4, x.header.bucket)
	w.I64(5, x.header.stamp)
	w.Bool(6, x.header.sorted)
	w.End()
	for i := range x.blocks {
		x.blocks[i].put(w)
	}
}

func (b *blockIndex) put(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I64(1, b.rows)
	w.String(2, b.file)
	w.I64(3, b.offset)
	b.index.put(w, 4)
	if b.info != nil {
		b.info.put(w, 5)
	}
	w.I64(6, b.size)
	w.End()
}
