package carbon

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"stoa/internal/codec"
)

// oldPage is the page of a column of a blocklet of formats 1 and 2: what DataChunk or DataChunk2 says of it, and its pieces.
type oldPage struct {
	dataChunk
	data, rowids, runs []byte
	nulls              []byte // of a measure: Java's BitSet, bare
	lo, hi             []byte
	first, last        []byte // the keys of the first and the last row
}

// oldColumn encodes the pages of one column, one blocklet after the other.
type oldColumn struct {
	*column
	bits int  // of a row number in row ids and runs
	runs bool // equal codes that follow each other are kept once
	as10 bool // measures are made small wherever 1.0 does it
}

// packed appends numbers of w bits as one big-endian number, the last item lowest.
func packNumbers(dst []byte, v []uint32, w int) []byte {
	n := (len(v)*w + 7) / 8
	at := len(dst)
	dst = append(dst, make([]byte, n)...)
	var acc uint64
	have, pos := 0, at+n
	for i := len(v) - 1; i >= 0; i-- {
		acc |= uint64(v[i]) << have
		for have += w; have >= 8; have -= 8 {
			pos--
			dst[pos] = byte(acc)
			acc >>= 8
		}
	}
	if have > 0 {
		dst[pos-1] = byte(acc)
	}
	return dst
}

// keyBytes is how many bytes the codes of a column have.
func (c *column) keyBytes() int { return (bits.Len32(uint32(c.card)) + 7) / 8 }

// surrogate is the code of an entry of a column with a dictionary, or with a direct one.
func (c *column) surrogate(x *cells, i int) uint32 {
	switch {
	case x.null(i):
		return nullCode
	case !c.encoders.has(encDirectDictionary):
		return uint32(x.ints[i])
	case c.typ == typeDate:
		return uint32(x.ints[i] + dateOffset)
	}
	return uint32(x.ints[i]/1000 + 2) // wholeSeconds looked whether it fits
}

// appendCode appends a code of w bytes.
func appendCode(b []byte, code uint32, w int) []byte {
	for w--; w >= 0; w-- {
		b = append(b, byte(code>>(8*w)))
	}
	return b
}

// plainText is what stands for an entry of a dimension without a dictionary.
func (c *column) plainText(x *cells, i int) []byte {
	switch {
	case x.null(i):
		return []byte(nullText)
	case c.typ == typeString:
		return x.text(i)
	}
	return []byte(c.valueText(x, i))
}

// valueText is the text of a value in a dictionary, or of a dimension without one.
func (c *column) valueText(x *cells, i int) string {
	switch c.typ {
	case typeString:
		return string(x.text(i))
	case typeDouble:
		return strconv.FormatFloat(x.nums[i], 'g', -1, 64)
	case typeDecimal:
		return x.decs[i].ToString(c.scale)
	case typeDate:
		return time.Unix(x.ints[i]*86400, 0).UTC().Format(time.DateOnly)
	case typeTimestamp:
		return time.UnixMilli(x.ints[i]).UTC().Format("2006-01-02 15:04:05.999")
	}
	return strconv.FormatInt(x.ints[i], 10)
}

// encode makes the page of a blocklet.
func (c *oldColumn) encode(x *cells) *oldPage {
	p := &oldPage{}
	switch {
	case !c.dimension:
		raw, m := oldMeasure(c.column, x, c.as10)
		p.encoders, p.meta, p.nulls = encodings{encDelta}, [][]byte{m.put()}, bytes.Clone(x.nulls)
		p.data = squeezed(raw)
	case c.typ.complex():
		c.nested(p, x)
	case c.encoders.has(encDictionary):
		c.codes(p, x)
	default:
		c.texts(p, x)
	}
	p.dataLen, p.rowidLen, p.rleLen = int32(len(p.data)), int32(len(p.rowids)), int32(len(p.runs))
	return p
}

// squeezed is compressed by the method of formats 1 and 2, which have one only.
func squeezed(raw []byte) []byte {
	b, _ := codec.Squeeze("snappy", nil, raw)
	return b
}

// codes encodes codes: sorted with row ids if the column has an inverted index; runs of a code kept once.
func (c *oldColumn) codes(p *oldPage, x *cells) {
	w := c.keyBytes()
	code := make([]uint32, x.n)
	for i := range code {
		code[i] = c.surrogate(x, i)
	}
	at := c.order(p, x.n, func(a, b uint32) int { return cmp.Compare(code[a], code[b]) })
	var raw []byte
	var pairs []uint32
	for i := 0; i < len(at); {
		end := i + 1
		for c.runs && end < len(at) && code[at[end]] == code[at[i]] {
			end++
		}
		raw = appendCode(raw, code[at[i]], w)
		pairs = append(pairs, uint32(i), uint32(end-i))
		i = end
	}
	p.data = squeezed(raw)
	if c.runs && len(pairs) < 2*len(at) {
		p.runs = packNumbers(nil, pairs, c.bits)
	}
	key := func(i uint32) []byte { return appendCode(nil, code[i], w) }
	p.encoders = append(c.dictionaryEncoders(), p.encoders...)
	if c.parent != nil {
		if x.n > 0 {
			p.lo, p.hi = key(0), key(uint32(x.n-1))
		}
		return
	}
	p.lo, p.hi = appendCode(nil, slices.Min(code), w), appendCode(nil, slices.Max(code), w)
	p.first, p.last = key(0), key(uint32(x.n-1))
}

