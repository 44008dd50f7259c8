package write

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
)

// createdBy has the form that readers parse: application, version, build.
const createdBy = "stoa version 1.0.0 (build stoa/format/parquet)"

// chunkInfo is the information about a column chunk in the footer and the indexes.
type chunkInfo struct {
	c             *ChunkWriter // writer of the column; its current pages belong to a later chunk
	hasDict       bool         // there is a dictionary page
	encodings     []int32
	pages         []pageInfo // with bounds in their written form
	bounds        writtenBounds
	known         bool // all pages with values have bounds
	nulls         int64
	values        int64
	raw           int64
	stored        int64
	dictAt        int64
	dictSize      int64
	dataAt        int64
	copyAt        int64           // offset of the copy of its metadata
	filter        meta.SplitBlock // written at the end of the file, because between pages it would disturb recovery
	spilledFilter segment         // the filter, if it is in the temporary file
	bloomAt       int64
	bloomSize     int64
	index         [2]place     // column index, offset index
	cipher        *meta.Cipher // nil if not encrypted
	locked        []byte       // encrypted metadata
}

type place struct {
	off  int64
	size int32
}

// groupInfo is the information about a row group in the footer.
type groupInfo struct {
	chunks []*chunkInfo
	rows   int64
	at     int64
	stored int64
}

// endGroup writes the row group that was filled.
func (w *Writer) endGroup() error {
	if w.filled == 0 {
		return nil
	}
	g, tight := groupInfo{rows: w.filled, at: w.off}, w.held() > w.o.memory/2
	for i, c := range w.cols {
		note, err := w.writeChunk(c)
		if err == nil && c.bloom {
			err = w.keepFilter(note, FilterOf(c.hashes))
		}
		if err != nil {
			return err
		}
		g.stored += note.stored
		g.chunks = append(g.chunks, note)
		c.reset()
		if c.cipher.begin(len(w.groups)+1, i); tight {
			c.freeAll()
		}
	}
	w.groups = append(w.groups, g)
	if w.o.crypt != nil && len(w.groups) > meta.MaxOrdinal {
		return fault.Limitf(fault.Span{}, "", "an encrypted file has at most %d row groups", meta.MaxOrdinal)
	}
	w.filled = 0
	w.dropLast()
	return w.spill.end()
}

// keepFilter keeps a Bloom filter until the end of the file; if there are many, in a temporary file.
func (w *Writer) keepFilter(n *chunkInfo, f meta.SplitBlock) (err error) {
	const share = 8
	if w.filterSpill.open == nil || w.filterBytes+int64(len(f)) <= w.o.memory/share {
		n.filter = f
		w.filterBytes += int64(len(f))
		return nil
	}
	n.spilledFilter, err = w.filterSpill.add(f)
	return err
}

// writeChunk writes a column chunk: the dictionary page, then the data pages.
func (w *Writer) writeChunk(c *ChunkWriter) (*chunkInfo, error) {
	if err := c.endPage(); err != nil {
		return nil, err
	}
	n := &chunkInfo{c: c, hasDict: c.hasDictionary(), encodings: c.encodings(), pages: slices.Clone(c.pages),
		values: c.values, raw: c.raw, known: true, cipher: c.cipher.current}
	if n.hasDict {
		n.dictAt = w.off
		if err := w.writeDictionary(c, n); err != nil {
			return nil, err
		}
		n.dictSize = w.off - n.dictAt
	}
	n.dataAt = w.off
	if err := c.out.writeTo(output{w}, &w.spill); err != nil {
		return nil, err
	}
	n.stored = n.dictSize + c.out.size
	for i := range n.pages {
		p := &n.pages[i]
		p.at += n.dataAt
		n.nulls += p.nulls
		n.known = n.known && !p.noBounds
	}
	n.bounds = c.bounds.Truncated(c.phys == meta.TypeBytes, c.annotation.text())
	n.bounds.Min, n.bounds.Max = slices.Clone(n.bounds.Min), slices.Clone(n.bounds.Max)
	if e := w.o.crypt; e != nil && !(e.signed && c.cipher.crypto == nil) {
		return n, nil
	}
	n.copyAt = w.off
	w.head.Reset()
	n.writeColumnMeta(w.head, thrift.Item, false) // recovery finds the end of the chunk by this copy
	return n, w.write(w.head.Encoded())
}

