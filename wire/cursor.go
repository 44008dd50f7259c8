// Package wire reads and writes the primitive fields of binary structures.
//
// A Cursor gives named, bounds-checked reads and can tell a tracer what it read, so that one parser serves
// decoding, describing and blaming. It keeps the first error, as bufio.Scanner does: a parser reads field
// after field and looks at Err once; after an error every read gives zero.
package wire

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"

	"stoa/fault"
	"stoa/internal/budget"
	"stoa/region"
)

// Cursor reads from buf, which lies at a Span of an object or was decoded from it.
type Cursor struct {
	buf   []byte
	pos   int
	at    fault.Span
	exact bool // buf is at's bytes; otherwise it was decoded from them
	base  int  // offset of buf in the decoded bytes, if not exact
	path  string
	err   error

	depth int
	trace func(region.Node)

	memory *budget.Memory
}

// NewCursor reads buf, which is exactly the bytes at.
func NewCursor(buf []byte, at fault.Span, path string) *Cursor {
	return &Cursor{buf: buf, at: at, exact: true, path: path}
}

// NewInnerCursor reads buf, which was decoded (decompressed) from the bytes at. Errors and nodes name all of at,
// and tell the offset in buf.
func NewInnerCursor(buf []byte, at fault.Span, path string) *Cursor {
	return &Cursor{buf: buf, at: at, path: path}
}

// Trace has every field that is read from now on reported to f (nil: to nobody), at the given depth.
func (c *Cursor) Trace(f func(region.Node), depth int) *Cursor {
	c.trace, c.depth = f, depth
	return c
}

// Within has Spend count against m, also that of sections; nil, as at first, has no end.
func (c *Cursor) Within(m *budget.Memory) *Cursor {
	c.memory = m
	return c
}

// Spend counts n bytes of memory that what is read takes. More than the budget has is an error of class Limit.
func (c *Cursor) Spend(n int64) {
	if c.memory == nil || c.err != nil {
		return
	}
	if over := c.memory.Over(n); over != "" {
		c.FailClass(fault.Limit, c.pos, 0, "", "%s", over)
	}
}

// Exact reports whether offsets in the cursor's bytes are offsets in the object.
func (c *Cursor) Exact() bool { return c.exact }

// Pos is the offset of the next byte, from the beginning of the cursor's bytes.
func (c *Cursor) Pos() int { return c.pos }

// Left is the number of bytes not yet read.
func (c *Cursor) Left() int { return len(c.buf) - c.pos }

// Rest is what was not yet read. It does not move the cursor.
func (c *Cursor) Rest() []byte { return c.buf[c.pos:] }

// Err is the first error.
func (c *Cursor) Err() error { return c.err }

// Path is the path of field name.
func (c *Cursor) Path(name string) string {
	switch {
	case c.path == "":
		return name
	case name == "":
		return c.path
	}
	return c.path + "." + name
}

// SpanOf is the place in the object of n bytes at offset off of the cursor's bytes.
func (c *Cursor) SpanOf(off, n int) fault.Span {
	if c.exact {
		return c.at.Sub(int64(off), int64(n))
	}
	return c.at
}

// Fail records that field name, n bytes at offset off, is corrupt, unless there was an error before.
func (c *Cursor) Fail(off, n int, name, format string, args ...any) {
	c.FailClass(fault.Corrupt, off, n, name, format, args...)
}

// FailClass is Fail for another class.
func (c *Cursor) FailClass(class fault.Class, off, n int, name, format string, args ...any) {
	if c.err != nil {
		return
	}
	reason := fmt.Sprintf(format, args...)
	if !c.exact {
		reason += fmt.Sprintf(" (byte %d of the decoded block)", c.base+off)
	}
	c.err = fault.New(class, c.SpanOf(off, n), c.Path(name), "%s", reason)
}

// Node reports the n bytes at offset off to the tracer.
func (c *Cursor) Node(kind region.Kind, off, n int, name, value string) {
	if c.trace == nil {
		return
	}
	inner := int64(-1)
	if !c.exact {
		inner = int64(c.base + off)
	}
	c.trace(region.Node{Depth: c.depth, Kind: kind, Name: name, Value: value, At: c.SpanOf(off, n), Inner: inner})
}

