// Package prefix implements the prefix encoding of strings: each is stored relative to the previous one.
//
// An entry is
//
//	shared    varint u32   bytes taken from the front of the string before
//	unshared  varint u32   bytes that follow here
//	bytes     unshared bytes
//
// Every so many entries (16 in Kudu) shared is 0 by rule: a restart point, from which reading can begin. This package
// knows entries only; the header of a block (counts) and its trailer (offsets of the restart points) are the caller's.
// Source: seed document, "Prefix Encoding" (as in LevelDB).
package prefix

import (
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"

	"stoa/fault"
	"stoa/internal/enc/plain"
)

// Slack is the number of spare bytes that data should have after the last string for Decode, which may write to them:
// strings are copied in moves of 16 bytes. Without them the last strings are only copied more slowly.
const Slack = plain.Slack

// Size walks n entries at the front of src: total is the number of bytes of the strings, used that of the entries.
// total is not bounded by len(src): each of n entries can refer to 2³² bytes, so the caller must compare it with its
// own limit before allocating memory. If Size finds no error, Decode of the same bytes finds none. Errors (path
// entry[i].shared, .unshared): the input ends; a varint of more than 32 bits; more shared bytes than the previous
// string has.
func Size(src []byte, n int) (total int64, used int, err error) {
	at, prev := 0, 0
	for i := range n {
		var shared, unshared, p int
		if at+2 <= len(src) && src[at]|src[at+1] < 0x80 {
			shared, unshared, p = int(src[at]), int(src[at+1]), at+2
		} else if shared, unshared, p, err = lengths(src, at, i); err != nil {
			return total, at, err
		}
		if shared > prev || unshared > len(src)-p {
			return total, at, badEntry(src, at, i, shared, prev, unshared, p)
		}
		prev = shared + unshared
		total += int64(prev)
		at = p + unshared
	}
	return total, at, nil
}

// Decode decodes n entries at the front of src. offs has n+1 elements; the caller sets offs[0] to the offset in data of
// the first string. The strings follow one another, string i at [offs[i], offs[i+1]). From offs[0] on, data must have
// at least as many bytes as the total that Size returns, and should have Slack more; these may be overwritten. used is
// the size of the entries. data must not overlap src. Errors: as for Size; offs or data too short (class bug).
func Decode(offs []int32, data []byte, src []byte, n int) (used int, err error) {
	if n < 0 || len(offs) != n+1 || offs[0] < 0 || int(offs[0]) > len(data) {
		return 0, fault.Bugf("prefix: %d offsets for %d entries", len(offs), n)
	}
	if len(data) > math.MaxInt32 {
		data = data[:math.MaxInt32]
	}
	pos := int(offs[0])
	at, prev := 0, pos // prev: start of the previous string; it ends at pos
	var lo, hi uint64  // the head of the previous string
	ends := offs[1:]
	for i := range ends {
		var shared, unshared, p int
		if at+2 <= len(src) && src[at]|src[at+1] < 0x80 {
			shared, unshared, p = int(src[at]), int(src[at+1]), at+2
		} else if shared, unshared, p, err = lengths(src, at, i); err != nil {
			return at, err
		}
		if shared > pos-prev || unshared > len(src)-p {
			return at, badEntry(src, at, i, shared, pos-prev, unshared, p)
		}
		mid := pos + shared
		end := mid + unshared
		switch {
		case shared <= 16 && unshared <= 32 && mid+32 <= len(data) && p+32 <= len(src):
			lo, hi = head(lo, hi, uint(shared), (*[16]byte)(src[p:]))
			binary.LittleEndian.PutUint64(data[pos:], lo)
			binary.LittleEndian.PutUint64(data[pos+8:], hi)
			if end-pos > 16 {
				plain.Copy32((*[32]byte)(data[mid:]), (*[32]byte)(src[p:]))
			}
		case max(shared, unshared) <= 32 && mid+32 <= len(data) && p+32 <= len(src): // the head is kept
			plain.Copy32((*[32]byte)(data[pos:]), (*[32]byte)(data[prev:]))
			plain.Copy32((*[32]byte)(data[mid:]), (*[32]byte)(src[p:]))
		case end > len(data):
			return at, fault.Bugf("prefix: string %d ends at %d of %d bytes", i, end, len(data))
		default:
			copy(data[pos:mid], data[prev:])
			copy(data[mid:end], src[p:])
			if shared < 16 {
				lo, hi = loadHead(data[pos:end])
			}
		}
		prev, pos, at = pos, end, p+unshared
		ends[i] = int32(end)
	}
	return at, nil
}

