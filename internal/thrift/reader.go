package thrift

import (
	"encoding/binary"
	"iter"
	"math"
	"strconv"

	"stoa/fault"
	"stoa/region"
	"stoa/wire"
)

// Reader reads structs. A struct is parsed by a function with a switch over its fields:
//
//	func parseKeyValue(r *thrift.Reader, name string) (kv keyValue) {
//		for r.Struct(name); r.Next(); {
//			switch r.Field() {
//			case 1:
//				kv.key = r.String("key")
//			case 2:
//				kv.value = r.String("value")
//			}
//		}
//		return kv
//	}
//
//	case 5:
//		for range r.List("key_value_metadata", thrift.Struct) {
//			m.pairs = append(m.pairs, parseKeyValue(r, ""))
//		}
//
// Each field and each element of a list is read by one call of the method of its type; values that are not read are
// skipped and reported as unknown. The outermost struct also begins with Struct. The cursor keeps the first error:
// after it, Next returns false and values are zero, so a parser returns what it understood, and its caller checks Err.
type Reader struct {
	c     *wire.Cursor
	p     Protocol
	stack []frame

	// The pending value: that of a field or of an element.
	due   bool
	id    int16
	typ   Type
	head  int  // size of the field's head, which begins at the cursor
	truth bool // value of a compact bool field
	short bool // more bytes might remove the error
	cut   bool // see Cut
}

// frame is a struct, list or map that is being read.
type frame struct {
	name  string
	index int // of the pending element of a list or map
	count int // of its elements
	last  int16
	seen  uint64 // a bit for each field below 64 that was read
	list  bool
	then  Type // type of the value that follows the pending key of a map's entry
}

// NewReader returns a Reader from c. It reads any number of structs, one after the other; see Reset.
func NewReader(c *wire.Cursor, p Protocol) *Reader { return &Reader{c: c, p: p} }

// Reset makes r read from another cursor.
func (r *Reader) Reset(c *wire.Cursor) {
	*r = Reader{c: c, p: r.p, stack: r.stack[:0], cut: r.cut}
}

// Cut makes r accept input that was cut off: a list may have more elements than the bytes that are left can hold. Those
// that are left are read, and the one that is cut is the error.
func (r *Reader) Cut() { r.cut = true }

// Len returns the number of elements that the innermost open list or map declares.
func (r *Reader) Len() int {
	if len(r.stack) == 0 {
		return 0
	}
	return r.stack[len(r.stack)-1].count
}

// Memory in bytes that a struct and an element of a list are assumed to need, since one byte of a file may be a whole
// struct. It is charged to the cursor's budget, as are the bytes of strings.
const (
	perStruct  = 192
	perElement = 48
)

// Err returns the first error, which is the cursor's.
func (r *Reader) Err() error { return r.c.Err() }

// Short reports whether the error is that the bytes end early, so that with more bytes there might be no error.
func (r *Reader) Short() bool { return r.short }

// Field returns the number of the field that Next found.
func (r *Reader) Field() int { return int(r.id) }

// Type returns the type of the pending value as stored.
func (r *Reader) Type() Type { return r.typ }

// path returns the path of field name within the open structs.
func (r *Reader) path(name string) string {
	p := ""
	for _, f := range r.stack {
		p = join(p, f.name)
		if f.list {
			p += "[" + strconv.Itoa(f.index) + "]"
		}
	}
	return join(p, name)
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "." + b
}

// label returns the name that Describe shows: an element without a name is shown by its index.
func (r *Reader) label(name string) string {
	if name == "" && len(r.stack) > 0 {
		if f := &r.stack[len(r.stack)-1]; f.list {
			return "[" + strconv.Itoa(f.index) + "]"
		}
	}
	return name
}

func (r *Reader) fail(off, n int, name, format string, args ...any) {
	r.c.Fail(off, n, r.path(name), format, args...)
}

// Fail reports the value that was read last, the n bytes before the cursor, as corrupt.
func (r *Reader) Fail(n int, name, format string, args ...any) {
	r.fail(r.c.Pos()-n, n, name, format, args...)
}

// failAt reports an error found head bytes after the cursor.
func (r *Reader) failAt(head int, bad *parseError, name string) {
	off := r.c.Pos() + head + bad.off
	r.short = bad.short
	r.fail(off, min(1, r.c.Pos()+r.c.Left()-off), name, "%s", bad.reason)
}

// is checks that a value of type want is pending. After an error none is.
func (r *Reader) is(name string, want Type) bool {
	if r.c.Err() != nil {
		return false
	}
	if !r.due {
		r.fail(r.c.Pos(), 0, name, "no value is due") // a parser read a value twice
		return false
	}
	if r.typ != want && !(want == List && r.typ == Set) {
		r.fail(r.c.Pos(), max(r.head, 1), name, "it is a value of type %s, not %s", r.typ, want)
		return false
	}
	return true
}

