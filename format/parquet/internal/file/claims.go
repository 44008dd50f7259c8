package file

import (
	"cmp"
	"math"
	"slices"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
)

// Bytes that two column chunks claim are those of one at most, and nothing in the pages says of which: both would
// decode. So neither is read, but for one that alone is where writers put it, between the chunks before and after it
// in the footer.

// claim is where the footer has a chunk.
type claim struct {
	key  ChunkKey
	at   fault.Span
	with ChunkKey // the chunk that has bytes of it, too; only if shared
	// shared: another chunk has bytes of it
	shared bool
}

// ClaimedTwice are the chunks that are not read because another one claims bytes of theirs, and why; nil if there are
// none.
func (r *File) ClaimedTwice() map[ChunkKey]error {
	var all []claim
	for g, rg := range r.Footer.RowGroups {
		for k, c := range rg.Columns {
			if at := r.ChunkSpan(g, k); at.Len > 0 && c.FilePath == "" {
				all = append(all, claim{key: ChunkKey{g, k}, at: at})
			}
		}
	}
	byPlace := make([]int, len(all))
	for i := range byPlace {
		byPlace[i] = i
	}
	slices.SortStableFunc(byPlace, func(a, b int) int { return cmp.Compare(all[a].at.Off, all[b].at.Off) })
	clusters := clustersOf(all, byPlace)
	if len(clusters) == 0 {
		return nil
	}
	inPlace := placesKept(all)
	out := map[ChunkKey]error{}
	for _, cluster := range clusters {
		kept := 0
		for _, i := range cluster {
			if inPlace[i] {
				kept++
			}
		}
		for _, i := range cluster {
			if x := &all[i]; kept != 1 || !inPlace[i] {
				out[x.key] = fault.Corruptf(x.at, meta.IndexPath(x.key.Group, x.key.Leaf, "data_page_offset"),
					"the bytes also belong to row_groups[%d].columns[%d]", x.with.Group, x.with.Leaf)
			}
		}
	}
	return out
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
			x.shared, x.with = true, all[last].key
			if first := &all[open[0]]; len(open) == 2 {
				first.shared, first.with = true, x.key
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