// writeDictionary writes the dictionary page.
func (w *Writer) writeDictionary(c *ChunkWriter, n *chunkInfo) error {
	if c.dictOut.size > 0 {
		n.raw += c.dictRaw
		return c.dictOut.writeTo(output{w}, &w.spill)
	}
	head, body, raw, err := c.dictionaryPage()
	if err != nil {
		return err
	}
	n.raw += raw
	if err := w.write(head); err != nil {
		return err
	}
	return w.write(body)
}

// dictionaryPage returns the dictionary page; raw is its uncompressed size. The bytes are valid until the next page is
// made.
func (c *ChunkWriter) dictionaryPage() (head, body []byte, raw int64, err error) {
	c.spare = c.encoded(c.spare[:0], meta.PlainValues, c.dict.values())
	body = c.spare
	if c.o.compress != nil {
		if c.compressed, err = c.o.compress(c.compressed[:0], c.spare); err != nil {
			return nil, nil, 0, err
		}
		body = c.compressed
	}
	_, body = c.cipher.page(nil, body, meta.DictionaryModule, 0)
	c.pageHead(meta.DictionaryPage, len(c.spare), body, nil)
	c.head.Struct(7)
	c.head.I32(1, int32(c.dict.n))
	c.head.I32(2, c.dictionaryEncoding())
	c.head.End()
	c.head.End()
	head = c.cipher.header(c.head.Encoded(), meta.DictionaryHeaderModule, 0)
	return head, body, int64(len(head) + len(c.spare)), nil
}

// loadFilter loads a filter from the temporary file.
func (w *Writer) loadFilter(n *chunkInfo) error {
	if n.spilledFilter.n == 0 {
		return nil
	}
	b := bytes.NewBuffer(make([]byte, 0, n.spilledFilter.n))
	err := w.filterSpill.copyTo(b, n.spilledFilter)
	n.filter, n.spilledFilter = b.Bytes(), segment{}
	return err
}