// open begins a struct, list or map whose head is head bytes long: it reports the node and moves past the head.
func (r *Reader) open(name string, head int, f frame) {
	if len(r.stack) == MaxDepth {
		r.fail(r.c.Pos(), 1, name, "nested deeper than %d", MaxDepth)
		return
	}
	if r.c.Tracing() {
		n, _ := r.p.extent(r.c.Rest()[r.head:], r.typ, len(r.stack))
		r.c.Node(region.Struct, r.c.Pos(), r.head+n, r.label(name), "")
		r.c.Indent(1)
		if head > 0 {
			r.c.Node(region.Data, r.c.Pos(), head, "head", "")
		}
	}
	r.c.Skip(name, head)
	f.name = name
	r.stack = append(r.stack, f)
	r.due, r.head = false, 0
}

// close ends the innermost open frame.
func (r *Reader) close() {
	r.stack = r.stack[:len(r.stack)-1]
	if r.c.Tracing() {
		r.c.Indent(-1)
	}
	r.valueRead()
}

// Struct begins the pending struct, or the outermost one.
func (r *Reader) Struct(name string) {
	if len(r.stack) == 0 && r.c.Err() == nil {
		r.due, r.typ, r.head = true, Struct, 0
	}
	if !r.is(name, Struct) {
		return
	}
	r.open(name, r.head, frame{})
	r.c.Spend(perStruct)
}

// Next moves to the next field of the innermost struct. It returns false at the end of the struct and after an error.
func (r *Reader) Next() bool {
	if r.c.Err() != nil || len(r.stack) == 0 {
		return false
	}
	if r.due {
		r.Unknown()
		if r.c.Err() != nil {
			return false
		}
	}
	f := &r.stack[len(r.stack)-1]
	id, t, truth, n, bad := r.p.fieldHead(r.c.Rest(), f.last)
	if bad != nil {
		r.failAt(0, bad, "")
		return false
	}
	if t == Stop {
		r.c.Node(region.Data, r.c.Pos(), n, "stop", "")
		r.c.Skip("stop", n)
		r.close()
		return false
	}
	// No writer repeats a field: a stop was lost, and the fields of another struct would replace those of this one.
	if id >= 0 && id < 64 {
		bit := uint64(1) << id
		if f.seen&bit != 0 {
			r.failAt(0, malformed(0, "field %d comes twice", id), "")
			return false
		}
		f.seen |= bit
	}
	r.id, r.typ, r.truth, r.head, r.due = id, t, truth, n, true
	f.last = id
	return true
}

// List begins the pending list or set, whose elements have type elem, and yields the index of each element, which the
// loop's body reads. An empty list may declare any element type.
func (r *Reader) List(name string, elem Type) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !r.is(name, List) {
			return
		}
		t, count, n, bad := r.p.listHead(r.c.Rest()[r.head:], r.cut)
		if bad == nil && count > 0 && t != elem {
			bad = malformed(0, "elements of type %s, not %s", t, elem)
		}
		if bad != nil {
			r.failAt(r.head, bad, name)
			return
		}
		r.open(name, r.head+n, frame{list: true, count: count})
		r.items(count, t, 0, yield)
	}
}

// Map begins the pending map and yields the index of each entry: the loop's body reads the key, then the value.
func (r *Reader) Map(name string, key, value Type) iter.Seq[int] {
	return func(yield func(int) bool) {
		if !r.is(name, Map) {
			return
		}
		k, v, count, n, bad := r.p.mapHead(r.c.Rest()[r.head:])
		if bad == nil && count > 0 && (k != key || v != value) {
			bad = malformed(0, "a map from %s to %s, not from %s to %s", k, v, key, value)
		}
		if bad != nil {
			r.failAt(r.head, bad, name)
			return
		}
		r.open(name, r.head+n, frame{list: true, count: count})
		r.items(count, k, v, yield)
	}
}

// items lets the loop's body read count elements. value is the type of a map's values, which follow the keys.
func (r *Reader) items(count int, elem, value Type, yield func(int) bool) {
	at, more := len(r.stack)-1, true
	for i := 0; i < count && r.c.Err() == nil; i++ {
		if len(r.stack) != at+1 {
			r.c.FailClass(fault.Bug, r.c.Pos(), 0, r.path(""), "a struct in a list was left before its end")
			return
		}
		f := &r.stack[at]
		f.index, f.then = i, value
		if r.c.Spend(perElement); r.c.Err() != nil {
			return
		}
		r.due, r.typ, r.head, r.id = true, elem, 0, 0
		more = more && yield(i)
		for r.due && r.c.Err() == nil {
			r.Unknown()
		}
	}
	if r.c.Err() == nil {
		r.close()
	}
}

// valueRead records that the pending value was read. After the key of a map's entry, its value becomes pending.
func (r *Reader) valueRead() {
	r.due, r.head = false, 0
	if len(r.stack) == 0 {
		return
	}
	if f := &r.stack[len(r.stack)-1]; f.then != Stop {
		r.due, r.typ, f.then = true, f.then, Stop
	}
}

