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

// ChunkWriter makes the pages of one column of one row group. Full pages are kept until the row group ends, since the
// dictionary precedes them in the file.
type ChunkWriter struct {
	*workspace
	nest.Leaf
	treeLeaf
	plan     leafValue
	nullable bool // the field itself, not a parent, can be null
	o        *writeOptions
	head     *thrift.Writer
	bloom    bool
	cipher   chunkCipher

	// The page that is being filled. Values are dense; a boolean takes a byte.
	page          dense
	def, rep      []byte
	entries, rows int

	// The chunk.
	dict      *dictionary
	dictState dictState
	encoding  int32 // of pages without dictionary, once chosen
	pages     []pageInfo
	out       pieces // data pages
	dictOut   pieces // the dictionary page, once the dictionary has been retired
	dictRaw   int64  // its uncompressed size including the header
	raw       int64  // uncompressed bytes of data pages including headers
	values    int64
	groupRows int64
	bounds    LeafBounds // of all values, not truncated
	hashes    []uint64   // of all values, for the Bloom filter
	nans      int64      // number of NaN in all chunks of the file

	repBytes int    // bytes of repetition levels in the page that is being finished
	vals     []byte // the encoded values of the page that is being finished; may alias other buffers
}

// dictState is the state of a chunk's dictionary.
type dictState uint8

const (
	dictUndecided dictState = iota
	dictActive              // pages are codes of the dictionary
	dictFull                // earlier pages are codes, later ones are values
	dictRetired             // as dictFull, but the encoding of later pages has not been chosen yet
	dictNone                // there is no dictionary
)

// pageInfo holds the facts about a finished data page.
type pageInfo struct {
	at, size int64 // offset in out, size with the header
	first    int64 // row
	encoding int32
	entries  int64
	nulls    int64
	raw      int64      // bytes of strings, without lengths
	bounds   LeafBounds // as they are written
	noBounds bool       // there are values, but no bounds that can be written
	def, rep []int64    // entries by level
}

// width returns the size in bytes of a value in the page that is being filled; 0 for strings.
func (c *ChunkWriter) width() int {
	if c.phys == meta.TypeBytes {
		return 0
	}
	return c.plan.to
}

// add appends the entries of a shredded leaf. Pages end between rows.
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
	if c.plan.form != formNone {
		if d, err = c.plan.of(a, &c.scratch); err != nil {
			return fault.Locate(err, fault.Span{}, false, c.Leaf.Name)
		}
	}
	for e, v := 0, 0; e < s.Entries; {
		e2, v2, rows := c.fit(s, &d, e, v)
		c.appendValues(&d, v, v2)
		if c.MaxDef > 0 {
			c.def = append(c.def, s.Def[e:e2]...)
		}
		if c.MaxRep > 0 {
			c.rep = append(c.rep, s.Rep[e:e2]...)
		}
		c.entries, c.rows = c.entries+e2-e, c.rows+rows
		e, v = e2, v2
		if c.full() { // a row ends here, as at the end of every slice
			if err := c.endPage(); err != nil {
				return err
			}
		}
	}
	return nil
}

// filled returns the approximate size in bytes of the page that is being filled.
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

func (c *ChunkWriter) full() bool { return c.filled() >= c.o.pageSize || c.entries >= c.maxEntries() }

// maxEntries returns the largest number of entries in a page of more than one row. It is larger for booleans, which are
// small.
func (c *ChunkWriter) maxEntries() int {
	if c.phys == meta.TypeBoolean {
		return 8 * c.o.pageRows
	}
	return c.o.pageRows
}

// fit finds the end of the page that begins with entry e, whose values begin at v: at entry e2 and value v2, with rows
// rows. The end is between rows.
func (c *ChunkWriter) fit(s *nest.Shredded, d *dense, e, v int) (e2, v2, rows int) {
	left := 8 * (c.o.pageSize - c.filled()) // bits
	width := 8 * c.width()
	if c.phys == meta.TypeBoolean {
		width = 1
	}
	all := (d.n - v) * width
	if c.phys == meta.TypeBytes {
		all = 8*int(d.offs[d.n]-d.offs[v]) + 32*(d.n-v)
	}
	if rest := s.Entries - e; all+2*rest < left && c.entries+rest <= c.maxEntries() { // everything fits
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
		if (left <= 0 || c.entries+e2-e >= c.maxEntries()) && (e2 == s.Entries || s.Rep == nil || s.Rep[e2] == 0) {
			break
		}
	}
	return e2, v2, rows
}

