package page

import (
	"math/bits"
	"sync/atomic"

	"stoa/fault"
	"stoa/vec"
)

// Row ids and runs of formats 1 and 2 are numbers packed into the bits that the writer's property
// carbon.blocklet.size needs (120000 if it is not set: 17 bits). The property is not in the file. But row ids
// are a permutation of the rows, and runs follow each other, and that is so for one width only.

// The property lies between 2,000 and 12,000,000; writers take 120,000 for anything else.
const (
	minBits = 11
	maxBits = 24
)

// KeyWidths is the width of the packed numbers of a file. It is safe for concurrent use.
type KeyWidths struct{ Found atomic.Int32 }

// Learn sets the width by the property, if it is known. 0 is not known.
func (k *KeyWidths) Learn(blockletSize int) {
	if blockletSize > 0 {
		if blockletSize < 2000 || blockletSize > 12_000_000 {
			blockletSize = 120_000
		}
		k.Found.Store(int32(bits.Len(uint(blockletSize))))
	}
}

// try decodes with the width that is known, or with each that is possible. If several give numbers that make
// sense, they must be the same numbers.
func (k *KeyWidths) try(n int, decode func(w int) ([]uint32, error)) ([]uint32, error) {
	if w := k.Found.Load(); w > 0 {
		return decode(int(w))
	}
	var out []uint32
	var first error
	hits, width := 0, 0
	for w := minBits; w <= maxBits; w++ {
		got, err := decode(w)
		if err != nil {
			if first == nil || w == 17 {
				first = err
			}
			continue
		}
		if hits > 0 && !equal(out, got) {
			return nil, fault.Unsupportedf(fault.Span{}, "",
				"%d and %d bits a number both make sense; the property carbon.blocklet.size says", width, w)
		}
		out, width = got, w
		hits++
	}
	if hits == 0 {
		return nil, first
	}
	if hits == 1 && n > 1 {
		k.Found.CompareAndSwap(0, int32(width))
	}
	return out, nil
}

func equal(a, b []uint32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Unpack gives the runs of a page: pairs of first entry and count, each beginning where the one before ends.
func (k *KeyWidths) Unpack(b []byte, a *vec.Arena) ([]uint32, error) {
	return k.try(len(b), func(w int) ([]uint32, error) {
		out, err := Packed(b, w, a)
		if err != nil {
			return nil, err
		}
		if len(out)%2 != 0 {
			return nil, fault.Rel(0, len(b), "rle", "%d numbers of %d bits are no pairs", len(out), w)
		}
		var total uint64
		for i := 0; i < len(out); i += 2 {
			if uint64(out[i]) != total || out[i+1] == 0 {
				return nil, fault.Rel(0, len(b), "rle",
					"run %d begins at entry %d and has %d, the one before ends at %d", i/2, out[i], out[i+1], total)
			}
			total += uint64(out[i+1])
		}
		return out, nil
	})
}

// RowIDs returns the permutation of n rows: see permutation.
func (k *KeyWidths) RowIDs(ids, starts []byte, n int, a *vec.Arena) ([]uint32, error) {
	return k.try(n, func(w int) ([]uint32, error) {
		i, err := Packed(ids, w, a)
		if err != nil {
			return nil, err
		}
		s, err := Packed(starts, w, a)
		if err != nil {
			return nil, err
		}
		return permutation(i, s, n, a)
	})
}

// Packed spells out numbers of w bits: one big number, big-endian, whose lowest bits are the last number. Bits
// above the first number are zero, and fewer than a byte.
func Packed(b []byte, w int, a *vec.Arena) ([]uint32, error) {
	n := len(b) * 8 / w
	if spare := len(b)*8 - n*w; spare >= 8 || len(b) > 0 && b[0]>>(8-spare) != 0 {
		return nil, fault.Rel(0, len(b), "", "%d bytes are not numbers of %d bits", len(b), w)
	}
	out := a.Uint32s(n)
	var acc uint64
	have, pos := 0, len(b)
	for i := n - 1; i >= 0; i-- {
		for have < w {
			pos--
			acc |= uint64(b[pos]) << have
			have += 8
		}
		out[i] = uint32(acc & (1<<w - 1))
		acc >>= w
		have -= w
	}
	return out, nil
}