// The head of a string is its first 16 bytes (the bytes after a shorter string are undefined). It is kept in registers
// because the next string begins with some of it, and reading memory right after writing it in pieces is slow.

// head returns the first shared bytes of a head, 0 to 16, followed by those of src.
func head(lo, hi uint64, shared uint, src *[16]byte) (uint64, uint64) {
	a, b := binary.LittleEndian.Uint64(src[:]), binary.LittleEndian.Uint64(src[8:])
	if shared < 8 {
		n := 8 * shared
		return lo&(1<<n-1) | a<<n, b<<n | a>>(64-n)
	}
	n := 8 * (shared - 8)
	return lo, hi&(1<<n-1) | a<<n
}

// loadHead returns the head of s.
func loadHead(s []byte) (lo, hi uint64) {
	var b [16]byte
	copy(b[:], s)
	return binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])
}

// lengths reads the two lengths of entry i at offset at; p is the offset of its bytes.
func lengths(src []byte, at, i int) (shared, unshared, p int, err error) {
	shared, p = varint(src, at)
	if p < 0 {
		return 0, 0, 0, badVarint(src, at, i, "shared")
	}
	q := p
	unshared, p = varint(src, q)
	if p < 0 {
		return 0, 0, 0, badVarint(src, q, i, "unshared")
	}
	return shared, unshared, p, nil
}

// varint reads a varint of at most 32 bits; next is negative if there is none.
func varint(src []byte, at int) (v, next int) {
	if at > len(src) {
		return 0, -1
	}
	x, n := binary.Uvarint(src[at:min(at+5, len(src))])
	if n <= 0 || x > math.MaxUint32 {
		return 0, -1
	}
	return int(x), at + n
}

func badVarint(src []byte, at, i int, field string) error {
	path := "entry[" + strconv.Itoa(i) + "]." + field
	if len(src)-at < 5 {
		return fault.Rel(at, len(src)-at+1, path, "the input ends")
	}
	return fault.Rel(at, 5, path, "a varint of more than 32 bits")
}

func badEntry(src []byte, at, i, shared, prev, unshared, p int) error {
	path := "entry[" + strconv.Itoa(i) + "]"
	if shared > prev {
		return fault.Rel(at, p-at, path+".shared", "%d bytes of a string of %d", shared, prev)
	}
	return fault.Rel(at, p-at, path+".unshared", "%d bytes, %d are left", unshared, len(src)-p)
}

// Encoder makes entries.
type Encoder struct {
	restart  int
	since    int // entries since the last restart point
	buf      []byte
	last     []byte
	restarts []uint32

	// Count is the number of strings put.
	Count int
}

// NewEncoder returns an encoder with a restart point every restart entries (Kudu: 16); less than 1 counts as 1.
func NewEncoder(restart int) *Encoder { return &Encoder{restart: max(restart, 1)} }

// Put adds v, which must be shorter than 4 GiB. v is copied.
func (e *Encoder) Put(v []byte) {
	shared := 0
	if e.since == e.restart {
		e.restarts = append(e.restarts, uint32(len(e.buf)))
		e.since = 0
	} else {
		shared = common(e.last, v)
	}
	e.buf = binary.AppendUvarint(e.buf, uint64(shared))
	e.buf = binary.AppendUvarint(e.buf, uint64(len(v)-shared))
	e.buf = append(e.buf, v[shared:]...)
	// At a restart point shared is 0 whatever the previous string was, so all of v is copied.
	e.last = append(e.last[:shared], v[shared:]...)
	e.since++
	e.Count++
}

// common returns the length of the longest common prefix.
func common(a, b []byte) int {
	n := min(len(a), len(b))
	i := 0
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)>>3
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// Len returns the length of Bytes.
func (e *Encoder) Len() int { return len(e.buf) }

// Bytes returns the entries so far; valid until the next Put or Reset.
func (e *Encoder) Bytes() []byte { return e.buf }

// Restarts returns the offsets of the restart points in Bytes; valid until the next Put or Reset. The first entry, at
// 0, is always a restart point and is omitted, as in Kudu's trailer.
func (e *Encoder) Restarts() []uint32 { return e.restarts }

// Reset returns e to its initial state; it keeps its memory.
func (e *Encoder) Reset() {
	e.since, e.Count = 0, 0
	e.buf, e.last, e.restarts = e.buf[:0], e.last[:0], e.restarts[:0]
}
