// Package vec holds decoded values: vectors of entries that become Arrow arrays by handing over their buffers, and sets
// of rows and entries.
package vec

import (
	"math"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

type kind uint8

const (
	fixed   kind = iota // width bytes per value
	boolean             // one bit per value
	strs                // offsets and bytes
	list                // offsets and items
	null                // of type null: no data but their number
)

// Vector is a column's entries while they are being decoded. Its shape follows Type:
//
//	bool                 bits
//	fixed-width types    Data, width bytes an entry, little-endian
//	utf8, binary         Offsets (int32) and bytes; or codes of a dictionary, see ExtendCodes
//	list                 Offsets (int32) into Items
//	null                 nothing: every entry is null
//
// An entry is valid unless its bit in Validity is 0. A Vector is used by one goroutine; one that is only read (a
// dictionary) may be shared.
//
// Decoders append in two steps: Extend(n) makes room for n entries at position at (valid, values unset), then the
// slices from Data, Bits, Offsets, Bytes are filled. A slice is valid until the next Extend.
type Vector struct {
	Type  arrow.DataType
	Items *Vector // of a list

	kind  kind
	width int
	mem   memory.Allocator
	n     int // entries
	nulls int

	valid *memory.Buffer // bitmap; nil = all valid so far
	data  *memory.Buffer // values, bits, or the bytes of strings
	offs  *memory.Buffer // int32, n+1 of them

	// Entries from coded on are codes[i-coded] of dict instead of bytes in data. coded == n: none.
	coded int
	codes *memory.Buffer
	dict  *Vector

	def, rep []byte // levels, one per entry; nil if the column has none

	hint hint

	short   []shortWord // of a dictionary, see AsDict
	values  *array.Data // of a dictionary, as an array
	longest int64       // bytes of its longest string; 0: not known

	failed error // why codes could not be expanded when necessary; returned by the next call that can return an error
}

// New returns an empty vector whose buffers come from mem. Types that vectors do not support are Unsupported.
func New(t arrow.DataType, mem memory.Allocator) (*Vector, error) {
	v := &Vector{Type: t, mem: mem}
	switch t := t.(type) {
	case *arrow.BooleanType:
		v.kind = boolean
	case *arrow.NullType:
		v.kind = null
	case *arrow.StringType, *arrow.BinaryType:
		v.kind = strs
	case *arrow.ListType:
		v.kind = list
		var err error
		if v.Items, err = New(t.Elem(), mem); err != nil {
			return nil, err
		}
	case arrow.FixedWidthDataType:
		if t.BitWidth()%8 != 0 || t.ID() == arrow.DICTIONARY {
			return nil, fault.Unsupportedf(fault.Span{}, "", "no vector of type %s", t)
		}
		v.kind, v.width = fixed, t.BitWidth()/8
	default:
		return nil, fault.Unsupportedf(fault.Span{}, "", "no vector of type %s", t)
	}
	return v, nil
}

// Len returns the number of entries, Nulls how many of them are null.
func (v *Vector) Len() int   { return v.n }
func (v *Vector) Nulls() int { return v.nulls }

// Width returns the bytes of one value of a fixed-width type, else 0.
func (v *Vector) Width() int { return v.width }

// hint is how much a vector is going to hold: buffers start with that size instead of growing to it.
type hint struct {
	entries int   // expected; 0 = not known
	peak    int   // the maximum that earlier vectors held, including entries after the window
	bytes   int64 // recent size of strings entries
	strings int64
}

// Expect says that about n entries are going to be appended before the next Emit, so that buffers need not grow step by
// step. It is only a hint, and no memory is allocated before the first entry is appended.
func (v *Vector) Expect(n int) { v.hint.entries = n }

// first returns the initial size of *b in bytes.
func (v *Vector) first(b **memory.Buffer) int {
	h := &v.hint
	if h.entries == 0 {
		return 0
	}
	n := max(h.entries, min(h.peak, 2*h.entries))
	switch {
	case b == &v.valid, b == &v.data && v.kind == boolean:
		return (n + 7) / 8
	case b == &v.data && v.kind == fixed:
		return n * v.width
	case b == &v.data && v.kind == strs && h.strings > 0:
		return int(min(float64(h.bytes)/float64(h.strings)*float64(n)*1.125, 64<<20))
	case b == &v.offs:
		return 4 * (n + 1)
	}
	return 0
}

// grow makes *b at least size bytes long, plus Slack, and keeps its content.
func (v *Vector) grow(b **memory.Buffer, size int) {
	if *b == nil {
		*b = memory.NewResizableBuffer(v.memoryOf(b))
		if n := v.first(b); n > size {
			(*b).Reserve(n + Slack)
		}
	}
	if size+Slack > (*b).Cap() {
		(*b).Reserve(max(size+Slack, min(2*(*b).Cap(), (*b).Cap()+64<<20)))
	}
	(*b).ResizeNoShrink(size)
}

func words[T any](b *memory.Buffer, n int) []T {
	if b == nil || n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b.Buf()))), n)
}

