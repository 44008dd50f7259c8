package page

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
)

// V12Column encodes the pages of one column, one blocklet after the other.
type V12Column struct {
	*schema.Column
	Bits int  // of a row number in row ids and runs
	Runs bool // adjacent equal codes are stored once
	As10 bool // measures are narrowed wherever release 1.0 does so
}

// packNumbers appends numbers of w bits as one big-endian number, with the last of them in its lowest bits.
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

// keyBytes returns the width in bytes of the codes of a column.
func keyBytes(c *schema.Column) int { return (bits.Len32(uint32(c.Cardinality)) + 7) / 8 }

// surrogate returns the code of an entry of a column with a global or direct dictionary.
func surrogate(c *schema.Column, x *Cells, i int) uint32 {
	switch {
	case x.Null(i):
		return schema.NullCode
	case !c.Encoders.Has(layout.EncDirectDictionary):
		return uint32(x.Ints[i])
	case c.Type == layout.TypeDate:
		return uint32(x.Ints[i] + schema.DateOffset)
	}
	return uint32(x.Ints[i]/1000 + 2) // wholeSeconds checked whether it fits
}

// appendCode appends a code of w bytes.
func appendCode(b []byte, code uint32, w int) []byte {
	for w--; w >= 0; w-- {
		b = append(b, byte(code>>(8*w)))
	}
	return b
}

// plainText returns the bytes that represent an entry of a dimension without a dictionary.
func plainText(c *schema.Column, x *Cells, i int) []byte {
	switch {
	case x.Null(i):
		return []byte(schema.NullText)
	case c.Type == layout.TypeString:
		return x.Text(i)
	}
	return []byte(ValueText(c, x, i))
}

// ValueText returns the text of a value, as in a dictionary or in a dimension without one.
func ValueText(c *schema.Column, x *Cells, i int) string {
	switch c.Type {
	case layout.TypeString:
		return string(x.Text(i))
	case layout.TypeDouble:
		return strconv.FormatFloat(x.Nums[i], 'g', -1, 64)
	case layout.TypeDecimal:
		return x.Decs[i].ToString(c.Scale)
	case layout.TypeDate:
		return time.Unix(x.Ints[i]*86400, 0).UTC().Format(time.DateOnly)
	case layout.TypeTimestamp:
		return time.UnixMilli(x.Ints[i]).UTC().Format("2006-01-02 15:04:05.999")
	}
	return strconv.FormatInt(x.Ints[i], 10)
}

// Encode encodes the page of a blocklet.
func (c *V12Column) Encode(x *Cells) *layout.V12Page {
	p := &layout.V12Page{}
	switch {
	case !c.Dimension:
		raw, m := v12Measure(c.Column, x, c.As10)
		p.Encoders, p.Meta, p.Nulls = layout.Encodings{layout.EncDelta}, [][]byte{m.Encode()}, bytes.Clone(x.nulls)
		p.Data = layout.CompressV12(raw)
	case c.Type.Complex():
		c.nested(p, x)
	case c.Encoders.Has(layout.EncDictionary):
		c.codes(p, x)
	default:
		c.texts(p, x)
	}
	p.DataLen, p.RowidLen, p.RleLen = int32(len(p.Data)), int32(len(p.Rowids)), int32(len(p.Runs))
	return p
}

// codes encodes codes: sorted, with row ids, if the column has an inverted index. Runs of equal codes are stored once.
func (c *V12Column) codes(p *layout.V12Page, x *Cells) {
	w := keyBytes(c.Column)
	code := make([]uint32, x.N)
	for i := range code {
		code[i] = surrogate(c.Column, x, i)
	}
	at := c.order(p, x.N, func(a, b uint32) int { return cmp.Compare(code[a], code[b]) })
	var raw []byte
	var pairs []uint32
	for i := 0; i < len(at); {
		end := i + 1
		for c.Runs && end < len(at) && code[at[end]] == code[at[i]] {
			end++
		}
		raw = appendCode(raw, code[at[i]], w)
		pairs = append(pairs, uint32(i), uint32(end-i))
		i = end
	}
	p.Data = layout.CompressV12(raw)
	if c.Runs && len(pairs) < 2*len(at) {
		p.Runs = packNumbers(nil, pairs, c.Bits)
	}
	key := func(i uint32) []byte { return appendCode(nil, code[i], w) }
	p.Encoders = append(c.dictionaryEncoders(), p.Encoders...)
	if c.Parent != nil {
		if x.N > 0 {
			p.Min, p.Max = key(0), key(uint32(x.N-1))
		}
		return
	}
	p.Min, p.Max = appendCode(nil, slices.Min(code), w), appendCode(nil, slices.Max(code), w)
	p.First, p.Last = key(0), key(uint32(x.N-1))
}

