package write

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/dremel"
	"stoa/internal/nest"
	"stoa/internal/thrift"
)

// ChunkWriter makes the pages of one column of one row group. Pages are made when they are full and wait in
// memory until the row group ends, since a dictionary stands before them.
type ChunkWriter struct {
	*workspace
	nest.Leaf
	treeLeaf
	value    leafValue
	nullable bool // its own field can be null
	o        *writeOptions
	head     *thrift.Writer
	bloom    bool
	seal     chunkSeal

	// The page that is being filled. Values are dense; a boolean takes a byte.
	page          dense
	def, rep      []byte
	entries, rows int

	// The chunk.
	dict      *dictionary
	mode      chunkMode
	encoding  int32 // of pages without dictionary, once it was chosen
	pages     []pageNote
	out       pieces // data pages
	dictOut   pieces // the dictionary's page, if it is retired
	dictRaw   int64  // how large that is without compression, with its header
	raw       int64  // bytes of data pages with headers, before compression
	values    int64
	groupRows int64
	bounds    LeafBounds // of all values, whole
	hashes    []uint64   // of all values, for the Bloom filter

	repBytes int    // of the page that is being cut
	vals     []byte // the encoded values of the page that is being cut; not always memory of its own
}

// chunkMode is what is known about a chunk's dictionary.
type chunkMode uint8

const (
	undecided   chunkMode = iota
	coded                 // there is a dictionary, and pages of its codes
	codedBefore           // there is one, but it is full
	retired               // the same, and how the pages behind it are encoded is not chosen yet
	uncoded               // there is none
)

// pageNote is what is remembered of a finished data page.
type pageNote struct {
	at, size int64 // in out, with the header
	first    int64 // row
	encoding int32
	entries  int64
	nulls    int64
	raw      int64      // bytes of strings
	bounds   LeafBounds // as they are written
	unsaid   bool       // there are values, and no bounds of them, or none that can be written
	def, rep []int64    // how often each level comes
}

// width is how many bytes a value has in the page that is being filled; 0: it is a string.
func (c *ChunkWriter) width() int {
	if c.phys == meta.TypeBytes {
		return 0
	}
	return c.value.to
}

// add appends the entries of a shredded leaf, cutting pages between rows.
func (c *ChunkWriter) add(s *nest.Shredded, mem memory.Allocator) error {
	if s.Entries == 0 {
		return nil
	}
	a, err := presentValues(s, c.nullable, mem)
	if err != nil {
		return err
	}
	defer a.Release()
	var d dense
	if c.value.form != formNone {
		if d, err = c.value.of(a, &c.scratch); err != nil {
			return fault.Locate(err, fault.Span{}, false, c.Leaf.Name)
		}
	}
	for e, v := 0, 0; e < s.Entries; {
		e2, v2, rows := c.room(s, &d, e, v)
		c.take(&d, v, v2)
		if c.MaxDef > 0 {
			c.def = append(c.def, s.Def[e:e2]...)
		}
		if c.MaxRep > 0 {
			c.rep = append(c.rep, s.Rep[e:e2]...)
		}
		c.entries, c.rows = c.entries+e2-e, c.rows+rows
		e, v = e2, v2
		if c.full() { // a row ends here, and at the end of every slice
			if err := c.cut(); err != nil {
				return err
			}
		}
	}
	return nil
}

// filled is about how many bytes the page that is being filled has.
func (c *ChunkWriter) filled() int {
	n := len(c.page.fixed)
	switch c.phys {
	case meta.TypeBoolean:
		n /= 8
	case meta.TypeBytes:
		n = len(c.page.data) + 4*c.page.n
	}
	return n + len(c.def)/8 + len(c.rep)/8
}

func (c *ChunkWriter) full() bool { return c.filled() >= c.o.pageSize || c.entries >= c.most() }

// most is how many entries a page has at most, but for those of one row. Booleans are small.
func (c *ChunkWriter) most() int {
	if c.phys == meta.TypeBoolean {
		return 8 * c.o.pageRows
	}
	return c.o.pageRows
}