// dictionaryEncoders are those that the page has of its column.
func (c *oldColumn) dictionaryEncoders() (e encodings) {
	for _, x := range []encoding{encDictionary, encDirectDictionary} {
		if c.encoders.has(x) {
			e = append(e, x)
		}
	}
	if c.runs {
		e = append(e, encRLE)
	}
	return e
}

// texts encodes texts with their lengths.
func (c *oldColumn) texts(p *oldPage, x *cells) {
	v := make([][]byte, x.n)
	for i := range v {
		v[i] = c.plainText(x, i)
	}
	var raw []byte
	for _, i := range c.order(p, x.n, func(a, b uint32) int { return bytes.Compare(v[a], v[b]) }) {
		raw = append(binary.BigEndian.AppendUint16(raw, uint16(len(v[i]))), v[i]...)
	}
	p.data = squeezed(raw)
	p.lo, p.hi = bytes.Clone(slices.MinFunc(v, bytes.Compare)), bytes.Clone(slices.MaxFunc(v, bytes.Compare))
	p.first, p.last = v[0], v[x.n-1]
}

// order gives the entries in the order in which they are kept, and makes the row ids that tell it.
func (c *oldColumn) order(p *oldPage, n int, compare func(a, b uint32) int) []uint32 {
	at := make([]uint32, n)
	for i := range at {
		at[i] = uint32(i)
	}
	p.sort = 2 // SORT_EXPLICIT: the rows are in this order
	if c.parent == nil && !c.encoders.has(encInvertedIndex) || n == 0 {
		return at
	}
	if c.parent == nil && !slices.IsSortedFunc(at, compare) {
		slices.SortStableFunc(at, compare)
	}
	c.rowIDs(p, at)
	return at
}

// rowIDs makes the row ids of entries: runs of numbers that follow each other as the first and the last one, and where in the list
// such runs are. One run of more than two is told by sort_state alone.
func (c *oldColumn) rowIDs(p *oldPage, at []uint32) {
	var ids, starts []uint32
	for i := 0; i < len(at); {
		end := i
		for end+1 < len(at) && at[end+1] == at[end]+1 {
			end++
		}
		if end > i {
			starts = append(starts, uint32(len(ids)))
			ids = append(ids, at[i])
		}
		ids = append(ids, at[end])
		i = end + 1
	}
	if len(ids) == len(at) {
		starts = nil
	}
	if len(ids) == 2 && len(starts) == 1 {
		return
	}
	list := packNumbers(nil, ids, c.bits)
	p.rowids = packNumbers(append(binary.BigEndian.AppendUint32(nil, uint32(len(list))), list...), starts, c.bits)
	p.encoders = append(p.encoders, encInvertedIndex)
	p.sort = 1 // SORT_NATIVE
}

// nested encodes what a list or a struct has an entry: how many items or children, and the number of the first one in the blocklet. The
// real writer goes on counting in the next blocklet, where the real reader looks for entries that are not there.
func (c *oldColumn) nested(p *oldPage, x *cells) {
	var raw []byte
	be := binary.BigEndian
	at := int32(0)
	for i := range x.n {
		n := int32(len(c.kids))
		if c.typ == typeArray {
			n = int32(x.ints[i])
		}
		first := at
		if n == 0 {
			first = 0
		}
		raw = be.AppendUint32(be.AppendUint32(raw, uint32(n)), uint32(first))
		if c.typ == typeStruct {
			n = 1
		}
		at += n
	}
	p.data = squeezed(raw)
	c.order(p, x.n, nil)
	p.encoders = append(c.dictionaryEncoders(), p.encoders...)
	if len(raw) > 0 {
		p.lo, p.hi = raw[:8], raw[len(raw)-8:]
	}
	if c.parent == nil {
		p.first, p.last = c.nestedKey(x, 0), c.nestedKey(x, x.n-1)
	}
}

// nestedKey is a row of a list or struct in the start and end keys: numbers of items or children and codes, four bytes each.
func (c *column) nestedKey(x *cells, i int) (b []byte) {
	be := binary.BigEndian
	switch c.typ {
	case typeArray:
		b = be.AppendUint32(b, uint32(x.ints[i]))
		from := 0
		for _, n := range x.ints[:i] {
			from += int(n)
		}
		for k := range int(x.ints[i]) {
			b = append(b, c.kids[0].nestedKey(x.kids[0], from+k)...)
		}
	case typeStruct:
		b = be.AppendUint32(b, uint32(len(c.kids)))
		for k, kid := range c.kids {
			b = append(b, kid.nestedKey(x.kids[k], i)...)
		}
	default:
		b = be.AppendUint32(b, c.surrogate(x, i))
	}
	return b
}

// oldKey is a start or end key: the lengths of both parts; the codes of the row; its texts and nested columns, each found by the
// offset that stands before them. Those of nested columns are two too many, as the real writer leaves them.
func oldKey(codes, texts, nested [][]byte) []byte {
	be := binary.BigEndian
	key := bytes.Join(codes, nil)
	var head, body []byte
	at := 2 * (len(texts) + len(nested))
	for _, v := range texts {
		head = be.AppendUint16(head, uint16(at+len(body)))
		body = append(body, v...)
	}
	for _, v := range nested {
		head = be.AppendUint16(head, uint16(min(at+len(body)+2, math.MaxUint16)))
		body = append(body, v...)
	}
	out := be.AppendUint32(nil, uint32(len(key)))
	out = be.AppendUint32(out, uint32(len(head)+len(body)))
	return slices.Concat(out, key, head, body)
}
