package recovery

import (
	"bytes"
	"errors"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/format/redfile/internal/table"
	"stoa/wire"
)

// The programs of 2013 put the metadata of columns only into the metadata of the file, at its end. If a copy of such a
// file was cut off within it, its beginning is all that says what the pages are: first comes the schema, then the
// number of rows, then row group by row group the chunks. What is whole is used, and what is not is lost. (In
// generations A and B there is nothing to gain: the metadata of each column follows its pages.)

// cutFooter is the beginning of the metadata of a file, which the end of the file cuts off or other bytes overwrite.
type cutFooter struct {
	at     int64
	meta   layout.FileMeta
	leaves []schema.Leaf
	all    bool  // nothing is missing but what follows the metadata
	end    int64 // of the last chunk that it describes
}

// begin returns the offset of the metadata; without any, end.
func (c *cutFooter) begin(end int64) int64 {
	if c == nil {
		return end
	}
	return c.at
}

// untyped reports whether the schema of this metadata is used and the Arrow schema, which comes after it, is lost. Only
// our writer stores one, and it also stores levels in pairs.
func (c *cutFooter) untyped(r *recoverer) bool {
	if c == nil || c.all || r.known == nil {
		return false
	}
	if _, ok := r.known.Pair(schema.SchemaKey); ok {
		return false
	}
	ours := func(m *layout.ColumnMeta) bool {
		return m != nil && slices.ContainsFunc(m.Pairs,
			func(kv layout.KeyValue) bool { return kv.Key == layout.LevelsKey })
	}
	for _, m := range r.seen {
		if ours(m) {
			return true
		}
	}
	return slices.ContainsFunc(c.meta.Groups, func(g layout.RowGroup) bool {
		return slices.ContainsFunc(g.Columns, func(c layout.ColumnChunk) bool { return ours(c.Meta) })
	})
}

// cutStarts are the first bytes of the metadata of a file of generations C to E: version 1, then the list of elements
// or the number of rows, in the compact and the binary protocol.
var cutStarts = [][]byte{{0x15, 2, 0x19}, {0x15, 2, 0x16}, {8, 0, 1, 0, 0, 0, 1, 15, 0, 2},
	{8, 0, 1, 0, 0, 0, 1, 10, 0, 2}}

// findCut searches backwards, down to from, for the beginning of the metadata of this file. If the file ends with the
// magic, nothing is cut: bytes within the metadata are wrong, and nothing says whether those of the schema are.
func (r *recoverer) findCut(from int64) error {
	const step, longest = 256 << 10, 10
	if r.f.At.Len < layout.MinFile {
		return nil
	}
	var tail [layout.MagicLen]byte
	err := format.ReadFull(r.ctx, r.f.Src, r.f.At.Sub(r.f.At.Len-layout.MagicLen, layout.MagicLen), "", tail[:])
	if err != nil || string(tail[:]) == layout.Magic {
		return err
	}
	for end := r.f.At.Len; end > from; end -= step {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		begin := max(from, end-step)
		b := make([]byte, min(r.f.At.Len, end+longest-1)-begin)
		if err := format.ReadFull(r.ctx, r.f.Src, r.f.At.Sub(begin, int64(len(b))), "", b); err != nil {
			return err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if (b[i] != 0x15 && b[i] != 8) || !slices.ContainsFunc(cutStarts,
				func(s []byte) bool { return bytes.HasPrefix(b[i:], s) }) {
				continue
			}
			c, err := r.cutAt(begin + int64(i))
			if c != nil || err != nil {
				r.cut = c
				return err
			}
		}
	}
	return nil
}

