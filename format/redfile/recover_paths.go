package redfile

import (
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
)

// lose notes that a chunk cannot be read.
func (r *rescue) lose(group, col int, off int64) columnChunk {
	at := r.f.at.Sub(min(max(off, 0), r.f.at.Len), 0)
	r.lost[chunkKey{group, col}] = fault.Corruptf(at, chunkPath(group, col)+".column_metadata",
		"the metadata of the column was not found")
	return columnChunk{offset: off}
}

// byPaths makes row groups of the chunks that no sync block tells of.
func (r *rescue) byPaths() {
	if len(r.chunks) == 0 {
		return
	}
	paths, sure := r.paths()
	if !sure && !r.again { // one set of chunks: are these all columns of the first row group?
		r.Rows("redfile.columns.unknown", r.f.at.Sub(r.end, r.f.at.Len-r.end), [2]int64{-1, -1}, -1,
			"chunks of %d columns, each once, and nothing that says how many the table has: what was behind %q "+
				"is missing, if the file is cut within its first row group; option schema=FILE says it", paths.n,
			strings.Join(r.chunks[len(r.chunks)-1].meta.path, "."))
	}
	if len(r.groups) > 0 && paths.n != len(r.groups[0].columns) {
		r.Rows("redfile.rows.lost", r.f.at.Sub(r.end, r.f.at.Len-r.end), [2]int64{-1, -1}, -1,
			"chunks of %d columns, the row groups before have %d; they are given up", paths.n, len(r.groups[0].columns))
		return
	}
	var g rowGroup
	last := -1
	begin := func() {
		g, last = rowGroup{rows: -1, columns: make([]columnChunk, paths.n)}, -1
		for i := range g.columns {
			g.columns[i].offset = -1
		}
	}
	finish := func() {
		group := len(r.groups)
		for i := range g.columns {
			if g.columns[i].meta == nil {
				g.columns[i] = r.lose(group, i, r.end)
			}
		}
		g.rows = rowsOfColumns(g.columns, r.repeats)
		r.groups = append(r.groups, g)
	}
	spans, round := r.spans(&paths)
	begin()
	for _, c := range r.chunks {
		i := paths.find(c.meta.path, last+1)
		if last >= 0 && i >= 0 && round > 0 {
			far := c.meta.data - g.columns[last].meta.data
			for k := last; k < i; k++ {
				far -= spans[k]
			}
			if far > round/2 { // what is missing in between is more than the columns between them
				r.Rows("redfile.rows.lost", r.f.at.Sub(c.meta.data, 0), [2]int64{-1, -1}, -1, "column %q begins %d "+
					"bytes too far behind the column before, and a row group has about %d: it is another's",
					strings.Join(c.meta.path, "."), far, round)
				i = -1
			}
		}
		if i < 0 { // it is one that was there already: the next row group has begun
			if i = paths.find(c.meta.path, 0); i < 0 {
				continue
			}
			finish()
			if len(r.lost) > 1000+len(r.chunks) { // row groups of one chunk each, of very many columns
				r.Rows("redfile.rows.lost", r.f.at.Sub(c.off, r.f.at.Len-c.off), [2]int64{-1, -1}, -1,
					"far more chunks are missing than were found; what follows is given up")
				return
			}
			begin()
		}
		g.columns[i], last = columnChunk{offset: c.off, meta: c.meta}, i
		if last == paths.n-1 {
			finish()
			begin()
		}
	}
	if last >= 0 {
		r.unfinished(&g, paths.n, finish)
	}
}

// spans are how many bytes the columns take in a row group, about, by what was found of each, and all together; of
// fewer than two row groups, or where a column was not found, nobody knows.
func (r *rescue) spans(paths *pathList) (spans []int64, round int64) {
	found := make([][]int64, paths.n)
	for _, c := range r.chunks {
		if i := paths.find(c.meta.path, 0); i >= 0 && c.end > c.meta.data {
			found[i] = append(found[i], c.end-c.meta.data)
		}
	}
	for _, f := range found {
		if len(f) < 2 {
			return nil, 0
		}
		slices.Sort(f)
		spans = append(spans, f[(len(f)-1)/2])
		round += f[(len(f)-1)/2]
	}
	return spans, round
}

