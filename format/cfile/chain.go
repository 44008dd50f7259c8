package cfile

import (
	"slices"

	"stoa/format/cfile/internal/columnfile"
)

// heaviestChain returns the chain of blocks with the most bytes. A chain is a sequence in which each block begins at or
// after the row at which the one before it ends. blocks must be sorted by offset. The search takes O(n log n).
func heaviestChain(blocks []columnfile.DataBlock) []columnfile.DataBlock {
	var ends []int64
	for _, b := range blocks {
		ends = append(ends, b.First+b.Rows)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	// A Fenwick tree. Each entry is 1 + the index of the last block of the heaviest chain that ends at or before
	// ends[i-1].
	best := make([]int, len(ends)+1)
	weight, before := make([]int64, len(blocks)+1), make([]int, len(blocks)+1)
	for i, b := range blocks {
		n, _ := slices.BinarySearch(ends, b.First+1)
		for ; n > 0; n &= n - 1 {
			if weight[best[n]] > weight[before[i+1]] {
				before[i+1] = best[n]
			}
		}
		weight[i+1] = weight[before[i+1]] + b.Ptr.Size
		n, _ = slices.BinarySearch(ends, b.First+b.Rows)
		for n++; n < len(best); n += n & -n {
			if weight[i+1] > weight[best[n]] {
				best[n] = i + 1
			}
		}
	}
	last := 0
	for i, w := range weight {
		if w > weight[last] {
			last = i
		}
	}
	var out []columnfile.DataBlock
	for ; last > 0; last = before[last] {
		out = append(out, blocks[last-1])
	}
	slices.Reverse(out)
	return out
}
