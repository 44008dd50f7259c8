package page

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"stoa/fault"
	"stoa/vec"
)

// Row ids and runs of formats 1 and 2 are packed numbers, each with the number of bits that the writer's property
// carbon.blocklet.size needs (120,000 by default: 17 bits). The file does not record this width. But row ids must be a
// permutation of the rows and runs must be adjacent, and usually only one width satisfies that.

// Widths for the property's range, 2,000 to 12,000,000; writers use 120,000 in place of a value outside that range.
const (
	minBits = 11
	maxBits = 24
)

// KeyWidths holds the width in bits of the packed numbers of a file; 0 if unknown. It is safe for concurrent use.
type KeyWidths struct{ Found atomic.Int32 }

// Learn sets the width from carbon.blocklet.size; 0: unknown.
func (k *KeyWidths) Learn(blockletSize int) {
	if blockletSize > 0 {
		if blockletSize < 2000 || blockletSize > 12_000_000 {
			blockletSize = 120_000
		}
		k.Found.Store(int32(bits.Len(uint(blockletSize))))
	}
}

// try decodes with the known width, or with each possible one. If several widths succeed, they must yield the same
// numbers. If exactly one succeeds, and n, the number of rows or bytes, is greater than 1, the width is known from then
// on.
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
		if hits > 0 && !slices.Equal(out, got) {
			return nil, fault.Unsupportedf(fault.Span{}, "",
				"widths of %d and of %d bits are both possible; the writer's carbon.blocklet.size decides", width, w)
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

// Runs returns the runs of a page: pairs of first entry and count, each beginning where the previous one ends.
func (k *KeyWidths) Runs(b []byte, a *vec.Arena) ([]uint32, error) {
	return k.try(len(b), func(w int) ([]uint32, error) {
		out, err := UnpackNumbers(b, w, a)
		if err != nil {
			return nil, err
		}
		if len(out)%2 != 0 {
			return nil, fault.Rel(0, len(b), "rle", "expected pairs, found %d numbers of %d bits", len(out), w)
		}
		var total uint64
		for i := 0; i < len(out); i += 2 {
			if uint64(out[i]) != total || out[i+1] == 0 {
				return nil, fault.Rel(0, len(b), "rle",
					"run %d: expected the first entry %d, found %d, with a count of %d", i/2, total, out[i], out[i+1])
			}
			total += uint64(out[i+1])
		}
		return out, nil
	})
}

// RowIDs returns the row ids of a page of n rows, see permutation.
func (k *KeyWidths) RowIDs(ids, starts []byte, n int, a *vec.Arena) ([]uint32, error) {
	return k.try(n, func(w int) ([]uint32, error) {
		i, err := UnpackNumbers(ids, w, a)
		if err != nil {
			return nil, err
		}
		s, err := UnpackNumbers(starts, w, a)
		if err != nil {
			return nil, err
		}
		return permutation(i, s, n, a)
	})
}

// UnpackNumbers unpacks numbers of w bits, which are stored as one big-endian number with the last of them in its
// lowest bits. Fewer than eight bits may precede the first number, and they must be zero.
func UnpackNumbers(b []byte, w int, a *vec.Arena) ([]uint32, error) {
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
