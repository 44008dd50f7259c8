package vec

import (
	"encoding/binary"
	"math/bits"
)

// Range is a half-open run of row numbers [From, To).
type Range struct{ From, To int64 }

// Len returns the number of rows in r.
func (r Range) Len() int64 { return max(0, r.To-r.From) }

// Intersect returns the part of r that also lies in o.
func (r Range) Intersect(o Range) Range {
	r.From, r.To = max(r.From, o.From), min(r.To, o.To)
	if r.To < r.From {
		r.To = r.From
	}
	return r
}

// Ranges are rows of a row group, for planning and fetching: sorted, disjoint, not touching.
type Ranges []Range

// Intersect returns the set of rows in both.
func (a Ranges) Intersect(b Ranges) Ranges {
	var out Ranges
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if r := a[i].Intersect(b[j]); r.Len() > 0 {
			out = append(out, r)
		}
		if a[i].To < b[j].To {
			i++
		} else {
			j++
		}
	}
	return out
}

// Add returns the set with r added. r must not begin before the last range does.
func (a Ranges) Add(r Range) Ranges {
	if r.Len() == 0 {
		return a
	}
	if n := len(a); n > 0 && r.From <= a[n-1].To {
		a[n-1].To = max(a[n-1].To, r.To)
		return a
	}
	return append(a, r)
}

// Len returns the number of rows in the set.
func (a Ranges) Len() int64 {
	var n int64
	for _, r := range a {
		n += r.Len()
	}
	return n
}

// Sel is a set of entries of a window, for decoding and gathering.
type Sel struct {
	Bits     []byte // Arrow bit order (least significant first); nil = all N; bits from N on are 0
	N, Count int    // entries in the window; entries selected
}

// All returns a selection of all n entries.
func All(n int) *Sel { return &Sel{N: n, Count: n} }

// None returns a selection of none of n entries.
func None(n int) *Sel { return &Sel{Bits: make([]byte, (n+7)/8), N: n} }

// NewSel returns the selection of a bitmap of n entries, which it keeps. It clears the bits from n on.
func NewSel(b []byte, n int) *Sel {
	b = b[:(n+7)/8]
	if n%8 != 0 {
		b[n/8] &= 1<<(n%8) - 1
	}
	s := &Sel{Bits: b, N: n}
	for len(b) >= 8 {
		s.Count += bits.OnesCount64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for _, x := range b {
		s.Count += bits.OnesCount8(x)
	}
	return s
}

// Has reports whether entry i is selected.
func (s *Sel) Has(i int) bool { return s == nil || s.Bits == nil || s.Bits[i>>3]>>(i&7)&1 != 0 }

// IsAll reports whether every entry is selected. A nil Sel selects everything.
func (s *Sel) IsAll() bool { return s == nil || s.Count == s.N }

// And returns the set of entries in both; either may be nil (all).
func (s *Sel) And(o *Sel) *Sel {
	switch {
	case s == nil || s.Bits == nil:
		return o
	case o == nil || o.Bits == nil:
		return s
	}
	b := make([]byte, len(s.Bits))
	for i := range b {
		b[i] = s.Bits[i] & o.Bits[i]
	}
	return NewSel(b, s.N)
}

// Slice returns the part [from, to) of s.
func (s *Sel) Slice(from, to int) *Sel {
	n := to - from
	if s == nil || s.Bits == nil {
		return All(n)
	}
	b := make([]byte, (n+7)/8)
	for i := range b {
		b[i] = bitsAt(s.Bits, from+8*i)
	}
	return NewSel(b, n)
}

// bitsAt returns the eight bits of b that begin at bit i; bits past the end are 0.
func bitsAt(b []byte, i int) byte {
	k, sh := i>>3, i&7
	x := b[k] >> sh
	if sh != 0 && k+1 < len(b) {
		x |= b[k+1] << (8 - sh)
	}
	return x
}

// Any reports whether any of the entries [from, to) is selected.
func (s *Sel) Any(from, to int) bool {
	if s == nil || s.Bits == nil {
		return to > from
	}
	for i := from; i < to; {
		if i&7 == 0 && i+8 <= to {
			if s.Bits[i>>3] != 0 {
				return true
			}
			i += 8
			continue
		}
		if s.Has(i) {
			return true
		}
		i++
	}
	return false
}