// cutAt parses the beginning of the metadata of this file at pos; nil if there is none.
func (r *recoverer) cutAt(pos int64) (*cutFooter, error) {
	at := r.f.At.Sub(pos, min(r.f.At.Len-pos, r.f.Limits.Metadata))
	for size := int64(4 << 10); ; size *= 8 {
		size = min(size, at.Len)
		if !r.afford(size) {
			return nil, nil
		}
		b := make([]byte, size)
		if err := format.ReadFull(r.ctx, r.f.Src, at.Sub(0, size), "", b); err != nil {
			return nil, err
		}
		c := wire.NewCursor(b, at.Sub(0, size), "file_metadata")
		m, short := layout.ParseCutMeta(c.Within(r.f.Limits.Memory()))
		if err := c.Err(); err != nil && !errors.Is(err, fault.Corrupt) {
			return nil, err
		}
		if c.Err() != nil && short && size < at.Len {
			continue
		}
		out := &cutFooter{at: pos, meta: m, all: c.Err() == nil && m.Declared == len(m.Groups) &&
			at.Len-int64(c.Pos()) <= layout.TailLen}
		if out.all && m.HasCRC && m.CRC != m.Want {
			return nil, nil
		}
		if m.Gen < layout.GenC || m.Version != 1 || !out.readLeaves(r) || !r.holds(out) {
			return nil, r.ctx.Err()
		}
		return out, nil
	}
}

// readLeaves sets the leaves of the schema, and returns false if it is not whole.
func (c *cutFooter) readLeaves(r *recoverer) bool {
	leaves, err := leavesOf(r, &c.meta)
	c.leaves = leaves
	return err == nil && len(leaves) > 0
}

// leavesOf returns the leaves of the schema in metadata of a file.
func leavesOf(r *recoverer, m *layout.FileMeta) ([]schema.Leaf, error) {
	var tree *schema.Node
	var err error
	switch {
	case m.Gen == layout.GenC:
		tree, err = schema.ParseText(m.Text, r.f.Limits, r.f.At)
	case len(m.Schema) > 0:
		tree, err = schema.TreeOfElements(m.Schema, m.Gen, r.f.Limits, r.f.At)
	}
	if tree == nil || err != nil {
		return nil, err
	}
	return schema.LeavesOf(tree), nil
}

// holds reports whether c is metadata of this file, and not of a file within a page: of its first chunks, half or more
// are where it places them. If it has none, structures must follow one another from the beginning of the file up to it.
func (r *recoverer) holds(c *cutFooter) bool {
	const maxTries = 64
	tries, matched := 0, 0
	for _, g := range c.meta.Groups {
		for i := range min(len(g.Columns), len(c.leaves)) {
			if tries == maxTries {
				return 2*matched >= tries
			}
			if !r.described(c, &g.Columns[i], i) { // it is overwritten
				continue
			}
			if tries++; r.pages(g.Columns[i].Meta, c.at).whole {
				matched++
			}
		}
	}
	return 2*matched >= tries && (tries > 0 || r.tiled(layout.MagicLen, c.at))
}

// described reports whether the metadata of a chunk is whole, and fits the schema and the file.
func (r *recoverer) described(c *cutFooter, ch *layout.ColumnChunk, col int) bool {
	m, l := ch.Meta, &c.leaves[col]
	return m != nil && ch.File == "" && m.Type == l.Type && slices.Equal(m.Path, l.Path) && m.Values >= 0 &&
		m.Data >= layout.MagicLen && m.Data < c.at && len(m.Encodings) > 0
}

// useCut uses what is left of the metadata at the end: the schema if no other is known, and its row groups if fewer
// were found by the structures between them.
func (r *recoverer) useCut(opts layout.ReadOptions) error {
	c := r.cut
	if c == nil {
		return nil
	}
	if !r.fitsChunks(c) {
		r.cut = nil
		return nil
	}
	if r.known != nil {
		if same, err := r.sameLeaves(c); !same || err != nil {
			if r.cut = nil; err == nil && opts.Schema != "" && len(r.groups) == 0 && len(r.chunks) == 0 {
				err = fault.Invalidf("schema=%s: the columns of %s are not of this schema, by what is left of its own",
					opts.Schema, r.f.At.Object)
			}
			return err
		}
	} else {
		known := c.meta
		known.Groups = nil
		r.known = &known
	}
	groups, whole := r.cutGroups(c)
	r.reportCut(c, whole)
	if whole > len(r.groups) || len(groups) > len(r.groups) && len(r.chunks) == 0 {
		r.takeCut(c, groups, whole)
	}
	r.reportRest(c)
	return nil
}

