package block

import (
	"encoding/binary"
	"fmt"
	"math"

	"stoa/internal/pb"
	"stoa/wire"
)

// IndexNode is a node of an index tree:
//
//	entries         each: key_length varint, key, offset varint, size varint
//	entry_offsets   u32 each: offsets of the entries
//	trailer         IndexBlockTrailerPB: num_entries (1), type (2): 0 leaf, 1 internal
//	trailer_length  u32
//
// The key of an entry is the first key of the block it points to. In a positional index it is the ordinal as four
// big-endian bytes; in a value index it is the value, encoded so that bytes compare as values do, and possibly
// truncated.
type IndexNode struct {
	Block Block
	Leaf  bool
	N     int
	body  int // bytes of the entries
	offs  []byte

	Entries []IndexEntry // all entries if they have been parsed, else nil
}

// IndexEntry is an entry of an IndexNode.
type IndexEntry struct {
	Key []byte
	Ptr BlockPtr
}

// ParseIndexBlock reads the trailer of an index block, which c holds exactly. Entries are read on demand by Entry; if
// traced is true all of them are read here for the tracer.
func ParseIndexBlock(c *wire.Cursor, traced bool) (x IndexNode) {
	all := c.Rest()
	if len(all) < 4 {
		c.Fail(0, len(all), "trailer_length", "4 bytes are needed, %d are left", len(all))
		return x
	}
	end := len(all) - 4
	size := Le32(all[end:])
	if uint64(size) > uint64(end) {
		c.Fail(end, 4, "trailer_length", "%d bytes are declared, %d are left", size, end)
		return x
	}
	at := end - int(size)
	first := wire.NewInnerCursor(all[at:end], c.SpanOf(at, end-at), "")
	if x.N, x.Leaf = parseIndexTrailer(first); first.Err() != nil {
		c.Skip("", at)
		t := Part(c, "trailer", end-at)
		parseIndexTrailer(t)
		c.Join(t)
		return x
	}
	if x.N < 0 || x.N > at/7 { // an entry takes three bytes and its offset four
		c.Fail(at, end-at, "trailer.num_entries", "%d entries in %d bytes", x.N, at)
		return x
	}
	x.body = at - 4*x.N
	x.offs = all[x.body:at]
	if x.N == 0 && x.body > 0 { // with entries, those that are not counted are bytes after the last one
		c.Fail(at, end-at, "trailer.num_entries", "0 entries, but %d bytes are there", x.body)
		return x
	}
	if traced {
		x.traceEntries(c)
	}
	if c.Pos() < x.body {
		c.Bytes("entries", x.body-c.Pos())
	}
	c.Bytes("entry_offsets", 4*x.N)
	t := Part(c, "trailer", end-at)
	parseIndexTrailer(t)
	c.Join(t)
	c.U32("trailer_length")
	return x
}

// parseIndexTrailer reads an IndexBlockTrailerPB. n is -1 if it has no number of entries.
func parseIndexTrailer(c *wire.Cursor) (n int, leaf bool) {
	n, kind := -1, int32(-1)
	for r := pb.NewReader(c); r.Next(); {
		switch r.Field() {
		case 1:
			n = int(r.Int32("num_entries"))
		case 2:
			kind = r.Enum("type", func(v int32) string {
				switch v {
				case 0:
					return "leaf"
				case 1:
					return "internal"
				}
				return fmt.Sprint(v)
			})
		default:
			r.Unknown()
		}
	}
	if kind != 0 && kind != 1 {
		c.Fail(0, c.Pos(), "type", "expected leaf (0) or internal (1), found %d", kind)
	}
	return n, kind == 0
}

// traceEntries reads the entries for a tracer, up to the first one that is not adjacent to the one before.
func (x *IndexNode) traceEntries(c *wire.Cursor) {
	for i := 0; i < x.N; i++ {
		from, to, reason := x.bounds(i)
		if reason != "" || from != c.Pos() {
			break
		}
		s := Part(c, fmt.Sprintf("entry[%d]", i), to-from)
		parseIndexEntry(s)
		c.Join(s)
	}
}

// bounds returns the byte range of entry i in the block, or the reason why it has no valid one.
func (x *IndexNode) bounds(i int) (from, to int, reason string) {
	a, b := uint64(Le32(x.offs[4*i:])), uint64(x.body)
	if i+1 < x.N {
		b = uint64(Le32(x.offs[4*i+4:]))
	}
	switch {
	case i == 0 && a != 0:
		return 0, 0, fmt.Sprintf("expected the first entry at 0, found %d", a)
	case a > b || b > uint64(x.body):
		return 0, 0, fmt.Sprintf("%d to %d of %d", a, b, x.body)
	}
	return int(a), int(b), ""
}

// Entry returns entry i. Bytes between its last field and the next entry are an error.
func (x *IndexNode) Entry(i int) (IndexEntry, error) {
	if x.Entries != nil {
		return x.Entries[i], nil
	}
	c := x.Block.Cursor("")
	from, to, reason := x.bounds(i)
	if reason != "" {
		c.Fail(x.body+4*i, 4, fmt.Sprintf("entry_offsets[%d]", i), "%s", reason)
		return IndexEntry{}, c.Err()
	}
	c.Skip("", from)
	s := c.Section(fmt.Sprintf("entry[%d]", i), to-from)
	e := parseIndexEntry(s)
	return e, s.Err()
}

// parseIndexEntry reads one entry, which c holds exactly.
func parseIndexEntry(c *wire.Cursor) (e IndexEntry) {
	e.Key = c.Bytes("key", c.Length("key_length"))
	off := c.Uvarint("offset")
	e.Ptr.Size = int64(c.Uvarint32("size"))
	switch {
	case off > math.MaxInt64:
		c.Fail(0, c.Pos(), "offset", "%d", off)
	case c.Left() > 0:
		c.Fail(c.Pos(), c.Left(), "", "%d bytes are left", c.Left())
	}
	e.Ptr.Offset = int64(off)
	return e
}

// Ordinal decodes the key of an entry of a positional index; ok is false if the key is not four bytes long.
func (e *IndexEntry) Ordinal() (n int64, ok bool) {
	if len(e.Key) != 4 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint32(e.Key)), true
}

// PositionKey returns the key of ordinal n, which must fit 32 bits.
func PositionKey(n int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
