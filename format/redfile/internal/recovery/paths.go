package recovery

import (
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
)

// lose notes that a chunk cannot be read.
func (r *recoverer) lose(group, col int, off int64) layout.ColumnChunk {
	at := r.f.At.Sub(min(max(off, 0), r.f.At.Len), 0)
	r.lost[container.ChunkKey{Group: group, Col: col}] = fault.Corruptf(at,
		layout.ChunkPath(group, col)+".column_metadata",
		"the metadata of the column was not found")
	return layout.ColumnChunk{Offset: off}
}

// byPaths makes row groups of the chunks that no sync block mentions.
func (r *recoverer) byPaths() {
	if len(r.chunks) == 0 {
		return
	}
	paths, sure := r.paths()
	if !sure && !r.again { // one set of chunks: are these all columns of the first row group?
		r.Rows("redfile.columns.unknown", r.f.At.Sub(r.end, r.f.At.Len-r.end), [2]int64{-1, -1}, -1,
			"chunks of %d columns, each once, and nothing that says how many the table has: what was after %q "+
				"is missing, if the file is cut within its first row group; option schema=FILE says it", paths.n,
			strings.Join(r.chunks[len(r.chunks)-1].meta.Path, "."))
	}
	if len(r.groups) > 0 && paths.n != len(r.groups[0].Columns) {
		r.Rows("redfile.rows.lost", r.f.At.Sub(r.end, r.f.At.Len-r.end), [2]int64{-1, -1}, -1,
			"chunks of %d columns, the row groups before have %d; they are given up", paths.n, len(r.groups[0].Columns))
		return
	}
	b := groupBuilder{r: r, paths: paths}
	b.spans, b.round, b.once = r.spans(&b.paths)
	b.begin()
	for _, c := range r.chunks {
		if !b.add(c) {
			return
		}
	}
	if b.last >= 0 {
		r.unfinished(&b.g, paths.n, b.finish)
	}
}

// groupBuilder makes row groups of chunks that come in the order of the file.
type groupBuilder struct {
	r       *recoverer
	paths   pathList
	spans   []int64 // bytes that each column usually takes
	round   int64   // and all of them; 0: not known
	once    bool    // of some by one chunk only
	g       layout.RowGroup
	last    int   // the last column that g has; -1: none
	lastEnd int64 // where its chunk ends
}

// begin begins a row group without columns.
func (b *groupBuilder) begin() {
	b.g, b.last = layout.RowGroup{Rows: -1, Columns: make([]layout.ColumnChunk, b.paths.n)}, -1
	for i := range b.g.Columns {
		b.g.Columns[i].Offset = -1
	}
}

// finish ends a row group: what is missing is lost.
func (b *groupBuilder) finish() {
	r, group := b.r, len(b.r.groups)
	for i := range b.g.Columns {
		if b.g.Columns[i].Meta == nil {
			b.g.Columns[i] = r.lose(group, i, r.end)
		}
	}
	r.recount(&b.g)
	b.g.Rows = rowsOfColumns(b.g.Columns, r.repeats)
	r.groups = append(r.groups, b.g)
}

// add takes the next chunk; false: too many are missing, and what follows is given up.
func (b *groupBuilder) add(c foundChunk) bool {
	r, i := b.r, b.paths.find(c.meta.Path, b.last+1)
	if b.last >= 0 && i >= 0 && b.round > 0 {
		far := c.meta.Data - b.lastEnd
		for k := b.last + 1; k < i; k++ {
			far -= b.spans[k]
		}
		if far > b.round*3/4 || far > b.round/2 && !b.once { // more is missing than the columns between them
			b.apart(c, far)
			i = -1
		}
	}
	if i < 0 { // it is one that was there already: the next row group has begun
		if i = b.paths.find(c.meta.Path, 0); i < 0 {
			return true
		}
		b.finish()
		if len(r.lost) > 1000+len(r.chunks) { // row groups of one chunk each, of very many columns
			r.Rows("redfile.rows.lost", r.f.At.Sub(c.off, r.f.At.Len-c.off), [2]int64{-1, -1}, -1,
				"far more chunks are missing than were found; what follows is given up")
			return false
		}
		b.begin()
	}
	b.g.Columns[i], b.last, b.lastEnd = layout.ColumnChunk{Offset: c.off, Meta: c.meta}, i, c.end
	if b.last == b.paths.n-1 {
		b.finish()
		b.begin()
	}
	return true
}

