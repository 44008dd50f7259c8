package carbon

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// Lists and structs have pages of their own: for each entry of a list the number of its items and the number of its first item
// in the items' page (two i32, big-endian); for each struct the number of its children (i16). What is null they do not say.
// A null list is written as a list of one null item, a null struct as a struct of nulls: as the real reader does, such are
// taken for null, so that [null] and a struct of nulls read as null, too.

const (
	listWidth   = 8
	structWidth = 2
)

// entrySpans is how many spans p and the pages below it have.
func (p *storedPage) entrySpans() int {
	n := p.spans
	for i := range p.below {
		n += p.below[i].entrySpans()
	}
	return n
}

// lengths appends the lengths of a list, or 1 for each struct, with the null ones marked. A null list keeps the length 1 of its
// placeholder.
func (p *storedPage) lengths(t *format.Task, dst *vec.Vector) error {
	nulls, counts, err := p.nested(t, t.Bytes, t.N)
	if err != nil {
		return err
	}
	at := dst.Extend(len(counts))
	copy(vec.Fixed[int32](dst, at), counts)
	k := 0
	for _, x := range nulls {
		k += bits.OnesCount8(x)
	}
	if k > 0 {
		valid := dst.Validity()
		for i := range counts {
			if nulls[i>>3]>>(i&7)&1 != 0 {
				clearOne(valid, at+i)
			}
		}
		dst.AddNulls(k)
	}
	return nil
}

// nested gives the lengths of the n entries of a list or struct, and the bits of those that are null.
func (p *storedPage) nested(t *format.Task, b [][]byte, n int64) (nulls []byte, counts []int32, err error) {
	c, err := p.open(t, b[:p.spans], n)
	if err != nil {
		return nil, nil, err
	}
	w := listWidth
	if p.col.typ == typeStruct && p.version == 3 {
		w = structWidth
	}
	if err := c.settle(w); err != nil {
		return nil, nil, err
	}
	raw := c.inOrder(w)
	base := listBase(raw, p.version)
	if p.col.typ == typeStruct {
		if counts, err = p.structs(raw, c.n, base); err != nil {
			return nil, nil, err
		}
		nulls, err = p.allNull(t, b[p.spans:], int64(c.n))
		return nulls, counts, err
	}
	counts, total, ones, err := lists(raw, c.n, base)
	if err != nil {
		return nil, nil, err
	}
	nulls = t.Scratch.Bytes((c.n + 7) / 8)
	clear(nulls)
	for i, k := range counts {
		if k < 0 { // null, written by newer writers without a placeholder
			nulls[i>>3] |= 1 << (i & 7)
			counts[i] = 0
		}
	}
	if !ones {
		return nulls, counts, nil
	}
	items, err := p.allNull(t, b[p.spans:], total)
	if err != nil {
		return nil, nil, err
	}
	pos := 0
	for i, k := range counts {
		if k == 1 && items[pos>>3]>>(pos&7)&1 != 0 {
			nulls[i>>3] |= 1 << (i & 7)
		}
		pos += int(k)
	}
	return nulls, counts, nil
}

// lists reads the lengths of lists. ones says that one has exactly one item.
func lists(raw []byte, n int, base int64) (counts []int32, total int64, ones bool, err error) {
	counts = make([]int32, n)
	for i := range counts {
		k := int32(binary.BigEndian.Uint32(raw[8*i:]))
		first := int32(binary.BigEndian.Uint32(raw[8*i+4:]))
		if k < -1 {
			return nil, 0, false, fault.Rel(8*i, 4, "", "a list of %d items", k)
		}
		if k > 0 && int64(first) != base+total {
			return nil, 0, false, fault.Rel(8*i+4, 4, "", "list %d begins at item %d, the lists before have %d", i, first, total)
		}
		counts[i] = k
		ones = ones || k == 1
		total += int64(max(k, 0))
	}
	return counts, total, ones, nil
}

