package write

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
)

// keyTracker tracks the encoded keys of a column with a value index.
type keyTracker struct {
	any  bool
	min  []byte // first key of the file
	last []byte // last key of the file so far
	open bool   // whether head is set
	head []byte // first key of the open block
	prev []byte // last key of the block before

	seen    []byte // the last value passed to checkAscending, encoded
	hasSeen bool
}

// note records that the open block has values [from, to).
func (k *keyTracker) note(c *Writer, v *dense, from, to int) {
	if c.val == nil || from == to {
		return
	}
	if !k.open {
		k.head, k.open = c.appendKey(k.head[:0], v, from), true
		if !k.any {
			k.min, k.any = bytes.Clone(k.head), true
		}
	}
	k.last = c.appendKey(k.last[:0], v, to-1)
}

// next closes the open block and returns its index key: the first key of the block, whole or truncated to the shortest
// prefix that is greater than the last key of the previous block (at most one byte for the first block). The result is
// valid until the next note.
func (k *keyTracker) next(whole bool) []byte {
	key := k.head
	if !whole {
		key = key[:Separating(k.prev, key)]
	}
	k.prev = append(k.prev[:0], k.last...)
	k.open = false
	return key
}

// Separating returns the length of the shortest prefix of right that is greater than left. left must not be greater
// than right.
func Separating(left, right []byte) int {
	n := 0
	for n < len(left) && n < len(right) && left[n] == right[n] {
		n++
	}
	return min(n+1, len(right))
}

// appendKey encodes value i.
func (c *Writer) appendKey(dst []byte, v *dense, i int) []byte {
	if c.f.Type.IsBinary() {
		s := v.data[v.strs[i].lo:v.strs[i].hi]
		if c.O.indexKey != nil {
			s = c.O.indexKey(s)
		}
		return append(dst, s...)
	}
	w := c.f.Type.Width()
	return block.AppendFixedKey(dst, c.f.Type, v.fixed[i*w:(i+1)*w])
}

// checkAscending checks that values are strictly ascending, within and across chunks. A column with a value index has
// no nulls, so value i is row i of the chunk. The error is Invalid.
func (k *keyTracker) checkAscending(c *Writer, v *dense) error {
	if v.n == 0 || c.O.unsorted {
		return nil
	}
	bad := -1
	first := c.appendKey(nil, v, 0)
	if k.hasSeen && bytes.Compare(k.seen, first) >= 0 {
		bad = 0
	} else {
		bad = firstNotAbove(c.f.Type, v)
	}
	if bad >= 0 {
		return fault.Invalidf("column %q, row %d: the value is not above the one before; a value index needs "+
			"ascending values", c.f.Name, c.rows+int64(bad))
	}
	k.seen, k.hasSeen = c.appendKey(k.seen[:0], v, v.n-1), true
	return nil
}

// firstNotAbove returns the index of the first value that is not greater than the one before it; -1 if there is none.
func firstNotAbove(t block.Type, v *dense) int {
	if t.IsBinary() {
		for i := 1; i < v.n; i++ {
			a, b := v.strs[i-1], v.strs[i]
			if bytes.Compare(v.data[a.lo:a.hi], v.data[b.lo:b.hi]) >= 0 {
				return i
			}
		}
		return -1
	}
	if t.Width() == 16 {
		return firstNotAbove128(v.fixed)
	}
	if !block.Types[t].Signed {
		switch t.Width() {
		case 1:
			return firstNotAboveOf(view[uint8](v.fixed))
		case 2:
			return firstNotAboveOf(view[uint16](v.fixed))
		case 4:
			return firstNotAboveOf(view[uint32](v.fixed))
		}
		return firstNotAboveOf(view[uint64](v.fixed))
	}
	switch t.Width() {
	case 1:
		return firstNotAboveOf(view[int8](v.fixed))
	case 2:
		return firstNotAboveOf(view[int16](v.fixed))
	case 4:
		return firstNotAboveOf(view[int32](v.fixed))
	}
	return firstNotAboveOf(view[int64](v.fixed))
}

func firstNotAboveOf[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](vals []T) int {
	for i := 1; i < len(vals); i++ {
		if vals[i-1] >= vals[i] {
			return i
		}
	}
	return -1
}

func firstNotAbove128(b []byte) int {
	for i := 16; i < len(b); i += 16 {
		ah, bh := int64(binary.LittleEndian.Uint64(b[i-8:])), int64(binary.LittleEndian.Uint64(b[i+8:]))
		al, bl := binary.LittleEndian.Uint64(b[i-16:]), binary.LittleEndian.Uint64(b[i:])
		if ah > bh || ah == bh && al >= bl {
			return i / 16
		}
	}
	return -1
}

// rowsText names rows at the end of a message.
func rowsText(from, to int64) string {
	if to-from == 1 {
		return fmt.Sprintf(" (row %d)", from)
	}
	return fmt.Sprintf(" (rows %d to %d)", from, to-1)
}
