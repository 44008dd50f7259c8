// Package wire reads and writes the primitive fields of binary structures.
//
// A Cursor makes named, bounds-checked reads and can report what it reads to a tracer, so that one parser serves
// decoding, describing and locating damage. It keeps the first error, as bufio.Scanner does: a parser reads field after
// field and checks Err once; after an error every read returns zero.
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

// Cursor reads from buf, which lies at a Span of an object or was decoded from the bytes there.
type Cursor struct {
	buf   []byte
	pos   int
	at    fault.Span
	exact bool // buf is the bytes at; otherwise it was decoded from them
	base  int  // offset of buf in the decoded bytes, if not exact
	path  string
	err   error

	depth int
	trace func(region.Node)

	memory *budget.Memory
}

// NewCursor returns a cursor over buf, which is exactly the bytes at.
func NewCursor(buf []byte, at fault.Span, path string) *Cursor {
	return &Cursor{buf: buf, at: at, exact: true, path: path}
}

// NewInnerCursor returns a cursor over buf, which was decoded (decompressed) from the bytes at. Errors and nodes have
// all of at as their place, and report the offset in buf.
func NewInnerCursor(buf []byte, at fault.Span, path string) *Cursor {
	return &Cursor{buf: buf, at: at, path: path}
}

// Trace makes every field that is read from now on be reported to f (nil: not at all), at the given depth.
func (c *Cursor) Trace(f func(region.Node), depth int) *Cursor {
	c.trace, c.depth = f, depth
	return c
}

// Within makes Spend, including that of sections, count against m; nil, the default, is unlimited.
func (c *Cursor) Within(m *budget.Memory) *Cursor {
	c.memory = m
	return c
}

// Spend charges n bytes of memory to the budget, for data that is being read. Exceeding the budget is an error of class
// Limit.
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

// Pos returns the offset of the next byte, from the beginning of the cursor's bytes.
func (c *Cursor) Pos() int { return c.pos }

// Left returns the number of unread bytes.
func (c *Cursor) Left() int { return len(c.buf) - c.pos }

// Rest returns the unread bytes. It does not move the cursor.
func (c *Cursor) Rest() []byte { return c.buf[c.pos:] }

// Err returns the first error.
func (c *Cursor) Err() error { return c.err }

// Path returns the path of field name.
func (c *Cursor) Path(name string) string {
	switch {
	case c.path == "":
		return name
	case name == "":
		return c.path
	}
	return c.path + "." + name
}

// SpanOf returns the place in the object of n bytes at offset off of the cursor's bytes.
func (c *Cursor) SpanOf(off, n int) fault.Span {
	if c.exact {
		return c.at.Sub(int64(off), int64(n))
	}
	return c.at
}

// Fail records that field name, n bytes at offset off, is corrupt, unless an error was recorded before.
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

// take consumes and returns n bytes; nil after an error.
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

// Length reads an unsigned LEB128 that is a number of bytes, which must not exceed the unread ones.
func (c *Cursor) Length(name string) int {
	off := c.pos
	v := c.Uvarint(name)
	if c.err == nil && v > uint64(c.Left()) {
		c.Fail(off, c.pos-off, name, "%d bytes are declared, %d are left", v, c.Left())
		return 0
	}
	return int(v)
}

// Bytes reads n bytes. The slice aliases the cursor's bytes.
func (c *Cursor) Bytes(name string, n int) []byte {
	b := c.take(name, n)
	if b != nil && c.trace != nil {
		c.Node(region.Data, c.pos-n, n, name, "")
	}
	return b
}

// Skip skips n bytes without reporting them.
func (c *Cursor) Skip(name string, n int) { c.take(name, n) }

// Section returns a cursor over the next n bytes, and skips them. An error in the section is not recorded in c; see
// Join.
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

// Join records the error of a section in c, unless c has one already.
func (c *Cursor) Join(section *Cursor) {
	if c.err == nil {
		c.err = section.err
	}
}
