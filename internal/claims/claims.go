// Package claims finds bytes of a file that two column chunks claim: they are those of one at most, and nothing in the
// pages says of which, as both would decode. So neither is read, but for one that alone is where writers put it,
// between the chunks before and after it in the metadata.
package claims

import (
	"cmp"
	"math"
	"slices"

	"stoa/fault"
)

// Chunk is where the metadata has a column chunk.
type Chunk struct {
	Group, Column int
	At            fault.Span
}

// Twice are the chunks of all, in the order of the metadata, that are not to be read because another one claims bytes
// of theirs, which is the value; nil if there are none. Both are indices of all.
func Twice(all []Chunk) map[int]int {
	chunks, byPlace := make([]claim, len(all)), make([]int, len(all))
	for i := range all {
		chunks[i].at, byPlace[i] = all[i].At, i
	}
	slices.SortStableFunc(byPlace, func(a, b int) int { return cmp.Compare(all[a].At.Off, all[b].At.Off) })
	clusters := clustersOf(chunks, byPlace)
	if len(clusters) == 0 {
		return nil
	}
	inPlace := placesKept(chunks)
	out := map[int]int{}
	for _, cluster := range clusters {
		kept := 0
		for _, i := range cluster {
			if inPlace[i] {
				kept++
			}
		}
		for _, i := range cluster {
			if kept != 1 || !inPlace[i] {
				out[i] = chunks[i].with
			}
		}
	}
	return out
}

// claim is a chunk with what is known of the bytes it claims.
type claim struct {
	at     fault.Span
	with   int  // the chunk that has bytes of it, too; only if shared
	shared bool // another chunk has bytes of it
}

// clustersOf are the chunks that share bytes, those together that do, and sets with and shared. byPlace is their order
// in the file.
func clustersOf(all []claim, byPlace []int) (out [][]int) {
	end, last := int64(math.MinInt64), -1 // of the chunks so far, and the one that ends there
	var open []int
	for _, i := range byPlace {
		x := &all[i]
		if x.at.Off >= end {
			open = nil
		}
		if open = append(open, i); len(open) > 1 {
			x.shared, x.with = true, last
			if first := &all[open[0]]; len(open) == 2 {
				first.shared, first.with = true, i
				out = append(out, nil)
			}
			out[len(out)-1] = open
		}
		if e := x.at.End(); e > end || last < 0 {
			end, last = e, i
		}
	}
	return out
}

// placesKept reports of each chunk, in the order of the footer, whether the chunks that share no bytes are before it in
// the file if they are before it in the footer, and after it otherwise. Where there are none, nothing is known of it.
func placesKept(all []claim) []bool {
	out := make([]bool, len(all))
	known := make([]bool, len(all))
	before, some := int64(math.MinInt64), false
	for i := range all {
		out[i], known[i] = all[i].at.Off >= before, some
		if !all[i].shared {
			before, some = max(before, all[i].at.End()), true
		}
	}
	after := int64(math.MaxInt64)
	some = false
	for i := len(all) - 1; i >= 0; i-- {
		out[i] = out[i] && all[i].at.End() <= after && (known[i] || some)
		if !all[i].shared {
			after, some = min(after, all[i].at.Off), true
		}
	}
	return out
}
