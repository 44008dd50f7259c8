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
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/page"
	"stoa/format/redfile/internal/recovery"
	"stoa/format/redfile/internal/schema"
	"stoa/format/redfile/internal/table"
	"stoa/internal/check"
	"stoa/internal/describe"
	"stoa/internal/nest"
	"stoa/region"
	"stoa/vec"
)

// verify checks checksums, structure, every value, levels, counts of values and rows, index pages against the pages,
// and that every byte belongs to exactly one structure; at lower values of format.Depth it checks less.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := &verifier{Reporter: layout.Reporter(ctx, tg.Name, yield), ctx: ctx, depth: o.Depth}
		v.object(tg, o)
	}
}

// unchecked implements format.Format.Unchecked. Writers checksum all pages of a chunk or none, so only the first page
// of each chunk is read.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	f, err := table.OpenTarget(ctx, tg, o)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var withoutSums []string
	for col := range f.Leaves {
		for g := range f.Footer.Groups {
			t, err := f.Table(ctx, g, col)
			if err != nil || t.Meta.Values == 0 {
				continue // verify reports it
			}
			off, err := f.FirstPage(ctx, g, col, t.Meta)
			if err != nil || off < layout.MagicLen || off >= t.At.Len {
				continue
			}
			h, _, err := layout.PageAt(ctx, t.Src, t.At.Sub(off, t.At.Len-off), layout.PagePath(g, col, 0))
			if err == nil && !h.HasCRC {
				withoutSums = append(withoutSums, f.Leaves[col].Column.Name)
				break
			}
		}
	}
	if len(withoutSums) == 0 && f.NamedOnce() {
		return "no checksum is over the metadata of the columns, which alone has their names", ctx.Err()
	}
	return format.WithoutSums(len(f.Leaves), withoutSums), ctx.Err()
}

type verifier struct {
	*check.Reporter
	ctx    context.Context
	depth  format.Depth
	f      *table.File
	arena  vec.Arena
	stored []byte
}

// object verifies the file at tg.
func (v *verifier) object(tg format.Target, o format.OpenOptions) {
	o.Tracer = nil
	f, err := table.OpenTarget(v.ctx, tg, o)
	if err != nil {
		v.openFailed(err)
		return
	}
	v.f = f
	defer f.Close()
	f.CheckTable(v.ctx)
	for _, m := range f.Reported {
		v.Scoped(m)
	}
	if f.Literal {
		v.Report("redfile.footer.literal", f.At.Sub(f.At.Len-layout.TailLen, 4), "footer",
			"the number is the offset from the end, not the length")
	}
	if f.Guessed != "" {
		v.Report("redfile.schema.guessed", f.MetaAt, "file_metadata", "the file does not say its schema: %s", f.Guessed)
	}
	first, counted := int64(0), true
	for g := range f.Footer.Groups {
		if v.Stopped() {
			return
		}
		n := v.group(g, first)
		if n < 0 {
			counted, n = false, 0
		}
		first += n
	}
	if counted {
		if err := f.Footer.Agree(first, f.MetaAt); err != nil {
			v.Blame("redfile.rows", err, -1, -1)
		}
	}
	v.coverage(tg, o)
	v.parts(tg, o)
}

// parts verifies properties of a split table that reading it does not need: that each part is a complete file with its
// own footer, as it was written, so that it can be read alone, and so that the table can be recovered if its metadata
// is lost.
func (v *verifier) parts(tg format.Target, o format.OpenOptions) {
	seen := map[string]bool{"": true}
	for g := range v.f.Footer.Groups {
		for _, c := range v.f.Footer.Groups[g].Columns {
			name, err := v.f.ObjectOf(c.File)
			if seen[c.File] || err != nil || v.Stopped() {
				continue
			}
			seen[c.File] = true
			v.partEnd(format.Target{Tree: tg.Tree, Name: name}, o)
		}
	}
}

