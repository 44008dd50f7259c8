package carbon

import (
	"bytes"
	"context"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"stoa/fault"
	"stoa/internal/thrift"
)

// Files of formats 1 and 2, as CarbonData 1.0.0 writes them (CarbonFactDataWriterImplV1 and V2): a blocklet is one page of each
// column, of as many rows as the property carbon.blocklet.size says.

// oldLimits are the bounds of carbon.blocklet.size, and its default.
const (
	minBlockletRows = 2000
	maxBlockletRows = 12_000_000
	oldBlockletRows = 120_000
)

// oldTypes are the types that formats 1 and 2 have.
var oldTypes = map[dataType]bool{typeString: true, typeShort: true, typeInt: true, typeLong: true, typeDouble: true, typeDecimal: true,
	typeTimestamp: true, typeDate: true, typeArray: true, typeStruct: true}

// checkOld refuses columns that formats 1 and 2 cannot have.
func checkOld(list []columnSchema, version int) error {
	for i := range list {
		c := &list[i]
		switch {
		case !oldTypes[c.typ]:
			return fault.Unsupportedf(fault.Span{}, c.name, "format %d of CarbonData has no type %s", version, c.typ)
		case c.typ.complex() || c.encoders.has(encDictionary):
		case c.ordinal < 0:
			return fault.Unsupportedf(fault.Span{}, c.name, "what is in lists and structs has a global dictionary in format %d of CarbonData: load into a table with the property dictionary_include", version)
		}
	}
	return nil
}

// oldWriter is what a task keeps of formats 1 and 2.
type oldWriter struct {
	version int
	columns []*oldColumn // by chunk
}

func newOldWriter(p *writePlan) *oldWriter {
	o := &oldWriter{version: p.o.version, columns: make([]*oldColumn, len(p.columns))}
	w := bits.Len(uint(p.o.pageRows))
	for i, c := range p.columns {
		o.columns[i] = &oldColumn{column: c, bits: w, as10: p.o.as10}
	}
	return o
}

// runLimit is carbon.high.cardinality.value: the real writer keeps runs of columns with smaller dictionaries only.
const runLimit = 100_000

// settle sets what depends on how many codes there are. The real writer asks always the first column whose codes it has not found
// to be few, so that all columns in front of a large one have runs, whatever their own size.
func (o *oldWriter) settle() {
	var keyed []*oldColumn
	for _, c := range o.columns {
		if c.dimension && c.parent == nil && !c.typ.complex() && c.encoders.has(encDictionary) {
			keyed = append(keyed, c)
		}
	}
	asked := 0
	for _, c := range keyed {
		if c.runs = keyed[asked].card < runLimit; !c.runs {
			asked++
		}
	}
}

// setCard tells a column how many codes it has: of a direct dictionary as many as there are numbers.
func (c *column) setCard(codes int) {
	switch {
	case c.typ.complex() && c.encoders.has(encDictionary):
		c.card = 0
	case !c.encoders.has(encDictionary):
		c.card = -1
	case c.encoders.has(encDirectDictionary):
		c.card = math.MaxInt32
	default:
		c.card = int32(codes)
	}
}

// oldBlocklet writes the rows of the cells as a blocklet.
func (t *taskWriter) oldBlocklet(ctx context.Context, tops []*cells, n int) error {
	t.old.settle()
	pages, err := t.oldPages(tops)
	if err != nil {
		return err
	}
	size := int64(0)
	for _, p := range pages {
		size += int64(len(p.data) + len(p.rowids) + len(p.runs))
	}
	if limit := t.o.block - t.o.block/10; !t.single && t.begun > 0 && t.begun+size >= limit {
		if err := t.endFile(); err != nil {
			return err
		}
	}
	if err := t.begin(ctx); err != nil {
		return err
	}
	t.begun += size
	info := blockletInfo{rows: int64(n)}
	if t.old.version == 1 {
		t.pieces1(&info, pages)
	} else if err := t.pieces2(&info, pages); err != nil {
		return err
	}
	t.foot.rows += int64(n)
	t.foot.blocklet = append(t.foot.blocklet, info)
	t.foot.index = append(t.foot.index, t.old.index(pages))
	return nil
}

