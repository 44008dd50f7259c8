// Package pb reads and writes the wire form of Protocol Buffers, field by field and without descriptors.
//
// A message is read through a wire.Cursor, so that the parser that decodes it also describes it and locates errors in
// it. Fields may come in any order; if a singular field is repeated, the last one counts; unknown fields are skipped,
// as the format requires.
package pb

import (
	"encoding/binary"
	"math"
	"strconv"

	"stoa/region"
	"stoa/wire"
)

// Wire is the form of a field's value.
type Wire uint8

const (
	Varint  Wire = 0
	Fixed64 Wire = 1
	Bytes   Wire = 2 // bytes, strings, messages, packed numbers
	Fixed32 Wire = 5
)

func (w Wire) String() string {
	switch w {
	case Varint:
		return "varint"
	case Fixed64:
		return "fixed64"
	case Bytes:
		return "bytes"
	case Fixed32:
		return "fixed32"
	}
	return "wire type " + strconv.Itoa(int(w))
}

// Reader walks the fields of one message:
//
//	for r := pb.NewReader(c); r.Next(); {
//		switch r.Field() {
//		case 1:
//			m.rows = r.Uint("rows")
//		default:
//			r.Unknown()
//		}
//	}
//	return m, c.Err()
//
// After Next, exactly one of the methods that read a value must be called; errors are kept by the cursor.
type Reader struct {
	c     *wire.Cursor
	field int
	wire  Wire
	head  int // bytes of the tag, and of the length if there is one
	size  int // bytes of the value
	value uint64
}

// Estimated memory of a message, of a run of bytes (besides the bytes themselves), and of a number, spent from the
// cursor's budget because any of them may be repeated very often in a list. If a message is decoded to something
// larger, its parser spends the difference.
const (
	perMessage = 64
	perBytes   = 32
	perNumber  = 8
)

// NewReader reads the rest of c as one message.
func NewReader(c *wire.Cursor) *Reader { return &Reader{c: c} }

// Next reads the tag of the next field. It returns false at the end and after an error.
func (r *Reader) Next() bool {
	if r.c.Err() != nil || r.c.Left() == 0 {
		return false
	}
	rest := r.c.Rest()
	tag, n := binary.Uvarint(rest)
	if n <= 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return r.fail(max(n, 1), "not a field tag")
	}
	r.field, r.wire, r.head = int(tag>>3), Wire(tag&7), n
	rest = rest[n:]
	switch r.wire {
	case Varint:
		r.value, r.size = binary.Uvarint(rest)
		if r.size <= 0 {
			return r.fail(n, "field %d: not a varint of at most 64 bits", r.field)
		}
		return true
	case Fixed64:
		if r.size = 8; len(rest) >= 8 {
			r.value = binary.LittleEndian.Uint64(rest)
			return true
		}
	case Fixed32:
		if r.size = 4; len(rest) >= 4 {
			r.value = uint64(binary.LittleEndian.Uint32(rest))
			return true
		}
	case Bytes:
		v, k := binary.Uvarint(rest)
		if k <= 0 {
			return r.fail(n, "field %d: its length is not a varint", r.field)
		}
		if v <= uint64(len(rest)-k) {
			r.head, r.size = n+k, int(v)
			return true
		}
		return r.fail(n+k, "field %d: %d bytes are declared, %d are left", r.field, v, len(rest)-k)
	default:
		return r.fail(n, "field %d: %s is not used", r.field, r.wire)
	}
	return r.fail(n, "field %d: %d bytes are needed, %d are left", r.field, r.size, len(rest))
}

func (r *Reader) fail(n int, format string, args ...any) bool {
	r.c.Fail(r.c.Pos(), n, "", format, args...)
	return false
}

// Field returns the number of the field that Next found.
func (r *Reader) Field() int { return r.field }

// Wire returns the form of that field.
func (r *Reader) Wire() Wire { return r.wire }

// is checks the form of the value.
func (r *Reader) is(name string, want Wire) bool {
	if r.wire == want {
		return true
	}
	r.c.Fail(r.c.Pos(), r.head+r.size, name, "field %d is a %s, not a %s", r.field, r.wire, want)
	return false
}

