// Package vec is where decoded values land: vectors of entries that become Arrow arrays by handing over their
// buffers, and sets of rows and entries.
package vec

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

// Slack is how many bytes behind the values of a string vector a kernel may overwrite: copying short strings by whole
// words is faster than copying them exactly.
const Slack = 64

type kind uint8

const (
	fixed   kind = iota // width bytes a value
	boolean             // a bit a value
	strs                // offsets and bytes
	list                // offsets and items
	nothing             // of type null: only their number
)

// Vector is a column's entries while they are being decoded. Its shape follows Type:
//
//	bool                 bits
//	fixed-width types    Data, width bytes an entry, little-endian
//	utf8, binary         Offsets (int32) and bytes; or codes of a dictionary, see ExtendCodes
//	list                 Offsets (int32) into Items
//	null                 nothing: every entry is null
//
// An entry is valid unless its bit in Validity is 0. A Vector is used by one goroutine; one that is only read
// (a dictionary) may be shared.
//
// Decoders append in two steps: Extend(n) makes room for n entries at position at (valid, values unset), then the
// slices from Data, Bits, Offsets, Bytes are filled. A slice is good until the next Extend.
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

	def, rep []byte // levels, one an entry; nil if the column has none

	hint hint

	short   []shortWord // of a dictionary, see AsDict
	longest int64       // bytes of its longest string; 0: not known

	failed error // codes that could not become bytes when they had to; told by the next call that can
}

