// Package bloom is the bloom filter of Kudu's BloomFile.
//
// A filter is an array of bits, least significant bit of a byte first, of 8·len bits in all (4 096 bytes unless a
// tablet server is configured otherwise). A key is hashed once (Hash); with a the low and b the high 32 bits of the
// hash, its i-th bit, i from 0, is (a + i·b mod 2³²) mod the number of bits. The number of probes is in the header of
// each block. Source: Kudu's util/bloom_filter.h, as described in section 5 of the notes on BloomFile.
package bloom

import "math"

// Filter is a bloom filter. Bits may lie in a file's own bytes; only Add writes to it.
type Filter struct {
	Bits   []byte
	Hashes int // probes a key; the reader of a file bounds it, as a call takes time in proportion to it
}

// Capacity returns the number of keys that Kudu puts in a filter of nbytes bytes for a false-positive rate (0 < rate <
// 1; 0.0001 unless a tablet server is configured otherwise): ⌈−bits · 0.69314² / ln rate⌉.
func Capacity(nbytes int, rate float64) int {
	return int(math.Ceil(-float64(8*nbytes) * ln2 * ln2 / math.Log(rate)))
}

// ln2 is Kudu's value: the exact logarithm would give other capacities than Kudu's.
const ln2 = 0.69314

// New returns an empty filter of nbytes bytes with the number of probes that Kudu chooses for expected keys: ⌊bits ·
// 0.69314 / expected⌋, at least 1. If nbytes or expected is less than 1, it counts as 1.
func New(nbytes, expected int) *Filter {
	nbytes, expected = max(nbytes, 1), max(expected, 1)
	n := int(float64(8*nbytes) * ln2 / float64(expected))
	return &Filter{Bits: make([]byte, nbytes), Hashes: max(n, 1)}
}

// Has reports whether the key with hash h may be in the filter: false is certain, true is not. A filter without bits
// excludes nothing, so Has returns true.
func (f *Filter) Has(h uint64) bool {
	n := uint32(8 * len(f.Bits))
	if uint64(n) != 8*uint64(len(f.Bits)) {
		return f.hasWide(h)
	}
	if n == 0 {
		return true
	}
	a, b := uint32(h), uint32(h>>32)
	if n&(n-1) == 0 { // true of the default size: a mask replaces the division
		for range f.Hashes {
			p := a & (n - 1)
			if f.Bits[p>>3]>>(p&7)&1 == 0 {
				return false
			}
			a += b
		}
		return true
	}
	for range f.Hashes {
		p := a % n
		if f.Bits[p>>3]>>(p&7)&1 == 0 {
			return false
		}
		a += b
	}
	return true
}

// hasWide is Has for a filter whose size in bits does not fit in 32 bits: there a position is never reduced.
func (f *Filter) hasWide(h uint64) bool {
	a, b := uint32(h), uint32(h>>32)
	for range f.Hashes {
		if f.Bits[a>>3]>>(a&7)&1 == 0 {
			return false
		}
		a += b
	}
	return true
}

// Add adds the key with hash h to the filter. A filter without bits is not changed.
func (f *Filter) Add(h uint64) {
	n := 8 * uint64(len(f.Bits))
	if n == 0 {
		return
	}
	a, b := uint32(h), uint32(h>>32)
	for range f.Hashes {
		p := uint64(a) % n
		f.Bits[p>>3] |= 1 << (p & 7)
		a += b
	}
}