// takeCut replaces the row groups by those that c describes. Chunks after them stay.
func (r *recoverer) takeCut(c *cutFooter, groups []layout.RowGroup, whole int) {
	clear(r.lost)
	r.groups = r.groups[:0:0]
	last := int64(0)
	for _, g := range groups[:whole] {
		r.addCut(g)
		last = max(last, g.Columns[len(g.Columns)-1].Meta.Data)
	}
	r.chunks = slices.DeleteFunc(r.chunks, func(f foundChunk) bool { return f.meta.Data <= last })
	if len(r.chunks) > 0 {
		return
	}
	if r.dataEnd = c.end; len(groups) > whole {
		r.cutGroup(groups[whole])
	}
}

// fitsChunks reports whether the chunks that were found are of the schema in c.
func (r *recoverer) fitsChunks(c *cutFooter) bool {
	for _, m := range r.seen {
		if !slices.ContainsFunc(c.leaves,
			func(l schema.Leaf) bool {
				return l.Type == m.Type && slices.Equal(l.Path, m.Path) &&
					(!m.HasLevels || int32(l.MaxDef) == m.MaxDef && int32(l.MaxRep) == m.MaxRep)
			}) {
			return false
		}
	}
	return true
}

// sameLeaves reports whether c has the columns of the schema that is known.
func (r *recoverer) sameLeaves(c *cutFooter) (bool, error) {
	known, err := leavesOf(r, r.known)
	return slices.EqualFunc(known, c.leaves, func(a, b schema.Leaf) bool {
		return a.Type == b.Type && a.MaxDef == b.MaxDef && a.MaxRep == b.MaxRep && slices.Equal(a.Path, b.Path)
	}), err
}

// cutGroups returns the row groups that c describes, and how many of them have all their chunks; at most one more
// follows. Chunks that are not described, or that the pages contradict, have no metadata.
func (r *recoverer) cutGroups(c *cutFooter) (groups []layout.RowGroup, whole int) {
	end := int64(layout.MagicLen)
	for _, g := range c.meta.Groups {
		out := layout.RowGroup{Rows: g.Rows, Bytes: g.Bytes, Columns: make([]layout.ColumnChunk, len(c.leaves))}
		for i := range out.Columns {
			out.Columns[i].Offset = end // where the chunk before ends
			if i >= len(g.Columns) || !r.described(c, &g.Columns[i], i) || g.Columns[i].Meta.Data < end {
				continue
			}
			w := r.pages(g.Columns[i].Meta, c.at)
			if w.contradicts || !w.whole && !w.broken {
				continue
			}
			out.Columns[i], end = g.Columns[i], w.end
		}
		if groups = append(groups, out); count(out.Columns) < len(c.leaves) {
			break
		}
		whole++
	}
	c.end = end
	return groups, whole
}

// addCut adds a row group. If its number of rows is missing or another than its columns have, it is theirs.
func (r *recoverer) addCut(g layout.RowGroup) {
	for i := range g.Columns {
		if g.Columns[i].Meta == nil {
			g.Columns[i] = r.lostChunk(len(r.groups), i, g.Columns[i].Offset)
		}
	}
	if rows := rowsOfColumns(g.Columns, r.repeats); rows >= 0 {
		g.Rows = rows
	}
	r.groups = append(r.groups, g)
}

// cutGroup adds the row group in whose metadata the end is. If none of its columns shows how many rows it has, these
// are the rest of the file's, if it is the last.
func (r *recoverer) cutGroup(g layout.RowGroup) {
	c := r.cut
	if rest := c.meta.Rows - r.rowsSoFar(); g.Rows < 0 && len(r.groups)+1 == c.meta.Declared && c.meta.Rows >= 0 {
		g.Rows = rest
	}
	r.unfinished(&g, len(c.leaves), func() { r.addCut(g) })
}

// rowsSoFar returns the number of rows of the row groups whose number is known.
func (r *recoverer) rowsSoFar() (n int64) {
	for i := range r.groups {
		n += max(0, r.groups[i].Rows)
	}
	return n
}