// appendValues appends the values [from, to) of d to the page.
func (c *ChunkWriter) appendValues(d *dense, from, to int) {
	if from == to {
		return
	}
	p := &c.page
	if c.phys != meta.TypeBytes {
		w := c.plan.to
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

// endPage encodes and finishes the page that is being filled.
func (c *ChunkWriter) endPage() error {
	if c.entries == 0 {
		return nil
	}
	if len(c.page.offs) == 0 {
		c.page.offs = append(c.page.offs, 0)
	}
	note := pageInfo{at: c.out.size, first: c.groupRows, entries: int64(c.entries), nulls: int64(c.entries - c.page.n),
		raw: int64(len(c.page.data))}
	note.bounds = c.order.boundsOf(c.page, c.width())
	c.nans += c.order.nans(c.page, c.width())
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
		maxLevel := []uint8{c.MaxRep, c.MaxDef}[k]
		if maxLevel == 0 {
			continue
		}
		at := len(c.body)
		if !c.o.v2 {
			c.body = append(c.body, 0, 0, 0, 0)
		}
		begin := len(c.body)
		c.body = dremel.AppendLevels(c.body, levels, maxLevel)
		if !c.o.v2 {
			binary.LittleEndian.PutUint32(c.body[at:], uint32(len(c.body)-begin))
		}
		counts := make([]int64, int(maxLevel)+1)
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
	c.keepBounds(&note)
	c.pages = append(c.pages, note)
	c.values += int64(c.entries)
	c.groupRows += int64(c.rows)
	c.page = dense{fixed: c.page.fixed[:0], offs: c.page.offs[:0], data: c.page.data[:0]}
	c.def, c.rep, c.entries, c.rows = c.def[:0], c.rep[:0], 0, 0
	return nil
}

// keepBounds adds a page's bounds to the chunk's, and keeps only their written form, because values may be long.
func (c *ChunkWriter) keepBounds(p *pageInfo) {
	c.bounds.widen(p.bounds, c.order, c.width())
	p.noBounds = p.nulls < p.entries && (p.bounds.Min == nil || p.bounds.Max == nil)
	b := p.bounds.Truncated(c.phys == meta.TypeBytes, c.annotation.text())
	p.noBounds = p.noBounds || p.bounds.Max != nil && b.Max == nil
	p.bounds.Min, p.bounds.Max = slices.Clone(b.Min), slices.Clone(b.Max)
}

// encode encodes the values of the page into vals.
func (c *ChunkWriter) encode(note *pageInfo) error {
	c.vals = c.vals[:0]
	if c.phys == meta.TypeBoolean {
		if c.o.v2 && c.o.auto {
			note.encoding, c.vals = meta.RleValues, dremel.AppendBools(c.vals, c.page.fixed)
		} else {
			note.encoding, c.vals = meta.PlainValues, dremel.AppendBits(c.vals, c.page.fixed)
		}
		return nil
	}
	// A dictionary in Arrow remains one: its author had a reason, and pyarrow cannot join pages with and without codes.
	if c.dictState == dictUndecided && c.o.dict && c.Leaf.Type.ID() == arrow.DICTIONARY {
		c.dictState = dictActive
		c.dict = c.dictionary(c.dict, c.width())
	}
	if c.page.n == 0 && c.dictState != dictActive { // there are no values to choose by
		note.encoding = meta.PlainValues
		return nil
	}
	if err := c.advance(); err != nil {
		return err
	}
	if c.dictState == dictActive {
		c.encodeCodes(note)
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

// advance adds the page's values to the dictionary, if there is one, and moves to the next state: the first page
// decides whether there is a dictionary, and it ends at the first page whose values do not fit.
func (c *ChunkWriter) advance() error {
	switch c.dictState {
	case dictUndecided:
		return c.choose()
	case dictRetired:
		c.dictState = dictFull
		return c.chooseEncoding()
	case dictActive:
		before := c.dict.n
		var ok bool
		if c.codes, ok = c.dict.codes(c.codes[:0], c.page, false); !ok {
			c.dict.truncate(before)
			c.dictState = dictFull
			return c.chooseEncoding()
		}
	}
	return nil
}

// encodeCodes encodes the page as codes of the dictionary.
func (c *ChunkWriter) encodeCodes(note *pageInfo) {
	note.encoding = meta.RleDictionary
	if c.o.version == 1 {
		note.encoding = meta.PlainDictionary
	}
	largest := uint32(0)
	for _, x := range c.codes {
		largest = max(largest, x)
	}
	c.spare = dremel.AppendCodes(c.spare[:0], c.codes, largest)
	c.vals = c.spare
}

// encoded appends v in an encoding other than that of a dictionary.
func (c *ChunkWriter) encoded(dst []byte, encoding int32, v dense) []byte {
	switch encoding {
	case meta.DeltaBinaryPacked:
		if c.plan.to == 4 {
			return dremel.AppendDeltas(dst, wordsOf[int32](v.fixed))
		}
		return dremel.AppendDeltas(dst, wordsOf[int64](v.fixed))
	case meta.DeltaLengths:
		return dremel.AppendDeltaLengths(dst, v.offs, v.data)
	case meta.DeltaByteArray:
		return dremel.AppendDeltaStrings(dst, v.offs, v.data)
	case meta.ByteStreamSplit:
		return dremel.AppendSplit(dst, v.fixed, c.plan.to)
	}
	if c.phys == meta.TypeBytes {
		return dremel.AppendPlainStrings(dst, v.offs, v.data)
	}
	return append(dst, v.fixed...)
}

// finish compresses the page and appends it with its header to the others.
func (c *ChunkWriter) finish(note *pageInfo) error {
	levels := len(c.body)
	raw := levels + len(c.vals)
	if raw > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, c.Leaf.Name, "a page of %d bytes: one row is too large", raw)
	}
	packed := false
	stored, more := c.body, c.vals // one after the other
	var err error
	switch {
	case c.o.compress == nil:
	case c.o.v2: // levels are not compressed, and values only if that saves bytes
		if c.compressed, err = c.o.compress(c.compressed[:0], c.vals); err != nil {
			return err
		}
		if packed = len(c.compressed) < len(c.vals); packed {
			more = c.compressed
		}
	default:
		if levels > 0 {
			c.body = append(c.body, c.vals...)
			more = c.body
		}
		if c.compressed, err = c.o.compress(c.compressed[:0], more); err != nil {
			return err
		}
		stored, more = nil, c.compressed
	}
	if n := len(stored) + len(more); n > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, c.Leaf.Name, "a page of %d bytes: one row is too large", n)
	}
	stored, more = c.cipher.page(stored, more, meta.DataModule, len(c.pages))
	c.dataHeader(note, levels, raw, packed, stored, more)
	head := c.cipher.header(c.head.Encoded(), meta.DataHeaderModule, len(c.pages))
	c.raw += int64(len(head) + raw)
	note.size = int64(len(head) + len(stored) + len(more))
	c.out.add(head, c.workspace)
	c.out.add(stored, c.workspace)
	c.out.add(more, c.workspace)
	return nil
}

// pageHead begins the header of a page whose body is stored followed by more.
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

func (c *ChunkWriter) dataHeader(note *pageInfo, levels, raw int, packed bool, stored, more []byte) {
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

// pageStatistics writes statistics only if there is no column index to contain them.
func (c *ChunkWriter) pageStatistics(id int16, note *pageInfo) {
	if !c.o.index {
		writeStatistics(c.head, id, note.bounds.Truncated(c.phys == meta.TypeBytes, c.annotation.text()), note.nulls)
	}
}

// pending estimates the bytes of the chunk so far.
func (c *ChunkWriter) pending() int64 { return c.out.size + int64(c.filled()) }

// reset begins the next row group.
func (c *ChunkWriter) reset() {
	if c.dict != nil {
		c.dict.reset()
	}
	c.out.reset(c.workspace)
	c.dictOut.reset(c.workspace)
	c.dictState, c.pages, c.hashes = dictUndecided, c.pages[:0], c.hashes[:0]
	c.raw, c.values, c.groupRows, c.bounds = 0, 0, 0, LeafBounds{}
}
