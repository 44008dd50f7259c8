package redfile

import (
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/check"
	"stoa/internal/nest"
	"stoa/region"
	"stoa/vec"
)

// verify reads everything (see format.Depth for less) and tells what is wrong: checksums, structure, every
// value, levels, counts of values and rows, index pages against the pages, bytes that nothing claims.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := &verifier{Reporter: reporter(ctx, tg.Name, yield), ctx: ctx, depth: o.Depth}
		v.object(tg, o)
	}
}

// unchecked is format.Format.Unchecked. Writers give checksums to all pages of a chunk or to none, so the first
// ones tell.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	f, err := openTarget(ctx, tg, o)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var bare []string
	for col := range f.leaves {
		for g := range f.meta.groups {
			t, err := f.table(ctx, g, col)
			if err != nil || t.meta.values == 0 {
				continue // verify tells
			}
			off, err := f.firstPage(ctx, g, col, t.meta)
			if err != nil || off < magicLen || off >= t.at.Len {
				continue
			}
			h, _, err := pageAt(ctx, t.src, t.at.Sub(off, t.at.Len-off), pagePath(g, col, 0))
			if err == nil && !h.hasCRC {
				bare = append(bare, f.leaves[col].column.Name)
				break
			}
		}
	}
	return format.WithoutSums(len(f.leaves), bare), ctx.Err()
}

type verifier struct {
	*check.Reporter
	ctx    context.Context
	depth  format.Depth
	f      *file
	arena  vec.Arena
	stored []byte
}

// object verifies the file at tg.
func (v *verifier) object(tg format.Target, o format.OpenOptions) {
	o.Tracer = nil
	f, err := openTarget(v.ctx, tg, o)
	if err != nil {
		v.open(err)
		return
	}
	v.f = f
	defer f.Close()
	f.lookAround(v.ctx)
	for _, m := range f.missing {
		v.Scoped(m)
	}
	if f.literal {
		v.Report("redfile.footer.literal", f.at.Sub(f.at.Len-tailLen, 4), "footer",
			"the number is the offset from the end, not the length")
	}
	if f.guessed != "" {
		v.Report("redfile.schema.guessed", f.metaAt, "file_metadata", "the file does not say its schema: %s", f.guessed)
	}
	first, sure := int64(0), true
	for g := range f.meta.groups {
		if v.Stopped() {
			return
		}
		n := v.group(g, first)
		if n < 0 {
			sure, n = false, 0
		}
		first += n
	}
	if sure {
		if err := f.meta.agree(first, f.metaAt); err != nil {
			v.Blame("redfile.rows", err, -1, -1)
		}
	}
	v.coverage(tg, o)
	v.parts(tg, o)
}

// parts looks at what a split table's metadata does without: that each part is, as it was written, a whole file
// with an end of its own, which reads it alone and from which the table is put together again if its metadata
// is lost.
func (v *verifier) parts(tg format.Target, o format.OpenOptions) {
	seen := map[string]bool{"": true}
	for g := range v.f.meta.groups {
		for _, c := range v.f.meta.groups[g].columns {
			name, err := v.f.inside(c.file)
			if seen[c.file] || err != nil || v.Stopped() {
				continue
			}
			seen[c.file] = true
			v.partEnd(format.Target{Tree: tg.Tree, Name: name}, o)
		}
	}
}

// partEnd tells of the end of a part. One that is missing, or not begun as a RedFile is, has been told with its chunks.
func (v *verifier) partEnd(tg format.Target, o format.OpenOptions) {
	head := make([]byte, magicLen)
	src, base, size, err := tg.Open(v.ctx)
	if err != nil || size < magicLen {
		return
	}
	err = format.ReadFull(v.ctx, src, fault.Span{Object: tg.Name, Off: base, Len: magicLen}, "magic", head)
	src.Close()
	if err != nil || string(head) != magic {
		return
	}
	part, err := openTarget(v.ctx, tg, o)
	if err != nil {
		v.Blame("redfile.part.end", err, -1, -1)
		return
	}
	defer part.Close()
	if rows := v.f.rowsIn(v.ctx, tg.Name); rows >= 0 && rows != part.meta.rows {
		v.Report("redfile.part.end", part.metaAt, "file_metadata.num_rows",
			"%d, but the row groups that the table has there have %d", part.meta.rows, rows)
	}
	whole := v.f
	v.f = part
	v.coverage(tg, o)
	v.f = whole
}