// partEnd verifies the end of a part. A part that is missing, or does not begin like a RedFile, has already been
// reported with its chunks.
func (v *verifier) partEnd(tg format.Target, o format.OpenOptions) {
	head := make([]byte, layout.MagicLen)
	src, base, size, err := tg.Open(v.ctx)
	if err != nil || size < layout.MagicLen {
		return
	}
	err = format.ReadFull(v.ctx, src, fault.Span{Object: tg.Name, Off: base, Len: layout.MagicLen}, "magic", head)
	src.Close()
	if err != nil || string(head) != layout.Magic {
		return
	}
	part, err := table.OpenTarget(v.ctx, tg, o)
	if err != nil {
		v.Blame("redfile.part.end", err, -1, -1)
		return
	}
	defer part.Close()
	if rows := v.f.RowsIn(v.ctx, tg.Name); rows >= 0 && rows != part.Footer.Rows {
		v.Report("redfile.part.end", part.MetaAt, "file_metadata.num_rows",
			"expected %d, the rows of the row groups that the table has there, found %d", rows, part.Footer.Rows)
	}
	whole := v.f
	v.f = part
	v.coverage(tg, o)
	v.f = whole
}

// openFailed reports the reason why the file cannot be opened.
func (v *verifier) openFailed(err error) {
	code := "redfile.footer.damaged"
	switch p := recovery.PathOf(err); {
	case strings.HasSuffix(p, "meta_data_crc"):
		code = "redfile.footer.crc"
	case p == "magic":
		code = "redfile.magic"
		var e *fault.Error
		if errors.As(err, &e) && e.At.Off > 0 {
			code = "redfile.footer.damaged"
		}
	case strings.HasSuffix(p, schema.SchemaKey):
		code = "redfile.schema.damaged"
	case strings.HasPrefix(p, "row_groups") && strings.Contains(p, "column_metadata"):
		code = "redfile.column.damaged"
	}
	v.Blame(code, err, -1, -1)
}

// group verifies a row group whose first row is row first of the file. It returns its number of rows, -1 if unknown.
func (v *verifier) group(group int, first int64) int64 {
	f := v.f
	rows, err := f.RowsOf(v.ctx, group)
	if err != nil {
		v.Blame("redfile.column.damaged", err, -1, -1)
		return -1
	}
	end := int64(-1)
	if rows >= 0 {
		end = first + rows
	}
	counted := rows
	for col := range f.Leaves {
		if v.Stopped() {
			return -1
		}
		v.Column = f.Leaves[col].Column.Name
		t, err := f.Table(v.ctx, group, col)
		if err != nil {
			v.Blame("redfile.column.damaged", err, first, end)
			continue
		}
		v.checkCopy(t)
		n, ok := v.chunk(t, first, end)
		switch {
		case !ok:
		case counted < 0:
			counted = n
		case n != counted:
			v.Report("redfile.column.count", f.ChunkSpan(group, col), layout.ChunkPath(group, col),
				"%d rows begin in the chunk, the row group has %d", n, counted)
		}
	}
	v.Column = ""
	return counted
}

// checkCopy compares the metadata after the pages with the copy in the file's metadata, if both exist.
func (v *verifier) checkCopy(t *page.Table) {
	c := &v.f.Footer.Groups[t.Group].Columns[t.Col]
	if c.Meta == nil || c.Offset <= c.Meta.Data {
		return // redelm wrote none
	}
	if c.Offset >= t.At.Len {
		if err := v.f.EndsEarly(t.Group, t.Col, t.At.Len); err != nil && c.File != "" {
			v.Blame("redfile.column.damaged", err, -1, -1)
		}
		return
	}
	path := layout.ChunkPath(t.Group, t.Col) + ".column_metadata"
	m, n, err := container.ReadColumnMeta(v.ctx, t.Src, t.At.Sub(c.Offset, t.At.Len-c.Offset), v.f.Limits.Metadata,
		path)
	if err != nil {
		v.Blame("redfile.column.copy", err, -1, -1)
		return
	}
	if m.Type != c.Meta.Type || m.Codec != c.Meta.Codec || m.Values != c.Meta.Values || m.Data != c.Meta.Data ||
		!slices.Equal(m.Path, c.Meta.Path) {
		v.Report("redfile.column.copy", t.At.Sub(c.Offset, n), path, "it differs from the copy in the file's metadata")
	}
}

