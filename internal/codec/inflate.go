package codec

import (
	"encoding/binary"
	"math/bits"
	"sync"
	"unsafe"
)

// A deflate decoder for streams whose input is entirely in memory and whose raw size is known: pages of files. It
// returns no errors: streams that it cannot decode, which are mostly damaged, are left to the library's reader, whose
// errors describe the damage.

// A table entry describes the bits at the front of the stream:
//
//	bits 0–7    length of the code, without the extra bits
//	bits 8–13   number of extra bits of a length or distance, or of the bits that index a second table
//	bit 14      a second table: its beginning is in the value
//	bit 15      the end of the block, or no code at all
//	bits 16–30  literal, smallest length or distance, or where the second table begins
//	bit 31      a literal
type entry uint32

const (
	second  entry = 1 << 14
	special entry = 1 << 15
	literal entry = 1 << 31
	noCode        = special | 0xff

	litBits, distBits, preBits = 11, 8, 7
)

func (e entry) length() uint { return uint(e & 0xff) }
func (e entry) extra() uint  { return uint(e >> 8 & 0x3f) }
func (e entry) value() int   { return int(e >> 16 & 0x7fff) }

// tables are the tables of a block. Second tables follow the first.
type tables struct {
	lit     [1<<litBits + 2<<10]entry
	dist    [1<<distBits + 1<<10]entry
	pre     [1 << preBits]entry
	lengths [286 + 32 + 138]uint8
	fixed   bool // lit and dist hold the fixed codes
}

var tablePool = sync.Pool{New: func() any { return new(tables) }}

// litEntries, distEntries and preEntries are the symbols, without the lengths of their codes.
var litEntries, distEntries, preEntries = symbols()

func symbols() (lit [288]entry, dist [32]entry, pre [19]entry) {
	for i := range 256 {
		lit[i] = literal | entry(i)<<16
	}
	lit[256] = special
	base := 3
	for i := 257; i < 285; i++ { // lengths: four codes for each number of extra bits
		x := max(0, (i-261)/4)
		lit[i] = entry(base)<<16 | entry(x)<<8
		base += 1 << x
	}
	lit[285] = 258 << 16
	lit[286], lit[287] = noCode, noCode
	base = 1
	for i := range 30 { // distances: two
		x := max(0, i/2-1)
		dist[i] = entry(base)<<16 | entry(x)<<8
		base += 1 << x
	}
	dist[30], dist[31] = noCode, noCode
	for i := range pre {
		pre[i] = entry(i) << 16
	}
	return lit, dist, pre
}

// build makes the table of canonical codes with the given lengths. The codes must be complete, except that with lone,
// for distances, there may be no code or only one. Second tables are as large as their longest code needs.
func build(table []entry, width uint, lengths []uint8, symbols []entry, lone bool) bool {
	var count [16]int
	for _, l := range lengths {
		count[l]++
	}
	var next [16]int
	code, longest, used := 0, 0, len(lengths)-count[0]
	for l := 1; l < 16; l++ {
		next[l] = code
		if count[l] > 0 {
			longest = l
		}
		code = (code + count[l]) << 1
	}
	if code != 1<<16 && !(lone && (used == 0 || used == 1 && longest == 1)) {
		return false
	}
	for i := range table[:1<<width] {
		table[i] = noCode
	}
	free := 1 << width
	for s, n := range lengths {
		if n == 0 {
			continue
		}
		l := uint(n)
		rev := int(bits.Reverse16(uint16(next[l])) >> (16 - l)) // the first bit of a code is stored lowest
		next[l]++
		e := symbols[s]&^0xff | entry(l)
		if symbols[s] == noCode {
			e = noCode
		}
		if l <= width {
			for i := rev; i < 1<<width; i += 1 << l {
				table[i] = e
			}
			continue
		}
		head := &table[rev&(1<<width-1)]
		if *head == noCode {
			size := uint(longest) - width
			if free+1<<size > len(table) {
				return false
			}
			*head = second | entry(free)<<16 | entry(size)<<8 | entry(width)
			for i := range 1 << size {
				table[free+i] = noCode
			}
			free += 1 << size
		}
		if *head&second == 0 || l-width > head.extra() {
			return false
		}
		for i := rev >> width; i < 1<<head.extra(); i += 1 << (l - width) {
			table[head.value()+i] = e
		}
	}
	return true
}

// stream is the state of the decoder.
type stream struct {
	src  []byte
	in   int    // bits, the next one lowest; bits above have may already hold some of src[in:]
	buf  uint64 // bits, the next one lowest; above have there may be some of src[in:] already
	have uint
	dst  []byte
	out  int
}

// fill fills buf to at least 56 bits, or with all remaining bits followed by zeros.
func (s *stream) fill() {
	if s.in+8 <= len(s.src) {
		s.buf |= binary.LittleEndian.Uint64(s.src[s.in:]) << s.have
		s.in += int((63 - s.have) >> 3)
		s.have |= 56
		return
	}
	s.buf &= 1<<s.have - 1
	for s.have <= 56 && s.in < len(s.src) {
		s.buf |= uint64(s.src[s.in]) << s.have
		s.in++
		s.have += 8
	}
}