// New makes an empty vector whose buffers come from mem. Types that have no vector are Unsupported.
func New(t arrow.DataType, mem memory.Allocator) (*Vector, error) {
	v := &Vector{Type: t, mem: mem}
	switch t := t.(type) {
	case *arrow.BooleanType:
		v.kind = boolean
	case *arrow.NullType:
		v.kind = nothing
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

// Len is the number of entries, Nulls how many of them are null.
func (v *Vector) Len() int   { return v.n }
func (v *Vector) Nulls() int { return v.nulls }

// Width is the bytes of one value of a fixed-width type, else 0.
func (v *Vector) Width() int { return v.width }

// hint is how much a vector is going to hold: buffers begin with that size instead of growing to it.
type hint struct {
	entries int   // expected; 0 = not known
	peak    int   // the most that the vectors before this one held, with what lay behind the window
	bytes   int64 // of the strings lately: of strings entries
	strings int64
}

// Expect says that about n entries are going to be appended before the next Emit, so that buffers need not grow
// step by step. It is a hint: nothing depends on it, and no memory is taken before the first entry comes.
func (v *Vector) Expect(n int) { v.hint.entries = n }

// first is with how many bytes *b begins.
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

// grow makes *b at least size bytes long, plus Slack, keeping what it holds.
func (v *Vector) grow(b **memory.Buffer, size int) {
	if *b == nil {
		*b = memory.NewResizableBuffer(v.mem)
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
	case nothing:
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
		if v.failed != nil { // what is decoded now is never shown, but it must have somewhere to go
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

// Reserve makes room for n entries in all, of strings with size bytes together: until then appending moves nothing.
func (v *Vector) Reserve(n int, size int64) {
	if n <= v.n || v.coded < v.n {
		return
	}
	switch v.kind {
	case fixed:
		v.hold(&v.data, n*v.width)
	case boolean:
		v.hold(&v.data, (n+7)/8)
	case strs, list:
		if v.offs == nil {
			v.hold(&v.offs, 4*(n+1))
			words[int32](v.offs, 1)[0] = 0
		}
		v.hold(&v.offs, 4*(n+1))
	}
	if v.kind == strs {
		v.hold(&v.data, int(min(size, math.MaxInt32)))
	}
	if v.valid != nil {
		v.hold(&v.valid, (n+7)/8)
	}
}

// hold makes room for size bytes in *b, plus Slack.
func (v *Vector) hold(b **memory.Buffer, size int) {
	if *b == nil {
		*b = memory.NewResizableBuffer(v.mem)
	}
	(*b).Reserve(size + Slack)
}

// Data is the values of a fixed-width vector from entry at on, as bytes.
func (v *Vector) Data(at int) []byte { return v.data.Buf()[at*v.width : v.n*v.width] }

// Fixed is Data as values of T, which must have v's width.
func Fixed[T any](v *Vector, at int) []T { return words[T](v.data, v.n)[at:] }

// Bits is the whole bitmap of a boolean vector; entry i is bit i.
func (v *Vector) Bits() []byte { return v.data.Buf()[:(v.n+7)/8] }

// Validity is the whole validity bitmap; entry i is bit i. It is made (all ones) if there is none yet.
// Who clears bits must tell AddNulls.
func (v *Vector) Validity() []byte {
	if v.valid == nil {
		v.grow(&v.valid, (v.n+7)/8)
		SetBits(v.valid.Buf(), 0, v.n, true)
	}
	return v.valid.Buf()[:(v.n+7)/8]
}

// HasValidity reports whether there is a bitmap; without one every entry is valid.
func (v *Vector) HasValidity() bool { return v.valid != nil }

// AddNulls counts k more nulls.
func (v *Vector) AddNulls(k int) { v.nulls += k }

// Valid reports whether entry i is valid.
func (v *Vector) Valid(i int) bool {
	return v.kind != nothing && (v.valid == nil || bitutil.BitIsSet(v.valid.Buf(), i))
}

// ExtendLevels makes room for the definition and repetition levels of the last n entries, which were just appended, and
// gives that room to be filled; it holds zeros. All entries of a vector have levels, or none.
func (v *Vector) ExtendLevels(n int) (def, rep []byte) {
	v.def, v.rep = lengthen(v.def, v.n), lengthen(v.rep, v.n)
	return v.def[v.n-n:], v.rep[v.n-n:]
}

// Def and Rep are the levels of all entries, nil if they have none.
func (v *Vector) Def() []byte { return v.def }
func (v *Vector) Rep() []byte { return v.rep }

// lengthen is b with n bytes, the new ones zero.
func lengthen(b []byte, n int) []byte {
	at := len(b)
	b = slices.Grow(b, n-at)[:n]
	clear(b[at:])
	return b
}

// Offsets is the offsets of strings or lists from entry at on: one more than there are entries. The first is set
// already; it is where the values of entry at begin.
func (v *Vector) Offsets(at int) []int32 { return words[int32](v.offs, v.n+1)[at:] }

// Bytes makes room for n more bytes of strings behind off (the end of the entries before) and gives that room,
// with Slack more behind it. More than 2³¹−1 bytes in one vector is a Limit error.
func (v *Vector) Bytes(off int32, n int64) ([]byte, error) {
	if n > math.MaxInt32-int64(off) {
		return nil, fault.Limitf(fault.Span{}, "", "%d bytes of strings do not fit one batch", int64(off)+n)
	}
	v.grow(&v.data, int(off)+int(n))
	return v.data.Buf()[off : int64(off)+n+Slack], nil
}

// StringBytes is the whole of the bytes that Offsets point into.
func (v *Vector) StringBytes() []byte {
	if v.data == nil {
		return nil
	}
	return v.data.Buf()
}

// Size is about how many bytes the entries take; codes count as codes.
func (v *Vector) Size() int64 {
	s := int64(v.n/8) + 4*int64(v.n-v.coded)
	switch v.kind {
	case fixed:
		s += int64(v.n) * int64(v.width)
	case strs, list:
		s += 4 * int64(v.coded)
		if v.kind == strs && v.offs != nil { // not the buffer's length: it may have held more before
			s += int64(words[int32](v.offs, v.coded+1)[v.coded])
		}
	}
	if v.Items != nil {
		s += v.Items.Size()
	}
	return s
}

// ExtendCodes appends n entries of a string vector that are codes of dict, and gives the codes to be filled.
// Every code, also of a null entry, must be < dict.Len(), unless dict is empty and all entries are null.
// The codes become bytes when they have to: see Plain.
func (v *Vector) ExtendCodes(n int, dict *Vector) []uint32 {
	if v.coded < v.n && v.dict != dict {
		v.failed = v.Plain()
	}
	v.dict = dict
	at := v.n
	v.n += n
	v.grow(&v.codes, 4*(v.n-v.coded))
	v.extendValid(at)
	return words[uint32](v.codes, v.n-v.coded)[at-v.coded:]
}

// Coded gives the codes and their dictionary if all entries are codes.
func (v *Vector) Coded() (codes []uint32, dict *Vector, ok bool) {
	if v.n == 0 || v.coded > 0 {
		return nil, nil, false
	}
	return words[uint32](v.codes, v.n), v.dict, true
}

// Plain turns codes into the strings they stand for. More than 2³¹−1 bytes is a Limit error.
func (v *Vector) Plain() error {
	if v.Items != nil {
		if err := v.Items.Plain(); err != nil {
			return err
		}
	}
	if v.failed != nil || v.coded == v.n {
		return v.failed
	}
	codes := words[uint32](v.codes, v.n-v.coded)
	dict := v.dict
	at := v.coded
	first := v.offs == nil
	v.grow(&v.offs, 4*(v.n+1))
	if first {
		words[int32](v.offs, 1)[0] = 0
	}
	offs := words[int32](v.offs, v.n+1)[at:]
	if dict.n == 0 {
		for i := range codes {
			offs[i+1] = offs[0]
		}
		v.coded = v.n
		return nil
	}
	if err := v.gather(offs, codes, at); err != nil {
		return err
	}
	v.coded = v.n
	return nil
}

// Fit is how many of the first n entries have strings of at most limit bytes together, where they are codes: those
// must still be spelled out. It is n for every other vector, and never 0.
func (v *Vector) Fit(n int, limit int64) int {
	codes, dict, ok := v.Coded()
	if !ok || dict.n == 0 {
		return n
	}
	offs := words[int32](dict.offs, dict.n+1)
	longest := dict.longest
	if longest == 0 {
		longest = int64(offs[dict.n]) // no string is longer than all together
	}
	if longest*int64(n) <= limit {
		return n
	}
	var total int64
	for i, c := range codes[:n] {
		if total += int64(offs[c+1] - offs[c]); total > limit && i > 0 {
			return i
		}
	}
	return n
}

// gather appends the strings of codes, whose entries begin at position at.
func (v *Vector) gather(offs []int32, codes []uint32, at int) error {
	dict := v.dict
	if v.valid == nil || v.nulls == 0 {
		if dict.short != nil {
			return v.gatherShort(offs, codes, dict.short)
		}
	}
	do := words[int32](dict.offs, dict.n+1)
	total := int64(0)
	end := offs[0]
	for i, c := range codes {
		total += int64(do[c+1] - do[c])
		if total > math.MaxInt32-int64(end) {
			return fault.Limitf(fault.Span{}, "", "the strings of %d entries do not fit one batch", i+1)
		}
	}
	out, err := v.Bytes(end, total)
	if err != nil {
		return err
	}
	src := dict.StringBytes()
	hasNulls := v.valid != nil && v.nulls > 0
	var valid []byte
	if hasNulls {
		valid = v.valid.Buf()
	}
	pos := 0
	for i, c := range codes {
		if hasNulls && !bitutil.BitIsSet(valid, at+i) {
			offs[i+1] = end + int32(pos)
			continue
		}
		a, b := int(do[c]), int(do[c+1])
		if n := b - a; n <= 16 && a+16 <= len(src) {
			// two words whatever the length; the next string overwrites what is too much, Slack takes the last
			d, s := out[pos:pos+16], src[a:a+16]
			binary.LittleEndian.PutUint64(d, binary.LittleEndian.Uint64(s))
			binary.LittleEndian.PutUint64(d[8:], binary.LittleEndian.Uint64(s[8:]))
			pos += n
		} else {
			pos += copy(out[pos:], src[a:b])
		}
		offs[i+1] = end + int32(pos)
	}
	return nil
}

// shortWord is a string of a dictionary of at most 16 bytes, with its length.
type shortWord struct {
	lo, hi uint64
	n      int64
	_      int64 // two to a cache line
}

// maxShort is how many strings a dictionary has at most that is made a table of short words: it should stay in
// the first cache.
const maxShort = 1 << 12

// AsDict says that d, which will not change any more, is a dictionary: several goroutines may look at it from
// now on, and codes become its strings faster, if these are short.
func (d *Vector) AsDict() {
	if d.kind == strs && d.offs != nil && d.data != nil && d.coded == d.n {
		d.data.ResizeNoShrink(int(words[int32](d.offs, d.n+1)[d.n])) // so that no view has to
	}
	if d.kind != strs || d.n == 0 || d.coded < d.n {
		return
	}
	offs, src := words[int32](d.offs, d.n+1), d.StringBytes()
	for i, end := range offs[1:] {
		d.longest = max(d.longest, int64(end-offs[i]))
	}
	if d.n > maxShort {
		return
	}
	t := make([]shortWord, d.n)
	for i := range t {
		var w [16]byte
		n := int(offs[i+1] - offs[i])
		if n > len(w) {
			return
		}
		copy(w[:], src[offs[i]:offs[i+1]])
		t[i] = shortWord{lo: binary.NativeEndian.Uint64(w[:]), hi: binary.NativeEndian.Uint64(w[8:]), n: int64(n)}
	}
	d.short = t
}

// gatherShort is gather for short words, none null: two stores an entry, whatever its length; the next one
// overwrites what is too much, and Slack takes the last.
func (v *Vector) gatherShort(offs []int32, codes []uint32, table []shortWord) error {
	total, end := int64(0), offs[0]
	for _, c := range codes {
		total += table[c].n
	}
	if total > math.MaxInt32-int64(end) {
		return fault.Limitf(fault.Span{}, "", "the strings of %d entries do not fit one batch", len(codes))
	}
	out, err := v.Bytes(end, total)
	if err != nil {
		return err
	}
	to, last := unsafe.Pointer(unsafe.SliceData(out)), offs[1:][:len(codes)]
	pos := int64(0)
	for i, c := range codes {
		w := &table[c]
		*(*uint64)(unsafe.Add(to, pos)) = w.lo // at most total+16 bytes, and Slack is more
		*(*uint64)(unsafe.Add(to, pos+8)) = w.hi
		pos += w.n
		last[i] = end + int32(pos)
	}
	return nil
}

// ExtendNulls appends n null entries.
func (v *Vector) ExtendNulls(n int) {
	if v.kind == nothing {
		v.Extend(n)
		return
	}
	at := v.placeholders(n)
	b := v.Validity()
	SetBits(b, at, v.n, false)
	v.nulls += n
}

// ExtendUnset appends n valid entries that nobody will look at: zeros, empty strings, empty lists.
func (v *Vector) ExtendUnset(n int) { v.placeholders(n) }

func (v *Vector) placeholders(n int) (at int) {
	if v.coded < v.n { // stay coded: code 0 stands for nothing here
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

// Truncate cuts v back to its first n entries.
func (v *Vector) Truncate(n int) {
	if n >= v.n {
		return
	}
	if v.valid != nil {
		v.nulls -= countZeros(v.valid.Buf(), n, v.n)
	}
	v.n = n
	v.coded = min(v.coded, n)
	if v.def != nil {
		v.def, v.rep = v.def[:min(n, len(v.def))], v.rep[:min(n, len(v.rep))]
	}
	if v.kind == nothing {
		v.nulls = n
	}
	if v.kind == list && v.offs != nil {
		v.Items.Truncate(int(words[int32](v.offs, n+1)[n]))
	}
}

// Skip drops the first n entries.
func (v *Vector) Skip(n int) {
	if n == 0 {
		return
	}
	rest := v.n - n
	if v.def != nil {
		v.def, v.rep = append(v.def[:0], v.def[n:]...), append(v.rep[:0], v.rep[n:]...)
	}
	if v.kind == nothing {
		v.n, v.nulls, v.coded = rest, rest, rest
		return
	}
	if v.valid != nil {
		v.nulls -= countZeros(v.valid.Buf(), 0, n)
		moveBits(v.valid.Buf(), v.valid.Buf(), n, rest)
	}
	if n >= v.coded {
		copy(words[uint32](v.codes, rest), words[uint32](v.codes, v.n-v.coded)[n-v.coded:])
		v.coded = 0
		if v.offs != nil {
			words[int32](v.offs, 1)[0] = 0
		}
		v.n = rest
		if v.kind == strs {
			return
		}
		v.coded = rest
		v.skipPlain(n, rest)
		return
	}
	plain := v.coded - n // entries that stay and are not codes
	v.n, v.coded = rest, plain
	v.skipPlain(n, plain)
}

// Cut drops the entries [from, to).
func (v *Vector) Cut(from, to int) error {
	if to >= v.n {
		v.Truncate(from)
		return nil
	}
	rest, err := New(v.Type, v.mem)
	if err != nil {
		return err
	}
	defer rest.Release()
	if err := rest.appendRun(v, to, v.n); err != nil {
		return err
	}
	v.Truncate(from)
	return v.appendRun(rest, 0, rest.n)
}

// skipPlain moves the k uncoded entries behind the first n to the front.
func (v *Vector) skipPlain(n, k int) {
	switch v.kind {
	case fixed:
		if k > 0 {
			copy(v.data.Buf()[:k*v.width], v.data.Buf()[n*v.width:(n+k)*v.width])
		}
	case boolean:
		moveBits(v.data.Buf(), v.data.Buf(), n, k)
	case strs, list:
		o := words[int32](v.offs, n+k+1)
		from, to := o[n], o[n+k]
		for i := range k + 1 {
			o[i] = o[n+i] - from
		}
		if v.kind == list {
			v.Items.Skip(int(from))
		} else if v.data != nil {
			copy(v.data.Buf(), v.data.Buf()[from:to])
		}
	}
}

// Append adds the entries [from, to) of src that sel selects; sel counts from src's entry from (nil = all).
// Both have the same type.
func (v *Vector) Append(src *Vector, from, to int, sel *Sel) error {
	if sel.IsAll() {
		return v.appendRun(src, from, to)
	}
	if src.kind == strs || src.kind == list {
		return v.appendRuns(src, from, sel)
	}
	if v.coded < v.n {
		if err := v.Plain(); err != nil {
			return err
		}
	}
	at := v.Extend(sel.Count)
	if src.valid != nil && src.nulls > 0 {
		b := v.Validity()
		k := at
		sel.each(func(i int) {
			if !bitutil.BitIsSet(src.valid.Buf(), from+i) {
				bitutil.ClearBit(b, k)
				v.nulls++
			}
			k++
		})
	}
	if src.def != nil {
		def, rep := v.ExtendLevels(sel.Count)
		k := 0
		sel.each(func(i int) { def[k], rep[k] = src.def[from+i], src.rep[from+i]; k++ })
	}
	switch v.kind {
	case boolean:
		b, s, k := v.Bits(), src.Bits(), at
		sel.each(func(i int) { bitutil.SetBitTo(b, k, bitutil.BitIsSet(s, from+i)); k++ })
	case fixed:
		v.pick(src, at, from, sel)
	}
	return nil
}

func (v *Vector) pick(src *Vector, at, from int, sel *Sel) {
	switch v.width {
	case 1:
		pick(Fixed[uint8](v, at), Fixed[uint8](src, from), sel)
	case 2:
		pick(Fixed[uint16](v, at), Fixed[uint16](src, from), sel)
	case 4:
		pick(Fixed[uint32](v, at), Fixed[uint32](src, from), sel)
	case 8:
		pick(Fixed[uint64](v, at), Fixed[uint64](src, from), sel)
	case 16:
		pick(Fixed[[2]uint64](v, at), Fixed[[2]uint64](src, from), sel)
	default:
		d, s, w := v.Data(at), src.Data(from), v.width
		sel.each(func(i int) { copy(d[:w], s[i*w:]); d = d[w:] })
	}
}

func pick[T any](dst, src []T, sel *Sel) {
	k := 0
	sel.each(func(i int) { dst[k] = src[i]; k++ })
}

// each calls f with every selected entry, in order.
func (s *Sel) each(f func(i int)) {
	for j, x := range s.Bits {
		for ; x != 0; x &= x - 1 {
			f(8*j + bits.TrailingZeros8(x))
		}
	}
}

// appendRuns appends strings or lists run by run.
func (v *Vector) appendRuns(src *Vector, from int, sel *Sel) error {
	start, last := -1, -1
	var err error
	flush := func() {
		if start >= 0 && err == nil {
			err = v.appendRun(src, from+start, from+last+1)
		}
	}
	sel.each(func(i int) {
		if i != last+1 || start < 0 {
			flush()
			start = i
		}
		last = i
	})
	flush()
	return err
}

// appendRun appends entries [from, to) of src.
func (v *Vector) appendRun(src *Vector, from, to int) error {
	n := to - from
	if n <= 0 {
		return nil
	}
	if src.coded < src.n {
		if src.coded == 0 && (v.n == 0 || v.coded < v.n && v.dict == src.dict) {
			at := v.n
			copy(v.ExtendCodes(n, src.dict), words[uint32](src.codes, src.n)[from:to])
			v.copyValid(src, at, from, n)
			v.copyLevels(src, from, to)
			return nil
		}
		if err := src.Plain(); err != nil {
			return err
		}
	}
	if err := v.Plain(); err != nil {
		return err
	}
	at := v.Extend(n)
	v.copyValid(src, at, from, n)
	v.copyLevels(src, from, to)
	switch v.kind {
	case fixed:
		copy(v.Data(at), src.Data(from))
	case boolean:
		copyBits(v.Bits(), at, src.Bits(), from, n)
	case strs, list:
		o, so := v.Offsets(at), src.Offsets(from)[:n+1]
		base, first := o[0], so[0]
		if int64(base)+int64(so[n]-first) > math.MaxInt32 {
			v.Truncate(at)
			return fault.Limitf(fault.Span{}, "", "more than 2^31-1 bytes or items do not fit one batch")
		}
		for i := 1; i <= n; i++ {
			o[i] = base + so[i] - first
		}
		if v.kind == list {
			return v.Items.appendRun(src.Items, int(first), int(so[n]))
		}
		b, err := v.Bytes(base, int64(so[n]-first))
		if err != nil {
			v.Truncate(at)
			return err
		}
		copy(b, src.StringBytes()[first:so[n]])
	}
	return nil
}

func (v *Vector) copyLevels(src *Vector, from, to int) {
	if src.def == nil {
		return
	}
	def, rep := v.ExtendLevels(to - from)
	copy(def, src.def[from:to])
	copy(rep, src.rep[from:to])
}

func (v *Vector) copyValid(src *Vector, at, from, n int) {
	if src.valid == nil || src.nulls == 0 {
		return
	}
	b := v.Validity()
	copyBits(b, at, src.valid.Buf(), from, n)
	v.nulls += countZeros(b, at, at+n)
}

// Emit makes an Arrow array of the first n entries and keeps the others. The array owns its buffers.
func (v *Vector) Emit(n int) (arrow.Array, error) {
	if _, _, ok := v.Coded(); !ok || n == v.n { // codes that stay can stay codes
		if err := v.Plain(); err != nil {
			return nil, err
		}
	}
	rest := &Vector{Type: v.Type, kind: v.kind, width: v.width, mem: v.mem, hint: v.hint}
	if rest.hint.peak = max(v.hint.peak, v.n); v.kind == strs && v.offs != nil && v.coded > 0 {
		rest.hint.bytes, rest.hint.strings = int64(words[int32](v.offs, v.coded+1)[v.coded]), int64(v.coded)
	}
	if v.Items != nil {
		rest.Items = &Vector{Type: v.Items.Type, kind: v.Items.kind, width: v.Items.width, mem: v.mem}
	}
	if n < v.n {
		if err := rest.appendRun(v, n, v.n); err != nil {
			return nil, err
		}
		v.Truncate(n)
		if err := v.Plain(); err != nil {
			rest.Release()
			return nil, err
		}
	}
	d := v.arrayData(v.n)
	v.Release()
	*v = *rest
	defer d.Release()
	return array.MakeFromData(d), nil
}

// View makes an Arrow array of the first n entries that shares v's buffers: it must be released before v changes.
// Entries that are all codes of one dictionary become a dictionary array.
func (v *Vector) View(n int) (arrow.Array, error) {
	_, dict, ok := v.Coded()
	if !ok || dict.n == 0 {
		if err := v.Plain(); err != nil {
			return nil, err
		}
		d := v.arrayData(n)
		defer d.Release()
		return array.MakeFromData(d), nil
	}
	dd := dict.arrayData(dict.n)
	defer dd.Release()
	t := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint32, ValueType: v.Type}
	d := array.NewDataWithDictionary(t, n, []*memory.Buffer{v.valid, v.codes}, v.nullsIn(n), 0, dd)
	defer d.Release()
	return array.MakeFromData(d), nil
}

func (v *Vector) nullsIn(n int) int {
	if n == v.n || v.valid == nil {
		return v.nulls
	}
	return countZeros(v.valid.Buf(), 0, n)
}

func (v *Vector) arrayData(n int) *array.Data {
	var bufs []*memory.Buffer
	var children []arrow.ArrayData
	valid := v.valid
	nulls := v.nullsIn(n)
	if nulls == 0 {
		valid = nil
	}
	switch v.kind {
	case nothing:
		return array.NewData(v.Type, n, []*memory.Buffer{nil}, nil, n, 0)
	case fixed, boolean:
		bufs = []*memory.Buffer{valid, v.data}
	case strs, list:
		if v.offs == nil {
			v.grow(&v.offs, 4)
			words[int32](v.offs, 1)[0] = 0
		}
		bufs = []*memory.Buffer{valid, v.offs, v.data}
		if v.kind == list {
			bufs = bufs[:2]
			c := v.Items.arrayData(int(words[int32](v.offs, n+1)[n]))
			defer c.Release()
			children = []arrow.ArrayData{c}
		} else if v.data != nil {
			if end := int(words[int32](v.offs, n+1)[n]); v.data.Len() != end { // a dictionary is shared: see AsDict
				v.data.ResizeNoShrink(end)
			}
		}
	}
	return array.NewData(v.Type, n, bufs, children, nulls, 0)
}

// Release gives the buffers back. v is then empty and usable.
func (v *Vector) Release() {
	for _, b := range []**memory.Buffer{&v.valid, &v.data, &v.offs, &v.codes} {
		if *b != nil {
			(*b).Release()
			*b = nil
		}
	}
	v.n, v.nulls, v.coded, v.dict, v.failed = 0, 0, 0, nil, nil
	v.def, v.rep = nil, nil
	if v.Items != nil {
		v.Items.Release()
	}
}

// Reset empties v and keeps its buffers.
func (v *Vector) Reset() {
	v.n, v.nulls, v.coded, v.dict, v.failed = 0, 0, 0, nil, nil
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