// done reports the field to the tracer and moves past it.
func (r *Reader) done(name, value string) {
	r.c.Node(region.Data, r.c.Pos(), r.head+r.size, name, value)
	r.c.Skip(name, r.head+r.size)
}

// Uint reads a varint.
func (r *Reader) Uint(name string) uint64 {
	if !r.is(name, Varint) {
		return 0
	}
	r.c.Spend(perNumber)
	r.done(name, strconv.FormatUint(r.value, 10))
	return r.value
}

// Uint32 reads a varint that must fit in 32 bits.
func (r *Reader) Uint32(name string) uint32 {
	if r.wire == Varint && r.value > math.MaxUint32 {
		r.c.Fail(r.c.Pos(), r.head+r.size, name, "%d does not fit 32 bits", r.value)
		return 0
	}
	return uint32(r.Uint(name))
}

// Int reads a varint as a signed number of 64 bits.
func (r *Reader) Int(name string) int64 {
	if !r.is(name, Varint) {
		return 0
	}
	r.c.Spend(perNumber)
	r.done(name, strconv.FormatInt(int64(r.value), 10))
	return int64(r.value)
}

// Int32 reads a varint as a signed number, or an enum, of 32 bits.
func (r *Reader) Int32(name string) int32 {
	if v := int64(r.value); r.wire == Varint && (v < math.MinInt32 || v > math.MaxInt32) {
		r.c.Fail(r.c.Pos(), r.head+r.size, name, "%d does not fit 32 bits", v)
		return 0
	}
	return int32(r.Int(name))
}

// Enum is Int32 for an enum; text returns the name of a value for traces.
func (r *Reader) Enum(name string, text func(int32) string) int32 {
	v := int64(r.value)
	if r.wire != Varint || v < math.MinInt32 || v > math.MaxInt32 {
		return r.Int32(name)
	}
	r.done(name, text(int32(v)))
	return int32(v)
}

// Bool reads a varint.
func (r *Reader) Bool(name string) bool {
	if !r.is(name, Varint) {
		return false
	}
	r.done(name, strconv.FormatBool(r.value != 0))
	return r.value != 0
}

// Fixed64 reads eight bytes.
func (r *Reader) Fixed64(name string) uint64 {
	if !r.is(name, Fixed64) {
		return 0
	}
	r.c.Spend(perNumber)
	r.done(name, strconv.FormatUint(r.value, 10))
	return r.value
}

// Fixed32 reads four bytes.
func (r *Reader) Fixed32(name string) uint32 {
	if !r.is(name, Fixed32) {
		return 0
	}
	r.done(name, strconv.FormatUint(r.value, 10))
	return uint32(r.value)
}

// Bytes reads a run of bytes, which aliases the cursor's bytes.
func (r *Reader) Bytes(name string) []byte {
	if !r.is(name, Bytes) {
		return nil
	}
	b := r.c.Rest()[r.head : r.head+r.size]
	r.done(name, quote(b))
	r.c.Spend(perBytes + int64(len(b)))
	return b
}

// String reads a run of bytes as a string.
func (r *Reader) String(name string) string { return string(r.Bytes(name)) }

// Message reads a message: it returns a cursor over its bytes. After reading it, call Join to propagate its error.
func (r *Reader) Message(name string) *wire.Cursor {
	if !r.is(name, Bytes) {
		return r.c.Section(name, 0)
	}
	r.c.Node(region.Struct, r.c.Pos(), r.head+r.size, name, "")
	r.c.Spend(perMessage)
	s := r.c.Section(name, r.head+r.size)
	s.Bytes("tag", r.head)
	return s
}

// Join passes the error of a message on to the cursor of the enclosing message.
func (r *Reader) Join(message *wire.Cursor) { r.c.Join(message) }

// Unknown moves past a field that has no meaning here.
func (r *Reader) Unknown() { r.done("field "+strconv.Itoa(r.field), "not known") }

// quote formats the beginning of b.
func quote(b []byte) string {
	const maxQuoted = 48
	if len(b) > maxQuoted {
		return strconv.Quote(string(b[:maxQuoted])) + "…"
	}
	return strconv.Quote(string(b))
}