// reportCut reports that the metadata was found, and what of it is used.
func (r *recoverer) reportCut(c *cutFooter, whole int) {
	at := r.f.At.Sub(c.at, r.f.At.Len-c.at)
	if c.all {
		r.Rows("redfile.footer.cut", at, [2]int64{-1, -1}, 0, "the metadata of the file is whole, and what follows it "+
			"is not: it is used")
		return
	}
	r.Rows("redfile.footer.cut", at, [2]int64{-1, -1}, 0, "the metadata of the file is cut: its schema is there, and "+
		"the metadata of all columns of %d of %s", whole, fault.Count(max(c.meta.Declared, whole), "row group"))
}

// reportRest reports the rows that the file had, by the metadata, beyond those of the row groups that are described.
func (r *recoverer) reportRest(c *cutFooter) {
	if len(r.chunks) > 0 || c.meta.Rows < 0 || slices.ContainsFunc(r.groups,
		func(g layout.RowGroup) bool { return g.Rows < 0 }) {
		return
	}
	if have := r.rowsSoFar(); have < c.meta.Rows {
		r.Rows("redfile.rows.lost", r.f.At.Sub(c.at, r.f.At.Len-c.at), [2]int64{have, c.meta.Rows}, c.meta.Rows-have,
			"of the %d rows that the file had, the last %d are in row groups of which the metadata is lost",
			c.meta.Rows, c.meta.Rows-have)
	}
}

// The metadata of a file of generation A or B says only where the metadata of each chunk is. If bytes were inserted or
// removed before them, they are elsewhere, but each states at which offset its pages were, and that lies between two
// offsets in the metadata of the file. So it is known which chunk each is, and thus how many rows there were, wherever
// they are now. A chunk that ends as far behind the one before it as it was written has only moved, and is read.

// movedChunk is the metadata of a chunk, found in the bytes from off to end. by is how far it has moved.
type movedChunk struct {
	off, end, by int64
	meta         *layout.ColumnMeta
}

// moved returns a file whose chunks are where they are found; nil if they are where the metadata of r.f has them, if
// most are not found, or if that metadata may be of a file within a page.
func (r *recoverer) moved(o format.OpenOptions, opts layout.ReadOptions) (*table.File, error) {
	f, was := r.f, r.written()
	if len(was) == 0 {
		return nil, nil
	}
	r.window = 1 << 20
	found := r.findWritten(was, len(f.Footer.Groups[0].Columns))
	if found == nil || r.ctx.Err() != nil {
		return nil, r.ctx.Err()
	}
	out := table.New(f.Tree, f.Src, f.At, o, opts)
	out.Stamp, out.Recovering, out.Placed = f.Stamp, true, true
	out.Footer, out.MetaAt, out.Lost = f.Footer, f.MetaAt, map[container.ChunkKey]error{}
	out.Footer.Groups = nil
	r.lost = out.Lost
	unknown, total, k, moved := -1, int64(0), 0, false
	for i, g := range f.Footer.Groups {
		cols := make([]layout.ColumnChunk, len(g.Columns))
		metas := slices.Clone(cols)
		for col := range cols {
			if c := r.place(found, k); c == nil {
				cols[col] = r.lostChunk(i, col, -1)
			} else {
				cols[col].Offset, moved = c.off, moved || c.by != 0
				out.SetMeta(i, col, c.meta)
			}
			if len(found[k]) > 0 {
				metas[col].Meta = found[k][0].meta
			}
			k++
		}
		g.Columns = cols
		if g.Rows < 0 {
			g.Rows = rowsOfColumns(metas, r.repeats)
		}
		if g.Rows < 0 && unknown >= 0 {
			return nil, nil
		} else if g.Rows < 0 {
			unknown = i
		}
		total += max(0, g.Rows)
		out.Footer.Groups = append(out.Footer.Groups, g)
	}
	if rest := f.Footer.Rows - total; !moved || rest < 0 || unknown < 0 && rest > 0 {
		return nil, nil
	} else if unknown >= 0 {
		out.Footer.Groups[unknown].Rows = rest
	}
	if err := out.ResolveSchema(r.ctx); err != nil {
		return nil, r.ctx.Err()
	}
	r.Rows("redfile.bytes.lost", f.At, [2]int64{-1, -1}, 0, "bytes were inserted or removed: chunks are not where the "+
		"metadata of the file has them, and are read where they are")
	return out, nil
}