// open tells why the file cannot be opened.
func (v *verifier) open(err error) {
	code := "redfile.footer.damaged"
	switch p := pathOf(err); {
	case strings.HasSuffix(p, "meta_data_crc"):
		code = "redfile.footer.crc"
	case p == "magic":
		code = "redfile.magic"
		var e *fault.Error
		if errors.As(err, &e) && e.At.Off > 0 {
			code = "redfile.footer.damaged"
		}
	case strings.HasSuffix(p, schemaKey):
		code = "redfile.schema.damaged"
	case strings.HasPrefix(p, "row_groups") && strings.Contains(p, "column_metadata"):
		code = "redfile.column.damaged"
	}
	v.Blame(code, err, -1, -1)
}

// group verifies a row group whose first row is the file's row first; it gives the number of rows, -1 if that
// is not known.
func (v *verifier) group(group int, first int64) int64 {
	f := v.f
	rows, err := f.rowsOf(v.ctx, group)
	if err != nil {
		v.Blame("redfile.column.damaged", err, -1, -1)
		return -1
	}
	end := int64(-1)
	if rows >= 0 {
		end = first + rows
	}
	counted := rows
	for col := range f.leaves {
		if v.Stopped() {
			return -1
		}
		v.Column = f.leaves[col].column.Name
		t, err := f.table(v.ctx, group, col)
		if err != nil {
			v.Blame("redfile.column.damaged", err, first, end)
			continue
		}
		v.copy(t)
		n, ok := v.chunk(t, first, end)
		switch {
		case !ok:
		case counted < 0:
			counted = n
		case n != counted:
			v.Report("redfile.column.count", f.chunkSpan(group, col), chunkPath(group, col),
				"%d rows begin in the chunk, the row group has %d", n, counted)
		}
	}
	v.Column = ""
	return counted
}

// copy holds the metadata behind the pages against that in the file's metadata, if there are both.
func (v *verifier) copy(t *pageTable) {
	c := &v.f.meta.groups[t.group].columns[t.col]
	if c.meta == nil || c.offset <= c.meta.data || c.offset >= t.at.Len {
		return // redelm wrote none
	}
	path := chunkPath(t.group, t.col) + ".column_metadata"
	m, n, err := readColumnMeta(v.ctx, t.src, t.at.Sub(c.offset, t.at.Len-c.offset), v.f.limits.Metadata, path)
	if err != nil {
		v.Blame("redfile.column.copy", err, -1, -1)
		return
	}
	if m.typ != c.meta.typ || m.codec != c.meta.codec || m.values != c.meta.values || m.data != c.meta.data ||
		!slices.Equal(m.path, c.meta.path) {
		v.Report("redfile.column.copy", t.at.Sub(c.offset, n), path, "it differs from the metadata in the file's")
	}
}