// oldPages encodes the pages of all columns, side by side.
func (t *taskWriter) oldPages(tops []*cells) ([]*oldPage, error) {
	jobs := make([]*cells, len(t.columns))
	var walk func(c *column, x *cells)
	walk = func(c *column, x *cells) {
		jobs[c.chunk] = x
		for i, k := range c.kids {
			walk(k, x.kids[i])
		}
	}
	for i, r := range t.roots {
		if r.typ.complex() && !t.o.merge {
			if err := tops[i].check(r); err != nil {
				return nil, err
			}
		}
		walk(r, tops[i])
	}
	pages := make([]*oldPage, len(jobs))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		group.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(jobs); i = next.Add(1) - 1 {
				pages[i] = t.old.columns[i].encode(jobs[i])
			}
		})
	}
	group.Wait()
	return pages, nil
}

// pieces1 writes all data, then all row ids, then all runs.
func (t *taskWriter) pieces1(b *blockletInfo, pages []*oldPage) {
	for _, p := range pages {
		p.dataAt = t.at
		t.put(p.data)
	}
	for _, p := range pages {
		p.rowidAt = t.at
		t.put(p.rowids)
	}
	for _, p := range pages {
		p.rleAt = t.at
		t.put(p.runs)
		p.data, p.rowids, p.runs = nil, nil, nil // they are in the file
		b.old = append(b.old, p)
	}
}

// pieces2 writes a chunk for each column: DataChunk2, data, row ids, runs.
func (t *taskWriter) pieces2(b *blockletInfo, pages []*oldPage) error {
	for i, p := range pages {
		head := thriftBytes(p.put2)
		if len(head) > math.MaxInt16 {
			return fault.Limitf(fault.Span{}, t.columns[i].name, "what describes a page has %d bytes, format 2 can tell %d: lower --opt blocklet-rows", len(head), math.MaxInt16)
		}
		b.offsets, b.lengths = append(b.offsets, t.at), append(b.lengths, int32(len(head)))
		for _, piece := range [][]byte{head, p.data, p.rowids, p.runs} {
			t.put(piece)
		}
	}
	return nil
}

// index are the bounds and the first and last key of a blocklet. Measures have no bounds.
func (o *oldWriter) index(pages []*oldPage) (x blockletIndex) {
	x.minMax = &minMax{}
	var first, last [3][][]byte // codes, texts, nested
	for i, p := range pages {
		c := o.columns[i]
		if !c.dimension {
			continue
		}
		x.minMax.min, x.minMax.max = append(x.minMax.min, p.lo), append(x.minMax.max, p.hi)
		if c.parent != nil {
			continue
		}
		kind := 1
		switch {
		case c.typ.complex():
			kind = 2
		case c.encoders.has(encDictionary):
			kind = 0
		}
		first[kind], last[kind] = append(first[kind], p.first), append(last[kind], p.last)
	}
	x.start, x.end = oldKey(first[0], first[1], first[2]), oldKey(last[0], last[1], last[2])
	return x
}

// header is what stands before the first blocklet.
func (o *oldWriter) header() []byte {
	if o.version == 1 {
		return nil
	}
	return []byte(magicV2)
}

// cardinalities are how many codes the dimensions have, with what is in them.
func (p *writePlan) cardinalities() (out []int32) {
	for _, c := range p.columns {
		if c.dimension {
			out = append(out, c.card)
		}
	}
	return out
}

// segmentInfo tells the cardinalities only where there are dictionaries, whose codes they give their width.
func (p *writePlan) segmentInfo() segmentInfo {
	s := segmentInfo{columns: int32(len(p.list))}
	if p.o.version < 3 || slices.ContainsFunc(p.columns, (*column).globalCodes) {
		s.cardinalities = p.cardinalities()
	}
	return s
}

// fileIndex joins the indexes of the blocklets of a file.
func fileIndex(list []blockletIndex) blockletIndex {
	x := blockletIndex{start: list[0].start, end: list[len(list)-1].end, minMax: &minMax{min: slices.Clone(list[0].minMax.min), max: slices.Clone(list[0].minMax.max)}}
	for _, y := range list[1:] {
		for i := range x.minMax.min {
			if bytes.Compare(y.minMax.min[i], x.minMax.min[i]) < 0 {
				x.minMax.min[i] = y.minMax.min[i]
			}
			if bytes.Compare(y.minMax.max[i], x.minMax.max[i]) > 0 {
				x.minMax.max[i] = y.minMax.max[i]
			}
		}
	}
	return x
}