// take reads n bits, up to 32. ok is false if fewer are left.
func (s *stream) take(n uint) (v uint64, ok bool) {
	if s.have < n {
		if s.fill(); s.have < n {
			return 0, false
		}
	}
	v = s.buf & (1<<n - 1)
	s.buf >>= n
	s.have -= n
	return v, true
}

// inflate decodes src, a raw deflate stream, and reports whether it was intact, ended with src and filled dst exactly.
func inflate(dst, src []byte) bool {
	t := tablePool.Get().(*tables)
	defer tablePool.Put(t)
	s := &stream{src: src, dst: dst}
	for {
		head, ok := s.take(3)
		if !ok {
			return false
		}
		switch head >> 1 {
		case 0:
			ok = s.stored()
		case 1:
			ok = t.fixedCodes() && s.block(t)
		case 2:
			ok = t.dynamic(s) && s.block(t)
		default:
			ok = false
		}
		if !ok {
			return false
		}
		if head&1 != 0 {
			return s.out == len(dst) && s.in-int(s.have>>3) == len(src)
		}
	}
}

// stored copies a block that is not compressed.
func (s *stream) stored() bool {
	s.in -= int(s.have >> 3) // the rest of the current byte is skipped
	s.buf, s.have = 0, 0
	if s.in+4 > len(s.src) {
		return false
	}
	n, not := binary.LittleEndian.Uint16(s.src[s.in:]), binary.LittleEndian.Uint16(s.src[s.in+2:])
	s.in += 4
	if n != ^not || int(n) > len(s.src)-s.in || int(n) > len(s.dst)-s.out {
		return false
	}
	s.out += copy(s.dst[s.out:], s.src[s.in:s.in+int(n)])
	s.in += int(n)
	return true
}

func (t *tables) fixedCodes() bool {
	if t.fixed {
		return true
	}
	for i := range 288 {
		n := uint8(8)
		switch {
		case i >= 280:
		case i >= 256:
			n = 7
		case i >= 144:
			n = 9
		}
		t.lengths[i] = n
	}
	ok := build(t.lit[:], litBits, t.lengths[:288], litEntries[:], false)
	for i := range 32 {
		t.lengths[i] = 5
	}
	t.fixed = build(t.dist[:], distBits, t.lengths[:32], distEntries[:], false) && ok
	return t.fixed
}

// preOrder is the order in which the lengths of the codes for lengths are stored.
var preOrder = [19]uint8{16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15}

// dynamic reads the codes of a block.
func (t *tables) dynamic(s *stream) bool {
	t.fixed = false
	head, ok := s.take(14)
	nLit, nDist, nPre := int(head&31)+257, int(head>>5&31)+1, int(head>>10)+4
	if !ok || nLit > 286 || nDist > 30 {
		return false
	}
	var pre [19]uint8
	for _, i := range preOrder[:nPre] {
		n, ok := s.take(3)
		if !ok {
			return false
		}
		pre[i] = uint8(n)
	}
	if !build(t.pre[:], preBits, pre[:], preEntries[:], false) {
		return false
	}
	for i := 0; i < nLit+nDist; {
		s.fill()
		e := t.pre[s.buf&(1<<preBits-1)]
		if e&special != 0 || e.length() > s.have {
			return false
		}
		s.take(e.length())
		v := e.value()
		if v < 16 {
			t.lengths[i] = uint8(v)
			i++
			continue
		}
		var last uint8
		if v == 16 {
			if i == 0 {
				return false
			}
			last = t.lengths[i-1]
		}
		x, ok := s.take([3]uint{2, 3, 7}[v-16])
		n := int(x) + [3]int{3, 3, 11}[v-16]
		if !ok || i+n > nLit+nDist {
			return false
		}
		for range n {
			t.lengths[i] = last
			i++
		}
	}
	return t.lengths[256] != 0 && build(t.lit[:], litBits, t.lengths[:nLit], litEntries[:], false) &&
		build(t.dist[:], distBits, t.lengths[nLit:nLit+nDist], distEntries[:], true)
}

// The fast loop stops where a step could go past the end: a step reads the input of two fills, and writes three
// literals and a match, which is copied word by word.
const (
	inMargin  = 16
	outMargin = 3 + 258 + 16
)