// chunk verifies the pages of a chunk, which are found by their headers, and counts the rows that begin in them; ok is
// false if a page could not be read.
func (v *verifier) chunk(t *page.Table, first, end int64) (rows int64, ok bool) {
	walked, begin, err := t.Unindexed(v.ctx)
	if err != nil {
		v.Blame("redfile.column.damaged", err, first, end)
		return 0, false
	}
	index := v.index(walked)
	if index == nil && !t.Indexed {
		walked = t // NewTable has already read its headers
	}
	c := chunkCheck{v: v, t: t, walked: walked, begin: begin, index: index,
		n: rowCount{flat: t.Leaf.MaxRep == 0, first: first, end: end}}
	defer c.n.report(v)
	for i := 0; !v.Stopped(); i++ {
		p, err := walked.Get(v.ctx, i)
		if err == io.EOF {
			if index != nil && i != len(index) {
				v.Report("redfile.index.damaged", t.File.ChunkSpan(t.Group, t.Col),
					layout.ChunkPath(t.Group, t.Col)+".index_page", "%s, the chunk has %d",
					fault.Count(len(index), "page"), i)
			}
			c.n.whole = true
			return c.n.rows, c.n.ok() && !c.uncounted
		}
		if err == nil && i < len(index) && p.Off > begin+index[i].Offset { // the walk skipped it as another type
			err = fault.Corruptf(t.At.Sub(begin+index[i].Offset, int64(index[i].Size)),
				layout.PagePath(t.Group, t.Col, i)+".header", "expected a data page, which the index has here")
		}
		if err == nil {
			c.page(p, i)
		} else if !c.badHeader(err, i) {
			return c.n.rows, false
		}
	}
	return c.n.rows, false
}

// chunkCheck verifies the pages of a chunk in order.
type chunkCheck struct {
	v         *verifier
	t         *page.Table
	walked    *page.Table // where the pages are found by their headers
	begin     int64       // offset of the first page, to which the index is relative
	index     []layout.IndexEntry
	n         rowCount
	uncounted bool // at depth Quick, a page was skipped that does not state how many rows begin in it
}

// badHeader records a page whose header cannot be read; ok reports that the index locates the next page.
func (c *chunkCheck) badHeader(err error, i int) (ok bool) {
	if i < len(c.index) {
		c.n.damaged("redfile.page.header", err, int64(c.index[i].Rows))
		c.walked.Resume(c.index, i, c.begin)
		return true
	}
	code := "redfile.page.header"
	if recovery.PathOf(err) == layout.ChunkPath(c.t.Group, c.t.Col)+".num_values" {
		code = "redfile.column.count"
	}
	c.n.damaged(code, err, -1)
	return false
}

// page verifies page i at the requested depth, and counts its rows.
func (c *chunkCheck) page(p *page.Page, i int) {
	indexed := i < len(c.index) && c.begin+c.index[i].Offset == p.Off
	known := int64(-1) // rows that begin in the page according to its header or the index; -1 if neither states it
	if c.n.flat {
		known = p.Values
	} else if indexed && int64(c.index[i].Values) == p.Values {
		known = int64(c.index[i].Rows)
	}
	if p.Lost != nil {
		c.n.damaged("redfile.page.header", p.Lost, known)
		return
	}
	if c.v.depth == format.Quick {
		c.v.checkPlacement(c.index, c.t, p, i)
		c.n.add(max(0, known))
		c.uncounted = c.uncounted || known < 0
		return
	}
	rows, err := c.v.page(c.t, p, i, c.index)
	if err == nil {
		c.n.add(rows)
		return
	}
	code := "redfile.page.damaged"
	if strings.HasSuffix(recovery.PathOf(err), "header.crc") {
		code = "redfile.page.crc"
	}
	if known < 0 && indexed { // its header and the index disagree on num_values: trust the index
		known = int64(c.index[i].Rows)
		c.walked.Resume(c.index, i, c.begin)
	}
	c.n.damaged(code, err, known)
}

// rowCount counts the rows of a chunk page by page, and determines the rows of damaged pages. In a repeated column
// without an index page, the number of rows that begin in a damaged page is unknown. If there is only one such page,
// its rows are those of the row group that the other pages do not have. If there are several, all rows from the first
// such page on are in doubt, and also the row before, which may continue in that page.
type rowCount struct {
	flat       bool
	first, end int64 // rows of the row group in the file; -1 if unknown
	rows       int64 // so far, without pages whose number of rows is unknown
	whole      bool  // the last page has been reached
	found      []damagedPage
}