// room tells how many entries from e on, whose values begin at v, still belong to the page: e2 and v2 are
// behind them. It ends between rows.
func (c *ChunkWriter) room(s *nest.Shredded, d *dense, e, v int) (e2, v2, rows int) {
	left := 8 * (c.o.pageSize - c.filled()) // bits
	width := 8 * c.width()
	if c.phys == meta.TypeBoolean {
		width = 1
	}
	all := (d.n - v) * width
	if c.phys == meta.TypeBytes {
		all = 8*int(d.offs[d.n]-d.offs[v]) + 32*(d.n-v)
	}
	if rest := s.Entries - e; all+2*rest < left && c.entries+rest <= c.most() { // all of it
		rows = rest
		if s.Rep != nil {
			rows = nest.CountRows(s.Rep[e:])
		}
		return s.Entries, d.n, rows
	}
	for e2, v2 = e, v; e2 < s.Entries; {
		if s.Def == nil || s.Def[e2] == c.MaxDef {
			if c.phys == meta.TypeBytes {
				left -= 32 + 8*int(d.offs[v2+1]-d.offs[v2])
			}
			left -= width
			v2++
		}
		if s.Rep == nil || s.Rep[e2] == 0 {
			rows++
		}
		if s.Def != nil {
			left--
		}
		if s.Rep != nil {
			left--
		}
		e2++
		if (left <= 0 || c.entries+e2-e >= c.most()) && (e2 == s.Entries || s.Rep == nil || s.Rep[e2] == 0) {
			break
		}
	}
	return e2, v2, rows
}

// take appends the values [from, to) of d to the page.
func (c *ChunkWriter) take(d *dense, from, to int) {
	if from == to {
		return
	}
	p := &c.page
	if c.phys != meta.TypeBytes {
		w := c.value.to
		p.fixed = append(p.fixed, d.fixed[from*w:to*w]...)
		p.n += to - from
		return
	}
	if len(p.offs) == 0 {
		p.offs = append(p.offs, 0)
	}
	move := int32(len(p.data)) - d.offs[from]
	p.data = append(p.data, d.data[d.offs[from]:d.offs[to]]...)
	p.offs = slices.Grow(p.offs, to-from)
	for _, o := range d.offs[from+1 : to+1] {
		p.offs = append(p.offs, o+move)
	}
	p.n += to - from
}

// cut ends the page that is being filled.
func (c *ChunkWriter) cut() error {
	if c.entries == 0 {
		return nil
	}
	if len(c.page.offs) == 0 {
		c.page.offs = append(c.page.offs, 0)
	}
	note := pageNote{at: c.out.size, first: c.groupRows, entries: int64(c.entries), nulls: int64(c.entries - c.page.n),
		raw: int64(len(c.page.data))}
	note.bounds = c.order.boundsOf(c.page, c.width())
	if c.bloom {
		w := c.width()
		if c.phys == meta.TypeBoolean {
			w = 1
		}
		c.hashes = appendHashes(c.hashes, c.page, w)
	}
	if err := c.encode(&note); err != nil {
		return err
	}
	c.body = c.body[:0]
	for k, levels := range [][]byte{c.rep, c.def} {
		most := []uint8{c.MaxRep, c.MaxDef}[k]
		if most == 0 {
			continue
		}
		at := len(c.body)
		if !c.o.v2 {
			c.body = append(c.body, 0, 0, 0, 0)
		}
		begin := len(c.body)
		c.body = dremel.AppendLevels(c.body, levels, most)
		if !c.o.v2 {
			binary.LittleEndian.PutUint32(c.body[at:], uint32(len(c.body)-begin))
		}
		counts := make([]int64, int(most)+1)
		for _, l := range levels {
			counts[l]++
		}
		if k == 0 {
			note.rep, c.repBytes = counts, len(c.body)-begin
		} else {
			note.def = counts
		}
	}
	if err := c.finish(&note); err != nil {
		return err
	}
	c.bound(&note)
	c.pages = append(c.pages, note)
	c.values += int64(c.entries)
	c.groupRows += int64(c.rows)
	c.page = dense{fixed: c.page.fixed[:0], offs: c.page.offs[:0], data: c.page.data[:0]}
	c.def, c.rep, c.entries, c.rows = c.def[:0], c.rep[:0], 0, 0
	return nil
}