// dictionaryEncoders returns the dictionary encoders of the column, which its pages also have.
func (c *V12Column) dictionaryEncoders() (e layout.Encodings) {
	for _, x := range []layout.Encoding{layout.EncDictionary, layout.EncDirectDictionary} {
		if c.Encoders.Has(x) {
			e = append(e, x)
		}
	}
	if c.Runs {
		e = append(e, layout.EncRLE)
	}
	return e
}

// texts encodes texts with their lengths.
func (c *V12Column) texts(p *layout.V12Page, x *Cells) {
	v := make([][]byte, x.N)
	for i := range v {
		v[i] = plainText(c.Column, x, i)
	}
	var raw []byte
	for _, i := range c.order(p, x.N, func(a, b uint32) int { return bytes.Compare(v[a], v[b]) }) {
		raw = append(binary.BigEndian.AppendUint16(raw, uint16(len(v[i]))), v[i]...)
	}
	p.Data = layout.CompressV12(raw)
	p.Min, p.Max = bytes.Clone(slices.MinFunc(v, bytes.Compare)), bytes.Clone(slices.MaxFunc(v, bytes.Compare))
	p.First, p.Last = v[0], v[x.N-1]
}

// order returns the entries in the order in which they are stored, and writes the row ids that record this order.
func (c *V12Column) order(p *layout.V12Page, n int, compare func(a, b uint32) int) []uint32 {
	at := make([]uint32, n)
	for i := range at {
		at[i] = uint32(i)
	}
	p.Sort = 2 // SORT_EXPLICIT: the rows are in this order
	if c.Parent == nil && !c.Encoders.Has(layout.EncInvertedIndex) || n == 0 {
		return at
	}
	if c.Parent == nil && !slices.IsSortedFunc(at, compare) {
		slices.SortStableFunc(at, compare)
	}
	c.rowIDs(p, at)
	return at
}

// rowIDs writes the row ids of entries: runs of consecutive numbers as their first and last number, then the positions
// of these runs in the list. If a single run covers everything, sort_state alone records it.
func (c *V12Column) rowIDs(p *layout.V12Page, at []uint32) {
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
	list := packNumbers(nil, ids, c.Bits)
	p.Rowids = packNumbers(append(binary.BigEndian.AppendUint32(nil, uint32(len(list))), list...), starts, c.Bits)
	p.Encoders = append(p.Encoders, layout.EncInvertedIndex)
	p.Sort = 1 // SORT_NATIVE
}

// nested encodes each entry of a list or struct: the number of items or children, and the ordinal of the first one in
// the blocklet. CarbonData's writer continues the count in the next blocklet, in which its own reader then looks for
// entries that do not exist.
func (c *V12Column) nested(p *layout.V12Page, x *Cells) {
	var raw []byte
	be := binary.BigEndian
	at := int32(0)
	for i := range x.N {
		n := int32(len(c.Children))
		if c.Type == layout.TypeArray {
			n = int32(x.Ints[i])
		}
		first := at
		if n == 0 {
			first = 0
		}
		raw = be.AppendUint32(be.AppendUint32(raw, uint32(n)), uint32(first))
		if c.Type == layout.TypeStruct {
			n = 1
		}
		at += n
	}
	p.Data = layout.CompressV12(raw)
	c.order(p, x.N, nil)
	p.Encoders = append(c.dictionaryEncoders(), p.Encoders...)
	if len(raw) > 0 {
		p.Min, p.Max = raw[:8], raw[len(raw)-8:]
	}
	if c.Parent == nil {
		p.First, p.Last = nestedKey(c.Column, x, 0), nestedKey(c.Column, x, x.N-1)
	}
}

// nestedKey encodes a row of a list or struct for the start and end keys: numbers of items or children, and codes, four
// bytes each.
func nestedKey(c *schema.Column, x *Cells, i int) (b []byte) {
	be := binary.BigEndian
	switch c.Type {
	case layout.TypeArray:
		b = be.AppendUint32(b, uint32(x.Ints[i]))
		from := 0
		for _, n := range x.Ints[:i] {
			from += int(n)
		}
		for k := range int(x.Ints[i]) {
			b = append(b, nestedKey(c.Children[0], x.Children[0], from+k)...)
		}
	case layout.TypeStruct:
		b = be.AppendUint32(b, uint32(len(c.Children)))
		for k, kid := range c.Children {
			b = append(b, nestedKey(kid, x.Children[k], i)...)
		}
	default:
		b = be.AppendUint32(b, surrogate(c, x, i))
	}
	return b
}

// V12Key encodes a start or end key: the lengths of its two parts; the codes of the row; then its texts and nested
// columns, preceded by the offset of each. The offsets of nested columns are too large by two, as CarbonData's writer
// makes them.
func V12Key(codes, texts, nested [][]byte) []byte {
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