// block decodes a block with codes.
func (s *stream) block(t *tables) bool {
	if s.in+inMargin <= len(s.src) && s.out+outMargin <= len(s.dst) {
		if end, ok := s.fast(t); end || !ok {
			return ok
		}
	}
	for {
		s.fill()
		e := t.lit[s.buf&(1<<litBits-1)]
		if e&second != 0 {
			e = t.lit[e.value()+int(s.buf>>litBits&(1<<e.extra()-1))]
		}
		if e.length() > s.have {
			return false
		}
		s.take(e.length())
		switch {
		case e&literal != 0:
			if s.out == len(s.dst) {
				return false
			}
			s.dst[s.out] = byte(e >> 16)
			s.out++
			continue
		case e&special != 0:
			return e != noCode
		}
		x, ok := s.take(e.extra())
		n := e.value() + int(x)
		s.fill()
		e = t.dist[s.buf&(1<<distBits-1)]
		if e&second != 0 {
			e = t.dist[e.value()+int(s.buf>>distBits&(1<<e.extra()-1))]
		}
		if !ok || e&special != 0 || e.length() > s.have {
			return false
		}
		s.take(e.length())
		x, ok = s.take(e.extra())
		d := e.value() + int(x)
		if !ok || d > s.out || n > len(s.dst)-s.out {
			return false
		}
		for range n {
			s.dst[s.out] = s.dst[s.out-d]
			s.out++
		}
	}
}

// fast is block without checks for the ends, while these are far enough away. end is true if the block ended.
func (s *stream) fast(t *tables) (end, ok bool) {
	src, dst := unsafe.Pointer(unsafe.SliceData(s.src)), unsafe.Pointer(unsafe.SliceData(s.dst))
	in, out, buf, have := s.in, s.out, s.buf, s.have
	lastIn, lastOut := len(s.src)-inMargin, len(s.dst)-outMargin
	ok = true
	for in <= lastIn && out <= lastOut {
		buf, in, have = refill(src, buf, in, have)
		e := t.lit[buf&(1<<litBits-1)]
		if e&literal != 0 { // up to three literals per fill
			buf, have = drop(buf, have, e)
			out = put(dst, out, e)
			e = t.lit[buf&(1<<litBits-1)]
			if e&literal != 0 {
				buf, have = drop(buf, have, e)
				out = put(dst, out, e)
				e = t.lit[buf&(1<<litBits-1)]
				if e&literal != 0 {
					buf, have = drop(buf, have, e)
					out = put(dst, out, e)
					continue
				}
			}
			buf, in, have = refill(src, buf, in, have)
		}
		if e&(second|special) != 0 {
			if e&second != 0 {
				e = t.lit[(e.value()+int(buf>>litBits&(1<<(e.extra()&15)-1)))&(len(t.lit)-1)]
			}
			if e&special != 0 {
				if ok = e != noCode; ok {
					buf, have = drop(buf, have, e)
				}
				end = true
				break
			}
			if e&literal != 0 {
				buf, have = drop(buf, have, e)
				out = put(dst, out, e)
				continue
			}
		}
		var n, d int
		n, buf, have = number(buf, have, e)
		e = t.dist[buf&(1<<distBits-1)]
		if e&second != 0 {
			e = t.dist[e.value()+int(buf>>distBits&(1<<(e.extra()&15)-1))]
		}
		if ok = e&special == 0; !ok {
			break
		}
		d, buf, have = number(buf, have, e)
		if ok = d <= out; !ok {
			break
		}
		repeat(unsafe.Add(dst, out), n, d)
		out += n
	}
	s.in, s.out, s.buf, s.have = in, out, buf, have
	return end, ok
}

// refill fills buf with the bits from in on, to 56 or more.
func refill(src unsafe.Pointer, buf uint64, in int, have uint) (uint64, int, uint) {
	return buf | *(*uint64)(unsafe.Add(src, in))<<(have&63), in + int((63-have)>>3), have | 56
}

// drop removes the code of e from the bits.
func drop(buf uint64, have uint, e entry) (uint64, uint) { return buf >> (e & 63), have - uint(e&63) }

// put writes the literal of e and returns the next position.
func put(dst unsafe.Pointer, out int, e entry) int {
	*(*byte)(unsafe.Add(dst, out)) = byte(e >> 16)
	return out + 1
}

// number removes the code of e and the extra bits after it: a length or a distance.
func number(buf uint64, have uint, e entry) (n int, rest uint64, left uint) {
	buf >>= e & 63
	x := e.extra() & 15
	return e.value() + int(buf&(1<<x-1)), buf >> x, have - uint(e&63) - x
}

// repeat copies n bytes to to, from d bytes before it. It may write 15 bytes more.
func repeat(to unsafe.Pointer, n, d int) {
	from := unsafe.Add(to, -d)
	switch {
	case d >= 16:
		for i := 0; i < n; i += 16 {
			*(*[2]uint64)(unsafe.Add(to, i)) = *(*[2]uint64)(unsafe.Add(from, i))
		}
	case d >= 8:
		for i := 0; i < n; i += 8 {
			*(*uint64)(unsafe.Add(to, i)) = *(*uint64)(unsafe.Add(from, i))
		}
	case d == 1:
		w := uint64(*(*byte)(from)) * 0x0101010101010101
		for i := 0; i < n; i += 8 {
			*(*uint64)(unsafe.Add(to, i)) = w
		}
	default:
		for i := range n {
			*(*byte)(unsafe.Add(to, i)) = *(*byte)(unsafe.Add(from, i))
		}
	}
}
