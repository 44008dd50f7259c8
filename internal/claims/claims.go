// Package claims finds bytes of a file that two column chunks claim. They belong to at most one of them, and the pages
// do not show to which, because both would decode. So neither chunk is read, unless exactly one of them is where
// writers put it, between the chunks before and after it in the metadata.
package claims

import (
	"cmp"
	"math"

	"stoa/fault"
	"stoa/internal/sorted"
)

// Chunk is the location of a column chunk according to the metadata.
type Chunk struct {
	Group, Column int
	At            fault.Span
}

// Overlaps returns the chunks that must not be read because another chunk claims some of their bytes, mapped to that
// chunk; nil if there are none. Both are indices of all, which must be in the order of the metadata.
func Overlaps(all []Chunk) map[int]int {
	chunks, byPlace := make([]claim, len(all)), make([]int, len(all))
	for i := range all {
		chunks[i].at, byPlace[i] = all[i].At, i
	}
	sorted.StablyBy(byPlace, func(a, b int) int { return cmp.Compare(all[a].At.Off, all[b].At.Off) })
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

// claim is a chunk and the facts about the bytes it claims.
type claim struct {
	at     fault.Span
	with   int  // the chunk that also claims bytes of this one; valid only if shared
	shared bool // another chunk claims some of its bytes
}

// clustersOf returns groups of chunks that share bytes, and sets with and shared. byPlace is the order of the chunks in
// the file.
func clustersOf(all []claim, byPlace []int) (out [][]int) {
	end, last := int64(math.MinInt64), -1 // of the chunks so far, and the chunk that ends there
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

// placesKept reports, for each chunk in the order of the footer, whether every chunk that shares no bytes is on the
// same side of it in the file as in the footer. If there are no such chunks, nothing is known about it.
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
