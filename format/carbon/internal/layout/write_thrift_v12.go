package layout

import (
	"stoa/internal/codec"
	"stoa/internal/thrift"
)

// PutV12 writes a .carbonindex of formats 1 and 2: IndexHeader, then a BlockIndex for each data file.
func (x *IndexFile) PutV12(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, x.Header.Version)
	putSchemas(w, 2, x.Header.Columns, true)
	x.Header.Segment.put(w, 3)
	w.I32(4, x.Header.Bucket)
	w.End()
	for i := range x.Blocks {
		b := &x.Blocks[i]
		w.Struct(thrift.Item)
		w.I64(1, b.Rows)
		w.String(2, b.File)
		w.I64(3, b.Offset)
		b.Index.put(w, 4)
		w.End()
	}
}

// PutV12 writes FileFooter, of formats 1 and 2.
func (f *Footer) PutV12(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, f.Version)
	w.I64(2, f.Rows)
	putSchemas(w, 3, f.Columns, true)
	f.Segment.put(w, 4)
	w.List(5, thrift.Struct, len(f.Index))
	for i := range f.Index {
		f.Index[i].put(w, thrift.Item)
	}
	w.List(int16(5+f.Version), thrift.Struct, len(f.Blocklet))
	for i := range f.Blocklet {
		f.Blocklet[i].putV12(w)
	}
	w.End()
}

// putV12 writes BlockletInfo or BlockletInfo2.
func (b *BlockletInfo) putV12(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, int32(b.Rows))
	if b.V12 != nil {
		w.List(2, thrift.Struct, len(b.V12))
		for _, p := range b.V12 {
			p.put1(w)
		}
	} else {
		putI64s(w, 2, b.Offsets)
		w.List(3, thrift.I16, len(b.Lengths))
		for _, n := range b.Lengths {
			w.I16(thrift.Item, int16(n))
		}
	}
	w.End()
}

// putV12Meta writes ChunkCompressionMeta, whose sizes are 0 in formats 1 and 2.
func putV12Meta(w *thrift.Writer) {
	w.Struct(1)
	w.I32(1, 0) // SNAPPY
	w.I64(2, 0)
	w.I64(3, 0)
	w.End()
}

// measure reports whether the page belongs to a measure; no other page has encoder_meta.
func (p *V12Page) measure() bool { return p.Meta != nil }

// putNulls writes PresenceMeta.
func putNulls(w *thrift.Writer, id int16, bits []byte) {
	w.Struct(id)
	w.Bool(1, false)
	w.Bytes(2, bits)
	w.End()
}

// put1 writes DataChunk.
func (p *V12Page) put1(w *thrift.Writer) {
	w.Struct(thrift.Item)
	putV12Meta(w)
	w.Bool(2, false) // rowMajor
	w.List(3, thrift.I32, 0)
	w.I64(4, p.DataAt)
	w.I32(5, p.DataLen)
	if p.Encoders.Has(EncInvertedIndex) {
		w.I64(6, p.RowidAt)
		w.I32(7, p.RowidLen)
	}
	if p.Encoders.Has(EncRLE) {
		w.I64(8, p.RleAt)
		w.I32(9, p.RleLen)
	}
	if p.measure() {
		putNulls(w, 10, p.Nulls)
	} else {
		w.I32(11, p.Sort)
	}
	putEncodings(w, 12, p.Encoders)
	if p.measure() {
		PutBinaries(w, 13, p.Meta)
	}
	w.End()
}

// Put2 writes DataChunk2.
func (p *V12Page) Put2(w *thrift.Writer) {
	w.Struct(thrift.Item)
	putV12Meta(w)
	w.Bool(2, false) // rowMajor
	w.I32(3, p.DataLen)
	if p.Encoders.Has(EncInvertedIndex) {
		w.I32(4, p.RowidLen)
	}
	if p.Encoders.Has(EncRLE) {
		w.I32(5, p.RleLen)
	}
	if p.measure() {
		putNulls(w, 6, CompressV12(p.Nulls))
	} else {
		w.I32(7, p.Sort)
	}
	putEncodings(w, 8, p.Encoders)
	if p.measure() {
		PutBinaries(w, 9, p.Meta)
	}
	w.End()
}

// V12Page is an encoded page of formats 1 and 2, which have one page per column and blocklet: its DataChunk or
// DataChunk2, and its bytes.
type V12Page struct {
	DataChunk
	Data, Rowids, Runs []byte
	Nulls              []byte // of a measure: Java's BitSet, not compressed
	Min, Max           []byte // min and max
	First, Last        []byte // parts of the start and end key: values of the first and the last row
}

// CompressV12 compresses raw with Snappy, the only codec of formats 1 and 2.
func CompressV12(raw []byte) []byte {
	b, _ := codec.CompressFramed("snappy", nil, raw)
	return b
}