// unfinished tells of the last row group, of which columns are missing. It is kept if one of those that are
// there says how many rows it has.
func (r *rescue) unfinished(g *rowGroup, columns int, finish func()) {
	at, found, rows := r.f.at.Sub(r.end, r.f.at.Len-r.end), count(g.columns), rowsOfColumns(g.columns, r.repeats)
	if rows < 0 {
		r.Rows("redfile.rows.lost", at, [2]int64{-1, -1}, -1, "the last row group is not whole: %d of %d "+
			"columns were found, and none that says how many rows it has; it is given up", found, columns)
		return
	}
	// what was found may also be a copy of a chunk that another row group has: whether there are such rows is in doubt
	first := int64(0)
	for i := range r.groups {
		first += max(0, r.groups[i].rows)
	}
	r.Rows("redfile.rows.lost", at, [2]int64{first, first + rows}, rows,
		"the last row group is cut: %d of %d columns are there; null in place of the others' cells keeps its rows",
		found, columns)
	finish()
}

func count(cols []columnChunk) (n int) {
	for _, c := range cols {
		if c.meta != nil {
			n++
		}
	}
	return n
}

// paths are those of the columns in their order: as the schema says, or, which is not sure, as they come.
func (r *rescue) paths() (out pathList, sure bool) {
	if r.known != nil && len(r.known.schema) > 0 {
		if t, err := treeOfElements(r.known.schema, r.known.gen, r.f.at); err == nil {
			for _, l := range leavesOf(t) {
				out.add(l.path)
			}
			return out, true
		}
	}
	for _, g := range r.groups {
		for _, c := range g.columns {
			if c.meta != nil && out.find(c.meta.path, 0) < 0 {
				out.add(c.meta.path)
			}
		}
	}
	if len(r.groups) > 0 && out.n == len(r.groups[0].columns) {
		return out, true
	}
	if r.known != nil {
		if known, ok := r.arrowPaths(); ok {
			return known, true
		}
	}
	return r.foundPaths(), false
}

// arrowPaths are the paths of the Arrow schema that the writer kept.
func (r *rescue) arrowPaths() (out pathList, ok bool) {
	t := arrowTree(r.known, r.f.limits)
	if t == nil {
		return out, false
	}
	for _, l := range leavesOf(t) {
		out.add(l.path)
	}
	return out, true
}

// repeats reports whether a column may have more values than rows.
func (r *rescue) repeats(m *columnMeta) bool {
	if r.known == nil || m.hasLevels || len(r.known.schema) == 0 {
		return !m.hasLevels || m.maxRep > 0
	}
	if r.flat == nil {
		r.flat = map[string]bool{}
		if t, err := treeOfElements(r.known.schema, r.known.gen, r.f.at); err == nil {
			for _, l := range leavesOf(t) {
				r.flat[pathKey(l.path)] = l.maxRep == 0
			}
		}
	}
	return !r.flat[pathKey(m.path)]
}

// takeLevels takes the levels that our writer of generation E puts in the metadata of a column.
func takeLevels(m *columnMeta) {
	for _, kv := range m.pairs {
		var d, p int32
		if n, _ := fmt.Sscanf(kv.value, "%d,%d", &d, &p); kv.key == levelsKey && n == 2 && p >= 0 && d >= p && d < 128 {
			m.hasLevels, m.maxDef, m.maxRep = true, d, p
		}
	}
}

// rowsOfColumns is the number of values of a column that does not repeat; -1 if there is none.
func rowsOfColumns(cols []columnChunk, repeats func(*columnMeta) bool) int64 {
	for _, c := range cols {
		if c.meta != nil && !repeats(c.meta) {
			return c.meta.values
		}
	}
	return -1
}