// chunk verifies the pages of a chunk, found by their headers; ok: all of them could be read, and rows begin in them.
func (v *verifier) chunk(t *pageTable, first, end int64) (rows int64, ok bool) {
	walked, begin, err := t.again(v.ctx)
	if err != nil {
		v.Blame("redfile.column.damaged", err, first, end)
		return 0, false
	}
	index := v.index(walked)
	if index == nil && !t.indexed {
		walked = t // its headers were read, and held against each other
	}
	n := rowCount{flat: t.l.maxRep == 0, first: first, end: end}
	quiet := false // pages were passed over whose rows nobody tells
	defer n.report(v)
	for i := 0; !v.Stopped(); i++ {
		p, err := walked.get(v.ctx, i)
		if err == io.EOF {
			if index != nil && i != len(index) {
				v.Report("redfile.index.damaged", t.f.chunkSpan(t.group, t.col),
					chunkPath(t.group, t.col)+".index_page", "%d pages, the chunk has %d", len(index), i)
			}
			n.whole = true
			return n.rows, n.ok() && !quiet
		}
		if err == nil && i < len(index) && p.off > begin+index[i].offset { // it was taken for a page of another kind
			err = fault.Corruptf(t.at.Sub(begin+index[i].offset, int64(index[i].size)),
				pagePath(t.group, t.col, i)+".header", "no data page, where the index says that one is")
		}
		if err != nil && i < len(index) {
			n.bad("redfile.page.header", err, int64(index[i].rows))
			walked.resume(index, i, begin)
			continue
		}
		if err != nil {
			code := "redfile.page.header"
			if pathOf(err) == chunkPath(t.group, t.col)+".num_values" {
				code = "redfile.column.count"
			}
			n.bad(code, err, -1)
			return n.rows, false
		}
		known := int64(-1) // rows that begin in the page, if somebody says
		if n.flat {
			known = p.values
		} else if i < len(index) && begin+index[i].offset == p.off && int64(index[i].values) == p.values {
			known = int64(index[i].rows)
		}
		if p.lost != nil {
			n.bad("redfile.page.header", p.lost, known)
			continue
		}
		if v.depth == format.Quick {
			v.placed(index, t, p, i)
			if n.add(max(0, known)); known < 0 {
				quiet = true
			}
			continue
		}
		k, err := v.page(t, p, i, index)
		if err != nil {
			code := "redfile.page.damaged"
			if strings.HasSuffix(pathOf(err), "header.crc") {
				code = "redfile.page.crc"
			}
			if known < 0 && i < len(index) && begin+index[i].offset == p.off { // what differs is its header
				known = int64(index[i].rows)
				walked.resume(index, i, begin)
			}
			n.bad(code, err, known)
			continue
		}
		n.add(k)
	}
	return n.rows, false
}

// rowCount counts the rows of a chunk page by page, and tells which of them a damaged page has. Where a column
// repeats and there is no index page, nobody says how many begin in that page: if it is the only one, they are
// what the row group has, less the rows of the others; else all from there on are in doubt. The row before it
// may go on in it.
type rowCount struct {
	flat       bool
	first, end int64 // of the row group, in the file; -1: not known
	rows       int64 // so far, without those of pages that do not tell
	whole      bool  // all pages were seen
	found      []damagedPage
}

type damagedPage struct {
	code string
	err  error
	from int64 // rows before it; -1: not known
	rows int64 // that begin in it; -1: not known
}

func (n *rowCount) add(rows int64) { n.rows += rows }

func (n *rowCount) ok() bool { return len(n.found) == 0 }

// bad notes a damaged page of so many rows, -1 for not known.
func (n *rowCount) bad(code string, err error, rows int64) {
	d := damagedPage{code, err, n.rows, rows}
	if n.doubt() {
		d.from = -1
	}
	n.found = append(n.found, d)
	n.rows += max(0, rows)
}

// doubt reports whether there was a page of which the rows are not known.
func (n *rowCount) doubt() bool {
	return slices.ContainsFunc(n.found, func(d damagedPage) bool { return d.rows < 0 })
}