// writeBlooms writes the Bloom filters.
func (w *Writer) writeBlooms() error {
	for _, g := range w.groups {
		for _, n := range g.chunks {
			if err := w.loadFilter(n); err != nil {
				return err
			}
			if n.filter == nil {
				continue
			}
			b := append(encryptModule(n.cipher, bloomHeader(len(n.filter)), meta.BloomHeaderModule),
				encryptModule(n.cipher, n.filter, meta.BloomModule)...)
			n.bloomAt, n.bloomSize, n.filter = w.off, int64(len(b)), nil
			if err := w.write(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// indexModules are the encryption modules of indexes in the order in which they are written.
var indexModules = [...]meta.Module{meta.ColumnIndexModule, meta.OffsetIndexModule}

// writeIndexes writes the column indexes of all chunks, then their offset indexes.
func (w *Writer) writeIndexes() error {
	for kind := range 2 {
		for _, g := range w.groups {
			for _, n := range g.chunks {
				w.head.Reset()
				if kind == 0 {
					if !n.known && n.nulls < n.values {
						continue // a column index cannot contain a page without bounds
					}
					n.writeColumnIndex(w.head)
				} else {
					n.writeOffsetIndex(w.head)
				}
				b := encryptModule(n.cipher, w.head.Encoded(), indexModules[kind])
				n.index[kind] = place{w.off, int32(len(b))}
				if err := w.write(b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// writeColumnIndex writes ColumnIndex: 1 null_pages, 2 min_values, 3 max_values, 4 boundary_order, 5 null_counts, 6 and
// 7 level histograms.
func (n *chunkInfo) writeColumnIndex(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Bool, len(n.pages))
	for _, p := range n.pages {
		w.Bool(thrift.Item, p.nulls == p.entries)
	}
	w.List(2, thrift.Bytes, len(n.pages))
	for _, p := range n.pages {
		w.Bytes(thrift.Item, p.bounds.Min)
	}
	w.List(3, thrift.Bytes, len(n.pages))
	for _, p := range n.pages {
		w.Bytes(thrift.Item, p.bounds.Max)
	}
	w.I32(4, n.boundaryOrder())
	w.List(5, thrift.I64, len(n.pages))
	for _, p := range n.pages {
		w.I64(thrift.Item, p.nulls)
	}
	for id, of := range []func(p *pageInfo) []int64{func(p *pageInfo) []int64 { return p.rep },
		func(p *pageInfo) []int64 { return p.def }} {
		var all []int64
		for i := range n.pages {
			all = append(all, of(&n.pages[i])...)
		}
		writeCounts(w, int16(6+id), all)
	}
	w.End()
}

// writeCounts writes a list of integers, unless it is empty.
func writeCounts(w *thrift.Writer, id int16, counts []int64) {
	if len(counts) == 0 {
		return
	}
	w.List(id, thrift.I64, len(counts))
	for _, x := range counts {
		w.I64(thrift.Item, x)
	}
}

// boundaryOrder returns 1 if the bounds of pages ascend, 2 if they descend, and 0 otherwise; pages of nulls are
// ignored.
func (n *chunkInfo) boundaryOrder() int32 {
	up, down := true, true
	var last *pageInfo
	for i := range n.pages {
		p := &n.pages[i]
		if p.nulls == p.entries {
			continue
		}
		if last != nil {
			lo := n.c.order.compare(last.bounds.Min, p.bounds.Min, n.c.width())
			hi := n.c.order.compare(last.bounds.Max, p.bounds.Max, n.c.width())
			up, down = up && lo <= 0 && hi <= 0, down && lo >= 0 && hi >= 0
		}
		last = p
	}
	switch {
	case up:
		return 1
	case down:
		return 2
	}
	return 0
}

// writeOffsetIndex writes OffsetIndex: 1 page_locations, 2 unencoded_byte_array_data_bytes.
func (n *chunkInfo) writeOffsetIndex(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.List(1, thrift.Struct, len(n.pages))
	for _, p := range n.pages {
		w.Struct(thrift.Item)
		w.I64(1, p.at)
		w.I32(2, int32(p.size))
		w.I64(3, p.first)
		w.End()
	}
	if n.c.phys == meta.TypeBytes {
		var raw []int64
		for _, p := range n.pages {
			raw = append(raw, p.raw)
		}
		writeCounts(w, 2, raw)
	}
	w.End()
}

// writeFooter writes FileMetaData, its length and the magic.
func (w *Writer) writeFooter() error {
	t := w.head
	t.Reset()
	t.Struct(thrift.Item)
	t.I32(1, w.o.version)
	t.List(2, thrift.Struct, len(w.tree))
	for i := range w.tree {
		w.tree[i].write(t, i == 0)
	}
	t.I64(3, w.rows)
	t.List(4, thrift.Struct, len(w.groups))
	for i := range w.groups {
		w.groups[i].write(t, i, &w.o)
	}
	pairs := append(w.keyValues, [2]string{meta.SealKey, meta.SealPlaceholder})
	t.List(5, thrift.Struct, len(pairs))
	for _, p := range pairs {
		t.Struct(thrift.Item)
		t.String(1, p[0])
		t.String(2, p[1])
		t.End()
	}
	t.String(6, createdBy)
	t.List(7, thrift.Struct, len(w.cols))
	for range w.cols {
		t.Struct(thrift.Item)
		t.Struct(1) // TypeDefinedOrder
		t.End()
		t.End()
	}
	w.o.crypt.fields(t)
	t.End()
	b := t.Encoded()
	if len(b) > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, "", "%d bytes of metadata: there are too many row groups", len(b))
	}
	meta.Seal(b)
	b = w.o.crypt.wrap(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return w.write(append(b, w.o.crypt.magic()...))
}

// write writes a RowGroup.
func (g *groupInfo) write(t *thrift.Writer, ordinal int, o *writeOptions) {
	t.Struct(thrift.Item)
	t.List(1, thrift.Struct, len(g.chunks))
	raw := int64(0)
	for _, n := range g.chunks {
		raw += n.raw
		n.write(t, o.crypt)
	}
	t.I64(2, raw)
	t.I64(3, g.rows)
	writeSorting(t, o.sort)
	t.I64(5, g.at)
	t.I64(6, g.stored)
	if ordinal <= math.MaxInt16 {
		t.I16(7, int16(ordinal))
	}
	t.End()
}

// write writes a ColumnChunk.
func (n *chunkInfo) write(t *thrift.Writer, e *encryption) {
	t.Struct(thrift.Item)
	t.I64(2, n.copyAt)
	n.writeMeta(t, e)
	for k, at := range []place{n.index[1], n.index[0]} {
		if at.size > 0 {
			t.I64(int16(4+2*k), at.off)
			t.I32(int16(5+2*k), at.size)
		}
	}
	n.writeCrypto(t)
	t.End()
}

// writeMeta writes the metadata of a ColumnChunk, in plaintext or encrypted. In a signed footer, encrypted metadata are
// accompanied by the plaintext that readers without the key need.
func (n *chunkInfo) writeMeta(t *thrift.Writer, e *encryption) {
	if n.cipher == nil || !n.c.cipher.crypto.Own && !e.signed {
		n.writeColumnMeta(t, 3, false)
		return
	}
	own := thrift.NewWriter(thrift.Compact)
	n.writeColumnMeta(own, thrift.Item, false)
	if n.locked = encryptModule(n.cipher, own.Encoded(), meta.MetaModule); e.signed {
		n.writeColumnMeta(t, 3, true)
	}
}

// writeCrypto ends a ColumnChunk with its key metadata.
func (n *chunkInfo) writeCrypto(t *thrift.Writer) {
	if n.cipher == nil {
		return
	}
	n.c.cipher.crypto.Write(t, 8, n.c.path)
	if n.locked != nil {
		t.Bytes(9, n.locked)
	}
}

// writeColumnMeta writes a ColumnMetaData; withoutStats omits its information about values.
func (n *chunkInfo) writeColumnMeta(t *thrift.Writer, id int16, withoutStats bool) {
	c := n.c
	t.Struct(id)
	t.I32(1, c.phys)
	t.List(2, thrift.I32, len(n.encodings))
	for _, e := range n.encodings {
		t.I32(thrift.Item, e)
	}
	t.List(3, thrift.Bytes, len(c.path))
	for _, p := range c.path {
		t.String(thrift.Item, p)
	}
	t.I32(4, int32(c.o.codec))
	t.I64(5, n.values)
	t.I64(6, n.raw)
	t.I64(7, n.stored)
	t.I64(9, n.dataAt)
	if n.hasDict {
		t.I64(11, n.dictAt)
	}
	if withoutStats {
		t.End()
		return
	}
	writeStatistics(t, 12, n.bounds, n.nulls)
	n.writeEncodingStats(t)
	if n.bloomSize > 0 {
		t.I64(14, n.bloomAt)
		t.I32(15, int32(n.bloomSize))
	}
	n.writeSizes(t)
	t.End()
}

// writeEncodingStats writes the number of pages by type and encoding.
func (n *chunkInfo) writeEncodingStats(t *thrift.Writer) {
	type stat struct{ kind, encoding int32 }
	var kinds []stat
	count := map[stat]int32{}
	add := func(s stat) {
		if count[s]++; count[s] == 1 {
			kinds = append(kinds, s)
		}
	}
	if n.hasDict {
		add(stat{meta.DictionaryPage, n.c.dictionaryEncoding()})
	}
	kind := int32(meta.DataPage)
	if n.c.o.v2 {
		kind = meta.DataPageV2
	}
	for _, p := range n.pages {
		add(stat{kind, p.encoding})
	}
	t.List(13, thrift.Struct, len(kinds))
	for _, s := range kinds {
		t.Struct(thrift.Item)
		t.I32(1, s.kind)
		t.I32(2, s.encoding)
		t.I32(3, count[s])
		t.End()
	}
}

// writeSizes writes SizeStatistics: 1 unencoded_byte_array_data_bytes, 2 and 3 level histograms.
func (n *chunkInfo) writeSizes(t *thrift.Writer) {
	raw := int64(0)
	var rep, def []int64
	for i := range n.pages {
		p := &n.pages[i]
		raw += p.raw
		rep, def = sumCounts(rep, p.rep), sumCounts(def, p.def)
	}
	if n.c.phys != meta.TypeBytes && len(rep) == 0 && len(def) == 0 {
		return
	}
	t.Struct(16)
	if n.c.phys == meta.TypeBytes {
		t.I64(1, raw)
	}
	writeCounts(t, 2, rep)
	writeCounts(t, 3, def)
	t.End()
}

func sumCounts(all, more []int64) []int64 {
	if all == nil {
		return slices.Clone(more)
	}
	for i, x := range more {
		all[i] += x
	}
	return all
}
