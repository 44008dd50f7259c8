package recovery

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
)

// lostChunk records that the metadata of a chunk was not found, and returns a chunk without it.
func (r *recoverer) lostChunk(group, col int, off int64) layout.ColumnChunk {
	at := r.f.At.Sub(min(max(off, 0), r.f.At.Len), 0)
	r.lost[container.ChunkKey{Group: group, Col: col}] = fault.Corruptf(at,
		layout.ChunkPath(group, col)+".column_metadata",
		"the metadata of the column was not found")
	return layout.ColumnChunk{Offset: off}
}

// byPaths makes row groups of the chunks that no sync block lists.
func (r *recoverer) byPaths() {
	if len(r.chunks) == 0 {
		return
	}
	r.correctPaths()
	paths, sure := r.paths()
	if !sure && !r.repeated { // each path was found once: columns of the first row group may be missing
		r.Rows("redfile.columns.unknown", r.f.At.Sub(r.end, r.f.At.Len-r.end), [2]int64{-1, -1}, -1,
			"chunks of %d columns were found, each once, and not how many the table has: columns after %q are "+
				"missing if the file is cut within its first row group; option schema=FILE names the schema", paths.n,
			strings.Join(r.chunks[len(r.chunks)-1].meta.Path, "."))
	}
	if len(r.groups) > 0 && paths.n != len(r.groups[0].Columns) {
		r.Rows("redfile.rows.lost", r.f.At.Sub(r.end, r.f.At.Len-r.end), [2]int64{-1, -1}, -1,
			"chunks of %s, the row groups before have %d; they are given up", fault.Count(paths.n, "column"),
			len(r.groups[0].Columns))
		return
	}
	begins := sure
	if !sure {
		paths, begins = r.rotated(paths)
	}
	if !begins && len(r.chunks) > 1 {
		r.Rows("redfile.columns.unknown", r.f.At.Sub(layout.MagicLen, r.chunks[0].meta.Data-layout.MagicLen),
			[2]int64{-1, -1}, -1, "the first chunk is lost, and with it the column with which row groups begin: each "+
				"chunk is shown by itself, as it is not known which are of the same rows; option schema=FILE names "+
				"the schema")
	}
	b := groupBuilder{r: r, paths: paths, apart: !begins}
	b.spans, b.groupSpan, b.single = r.columnSpans(&b.paths)
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

// correctPaths corrects damaged names. If row groups repeat but the path of a chunk occurs only once, the chunk gets
// the path of the column of its type between the same neighbours in another row group, if nothing else lies between
// them in either. Names have no checksum, and a damaged one would be mistaken for an additional column, and thus for
// the end of its row group.
func (r *recoverer) correctPaths() {
	if !r.repeated {
		return
	}
	times := map[string]int{}
	key := func(k int) string { return pathKey(r.chunks[k].meta.Path) }
	for k := range r.chunks {
		times[key(k)]++
	}
	between := map[[2]string]int{} // paths that repeat, by the paths of the neighbouring chunks
	for k := 1; k+1 < len(r.chunks); k++ {
		if times[key(k)] > 1 && r.adjoins(k-1) && r.adjoins(k) {
			between[[2]string{key(k - 1), key(k + 1)}] = k
		}
	}
	for k := 1; k+1 < len(r.chunks); k++ {
		as, ok := between[[2]string{key(k - 1), key(k + 1)}]
		if !ok || times[key(k)] > 1 || !r.adjoins(k-1) || !r.adjoins(k) {
			continue
		}
		was, m := r.chunks[k].meta, r.chunks[as].meta
		if was.Type != m.Type || was.MaxDef != m.MaxDef || was.MaxRep != m.MaxRep {
			continue // another column
		}
		found, expected := strings.Join(was.Path, "."), strings.Join(m.Path, ".")
		r.For(r.Part, expected).Report("redfile.column.damaged", r.f.At.Sub(r.chunks[k].off, 0), "",
			"path: expected %s, as in other row groups, found %q", expected, found)
		was.Path = m.Path
	}
}

// adjoins reports whether nothing but pages lies between chunk k and the next one.
func (r *recoverer) adjoins(k int) bool {
	return r.onlyPages(r.chunks[k].end, r.chunks[k+1].meta.Data)
}

// groupBuilder makes row groups of chunks in the order of the file.
type groupBuilder struct {
	r         *recoverer
	paths     pathList
	spans     []int64 // estimated size in bytes of each column in a row group
	groupSpan int64   // their sum; 0 if unknown
	single    bool    // some column has only one chunk
	apart     bool    // it is not known which chunks are of the same row group
	g         layout.RowGroup
	last      int   // the last column in g; -1 if none
	lastEnd   int64 // end of its chunk, as far as is known
}

// begin starts a row group without columns.
func (b *groupBuilder) begin() {
	b.g, b.last = layout.RowGroup{Rows: -1, Columns: make([]layout.ColumnChunk, b.paths.n)}, -1
	for i := range b.g.Columns {
		b.g.Columns[i].Offset = -1
	}
}

// finish adds the row group. Missing chunks are recorded as lost.
func (b *groupBuilder) finish() {
	r, group := b.r, len(b.r.groups)
	for i := range b.g.Columns {
		if b.g.Columns[i].Meta == nil {
			b.g.Columns[i] = r.lostChunk(group, i, r.end)
		}
	}
	r.recount(&b.g)
	b.g.Rows = rowsOfColumns(b.g.Columns, r.repeats)
	r.groups = append(r.groups, b.g)
}

// add adds the next chunk. It returns false if too many chunks are missing; all further chunks are then given up.
func (b *groupBuilder) add(c foundChunk) bool {
	r, i := b.r, b.paths.find(c.meta.Path, b.last+1)
	if b.apart && b.last >= 0 {
		i = -1
	}
	if b.last >= 0 && i >= 0 {
		if excess, apart := b.tooFar(i, c); apart {
			b.reportGap(c, excess)
			i = -1
		}
	}
	if i < 0 { // the column does not follow the last one, so the next row group has begun
		if i = b.paths.find(c.meta.Path, 0); i < 0 {
			return true
		}
		b.finish()
		if len(r.lost) > 1000+len(r.chunks) { // crafted: each row group has one chunk of very many columns
			r.Rows("redfile.rows.lost", r.f.At.Sub(c.off, r.f.At.Len-c.off), [2]int64{-1, -1}, -1,
				"far more chunks are missing than were found; what follows is given up")
			return false
		}
		b.begin()
	}
	b.g.Columns[i], b.last = layout.ColumnChunk{Offset: c.off, Meta: c.meta}, i
	b.lastEnd = c.end
	if b.groupSpan > 0 && c.end > c.meta.Data+b.spans[i]+b.groupSpan/4 { // its metadata may have been moved
		if w := r.pages(c.meta, c.off); !w.whole || w.end != c.off {
			b.lastEnd = c.meta.Data + b.spans[i]
		}
	}
	if b.last == b.paths.n-1 {
		b.finish()
		b.begin()
	}
	return true
}

// tooFar reports whether c, of column i, is too far after the last chunk to be of the same row group. excess is the
// number of bytes between the two beyond those of the columns between them, as far as these are known.
func (b *groupBuilder) tooFar(i int, c foundChunk) (excess int64, apart bool) {
	excess = c.meta.Data - b.lastEnd
	if b.groupSpan > 0 {
		for k := b.last + 1; k < i; k++ {
			excess -= b.spans[k]
		}
		if excess > b.groupSpan*3/4 || excess > b.groupSpan/2 && !b.single {
			return excess, true
		}
	}
	if i == b.last+1 {
		return excess, !b.r.onlyPages(b.lastEnd, c.meta.Data) && !b.r.onlyPages(b.lastEnd, c.off)
	}
	return excess, b.crowded(i, c)
}

// crowded reports whether more values lie between the last chunk and c than the columns between them can have. Then
// columns of another row group are there, too.
func (b *groupBuilder) crowded(i int, c foundChunk) bool {
	rows := rowsOfColumns(b.g.Columns, b.r.repeats)
	for _, m := range b.r.seen {
		if b.r.repeats(m) {
			return false // it may have any number of values
		}
	}
	return rows >= 0 && len(b.r.seen) == b.paths.n && b.r.valuesBetween(b.lastEnd, c.meta.Data) > rows*int64(i-b.last-1)
}

// valuesBetween returns the number of values in the data pages from pos to end: those that follow one another, and
// beyond damage those with a correct checksum.
func (r *recoverer) valuesBetween(pos, end int64) (n int64) {
	for pos < end && r.ctx.Err() == nil && r.afford(seekCost/16) {
		h, head, err := r.page(pos, end)
		if err != nil {
			if pos, err = r.search(pos + 1); err != nil {
				break
			}
			continue
		}
		if h.Kind == layout.DataPage {
			n += int64(h.Values)
		}
		pos += head + int64(h.Stored)
	}
	return n
}

// onlyPages reports whether there are only pages from pos to end, such as those of an index: then nothing lies between
// two chunks. If there is anything else, other chunks were there, and how much of the file they took is not known, as
// bytes may have been moved.
func (r *recoverer) onlyPages(pos, end int64) bool {
	for pos < end && r.afford(seekCost/16) {
		h, head, err := r.page(pos, end)
		if err != nil || h.Kind == layout.SyncPage {
			return false
		}
		pos += head + int64(h.Stored)
	}
	return pos >= end
}

// reportGap reports that a chunk, excess bytes too far after the previous one, belongs to another row group. If some
// columns were found only once, there may instead have been a large column between the two chunks, and no such rows.
func (b *groupBuilder) reportGap(c foundChunk, excess int64) {
	r, rows := b.r, [2]int64{-1, -1}
	if b.single && !r.repeats(c.meta) {
		first := max(0, rowsOfColumns(b.g.Columns, r.repeats))
		for i := range r.groups {
			first += max(0, r.groups[i].Rows)
		}
		rows = [2]int64{first, first + c.meta.Values}
	}
	about := ""
	if b.groupSpan > 0 {
		about = fmt.Sprintf(", and a row group has about %d", b.groupSpan)
	}
	r.Rows("redfile.rows.lost", r.f.At.Sub(c.meta.Data, 0), rows, -1, "column %q begins %d bytes too far after the "+
		"previous column%s: it is of another row group", strings.Join(c.meta.Path, "."), excess, about)
}

// recount replaces num_values of columns by the sum over the headers of their pages, if the other columns agree with
// that sum or there are no others. num_values determines the rows of a row group, and no checksum covers it. The
// metadata of the file, although its offsets are of no use, votes once for each number of rows of its row groups.
func (r *recoverer) recount(g *layout.RowGroup) {
	votes := map[int64]int{}
	for i := range r.f.Footer.Groups {
		votes[r.f.Footer.Groups[i].Rows] = 1
	}
	for _, c := range g.Columns {
		if c.Meta == nil || r.repeats(c.Meta) {
			continue
		}
		votes[c.Meta.Values]++
		if n, ok := r.headerValues[c.Meta]; ok {
			votes[n]++
		}
	}
	for _, c := range g.Columns {
		n, ok := r.headerValues[c.Meta]
		if c.Meta == nil || !ok || r.repeats(c.Meta) || votes[n] < votes[c.Meta.Values] {
			continue
		}
		r.For(r.Part, strings.Join(c.Meta.Path, ".")).Report("redfile.column.damaged", r.f.At.Sub(c.Offset, 0), "",
			"num_values: expected %d, the page headers have %d", c.Meta.Values, n)
		c.Meta.Values = n
	}
}

// columnSpans estimates the bytes of each column in a row group as the median of its chunks that were found, of those
// whose pages are whole if there are any, and returns the sum of these. single reports that some column has only one
// chunk. The sum is 0 if a column has none.
func (r *recoverer) columnSpans(paths *pathList) (spans []int64, sum int64, single bool) {
	found, whole := make([][]int64, paths.n), make([][]int64, paths.n)
	for _, c := range r.chunks {
		i := paths.find(c.meta.Path, 0)
		if i < 0 || c.end <= c.meta.Data {
			continue
		}
		found[i] = append(found[i], c.end-c.meta.Data)
		if w := r.pages(c.meta, c.off); w.whole && w.end == c.off {
			whole[i] = append(whole[i], c.end-c.meta.Data)
		}
	}
	for i, f := range found {
		if len(f) == 0 {
			return nil, 0, false
		}
		single = single || len(f) == 1
		if len(whole[i]) > 0 {
			f = whole[i]
		}
		slices.Sort(f)
		spans = append(spans, f[(len(f)-1)/2])
		sum += f[(len(f)-1)/2]
	}
	return spans, sum, single
}

// unfinished reports the last row group, in which columns are missing, and finishes it if the columns found determine
// its number of rows.
func (r *recoverer) unfinished(g *layout.RowGroup, columns int, finish func()) {
	at, found, rows := r.f.At.Sub(r.end, r.f.At.Len-r.end), count(g.Columns), rowsOfColumns(g.Columns, r.repeats)
	if rows < 0 {
		rows = g.Rows
	}
	if rows < 0 {
		r.Rows("redfile.rows.lost", at, [2]int64{-1, -1}, -1, "the last row group is incomplete: %d of %d "+
			"columns were found, none of which determines its number of rows; it is given up", found, columns)
		return
	}
	// The chunk found may be a copy of one in another row group, so it is doubtful whether there are such rows.
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

// paths returns the paths of the columns in order: from the schema (then sure is true), or in the order of the chunks.
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
	return r.foundPaths(), false
}

// rotated returns the paths in rotated order if bytes at the beginning of the file could not be parsed. In this case
// the first chunk that was found is not the first of its row group, unless whole row groups are lost. Which column is
// the first is known from numbers of rows, from the metadata of the file's first column, or if the sizes of the columns
// before fit into those bytes closely; else ok is false, and chunks of different row groups might be joined.
func (r *recoverer) rotated(paths pathList) (_ pathList, ok bool) {
	first := r.chunks[0].meta
	lost := first.Data - layout.MagicLen
	if lost <= 0 || paths.n < 2 || paths.find(first.Path, 0) != 0 {
		return paths, true
	}
	if i := r.firstByRows(&paths); r.repeated && i >= 0 {
		return paths.from(i), true
	}
	if m := r.firstOfFile(); m != nil {
		i := paths.find(m.Path, 0)
		if i < 0 {
			paths.add(m.Path) // none of its chunks was found
			i = paths.n - 1
		}
		return paths.from(i), true
	}
	sizes, groupSize := r.sizes(&paths)
	if groupSize <= 0 || !r.repeated {
		return paths, false
	}
	lost %= groupSize
	before, best, sum := 0, min(lost, groupSize-lost), int64(0) // columns before the first chunk found
	for k := 1; k < paths.n; k++ {
		sum += sizes[paths.n-k]
		if diff := max(sum-lost, lost-sum); diff < best {
			before, best = k, diff
		}
	}
	return paths.from((paths.n - before) % paths.n), best <= groupSize/(8*int64(paths.n))
}

// firstOfFile searches the file for the metadata of the column that begins right after the magic: it names the column
// with which row groups begin, wherever it is now, and even if its pages are damaged.
func (r *recoverer) firstOfFile() *layout.ColumnMeta {
	for pos := int64(layout.MagicLen); pos < r.f.At.Len; pos++ {
		b, err := r.bytes(pos, 3)
		if err != nil || r.ctx.Err() != nil {
			return nil
		}
		if len(b) < 3 || b[0] != 0x15 && !bytes.Equal(b, []byte{8, 0, 1}) || !r.afford(seekCost/16) {
			continue
		}
		if m, _, err := r.columnMeta(pos, r.f.At.Len, 4<<10); err == nil && m.Data == layout.MagicLen &&
			m.Values > 0 && len(m.Path) > 0 {
			return m
		}
	}
	return nil
}

// firstByRows returns the index of the path with which row groups begin, which shows where adjacent chunks have
// different numbers of rows; -1 if there are no such chunks or they contradict each other.
func (r *recoverer) firstByRows(paths *pathList) int {
	first := -1
	for k, c := range r.chunks[1:] {
		before := r.chunks[k]
		if c.meta.Data != before.end || r.values(c.meta) == r.values(before.meta) || r.repeats(c.meta) ||
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

// values returns the number of values of a chunk by the headers of its pages, if these are all there, else num_values,
// which no checksum covers.
func (r *recoverer) values(m *layout.ColumnMeta) int64 {
	if n, ok := r.headerValues[m]; ok {
		return n
	}
	return m.Values
}

// sizes estimates the bytes of each column in the row group of the first chunk that was found, and their sum. It uses
// the largest chunk of each column, since the last row group may have fewer rows, scaled by the ratio of the values in
// that first chunk to those in other chunks of its column.
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

// arrowPaths returns the paths of the Arrow schema in the metadata.
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

// takeLevels sets the maximum levels from the pair LevelsKey, which our writer adds to column metadata of generation E.
func takeLevels(m *layout.ColumnMeta) {
	for _, kv := range m.Pairs {
		var d, p int32
		if n, _ := fmt.Sscanf(kv.Value, "%d,%d", &d, &p); kv.Key == layout.LevelsKey && n == 2 && p >= 0 && d >= p &&
			d < 128 {
			m.HasLevels, m.MaxDef, m.MaxRep = true, d, p
		}
	}
}

// rowsOfColumns returns the number of values of the first flat column that was found; -1 if there is none.
func rowsOfColumns(cols []layout.ColumnChunk, repeats func(*layout.ColumnMeta) bool) int64 {
	for _, c := range cols {
		if c.Meta != nil && !repeats(c.Meta) {
			return c.Meta.Values
		}
	}
	return -1
}