// report reports what was found.
func (n *rowCount) report(v *verifier) {
	unknown := 0
	for _, d := range n.found {
		if d.rows < 0 {
			unknown++
		}
	}
	before := int64(0) // rows before the first page in doubt
	for _, d := range n.found {
		from, to := int64(-1), n.end
		switch {
		case n.first < 0:
		case d.from < 0: // behind one in doubt
			from = n.first + before
		case d.rows >= 0:
			from, to = n.first+d.from, n.first+d.from+d.rows
		default:
			if before = d.from; !n.flat && before > 0 {
				before--
			}
			from = n.first + before
			if unknown == 1 && n.whole && n.end >= 0 {
				to = max(from, n.end-(n.rows-d.from))
			}
		}
		if from < 0 {
			to = -1
		}
		v.Blame(d.code, d.err, from, to)
	}
}

// page decodes a page and looks at its values; it gives the number of rows that begin in it.
func (v *verifier) page(t *pageTable, p *page, i int, index []indexEntry) (int64, error) {
	at := t.at.Sub(p.off, p.size)
	path := pagePath(t.group, t.col, i)
	if p.size > v.f.limits.Page {
		return 0, fault.Limitf(at, path, "%d bytes are more than a page may have (%d)", p.size, v.f.limits.Page)
	}
	v.stored = slices.Grow(v.stored[:0], int(p.size))[:p.size]
	if err := format.ReadFull(v.ctx, t.src, at, path, v.stored); err != nil {
		return 0, err
	}
	l := &v.f.leaves[t.col]
	if v.depth == format.Sums && l.maxRep == 0 {
		v.arena.Reset()
		summed, err := t.sum(p, v.stored, &v.arena)
		if err == nil && summed {
			v.placed(index, t, p, i)
		}
		if err != nil || summed {
			return p.values, fault.Locate(err, at, true, path)
		}
	}
	rows, nulls := int64(0), int64(0)
	var e indexEntry
	starts := true
	c := newChunk(t, vec.Range{})
	for sub := int64(0); ; sub += maxSub {
		v.arena.Reset()
		dst, err := vec.New(l.column.Type, memory.DefaultAllocator)
		if err != nil {
			return 0, err
		}
		n := min(maxSub, p.values-sub)
		task := format.Task{Page: format.Page{Ordinal: i, Sub: sub, Spans: []fault.Span{at}, Own: p}, N: n,
			Bytes: [][]byte{v.stored}, Scratch: &v.arena, Limits: v.f.limits}
		if err := c.Decode(&task, dst); err != nil {
			return rows, err
		}
		nulls += int64(dst.Nulls())
		if l.maxRep == 0 {
			rows += n
		} else {
			rows += int64(nest.CountRows(dst.Rep()))
			starts = starts && (sub > 0 || n == 0 || dst.Rep()[0] == 0)
		}
		if sub+n >= p.values {
			if sub == 0 {
				takeBounds(&e, l, dst)
			}
			break
		}
	}
	if i < len(index) && !starts {
		v.Report("redfile.index.damaged", at, path, "the page does not begin with a row, as pages with an index do")
	}
	if i < len(index) {
		v.compare(index, t, p, i, rows, nulls, &e)
	}
	return rows, nil
}

// coverage looks for bytes that nothing claims, and that several do.
func (v *verifier) coverage(tg format.Target, o format.OpenOptions) {
	if v.Stopped() {
		return
	}
	d := &describer{ctx: v.ctx, yield: func(region.Node, error) bool { return v.ctx.Err() == nil }, odd: v.Report}
	err := d.object(tg, o)
	gaps, overlaps := d.cover.Check(v.f.at)
	if err != nil {
		gaps = nil // what cannot be read is none
	}
	e := new(fault.Error)
	switch {
	case err != nil && !errors.As(err, &e):
		v.Blame("redfile.read", err, -1, -1)
	case err != nil && v.Errors() == 0: // else the damage has been told
		v.Blame("redfile.page.header", err, -1, -1)
	}
	for _, g := range gaps {
		v.Report("redfile.coverage.gap", g, "", "%d bytes that no structure claims", g.Len)
	}
	for _, g := range overlaps {
		v.Report("redfile.coverage.overlap", g, "", "%d bytes that two structures claim", g.Len)
	}
}