// written returns the offsets of the metadata of all chunks, in order; none if the metadata of the file is not only a
// list of these, or they are all there.
func (r *recoverer) written() (was []int64) {
	f := r.f
	m := &f.Footer
	if f.MetaAt.Len == 0 || m.Check(f.MetaAt) != nil || m.HasCRC && m.CRC != m.Want || m.Gen > layout.GenB {
		return nil
	}
	last, there := int64(layout.MagicLen), true
	for i, g := range m.Groups {
		for col, c := range g.Columns {
			if c.File != "" || c.Meta != nil || c.Offset <= last {
				return nil
			}
			last = c.Offset
			was = append(was, last)
			if there {
				_, err := f.ColumnMeta(r.ctx, i, col)
				there = err == nil
			}
		}
	}
	if there {
		return nil
	}
	return was
}

// maxCopies is how many copies of a chunk's metadata are looked at. Each is compared with all of the chunk before it.
const maxCopies = 64

// findWritten searches the file for the metadata of the chunks that were at these offsets, of so many columns; nil if
// that of most is not found, or if all has moved, with the magic, as in a file within a page.
func (r *recoverer) findWritten(was []int64, columns int) [][]movedChunk {
	found, chunks := make([][]movedChunk, len(was)), 0
	end := r.f.MetaAt.Off - r.f.At.Off
	for pos := int64(layout.MagicLen); pos < end && r.ctx.Err() == nil; pos++ {
		b, err := r.bytes(pos, 4)
		if err != nil || string(b) == layout.Magic && pos > layout.MagicLen && r.pageAt(pos+layout.MagicLen) {
			return nil
		}
		if len(b) < 4 || b[0] != 0x15 && !bytes.HasPrefix(b, []byte{8, 0, 1}) || !r.afford(seekCost/16) {
			continue
		}
		m, n, err := r.columnMeta(pos, end, 4<<10)
		if err != nil || m.Data < layout.MagicLen {
			continue
		}
		if k, there := slices.BinarySearch(was, m.Data); k < len(was) && !there {
			if len(found[k]) == 0 {
				chunks++
			}
			if len(found[k]) == maxCopies {
				continue
			}
			found[k] = append(found[k], movedChunk{pos, pos + n, pos - was[k], m})
		}
	}
	if 2*chunks < len(was) {
		return nil
	}
	for col := range columns {
		onlyNamed(found, col, columns)
	}
	return found
}

// onlyNamed removes what does not have the name that most chunks of a column have.
func onlyNamed(found [][]movedChunk, col, columns int) {
	times, name := map[string]int{}, ""
	for k := col; k < len(found); k += columns {
		for _, c := range found[k] {
			key := pathKey(c.meta.Path)
			if times[key]++; times[key] > times[name] {
				name = key
			}
		}
	}
	for k := col; k < len(found); k += columns {
		found[k] = slices.DeleteFunc(found[k], func(c movedChunk) bool { return pathKey(c.meta.Path) != name })
	}
}

// pageAt reports whether a page begins at pos.
func (r *recoverer) pageAt(pos int64) bool {
	_, _, err := r.page(pos, r.f.At.Len)
	return err == nil
}

// place returns chunk k with its place now; nil if it is not known where it begins, or if its pages add up although
// bytes were inserted or removed there, which are then whole pages.
func (r *recoverer) place(found [][]movedChunk, k int) *movedChunk {
	before := []movedChunk{{end: layout.MagicLen}}
	if k > 0 {
		before = found[k-1]
	}
	var harmed *movedChunk
	for _, c := range found[k] {
		for _, b := range before {
			m := *c.meta
			out := &movedChunk{c.off, c.end, c.by, &m}
			if m.Data += b.by; m.Data < b.end || m.Data > c.off {
				continue
			}
			if b.by == c.by {
				if m.Index >= 0 {
					m.Index += c.by
				}
				return out
			}
			m.Index = -1
			if w := r.pages(&m, c.off); m.Data == b.end && (!w.whole || w.end != c.off) {
				harmed = out
			}
		}
	}
	return harmed
}