// Extend appends n valid entries with unset values and returns the position of the first.
func (v *Vector) Extend(n int) (at int) {
	if v.coded < v.n {
		v.failed = v.Plain()
	}
	at = v.n
	v.n += n
	v.coded = v.n
	switch v.kind {
	case null:
		v.nulls = v.n
	case fixed:
		v.grow(&v.data, v.n*v.width)
	case boolean:
		v.grow(&v.data, (v.n+7)/8)
	case strs, list:
		first := v.offs == nil
		v.grow(&v.offs, 4*(v.n+1))
		if first {
			words[int32](v.offs, 1)[0] = 0
		}
		if v.failed != nil { // the entries are never used, but the decoder needs memory to write to
			clear(words[int32](v.offs, v.n+1))
		}
	}
	v.extendValid(at)
	return at
}

// extendValid sets the validity of entries from at on, if there is a bitmap.
func (v *Vector) extendValid(at int) {
	if v.valid == nil {
		return
	}
	v.grow(&v.valid, (v.n+7)/8)
	SetBits(v.valid.Buf(), at, v.n, true)
}

// Reserve makes room for n entries in all, with size bytes in all if they are strings: appending up to that does not
// move data.
func (v *Vector) Reserve(n int, size int64) {
	if n <= v.n || v.coded < v.n {
		return
	}
	switch v.kind {
	case fixed:
		v.ensure(&v.data, n*v.width)
	case boolean:
		v.ensure(&v.data, (n+7)/8)
	case strs, list:
		if v.offs == nil {
			v.ensure(&v.offs, 4*(n+1))
			words[int32](v.offs, 1)[0] = 0
		}
		v.ensure(&v.offs, 4*(n+1))
	}
	if v.kind == strs {
		v.ensure(&v.data, int(min(size, math.MaxInt32)))
	}
	if v.valid != nil {
		v.ensure(&v.valid, (n+7)/8)
	}
}

// memoryOf returns the allocator of *b. Bytes of values do not come from Recycled: see there.
func (v *Vector) memoryOf(b **memory.Buffer) memory.Allocator {
	if _, ok := v.mem.(*Recycled); ok && b == &v.data &&
		(v.kind == strs || v.Type.ID() == arrow.FIXED_SIZE_BINARY) {
		return Fresh{}
	}
	return v.mem
}

// ensure makes room for size bytes in *b, plus Slack.
func (v *Vector) ensure(b **memory.Buffer, size int) {
	if *b == nil {
		*b = memory.NewResizableBuffer(v.memoryOf(b))
	}
	(*b).Reserve(size + Slack)
}

// Data returns the values of a fixed-width vector from entry at on, as bytes.
func (v *Vector) Data(at int) []byte { return v.data.Buf()[at*v.width : v.n*v.width] }

// Fixed returns Data as values of T, which must have v's width.
func Fixed[T any](v *Vector, at int) []T { return words[T](v.data, v.n)[at:] }

// Bits returns the whole bitmap of a boolean vector; entry i is bit i.
func (v *Vector) Bits() []byte { return v.data.Buf()[:(v.n+7)/8] }

// Validity returns the whole validity bitmap; entry i is bit i. If there is none yet, it is created with all bits 1.
// Code that clears bits must call AddNulls.
func (v *Vector) Validity() []byte {
	if v.valid == nil {
		v.grow(&v.valid, (v.n+7)/8)
		SetBits(v.valid.Buf(), 0, v.n, true)
	}
	return v.valid.Buf()[:(v.n+7)/8]
}

// HasValidity reports whether there is a bitmap; without one every entry is valid.
func (v *Vector) HasValidity() bool { return v.valid != nil }

// AddNulls adds k to the number of nulls.
func (v *Vector) AddNulls(k int) { v.nulls += k }

// Valid reports whether entry i is valid.
func (v *Vector) Valid(i int) bool {
	return v.kind != null && (v.valid == nil || bitutil.BitIsSet(v.valid.Buf(), i))
}