// take reads a value without parts and returns its bytes, without the field's head.
func (r *Reader) take(name string, t Type) (b []byte, ok bool) {
	if !r.is(name, t) {
		return nil, false
	}
	if t == Bool && r.p == Compact && r.head > 0 {
		return nil, true
	}
	rest := r.c.Rest()[r.head:]
	n, size, bad := r.p.scalar(rest, t)
	if bad != nil {
		r.failAt(r.head, bad, name)
		return nil, false
	}
	b = rest[n:size]
	r.head += n
	return b, true
}

// done reports the value that take read, and moves past it.
func (r *Reader) done(name, text string, size int) {
	r.c.Node(region.Data, r.c.Pos(), r.head+size, r.label(name), text)
	r.c.Skip(name, r.head+size)
	r.valueRead()
}

// Bool reads a bool.
func (r *Reader) Bool(name string) bool {
	b, ok := r.take(name, Bool)
	if !ok {
		return false
	}
	v := r.truth
	if len(b) > 0 {
		v = b[0] == 1
	}
	r.done(name, strconv.FormatBool(v), len(b))
	return v
}

// int reads an integer of type t. text, which may be nil, formats it for Describe.
func (r *Reader) int(name string, t Type, text func(int64) string) (v int64) {
	b, ok := r.take(name, t)
	if !ok {
		return 0
	}
	size := 8 << (t - I8) // in bits
	switch {
	case t == I8:
		v = int64(int8(b[0]))
	case r.p == Compact:
		u, _ := binary.Uvarint(b)
		v = int64(u>>1) ^ -int64(u&1)
	case t == I16:
		v = int64(int16(binary.BigEndian.Uint16(b)))
	case t == I32:
		v = int64(int32(binary.BigEndian.Uint32(b)))
	default:
		v = int64(binary.BigEndian.Uint64(b))
	}
	if v>>(size-1) != v>>63 {
		r.fail(r.c.Pos()+r.head, len(b), name, "%d does not fit %d bits", v, size)
		return 0
	}
	shown := ""
	if r.c.Tracing() {
		if shown = strconv.FormatInt(v, 10); text != nil {
			shown = text(v)
		}
	}
	r.done(name, shown, len(b))
	return v
}

// I8 reads an i8 (byte).
func (r *Reader) I8(name string) int8 { return int8(r.int(name, I8, nil)) }

// I16 reads an i16.
func (r *Reader) I16(name string) int16 { return int16(r.int(name, I16, nil)) }

// I32 reads an i32.
func (r *Reader) I32(name string) int32 { return int32(r.int(name, I32, nil)) }

// I64 reads an i64.
func (r *Reader) I64(name string) int64 { return r.int(name, I64, nil) }

// Enum reads an i32; text names the value for Describe.
func (r *Reader) Enum(name string, text func(int32) string) int32 {
	return int32(r.int(name, I32, func(v int64) string { return text(int32(v)) }))
}

// Double reads a double.
func (r *Reader) Double(name string) float64 {
	b, ok := r.take(name, Double)
	if !ok {
		return 0
	}
	u := binary.LittleEndian.Uint64(b)
	if r.p == Binary {
		u = binary.BigEndian.Uint64(b)
	}
	v := math.Float64frombits(u)
	shown := ""
	if r.c.Tracing() {
		shown = strconv.FormatFloat(v, 'g', -1, 64)
	}
	r.done(name, shown, len(b))
	return v
}

// Bytes reads a string or binary. The result aliases the cursor's bytes.
func (r *Reader) Bytes(name string) []byte {
	b, ok := r.take(name, Bytes)
	if !ok {
		return nil
	}
	shown := ""
	if r.c.Tracing() {
		shown = quote(b)
	}
	r.done(name, shown, len(b))
	r.c.Spend(int64(len(b)))
	return b
}

// String reads a string or binary as a string.
func (r *Reader) String(name string) string { return string(r.Bytes(name)) }

// Unknown skips the pending value, whose meaning is unknown. Next calls it for fields that were not read.
func (r *Reader) Unknown() {
	if !r.due || r.c.Err() != nil {
		return
	}
	n, name, text := 0, "", ""
	if r.c.Tracing() {
		name, text = r.unknownName(), "not known: "+r.typ.String()
	}
	if r.typ != Bool || r.p != Compact || r.head == 0 {
		var bad *parseError
		if n, bad = r.p.extent(r.c.Rest()[r.head:], r.typ, len(r.stack)); bad != nil {
			r.failAt(r.head, bad, r.unknownName())
			return
		}
	}
	r.done(name, text, n)
}

// UnexpectedField reports the field that Next found as damage, for structures to which no field is ever added.
func (r *Reader) UnexpectedField() {
	if r.due && r.c.Err() == nil {
		r.fail(r.c.Pos(), max(r.head, 1), r.unknownName(), "the structure has no such field")
	}
}

func (r *Reader) unknownName() string {
	if name := r.label(""); name != "" {
		return name
	}
	return "field " + strconv.Itoa(int(r.id))
}

// quote quotes the beginning of b.
func quote(b []byte) string {
	const maxQuoted = 48
	if len(b) > maxQuoted {
		return strconv.Quote(string(b[:maxQuoted])) + "…"
	}
	return strconv.Quote(string(b))
}