// bound keeps of the bounds of a page what is written: values may be long.
func (c *ChunkWriter) bound(p *pageNote) {
	c.bounds.join(p.bounds, c.order, c.width())
	p.unsaid = p.nulls < p.entries && (p.bounds.Min == nil || p.bounds.Max == nil)
	b := p.bounds.Written(c.phys == meta.TypeBytes, c.mark.text())
	p.unsaid = p.unsaid || p.bounds.Max != nil && b.Max == nil
	p.bounds.Min, p.bounds.Max = slices.Clone(b.Min), slices.Clone(b.Max)
}

// encode puts the values of the page to vals.
func (c *ChunkWriter) encode(note *pageNote) error {
	c.vals = c.vals[:0]
	if c.phys == meta.TypeBoolean {
		if c.o.v2 && c.o.auto {
			note.encoding, c.vals = meta.RleLevels, dremel.AppendBools(c.vals, c.page.fixed)
		} else {
			note.encoding, c.vals = meta.PlainValues, dremel.AppendBits(c.vals, c.page.fixed)
		}
		return nil
	}
	// it pays for whoever made one; pyarrow cannot join pages with and without
	if c.mode == undecided && c.o.dict && c.Leaf.Type.ID() == arrow.DICTIONARY {
		c.mode = coded
		c.dict = c.dictionary(c.dict, c.width())
	}
	if c.page.n == 0 && c.mode != coded { // nothing to choose by
		note.encoding = meta.PlainValues
		return nil
	}
	switch c.mode {
	case undecided:
		if err := c.choose(); err != nil {
			return err
		}
	case retired:
		if err := c.chooseEncoding(); err != nil {
			return err
		}
		c.mode = codedBefore
	case coded:
		had := c.dict.n
		var ok bool
		if c.codes, ok = c.dict.codes(c.codes[:0], c.page, false); !ok {
			c.dict.cut(had)
			c.mode = codedBefore
			if err := c.chooseEncoding(); err != nil {
				return err
			}
		}
	}
	if c.mode == coded {
		note.encoding = meta.RleDictionary
		if c.o.version == 1 {
			note.encoding = meta.PlainDictionary
		}
		most := uint32(0)
		for _, x := range c.codes {
			most = max(most, x)
		}
		c.spare = dremel.AppendCodes(c.spare[:0], c.codes, most)
		c.vals = c.spare
		return nil
	}
	note.encoding = c.encoding
	if c.encoding == meta.PlainValues && c.phys != meta.TypeBytes {
		c.vals = c.page.fixed
		return nil
	}
	c.spare = c.encoded(c.spare[:0], c.encoding, c.page)
	c.vals = c.spare
	return nil
}

// encoded appends v in an encoding that is no dictionary's.
func (c *ChunkWriter) encoded(dst []byte, encoding int32, v dense) []byte {
	switch encoding {
	case meta.DeltaBinaryPacked:
		if c.value.to == 4 {
			return dremel.AppendDeltas(dst, wordsOf[int32](v.fixed))
		}
		return dremel.AppendDeltas(dst, wordsOf[int64](v.fixed))
	case meta.DeltaLengths:
		return dremel.AppendDeltaLengths(dst, v.offs, v.data)
	case meta.DeltaByteArray:
		return dremel.AppendDeltaStrings(dst, v.offs, v.data)
	case meta.ByteStreamSplit:
		return dremel.AppendSplit(dst, v.fixed, c.value.to)
	}
	if c.phys == meta.TypeBytes {
		return dremel.AppendPlainStrings(dst, v.offs, v.data)
	}
	return append(dst, v.fixed...)
}