// putOld writes a .carbonindex of formats 1 and 2: IndexHeader, then a BlockIndex for each data file.
func (x *indexFile) putOld(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, x.header.version)
	putSchemas(w, 2, x.header.columns, true)
	x.header.segment.put(w, 3)
	w.I32(4, x.header.bucket)
	w.End()
	for i := range x.blocks {
		b := &x.blocks[i]
		w.Struct(thrift.Item)
		w.I64(1, b.rows)
		w.String(2, b.file)
		w.I64(3, b.offset)
		b.index.put(w, 4)
		w.End()
	}
}

// putOld writes FileFooter.
func (f *footer) putOld(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, f.version)
	w.I64(2, f.rows)
	putSchemas(w, 3, f.columns, true)
	f.segment.put(w, 4)
	w.List(5, thrift.Struct, len(f.index))
	for i := range f.index {
		f.index[i].put(w, thrift.Item)
	}
	w.List(int16(5+f.version), thrift.Struct, len(f.blocklet))
	for i := range f.blocklet {
		f.blocklet[i].putOld(w)
	}
	w.End()
}

// putOld writes BlockletInfo or BlockletInfo2.
func (b *blockletInfo) putOld(w *thrift.Writer) {
	w.Struct(thrift.Item)
	w.I32(1, int32(b.rows))
	if b.old != nil {
		w.List(2, thrift.Struct, len(b.old))
		for _, p := range b.old {
			p.put1(w)
		}
	} else {
		putI64s(w, 2, b.offsets)
		w.List(3, thrift.I16, len(b.lengths))
		for _, n := range b.lengths {
			w.I16(thrift.Item, int16(n))
		}
	}
	w.End()
}

// putOldMeta writes ChunkCompressionMeta, which says nothing in formats 1 and 2.
func putOldMeta(w *thrift.Writer) {
	w.Struct(1)
	w.I32(1, 0) // SNAPPY
	w.I64(2, 0)
	w.I64(3, 0)
	w.End()
}

// measure reports whether the page is one of a measure, which alone has metadata.
func (p *oldPage) measure() bool { return p.meta != nil }

// putNulls writes PresenceMeta.
func putNulls(w *thrift.Writer, id int16, bits []byte) {
	w.Struct(id)
	w.Bool(1, false)
	w.Bytes(2, bits)
	w.End()
}

// put1 writes DataChunk.
func (p *oldPage) put1(w *thrift.Writer) {
	w.Struct(thrift.Item)
	putOldMeta(w)
	w.Bool(2, false) // rowMajor
	w.List(3, thrift.I32, 0)
	w.I64(4, p.dataAt)
	w.I32(5, p.dataLen)
	if p.encoders.has(encInvertedIndex) {
		w.I64(6, p.rowidAt)
		w.I32(7, p.rowidLen)
	}
	if p.encoders.has(encRLE) {
		w.I64(8, p.rleAt)
		w.I32(9, p.rleLen)
	}
	if p.measure() {
		putNulls(w, 10, p.nulls)
	} else {
		w.I32(11, p.sort)
	}
	putEncodings(w, 12, p.encoders)
	if p.measure() {
		putBinaries(w, 13, p.meta)
	}
	w.End()
}

// put2 writes DataChunk2.
func (p *oldPage) put2(w *thrift.Writer) {
	w.Struct(thrift.Item)
	putOldMeta(w)
	w.Bool(2, false) // rowMajor
	w.I32(3, p.dataLen)
	if p.encoders.has(encInvertedIndex) {
		w.I32(4, p.rowidLen)
	}
	if p.encoders.has(encRLE) {
		w.I32(5, p.rleLen)
	}
	if p.measure() {
		putNulls(w, 6, squeezed(p.nulls))
	} else {
		w.I32(7, p.sort)
	}
	putEncodings(w, 8, p.encoders)
	if p.measure() {
		putBinaries(w, 9, p.meta)
	}
	w.End()
}
