package page

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
)

// Lists and structs have pages of their own: for each list the number of its items and the ordinal of its first item in
// the page of the items (two i32, big-endian); for each struct the number of its children (i16). Nulls are not
// recorded: a null list is written as a list of one null item, a null struct as a struct of nulls. Like CarbonData's
// reader, ours reads both as null, so [null] and a struct of nulls are also read as null.

const (
	listWidth   = 8
	structWidth = 2
)

// entrySpans is the number of spans of p and the pages below it.
func (p *StoredPage) entrySpans() int {
	n := p.Spans
	for i := range p.Below {
		n += p.Below[i].entrySpans()
	}
	return n
}

// Lengths appends the lengths of lists, or 1 for each struct, and marks those that are null. A null list has the length
// 1 of its placeholder, or 0 if the writer wrote none.
func (p *StoredPage) Lengths(t *format.Task, dst *vec.Vector) error {
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
				schema.SetNull(valid, at+i)
			}
		}
		dst.AddNulls(k)
	}
	return nil
}

// nested returns the lengths of the n entries of a list or struct, and the bit set of the null entries.
func (p *StoredPage) nested(t *format.Task, b [][]byte, n int64) (nulls []byte, counts []int32, err error) {
	c, err := p.Open(t, b[:p.Spans], n)
	if err != nil {
		return nil, nil, err
	}
	w := listWidth
	if p.Col.Type == layout.TypeStruct && p.Version == 3 {
		w = structWidth
	}
	if err := c.setCount(w); err != nil {
		return nil, nil, err
	}
	raw := c.inOrder(w)
	base := listBase(raw, p.Version)
	if p.Col.Type == layout.TypeStruct {
		if counts, err = p.structs(raw, c.N, base); err != nil {
			return nil, nil, err
		}
		nulls, err = p.allNull(t, b[p.Spans:], int64(c.N))
		return nulls, counts, err
	}
	counts, total, ones, err := lists(raw, c.N, base)
	if err != nil {
		return nil, nil, err
	}
	nulls = t.Scratch.Bytes((c.N + 7) / 8)
	clear(nulls)
	for i, k := range counts {
		if k < 0 { // a null; later writers write no placeholder for it
			nulls[i>>3] |= 1 << (i & 7)
			counts[i] = 0
		}
	}
	if !ones {
		return nulls, counts, nil
	}
	items, err := p.allNull(t, b[p.Spans:], total)
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

// lists reads the lengths of lists, -1 for a null. total is the sum of the lengths that are not -1, and ones reports
// whether one of them is 1.
func lists(raw []byte, n int, base int64) (counts []int32, total int64, ones bool, err error) {
	counts = make([]int32, n)
	for i := range counts {
		k := int32(binary.BigEndian.Uint32(raw[8*i:]))
		first := int32(binary.BigEndian.Uint32(raw[8*i+4:]))
		if k < -1 {
			return nil, 0, false, fault.Rel(8*i, 4, "", "list %d: expected a length of at least -1, found %d", i, k)
		}
		if k > 0 && int64(first) != base+total {
			return nil, 0, false, fault.Rel(8*i+4, 4, "", "list %d: expected the first item %d, found %d", i,
				base+total,
				first)
		}
		counts[i] = k
		ones = ones || k == 1
		total += int64(max(k, 0))
	}
	return counts, total, ones, nil
}

// structs checks that each struct has all its children.
func (p *StoredPage) structs(raw []byte, n int, base int64) ([]int32, error) {
	counts := make([]int32, n)
	if p.Version < 3 {
		return counts, p.structs12(raw, counts, base)
	}
	for i := range counts {
		if k := int(int16(binary.BigEndian.Uint16(raw[2*i:]))); k != len(p.Col.Children) {
			return nil, fault.Rel(2*i, 2, "", "struct %d of %s: expected %d children, found %d", i, p.Col.Name,
				len(p.Col.Children), k)
		}
		counts[i] = 1
	}
	return counts, nil
}

// allNull returns the bit set of the entries, out of n, that are null in every page below p.
func (p *StoredPage) allNull(t *format.Task, b [][]byte, n int64) ([]byte, error) {
	var all []byte
	for i := range p.Below {
		k := &p.Below[i]
		nulls, err := k.nullBits(t, b[:k.entrySpans()], n)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{}, true, k.Col.LeafName())
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

// nullBits is the bit set of the nulls among n entries of any column.
func (p *StoredPage) nullBits(t *format.Task, b [][]byte, n int64) ([]byte, error) {
	if p.Col.Type.Complex() {
		nulls, _, err := p.nested(t, b, n)
		return nulls, err
	}
	c, err := p.Open(t, b, n)
	if err != nil {
		return nil, err
	}
	if most := c.entries(); n > most {
		return nil, fault.Rel(0, 0, "", "expected %d entries of %s, the page has at most %d", n, p.Col.Name, most)
	}
	out := t.Scratch.Bytes(int(n+7) / 8)
	clear(out)
	set := func(i int) { out[i>>3] |= 1 << (i & 7) }
	switch {
	case p.Coded:
		if err := c.setCount(3); err != nil {
			return nil, err
		}
		raw := c.inOrder(3)
		for i := range c.N {
			if v := uint32(raw[3*i])<<16 | uint32(raw[3*i+1])<<8 | uint32(raw[3*i+2]); slices.Contains(p.NullCodes, v) {
				set(i)
			}
		}
		return out, nil
	case c.own && (c.meta.Store.Width() > 0 || p.FirstEncoding() == layout.EncRLEIntegral), !c.own &&
		p.Encoders.Has(layout.EncDictionary):
		if err := c.nullsWithin(c.N); err != nil {
			return nil, err
		}
		copy(out, c.Nulls)
		if !c.own {
			return c.surrogateNulls(out)
		}
		return out, nil
	}
	lv := 2
	if p.Encoders.Has(layout.EncIntLengthChild) || p.Encoders.Has(layout.EncDirectCompressVarchar) {
		lv = 4
	}
	starts, err := c.Lengths(lv)
	if err != nil {
		return nil, err
	}
	isNull, empty := c.nullRule(), p.Col.Type != layout.TypeString && p.Col.Type != layout.TypeVarchar
	for i := range c.N {
		if v := c.Raw[starts[2*i]:starts[2*i+1]]; empty && len(v) == 0 || isNull(i, v) {
			set(i)
		}
	}
	return out, nil
}

// entries is an upper bound of the number of entries that the bytes of the values can encode. The lengths of lists are
// compared with it before memory is allocated for them.
func (c *Content) entries() int64 {
	w := 1
	switch {
	case c.P.Coded:
		w = 3
	case c.P.FirstEncoding() == layout.EncRLEIntegral:
		return MaxPageRows
	case c.own:
		w = max(1, c.meta.Store.Width())
	}
	return int64(len(c.Raw) / w)
}

// surrogateNulls adds the entries with the code of null to out.
func (c *Content) surrogateNulls(out []byte) ([]byte, error) {
	if c.N <= 0 || len(c.Raw) == 0 || len(c.Raw)%c.N != 0 {
		return nil, fault.Rel(0, 0, "", "expected as many bytes for each of %d codes, found %d bytes", c.N, len(c.Raw))
	}
	w := len(c.Raw) / c.N
	raw := c.inOrder(w)
	for i := range c.N {
		v := raw[i*w : (i+1)*w]
		if v[w-1] == schema.NullCode && !anyBit(v[:w-1]) {
			out[i>>3] |= 1 << (i & 7)
		}
	}
	return out, nil
}