// damagedPage is a page to report, and its rows, which count from the beginning of the row group.
type damagedPage struct {
	code string
	err  error
	from int64 // rows before it; -1 if unknown
	rows int64 // rows that begin in it; -1 if unknown
}

func (n *rowCount) add(rows int64) { n.rows += rows }

func (n *rowCount) ok() bool { return len(n.found) == 0 }

// damaged records a damaged page in which rows rows begin, -1 if unknown.
func (n *rowCount) damaged(code string, err error, rows int64) {
	d := damagedPage{code, err, n.rows, rows}
	if n.hasUnknown() {
		d.from = -1
	}
	n.found = append(n.found, d)
	n.rows += max(0, rows)
}

// hasUnknown reports whether the number of rows of some damaged page is unknown.
func (n *rowCount) hasUnknown() bool {
	return slices.ContainsFunc(n.found, func(d damagedPage) bool { return d.rows < 0 })
}

// report reports the damaged pages with the rows that are lost with them.
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
		case d.from < 0: // after a page in doubt
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

// page decodes a page, checks its values, and returns the number of rows that begin in it.
func (v *verifier) page(t *page.Table, p *page.Page, i int, index []layout.IndexEntry) (int64, error) {
	at := t.At.Sub(p.Off, p.Size)
	path := layout.PagePath(t.Group, t.Col, i)
	stored, err := format.ReadPage(v.ctx, t.Src, at, v.f.Limits, path, func(n int) []byte {
		return slices.Grow(v.stored[:0], n)[:n]
	})
	if v.stored = stored; err != nil {
		return 0, err
	}
	l := &v.f.Leaves[t.Col]
	if v.depth == format.Sums && l.MaxRep == 0 && v.summedFacts(t) {
		v.arena.Reset()
		summed, err := t.Sum(p, v.stored, &v.arena)
		if err == nil && summed {
			v.checkPlacement(index, t, p, i)
		}
		if err != nil || summed {
			return p.Values, fault.Locate(err, at, true, path)
		}
	}
	rows, nulls := int64(0), int64(0)
	var e layout.IndexEntry
	starts := true
	c := page.NewChunk(t, vec.Range{})
	for sub := int64(0); ; sub += page.MaxSub {
		v.arena.Reset()
		dst, err := vec.New(l.Column.Type, memory.DefaultAllocator)
		if err != nil {
			return 0, err
		}
		n := min(page.MaxSub, p.Values-sub)
		task := format.Task{Page: format.Page{Ordinal: i, Sub: sub, Spans: []fault.Span{at}, Own: p}, N: n,
			Bytes: [][]byte{v.stored}, Scratch: &v.arena, Limits: v.f.Limits}
		if err := c.Decode(&task, dst); err != nil {
			return rows, err
		}
		nulls += int64(dst.Nulls())
		if l.MaxRep == 0 {
			rows += n
		} else {
			rows += int64(nest.CountRows(dst.Rep()))
			starts = starts && (sub > 0 || n == 0 || dst.Rep()[0] == 0)
		}
		if sub+n >= p.Values {
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
		v.checkEntry(index, t, p, i, rows, nulls, &e)
	}
	return rows, nil
}

// summedFacts reports whether the type, the levels and the encoding used to decode the pages of t are covered by a
// checksum or stored twice. If not, only decoding shows that they match the pages.
func (v *verifier) summedFacts(t *page.Table) bool {
	f := &v.f.Footer
	return f.HasCRC && f.Groups[t.Group].Columns[t.Col].Meta != nil && len(t.Meta.Encodings) == 1
}

// coverage reports bytes that no structure or more than one structure claims.
func (v *verifier) coverage(tg format.Target, o format.OpenOptions) {
	if v.Stopped() {
		return
	}
	gaps, overlaps, err := describe.Claims(v.ctx, v.f.At, func(out *describe.Outline) error {
		return (&describer{Outline: out, report: v.Report}).object(tg, o)
	})
	if err != nil {
		gaps = nil // describing ended early, so the rest would look like a gap
	}
	e := new(fault.Error)
	switch {
	case err != nil && !errors.As(err, &e):
		v.Blame("redfile.read", err, -1, -1)
	case err != nil && v.Errors() == 0: // otherwise it has already been reported with its page or chunk
		v.Blame("redfile.page.header", err, -1, -1)
	}
	v.Unclaimed("redfile.coverage", gaps, overlaps)
}