// apart reports that a chunk, so many bytes too far after the one before, is of another row group. Where columns were
// found once there may as well have been a large column in between, and no such rows.
func (b *groupBuilder) apart(c foundChunk, far int64) {
	r, rows := b.r, [2]int64{-1, -1}
	if b.once && !r.repeats(c.meta) {
		first := max(0, rowsOfColumns(b.g.Columns, r.repeats))
		for i := range r.groups {
			first += max(0, r.groups[i].Rows)
		}
		rows = [2]int64{first, first + c.meta.Values}
	}
	r.Rows("redfile.rows.lost", r.f.At.Sub(c.meta.Data, 0), rows, -1, "column %q begins %d bytes too far after the "+
		"column before, and a row group has about %d: it is another's", strings.Join(c.meta.Path, "."), far, b.round)
}

// recount has columns of a row group have as many values as the headers of their pages say, and not their metadata,
// where the other columns agree with those, or there are none: how many there are is what gives a row group its rows,
// and no checksum is over it.
func (r *recoverer) recount(g *layout.RowGroup) {
	votes := map[int64]int{}
	for _, c := range g.Columns {
		if c.Meta == nil || r.repeats(c.Meta) {
			continue
		}
		votes[c.Meta.Values]++
		if n, ok := r.paged[c.Meta]; ok {
			votes[n]++
		}
	}
	for _, c := range g.Columns {
		n, ok := r.paged[c.Meta]
		if c.Meta == nil || !ok || r.repeats(c.Meta) || votes[n] < votes[c.Meta.Values] {
			continue
		}
		r.For(r.Part, strings.Join(c.Meta.Path, ".")).Report("redfile.column.damaged", r.f.At.Sub(c.Offset, 0), "",
			"num_values: %d, the pages before it have %d by their headers", c.Meta.Values, n)
		c.Meta.Values = n
	}
}

// spans are how many bytes the columns take in a row group, about, by what was found of each, and all together; once:
// of some by one chunk only. Where one of a column was not found nobody knows.
func (r *recoverer) spans(paths *pathList) (spans []int64, round int64, once bool) {
	found := make([][]int64, paths.n)
	for _, c := range r.chunks {
		if i := paths.find(c.meta.Path, 0); i >= 0 && c.end > c.meta.Data {
			found[i] = append(found[i], c.end-c.meta.Data)
		}
	}
	for _, f := range found {
		if len(f) == 0 {
			return nil, 0, false
		}
		once = once || len(f) == 1
		slices.Sort(f)
		spans = append(spans, f[(len(f)-1)/2])
		round += f[(len(f)-1)/2]
	}
	return spans, round, once
}

// unfinished reports the last row group, of which columns are missing. It is kept if one of those that are
// there says how many rows it has.
func (r *recoverer) unfinished(g *layout.RowGroup, columns int, finish func()) {
	at, found, rows := r.f.At.Sub(r.end, r.f.At.Len-r.end), count(g.Columns), rowsOfColumns(g.Columns, r.repeats)
	if rows < 0 {
		r.Rows("redfile.rows.lost", at, [2]int64{-1, -1}, -1, "the last row group is not whole: %d of %d "+
			"columns were found, and none that says how many rows it has; it is given up", found, columns)
		return
	}
	// what was found may also be a copy of a chunk that another row group has: whether there are such rows is in doubt
	first := int64(0)
	for i := range r.groups {
		first += max(0, r.groups[i].Rows)
	}
	r.Rows("redfile.rows.lost", at, [2]int64{first, first + rows}, rows,
		"the last row group is cut: %d of %d columns are there; null in place of the others' cells keeps its rows",
		found, columns)
	finish()
}

func count(cols []layout.ColumnChunk) (n int) {
	for _, c := range cols {
		if c.Meta != nil {
			n++
		}
	}
	return n
}

// paths are those of the columns in their order: as the schema says, or, which is not sure, as they come.
func (r *recoverer) paths() (out pathList, sure bool) {
	if r.known != nil && len(r.known.Schema) > 0 {
		if t, err := schema.TreeOfElements(r.known.Schema, r.known.Gen, r.f.Limits, r.f.At); err == nil {
			for _, l := range schema.LeavesOf(t) {
				out.add(l.Path)
			}
			return out, true
		}
	}
	for _, g := range r.groups {
		for _, c := range g.Columns {
			if c.Meta != nil && out.find(c.Meta.Path, 0) < 0 {
				out.add(c.Meta.Path)
			}
		}
	}
	if len(r.groups) > 0 && out.n == len(r.groups[0].Columns) {
		return out, true
	}
	if r.known != nil {
		if known, ok := r.arrowPaths(); ok {
			return known, true
		}
	}
	return r.turned(r.foundPaths()), false
}

