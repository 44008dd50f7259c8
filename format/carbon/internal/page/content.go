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

// MaxPageRows is more than the rows that any writer puts in a page: up to 32,000 in format 3, and carbon.blocklet.size,
// at most 12,000,000, in formats 1 and 2.
const MaxPageRows = 1 << 24

// MaxPageRows3 is more than the 32,000 rows that a page of format 3 may have: its row ids are i16.
const MaxPageRows3 = 1 << 16

// StoredPage is an encoded page, with what is needed to decode it.
type StoredPage struct {
	*layout.DataChunk
	Col       *schema.Column // of the file
	Version   int
	Rows      int64      // of the top-level column
	Coded     bool       // the values are codes of the chunk's local dictionary
	Global    bool       // the values are codes of the column's global dictionary
	Widths    *KeyWidths // formats 1 and 2
	Limits    format.Limits
	Spans     int          // number of spans of this page, which come first in the task
	Dates     DateRule     // direct dictionaries
	NullCodes []uint32     // page of codes inside a list or struct: the codes that mean null
	Below     []StoredPage // list or struct: the pages from which its nulls are derived
}

// Pieces splits a page into its parts. In formats 2 and 3 they are adjacent in one span; in format 1 each has a span of
// its own.
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
			"data (%d), row ids (%d) and runs (%d) do not fit in the %d bytes of the page", p.DataLen, p.RowidLen,
			p.RleLen, len(b[0]))
	}
	return b[0][:d], b[0][d:r], b[0][r : r+int64(p.RleLen)], nil
}

// Content is a page after decompression.
type Content struct {
	P      *StoredPage
	T      *format.Task
	N      int                // entries; -1: unknown
	Raw    []byte             // the values, decompressed and with runs expanded
	rowids []uint32           // entry i of Raw is entry rowids[i] of the page; nil: already in row order
	Nulls  []byte             // bit set: null (Java's BitSet, least significant bit first, without trailing zeros)
	meta   layout.EncoderMeta // valid if own
	own    bool               // the page has encoder_meta
}

// Relative removes the place from an error whose structure is really elsewhere, so that the caller can set the right
// place.
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
			return fault.Rel(0, 0, "presence", "entry %d of %d is null", last, n)
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

// permutation expands row ids to a permutation of 0…n-1. starts are the positions in ids at which a run begins: the id
// there is the first row of the run, and the next id is its last row.
func permutation(ids, starts []uint32, n int, a *vec.Arena) ([]uint32, error) {
	bad := func(format string, args ...any) ([]uint32, error) {
		return nil, fault.Rel(0, 0, "rowid", format, args...)
	}
	if n < 0 || n > MaxPageRows {
		return bad("expected row ids for at most %d entries, found %d", MaxPageRows, n)
	}
	out := a.Uint32s(n)
	seen := a.Bytes((n + 7) / 8)
	clear(seen)
	k, s := 0, 0
	for i := 0; i < len(ids); i++ {
		from, to := ids[i], ids[i]
		if s < len(starts) && starts[s] == uint32(i) {
			if i+1 >= len(ids) {
				return bad("a run starts at the last id")
			}
			s++
			i++
			to = ids[i]
		}
		if to < from || uint64(to) >= uint64(n) || int64(to-from) >= int64(n-k) {
			return bad("expected rows below %d, found %d to %d", n, from, to)
		}
		for r := from; r <= to; r++ {
			if seen[r>>3]>>(r&7)&1 != 0 {
				return bad("row %d appears twice", r)
			}
			seen[r>>3] |= 1 << (r & 7)
			out[k] = r
			k++
		}
	}
	if k != n || s != len(starts) {
		return bad("expected %s and %d runs, found %d and %d", fault.Count(n, "row"), len(starts), k, s)
	}
	return out, nil
}

// setCount checks that Raw has N values of w bytes; an unknown N is set to their number.
func (c *Content) setCount(w int) error {
	if c.N < 0 {
		c.N = len(c.Raw) / w
	}
	if len(c.Raw) != c.N*w {
		return fault.Rel(0, 0, "", "expected %d bytes for %s of %d, found %d", c.N*w, fault.Count(c.N, "value"), w,
			len(c.Raw))
	}
	return c.nullsWithin(c.N)
}

// inOrder returns Raw, which has values of w bytes, in row order.
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

// setNulls sets the page's null entries in dst, where entry at is the page's first.
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
	return fault.Unsupportedf(fault.Span{}, "encoders", "%s of type %s, stored as %s, for a column of type %s",
		c.P.Encoders, c.meta.Schema, c.meta.Store, dst.Type)
}

// nullRule returns a function that reports whether a value is null: it is marked in the null bits, is a string equal to
// NullText, a date that is nullDate or empty, or, in lists and structs, an empty binary.
func (c *Content) nullRule() func(i int, v []byte) bool {
	bit := func(i int) bool { return i>>3 < len(c.Nulls) && c.Nulls[i>>3]>>(i&7)&1 != 0 }
	text := c.P.Col.Type != layout.TypeBinary
	child := c.P.Col.Parent != nil
	if c.P.Col.Type == layout.TypeDate {
		return func(i int, v []byte) bool { return len(v) == 0 || string(v) == nullDate || c.Nulls != nil && bit(i) }
	}
	return func(i int, v []byte) bool {
		return text && string(v) == schema.NullText || child && !text && len(v) == 0 || c.Nulls != nil && bit(i)
	}
}

// nullDate is the code of null with its sign bit inverted, as dates are stored in lists and structs.
const nullDate = "\x80\x00\x00\x01"