// structs checks that each struct has all its children.
func (p *storedPage) structs(raw []byte, n int, base int64) ([]int32, error) {
	counts := make([]int32, n)
	if p.version < 3 {
		return counts, p.structs12(raw, counts, base)
	}
	for i := range counts {
		if k := int(int16(binary.BigEndian.Uint16(raw[2*i:]))); k != len(p.col.kids) {
			return nil, fault.Rel(2*i, 2, "", "a struct of %d children, %s has %d", k, p.col.name, len(p.col.kids))
		}
		counts[i] = 1
	}
	return counts, nil
}

// allNull is the bits of those of n entries that are null in every page below p.
func (p *storedPage) allNull(t *format.Task, b [][]byte, n int64) ([]byte, error) {
	var all []byte
	for i := range p.below {
		k := &p.below[i]
		nulls, err := k.nullBits(t, b[:k.entrySpans()], n)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{}, true, k.col.leafName())
		}
		b = b[k.entrySpans():]
		if all == nil {
			all = nulls
		} else {
			for j := range all {
				all[j] &= nulls[j]
			}
		}
		if !anyBit(all) {
			break
		}
	}
	return all, nil
}

func anyBit(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return true
		}
	}
	return false
}

// nullBits is the bits of the null ones of n entries of any column.
func (p *storedPage) nullBits(t *format.Task, b [][]byte, n int64) ([]byte, error) {
	if p.col.typ.complex() {
		nulls, _, err := p.nested(t, b, n)
		return nulls, err
	}
	c, err := p.open(t, b, n)
	if err != nil {
		return nil, err
	}
	if most := c.entries(); n > most {
		return nil, fault.Rel(0, 0, "", "%d entries of %s, the page has at most %d", n, p.col.name, most)
	}
	out := t.Scratch.Bytes(int(n+7) / 8)
	clear(out)
	set := func(i int) { out[i>>3] |= 1 << (i & 7) }
	switch {
	case p.coded:
		if err := c.settle(3); err != nil {
			return nil, err
		}
		raw := c.inOrder(3)
		for i := range c.n {
			if v := uint32(raw[3*i])<<16 | uint32(raw[3*i+1])<<8 | uint32(raw[3*i+2]); slices.Contains(p.nullCodes, v) {
				set(i)
			}
		}
		return out, nil
	case c.own && (c.meta.store.width() > 0 || p.first() == encRLEIntegral), !c.own && p.encoders.has(encDictionary):
		if err := c.nullsWithin(c.n); err != nil {
			return nil, err
		}
		copy(out, c.nulls)
		if !c.own {
			return c.surrogateNulls(out)
		}
		return out, nil
	}
	lv := 2
	if p.encoders.has(encIntLengthChild) || p.encoders.has(encDirectCompressVarchar) {
		lv = 4
	}
	starts, err := c.lengths(lv)
	if err != nil {
		return nil, err
	}
	isNull, empty := c.nullRule(), p.col.typ != typeString && p.col.typ != typeVarchar
	for i := range c.n {
		if v := c.raw[starts[2*i]:starts[2*i+1]]; empty && len(v) == 0 || isNull(i, v) {
			set(i)
		}
	}
	return out, nil
}

// entries is how many there can be at most, by the bytes of the values: what a list says of its items is not believed before it is held
// against them.
func (c *content) entries() int64 {
	w := 1
	switch {
	case c.p.coded:
		w = 3
	case c.p.first() == encRLEIntegral:
		return maxPageRows
	case c.own:
		w = max(1, c.meta.store.width())
	}
	return int64(len(c.raw) / w)
}

// surrogateNulls adds the entries whose code means null.
func (c *content) surrogateNulls(out []byte) ([]byte, error) {
	if c.n <= 0 || len(c.raw) == 0 || len(c.raw)%c.n != 0 {
		return nil, fault.Rel(0, 0, "", "%d bytes of codes for %d entries", len(c.raw), c.n)
	}
	w := len(c.raw) / c.n
	raw := c.inOrder(w)
	for i := range c.n {
		v := raw[i*w : (i+1)*w]
		if v[w-1] == nullCode && !anyBit(v[:w-1]) {
			out[i>>3] |= 1 << (i & 7)
		}
	}
	return out, nil
}
