package page

import (
	"encoding/binary"
	"math/bits"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"
)

// MaxPageRows is far more than any writer puts in a page (32,000 rows in format 3; carbon.blocklet.size, at
// most 12,000,000, in the older ones).
const MaxPageRows = 1 << 24

// MaxPageRows3 is more than the 32,000 rows that a page of format 3 has at most: its row ids have 15 bits.
const MaxPageRows3 = 1 << 16

// StoredPage is a page as its file keeps it. It is what Next learned and Decode needs.
type StoredPage struct {
	*layout.DataChunk
	Col       *schema.Column // of the file
	Version   int
	Rows      int64 // of the top-level column
	Coded     bool  // the values are codes of the chunk's dictionary
	Global    bool  // the values are codes of the column's dictionary
	Widths    *KeyWidths
	Limits    format.Limits
	Spans     int          // how many of the task's spans are this page's own
	Dates     DateRule     // direct dictionaries
	NullCodes []uint32     // of a page of codes below a list or struct
	Below     []StoredPage // of an array or struct: the pages that say which of its entries are null
}

// Pieces are the stored parts of a page. In format 3 they follow each other, in format 1 each has a span of its own.
func (p *StoredPage) Pieces(b [][]byte) (data, rowids, runs []byte, err error) {
	if p.Spans > 1 {
		data = b[0]
		if i := 1; p.RowidLen > 0 {
			rowids = b[i]
			i++
			if p.RleLen > 0 {
				runs = b[i]
			}
		} else if p.RleLen > 0 {
			runs = b[1]
		}
		return data, rowids, runs, nil
	}
	d, r := int64(p.DataLen), int64(p.DataLen)+int64(p.RowidLen)
	if d < 0 || p.RowidLen < 0 || p.RleLen < 0 || r+int64(p.RleLen) > int64(len(b[0])) {
		return nil, nil, nil, fault.Rel(0, 0, "data_page_length",
			"%d, %d and %d bytes of data, row ids and runs do not fit in %d", p.DataLen, p.RowidLen, p.RleLen,
			len(b[0]))
	}
	return b[0][:d], b[0][d:r], b[0][r : r+int64(p.RleLen)], nil
}

// Content is a page taken apart.
type Content struct {
	P      *StoredPage
	T      *format.Task
	N      int                // entries; -1 not known
	Raw    []byte             // the values, decompressed; runs spelled out
	rowids []uint32           // entry i of raw is entry rowids[i] of the page; nil: they are in order
	Nulls  []byte             // bit set: null (Java's BitSet, least significant bit first, no bits after the last one)
	meta   layout.EncoderMeta // of pages that have one
	own    bool               // it has one
}

// Relative makes an error of a structure that was kept apart one without a place.
func Relative(err error) error {
	if e, ok := err.(*fault.Error); ok {
		out := *e
		out.At = fault.Span{}
		return &out
	}
	return err
}

// nullsWithin checks that no null is after the last entry.
func (c *Content) nullsWithin(n int) error {
	if k := len(c.Nulls); k > 0 {
		if last := 8*(k-1) + bits.Len8(c.Nulls[k-1]) - 1; last >= n {
			return fault.Rel(0, 0, "presence", "entry %d is null, there are %d", last, n)
		}
	}
	return nil
}

func shorts(b []byte, a *vec.Arena) []uint32 {
	out := a.Uint32s(len(b) / 2)
	for i := range out {
		out[i] = uint32(binary.BigEndian.Uint16(b[2*i:]))
	}
	return out
}

// permutation spells row ids out. starts are the positions in ids where a run from one id to the next begins.
func permutation(ids, starts []uint32, n int, a *vec.Arena) ([]uint32, error) {
	bad := func(format string, args ...any) ([]uint32, error) {
		return nil, fault.Rel(0, 0, "rowid", format, args...)
	}
	if n < 0 || n > MaxPageRows {
		return bad("row ids for %d entries", n)
	}
	out := a.Uint32s(n)
	seen := a.Bytes((n + 7) / 8)
	clear(seen)
	k, s := 0, 0
	for i := 0; i < len(ids); i++ {
		from, to := ids[i], ids[i]
		if s < len(starts) && starts[s] == uint32(i) {
			if i+1 >= len(ids) {
				return bad("a run begins at the last id")
			}
			s++
			i++
			to = ids[i]
		}
		if to < from || uint64(to) >= uint64(n) || int64(to-from) >= int64(n-k) {
			return bad("rows %d to %d of %d", from, to, n)
		}
		for r := from; r <= to; r++ {
			if seen[r>>3]>>(r&7)&1 != 0 {
				return bad("row %d is there twice", r)
			}
			seen[r>>3] |= 1 << (r & 7)
			out[k] = r
			k++
		}
	}
	if k != n || s != len(starts) {
		return bad("%d row ids for %d entries, %d of %d runs", k, n, s, len(starts))
	}
	return out, nil
}

// setCount knows how many entries there are: as many as asked for, or as many as there are values of width w.
func (c *Content) setCount(w int) error {
	if c.N < 0 {
		c.N = len(c.Raw) / w
	}
	if len(c.Raw) != c.N*w {
		return fault.Rel(0, 0, "", "%d bytes of values, %d entries of %d bytes have %d", len(c.Raw), c.N, w, c.N*w)
	}
	return c.nullsWithin(c.N)
}

// inOrder brings values of w bytes into the order of the rows.
func (c *Content) inOrder(w int) []byte {
	if c.rowids == nil {
		return c.Raw
	}
	out := c.T.Scratch.Bytes(len(c.Raw))
	for i, r := range c.rowids {
		copy(out[int(r)*w:int(r)*w+w], c.Raw[i*w:])
	}
	return out
}

// setNulls clears the validity of the entries from at on that the bits of the nulls name.
func (c *Content) setNulls(dst *vec.Vector, at int) {
	if len(c.Nulls) == 0 {
		return
	}
	valid := dst.Validity()
	k := 0
	for i, x := range c.Nulls {
		for ; x != 0; x &= x - 1 {
			r := at + 8*i + bits.TrailingZeros8(x)
			valid[r>>3] &^= 1 << (r & 7)
			k++
		}
	}
	dst.AddNulls(k)
}

func (c *Content) unknown(dst *vec.Vector) error {
	return fault.Unsupportedf(fault.Span{}, "encoders", "%s of %s as %s, wanted as %s", c.P.Encoders, c.meta.Schema,
		c.meta.Store, dst.Type)
}

// nullRule says which entries are null: strings by their text, what is null by the bits, and, in lists and
// structs, binary values without bytes.
func (c *Content) nullRule() func(i int, v []byte) bool {
	bit := func(i int) bool { return i>>3 < len(c.Nulls) && c.Nulls[i>>3]>>(i&7)&1 != 0 }
	text := c.P.Col.Typ != layout.TypeBinary
	child := c.P.Col.Parent != nil
	if c.P.Col.Typ == layout.TypeDate {
		return func(i int, v []byte) bool { return len(v) == 0 || string(v) == nullDate || c.Nulls != nil && bit(i) }
	}
	return func(i int, v []byte) bool {
		return text && string(v) == schema.NullText || child && !text && len(v) == 0 || c.Nulls != nil && bit(i)
	}
}

// nullDate is the code for null with its sign turned, as lists and structs keep dates.
const nullDate = "\x80\x00\x00\x01"