// take moves over n bytes; nil after an error.
func (c *Cursor) take(name string, n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > c.Left() {
		c.Fail(c.pos, c.Left(), name, "%d bytes are needed, %d are left", n, c.Left())
		return nil
	}
	b := c.buf[c.pos : c.pos+n]
	c.pos += n
	return b
}

func (c *Cursor) unsigned(name string, n int, v uint64) {
	if c.trace != nil && c.err == nil {
		c.Node(region.Data, c.pos-n, n, name, strconv.FormatUint(v, 10))
	}
}

// U8 reads one byte.
func (c *Cursor) U8(name string) uint8 {
	b := c.take(name, 1)
	if b == nil {
		return 0
	}
	c.unsigned(name, 1, uint64(b[0]))
	return b[0]
}

// U32 reads four bytes, little-endian.
func (c *Cursor) U32(name string) uint32 {
	b := c.take(name, 4)
	if b == nil {
		return 0
	}
	v := binary.LittleEndian.Uint32(b)
	c.unsigned(name, 4, uint64(v))
	return v
}

// U32BE reads four bytes, big-endian.
func (c *Cursor) U32BE(name string) uint32 {
	b := c.take(name, 4)
	if b == nil {
		return 0
	}
	v := binary.BigEndian.Uint32(b)
	c.unsigned(name, 4, uint64(v))
	return v
}

// U64 reads eight bytes, little-endian.
func (c *Cursor) U64(name string) uint64 {
	b := c.take(name, 8)
	if b == nil {
		return 0
	}
	v := binary.LittleEndian.Uint64(b)
	c.unsigned(name, 8, v)
	return v
}

// Uvarint reads an unsigned LEB128 of at most 64 bits.
func (c *Cursor) Uvarint(name string) uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.buf[c.pos:])
	if n <= 0 {
		c.Fail(c.pos, min(c.Left(), binary.MaxVarintLen64), name, "not a varint of at most 64 bits")
		return 0
	}
	c.pos += n
	c.unsigned(name, n, v)
	return v
}

// Uvarint32 reads an unsigned LEB128 that must fit 32 bits.
func (c *Cursor) Uvarint32(name string) uint32 {
	off := c.pos
	v := c.Uvarint(name)
	if v > math.MaxUint32 {
		c.Fail(off, c.pos-off, name, "%d does not fit 32 bits", v)
		return 0
	}
	return uint32(v)
}

// Length reads an unsigned LEB128 that counts bytes which must still be there.
func (c *Cursor) Length(name string) int {
	off := c.pos
	v := c.Uvarint(name)
	if c.err == nil && v > uint64(c.Left()) {
		c.Fail(off, c.pos-off, name, "%d bytes are declared, %d are left", v, c.Left())
		return 0
	}
	return int(v)
}

// Bytes reads n bytes. The slice is part of the cursor's bytes.
func (c *Cursor) Bytes(name string, n int) []byte {
	b := c.take(name, n)
	if b != nil && c.trace != nil {
		c.Node(region.Data, c.pos-n, n, name, "")
	}
	return b
}

// Skip moves over n bytes without reporting them.
func (c *Cursor) Skip(name string, n int) { c.take(name, n) }

// Section is a cursor over the next n bytes, which it moves over. An error in the section stays in the section.
func (c *Cursor) Section(name string, n int) *Cursor {
	off := c.pos
	b := c.take(name, n)
	s := &Cursor{buf: b, at: c.at, exact: c.exact, base: c.base + off, path: c.Path(name), err: c.err,
		depth: c.depth + 1, trace: c.trace, memory: c.memory}
	if c.exact {
		s.at = c.at.Sub(int64(off), int64(len(b)))
	}
	return s
}

// Join takes over the error of a section, unless there was one before.
func (c *Cursor) Join(section *Cursor) {
	if c.err == nil {
		c.err = section.err
	}
}