// turned begins the paths with another one where bytes at the file's beginning were not understood: the first chunk
// that was found is then not the first of its row group, but comes after as many columns as those bytes may be, and
// what follows it would be put together with columns of the row group after.
func (r *recoverer) turned(paths pathList) pathList {
	lost := r.chunks[0].meta.Data - layout.MagicLen
	if lost <= 0 || !r.again || paths.find(r.chunks[0].meta.Path, 0) != 0 {
		return paths
	}
	if i := r.firstByRows(&paths); i >= 0 {
		return paths.from(i)
	}
	sizes, round := r.sizes(&paths)
	if round <= 0 {
		return paths
	}
	lost %= round
	before, best, sum := 0, min(lost, round-lost), int64(0)
	for k := 1; k < paths.n; k++ {
		sum += sizes[paths.n-k]
		if far := max(sum-lost, lost-sum); far < best {
			before, best = k, far
		}
	}
	return paths.from((paths.n - before) % paths.n)
}

// firstByRows is the place of the path with which row groups begin, where chunks that follow each other have other
// numbers of rows; -1: there are none, or they contradict each other.
func (r *recoverer) firstByRows(paths *pathList) int {
	first := -1
	for k, c := range r.chunks[1:] {
		before := r.chunks[k]
		if c.meta.Data != before.end || c.meta.Values == before.meta.Values || r.repeats(c.meta) ||
			r.repeats(before.meta) {
			continue
		}
		i := paths.find(c.meta.Path, 0)
		if first >= 0 && i != first {
			return -1
		}
		first = i
	}
	return first
}

// sizes are how many bytes the columns take, about, in the row group of the first chunk that was found, and all
// together: by the largest chunk of each, since the last row group may have fewer rows, and by how many values that
// first chunk has, and others of its column.
func (r *recoverer) sizes(paths *pathList) (sizes []int64, all int64) {
	first, others := r.chunks[0].meta, int64(1)
	for _, c := range r.chunks[1:] {
		if slices.Equal(c.meta.Path, first.Path) {
			others = max(others, c.meta.Values)
		}
	}
	times := min(max(1, first.Values/others), 1<<20)
	sizes = make([]int64, paths.n)
	for _, c := range r.chunks[1:] {
		i, size := paths.find(c.meta.Path, 0), c.end-c.meta.Data
		sizes[i] = max(sizes[i], size+(times-1)*min(max(0, c.meta.Stored), size))
	}
	for _, n := range sizes {
		all += n
	}
	return sizes, all
}

// arrowPaths are the paths of the Arrow schema that the writer kept.
func (r *recoverer) arrowPaths() (out pathList, ok bool) {
	t := schema.ArrowTree(r.known, r.f.Limits)
	if t == nil {
		return out, false
	}
	for _, l := range schema.LeavesOf(t) {
		out.add(l.Path)
	}
	return out, true
}

// repeats reports whether a column may have more values than rows.
func (r *recoverer) repeats(m *layout.ColumnMeta) bool {
	if r.known == nil || m.HasLevels || len(r.known.Schema) == 0 {
		return !m.HasLevels || m.MaxRep > 0
	}
	if r.flat == nil {
		r.flat = map[string]bool{}
		if t, err := schema.TreeOfElements(r.known.Schema, r.known.Gen, r.f.Limits, r.f.At); err == nil {
			for _, l := range schema.LeavesOf(t) {
				r.flat[pathKey(l.Path)] = l.MaxRep == 0
			}
		}
	}
	return !r.flat[pathKey(m.Path)]
}

// takeLevels takes the levels that our writer of generation E puts in the metadata of a column.
func takeLevels(m *layout.ColumnMeta) {
	for _, kv := range m.Pairs {
		var d, p int32
		if n, _ := fmt.Sscanf(kv.Value, "%d,%d", &d, &p); kv.Key == layout.LevelsKey && n == 2 && p >= 0 && d >= p &&
			d < 128 {
			m.HasLevels, m.MaxDef, m.MaxRep = true, d, p
		}
	}
}

// rowsOfColumns is the number of values of a column that does not repeat; -1 if there is none.
func rowsOfColumns(cols []layout.ColumnChunk, repeats func(*layout.ColumnMeta) bool) int64 {
	for _, c := range cols {
		if c.Meta != nil && !repeats(c.Meta) {
			return c.Meta.Values
		}
	}
	return -1
}