// finish compresses the page and puts it behind the others, with its header.
func (c *ChunkWriter) finish(note *pageNote) error {
	levels := len(c.body)
	raw := levels + len(c.vals)
	if raw > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, c.Leaf.Name, "a page of %d bytes: one row is too large", raw)
	}
	packed := false
	stored, more := c.body, c.vals // one behind the other
	var err error
	switch {
	case c.o.squeeze == nil:
	case c.o.v2: // levels are not compressed, and values only if it pays
		if c.squeezed, err = c.o.squeeze(c.squeezed[:0], c.vals); err != nil {
			return err
		}
		if packed = len(c.squeezed) < len(c.vals); packed {
			more = c.squeezed
		}
	default:
		if levels > 0 {
			c.body = append(c.body, c.vals...)
			more = c.body
		}
		if c.squeezed, err = c.o.squeeze(c.squeezed[:0], more); err != nil {
			return err
		}
		stored, more = nil, c.squeezed
	}
	if n := len(stored) + len(more); n > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, c.Leaf.Name, "a page of %d bytes: one row is too large", n)
	}
	stored, more = c.seal.page(stored, more, meta.DataModule, len(c.pages))
	c.dataHeader(note, levels, raw, packed, stored, more)
	head := c.seal.header(c.head.Encoded(), meta.DataHeaderModule, len(c.pages))
	c.raw += int64(len(head) + raw)
	note.size = int64(len(head) + len(stored) + len(more))
	c.out.add(head, c.workspace)
	c.out.add(stored, c.workspace)
	c.out.add(more, c.workspace)
	return nil
}

// pageHead begins the header of a page.
func (c *ChunkWriter) pageHead(kind int32, raw int, stored, more []byte) {
	c.head.Reset()
	c.head.Struct(thrift.Item)
	c.head.I32(1, kind)
	c.head.I32(2, int32(raw))
	c.head.I32(3, int32(len(stored)+len(more)))
	if c.o.crc {
		c.head.I32(4, int32(crc32.Update(crc32.ChecksumIEEE(stored), crc32.IEEETable, more)))
	}
}

func (c *ChunkWriter) dataHeader(note *pageNote, levels, raw int, packed bool, stored, more []byte) {
	w := c.head
	if !c.o.v2 {
		c.pageHead(meta.DataPage, raw, stored, more)
		w.Struct(5)
		w.I32(1, int32(note.entries))
		w.I32(2, note.encoding)
		w.I32(3, meta.RleLevels)
		w.I32(4, meta.RleLevels)
		c.pageStatistics(5, note)
		w.End()
		w.End()
		return
	}
	c.pageHead(meta.DataPageV2, raw, stored, more)
	w.Struct(8)
	w.I32(1, int32(note.entries))
	w.I32(2, int32(note.nulls))
	w.I32(3, int32(c.rows))
	w.I32(4, note.encoding)
	w.I32(5, int32(levels-c.repBytes))
	w.I32(6, int32(c.repBytes))
	w.Bool(7, packed)
	c.pageStatistics(8, note)
	w.End()
	w.End()
}

// pageStatistics are written where no index has them.
func (c *ChunkWriter) pageStatistics(id int16, note *pageNote) {
	if !c.o.index {
		writeStatistics(c.head, id, note.bounds.Written(c.phys == meta.TypeBytes, c.mark.text()), note.nulls)
	}
}

// pending is how many bytes the chunk holds.
func (c *ChunkWriter) pending() int64 { return c.out.size + int64(c.filled()) }

// reset begins the next row group.
func (c *ChunkWriter) reset() {
	if c.dict != nil {
		c.dict.reset()
	}
	c.out.reset(c.workspace)
	c.dictOut.reset(c.workspace)
	c.mode, c.pages, c.hashes = undecided, c.pages[:0], c.hashes[:0]
	c.raw, c.values, c.groupRows, c.bounds = 0, 0, 0, LeafBounds{}
}