// ExtendLevels appends zero definition and repetition levels for the last n entries, which were just appended, and
// returns them for the caller to fill. Either all entries of a vector have levels, or none.
func (v *Vector) ExtendLevels(n int) (def, rep []byte) {
	room := max(v.n, min(v.hint.entries, 4*v.n))
	v.def, v.rep = lengthen(v.def, v.n, room), lengthen(v.rep, v.n, room)
	return v.def[v.n-n:], v.rep[v.n-n:]
}

// Def and Rep return the levels of all entries, nil if they have none.
func (v *Vector) Def() []byte { return v.def }
func (v *Vector) Rep() []byte { return v.rep }

// lengthen returns b extended to n bytes, the new ones zero, with capacity for more.
func lengthen(b []byte, n, room int) []byte {
	at := len(b)
	b = slices.Grow(b, room-at)[:n]
	clear(b[at:])
	return b
}

// Offsets returns the offsets of strings or lists from entry at on, one more than there are entries. The first is
// already set: it is where the values of entry at begin.
func (v *Vector) Offsets(at int) []int32 { return words[int32](v.offs, v.n+1)[at:] }

// Bytes makes room for n more bytes of strings after off (the end of the previous entries) and returns it, with Slack
// more bytes after it. More than 2³¹−1 bytes in one vector is an error of class Limit.
func (v *Vector) Bytes(off int32, n int64) ([]byte, error) {
	if n > math.MaxInt32-int64(off) {
		return nil, fault.Limitf(fault.Span{}, "", "%d bytes of strings do not fit one batch", int64(off)+n)
	}
	v.grow(&v.data, int(off)+int(n))
	return v.data.Buf()[off : int64(off)+n+Slack], nil
}

// StringBytes returns all the bytes that Offsets refer to.
func (v *Vector) StringBytes() []byte {
	if v.data == nil {
		return nil
	}
	return v.data.Buf()
}

// Size returns roughly how many bytes the entries take; codes count as codes.
func (v *Vector) Size() int64 {
	s := int64(v.n/8) + 4*int64(v.n-v.coded)
	switch v.kind {
	case fixed:
		s += int64(v.n) * int64(v.width)
	case strs, list:
		s += 4 * int64(v.coded)
		if v.kind == strs && v.offs != nil { // not the buffer's length, as it may have held more before
			s += int64(words[int32](v.offs, v.coded+1)[v.coded])
		}
	}
	if v.Items != nil {
		s += v.Items.Size()
	}
	return s
}

// ExtendNulls appends n null entries.
func (v *Vector) ExtendNulls(n int) {
	if v.kind == null {
		v.Extend(n)
		return
	}
	at := v.placeholders(n)
	b := v.Validity()
	SetBits(b, at, v.n, false)
	v.nulls += n
}

// ExtendUnset appends n valid entries that are never used: zeros, empty strings, empty lists.
func (v *Vector) ExtendUnset(n int) { v.placeholders(n) }

func (v *Vector) placeholders(n int) (at int) {
	if v.coded < v.n { // remain codes: code 0 is meaningless here
		at = v.n
		clear(v.ExtendCodes(n, v.dict))
		return at
	}
	at = v.Extend(n)
	switch v.kind {
	case fixed:
		clear(v.Data(at))
	case boolean:
		SetBits(v.Bits(), at, v.n, false)
	case strs, list:
		o := v.Offsets(at)
		for i := range o {
			o[i] = o[0]
		}
	}
	return at
}

// Release releases the buffers. v is then empty and usable.
func (v *Vector) Release() {
	for _, b := range []**memory.Buffer{&v.valid, &v.data, &v.offs, &v.codes} {
		if *b != nil {
			(*b).Release()
			*b = nil
		}
	}
	v.n, v.nulls, v.coded, v.dict, v.failed = 0, 0, 0, nil, nil
	v.def, v.rep = nil, nil
	v.noDict()
	if v.Items != nil {
		v.Items.Release()
	}
}

// noDict takes back AsDict.
func (v *Vector) noDict() {
	if v.values != nil {
		v.values.Release()
	}
	v.values, v.short, v.longest = nil, nil, 0
}

// Reset empties v and keeps its buffers.
func (v *Vector) Reset() {
	v.n, v.nulls, v.coded, v.dict, v.failed = 0, 0, 0, nil, nil
	v.noDict()
	if v.def != nil {
		v.def, v.rep = v.def[:0], v.rep[:0]
	}
	if v.valid != nil {
		v.valid.Release()
		v.valid = nil
	}
	if v.offs != nil {
		words[int32](v.offs, 1)[0] = 0
	}
	if v.Items != nil {
		v.Items.Reset()
	}
}
