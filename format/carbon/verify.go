package carbon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/internal/check"
	"stoa/internal/describe"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// verifyOnce verifies a target; see verify.
func verifyOnce(ctx context.Context, tg format.Target, o format.OpenOptions, yield func(region.Finding) bool) {
	v := &verifier{Reporter: reporter(ctx, tg.Name, yield), ctx: ctx, tree: tg.Tree, o: o}
	v.o.Tracer = nil
	var err error
	if v.opts, err = table.ParseOptions(o.Opts); err == nil {
		err = v.opts.Complete(ctx, tg.Tree, o.Limits)
	}
	if err == nil {
		err = v.target(tg)
	}
	if err != nil {
		v.Blame("carbon.read", err, -1, -1)
	}
}

// verifier verifies one target.
type verifier struct {
	*check.Reporter
	ctx  context.Context
	tree store.Tree
	o    format.OpenOptions
	opts table.ReadOptions

	replaced []string      // delete deltas of the current table to which nothing refers any more
	read     []*table.Part // data files of the current table

	old int64 // number of dates and times in the current file before the Gregorian calendar

	arena vec.Arena // for stored bytes
	spare vec.Arena // for decoding
}

// reporter is a Reporter for a table or file.
func reporter(ctx context.Context, part string, yield func(region.Finding) bool) *check.Reporter {
	r := check.New(ctx, part, layout.Codes, yield)
	r.Read, r.CodeOf = "carbon.read", codeOf
	return r
}

// codeOf returns the finding code for an error: code for damage, carbon.unsupported for unsupported features.
func codeOf(code string, e *fault.Error) string {
	if e.Class == fault.Unsupported || e.Class == fault.Limit {
		return "carbon.unsupported"
	}
	return code
}

func (v *verifier) target(tg format.Target) error {
	if k, _, err := table.Look(v.ctx, tg); err == nil && k == table.KindStore && tg.Table == "" {
		v.opts.Root = tg.Name
		tables, err := table.StoreTables(v.ctx, v.tree, tg.Name)
		for _, t := range tables {
			v.table(t.Dir)
		}
		return err
	}
	tg, k, err := table.Resolve(v.ctx, tg, &v.opts)
	if err != nil {
		return err
	}
	switch k {
	case table.KindTable:
		v.table(tg.Name)
	case table.KindFiles:
		v.folder(tg)
	case table.KindIndex, table.KindMerged:
		v.index(tg.Name)
	case table.KindDict, table.KindDictMeta, table.KindSort:
		return verifyDictionary(v.ctx, tg, v.o, v.Reporter)
	default:
		v.file(tg.Name, nil, nil)
	}
	return nil
}

// folder verifies a directory of data files and their index files.
func (v *verifier) folder(tg format.Target) {
	d, err := table.ReadFolder(v.ctx, tg, v.o.Limits)
	if err != nil {
		v.Blame("carbon.read", err, -1, -1)
		return
	}
	for _, name := range layout.SortedKeys(d.Unreadable) {
		v.Part = name
		v.Blame("carbon.index.damaged", d.Unreadable[name], -1, -1)
	}
	v.Part = tg.Name
	for _, name := range d.Missing() {
		v.Blame("carbon.segment.missing", d.MissingError(tg.Name, name), -1, -1)
	}
	for _, name := range d.Unnamed() {
		v.Report("carbon.index.missing", fault.Span{Object: name}, "",
			"no index of the directory names this data file: it is read nevertheless")
	}
	for _, n := range d.Data {
		v.file(n, d.Named[path.Base(n)], nil)
	}
}

// index verifies an index file.
func (v *verifier) index(name string) {
	v.Part = name
	o, err := layout.OpenObject(v.ctx, v.tree, name, v.o.Limits)
	if err != nil {
		v.Blame("carbon.read", err, -1, -1)
		return
	}
	if _, err = o.ReadIndex(v.ctx, strings.HasSuffix(name, layout.MergedExt), nil); err != nil {
		v.Blame("carbon.index.damaged", err, -1, -1)
	}
}

// table verifies a table's directory.
func (v *verifier) table(dir string) {
	v.Part = dir
	t, err := table.OpenManaged(v.ctx, v.tree, dir, v.o, v.opts, nil)
	if err != nil {
		code := "carbon.status.damaged"
		var e *fault.Error
		if !errors.As(err, &e) || path.Base(e.At.Object) == "schema" {
			code = "carbon.schema.damaged"
		}
		v.Blame(code, err, -1, -1)
		names, _ := table.FilesBelow(v.ctx, v.tree, dir, 8)
		for _, n := range names { // each separately
			v.file(n, nil, nil)
		}
		return
	}
	if err := t.CheckWanted(); err != nil {
		v.Blame("carbon.read", err, -1, -1)
		return
	}
	counts := func(l status.Load) bool { return l.Counts() }
	// without data there may be no dictionaries
	if t.Dicts != nil && v.o.Depth != format.Quick && slices.ContainsFunc(t.Loads, counts) {
		if err := verifyDictionaries(v.ctx, t.Dicts, t.Roots, v.Reporter); err != nil {
			v.Blame("carbon.read", err, -1, -1)
		}
	}
	v.replaced, v.read = nil, nil
	for i := range t.Loads {
		if v.Stopped() {
			return
		}
		if l := &t.Loads[i]; t.O.Wants(l) {
			v.entry(t, i)
			v.segment(t, l)
		}
	}
	v.Part, v.Column = dir, ""
	if err := t.NoteCopies(v.ctx, v.read); err != nil {
		v.Blame("carbon.read", err, -1, -1)
	}
	for _, f := range t.Findings() {
		v.Emit(f)
	}
	v.leftovers(t)
}

// segment verifies a segment of a table.
func (v *verifier) segment(t *table.Managed, l *status.Load) {
	used := map[string]bool{} // delete deltas in use
	v.Part = t.Path
	parts, h, err := t.SegmentContents(v.ctx, l)
	if err != nil {
		code := "carbon.segment.missing"
		if e := (*fault.Error)(nil); errors.As(err, &e) && t.Updates != "" && e.At.Object == t.Updates {
			code = "carbon.delete.damaged"
		}
		v.Blame(code, err, -1, -1) // files that exist are still verified
	} else {
		v.sizes(t, l, h)
		v.segmentBounds(t, l, parts, h.Unknown)
	}
	v.parquet(t, l)
	newer := map[string]bool{}
	for _, f := range t.Findings() {
		v.Emit(f)
		newer[f.At.Object] = f.Code == "carbon.delete.unnamed"
	}
	t.Notes = nil
	for k := range parts {
		p := &parts[k]
		v.read = append(v.read, p)
		v.file(p.Name, p.Indexed(), t)
		v.deletes(t, p, used)
	}
	for _, name := range h.Deltas {
		if l.Counts() && !used[name] && !newer[name] {
			v.replaced = append(v.replaced, name)
		}
	}
}

// deletes verifies the delete deltas of a part, and adds them to used.
func (v *verifier) deletes(t *table.Managed, p *table.Part, used map[string]bool) {
	if p.Update == nil {
		return
	}
	v.Part, v.Column = p.Name, ""
	if names, err := t.DeltaNames(v.ctx, p.Update, path.Dir(p.Name)); err == nil {
		for _, n := range names {
			used[n] = true
		}
	}
	d, err := t.ReadDeletes(v.ctx, p.Update, path.Dir(p.Name))
	if err != nil {
		v.Blame("carbon.delete.damaged", err, -1, -1)
		return
	}
	f, err := t.File(v.ctx, p.Name)
	if err != nil {
		return // reported already
	}
	for k, rows := range d {
		var have int64
		if k.Blocklet < int64(len(f.Footer.Blocklet)) {
			if starts, err := f.PageStarts(v.ctx, int(k.Blocklet)); err == nil && k.Page < int64(len(starts)-1) {
				have = starts[k.Page+1] - starts[k.Page]
			}
		}
		if last := rows[len(rows)-1]; rows[0] < 0 || last >= have {
			v.Report("carbon.delete.range", fault.Span{Object: t.Updates}, p.Update.Block,
				"blocklet %d, page %d: expected deleted rows below %d, found %d", k.Blocklet, k.Page, have, last)
		}
	}
}

// file verifies a data file. known has the file's entries in an index file, t is its table; both may be nil.
func (v *verifier) file(name string, known *datafile.Indexed, t *table.Managed) {
	v.Part, v.Column = name, ""
	f, err := datafile.OpenFile(v.ctx, v.tree, name, v.o)
	if err != nil {
		code := "carbon.footer.damaged"
		var e *fault.Error
		if errors.As(err, &e) && strings.HasPrefix(e.Path, "header") {
			code = "carbon.header.damaged"
		}
		v.Blame(code, err, -1, -1)
		return
	}
	if v.opts.Blocklet > 0 {
		f.Widths.Learn(int(v.opts.Blocklet))
	}
	own := &table.Table{Tree: v.tree, Name: name, Opts: v.o, Files: map[string]*datafile.DataFile{},
		Zone: v.opts.Zone, Blocklet: v.opts.Blocklet}
	own.Keep(f)
	own.Dates, _ = v.opts.Rule()
	if t != nil {
		own.Dicts = t.Dicts
		if err := t.Belongs(f); err != nil {
			v.Blame("carbon.header.damaged", err, -1, -1)
		}
		for i := range t.Phys {
			if p := &t.Phys[i]; p.Col != nil {
				v.Blame("carbon.schema.damaged", t.Fits(f, p), -1, -1)
			}
		}
	}
	if err := own.AllColumns(f.Roots, f.ColumnsAt(), f.ColumnsPath()); err != nil {
		v.Blame("carbon.header.damaged", err, -1, -1)
		return
	}
	v.compare(f, known)
	defer v.calendar(own, f, t)
	at := int64(0)
	for g := range f.Footer.Blocklet {
		if v.o.Depth == format.Quick {
			break
		}
		if f.Stream != nil {
			v.rows(own, f, g, at)
		} else {
			v.blocklet(own, f, g, at)
		}
		at += f.Footer.Blocklet[g].Rows
	}
	v.Column = ""
	if f.Stream != nil {
		v.coverage(name, f.At)
	}
}

// rows verifies a blocklet of a row-format file, column by column; at is its first row in the file.
func (v *verifier) rows(t *table.Table, f *datafile.DataFile, g int, at int64) {
	b := &f.Stream.Blocklets[g]
	raw, err := f.Read(v.ctx, b.Data.Off, b.Data.Len, fmt.Sprintf("blocklet[%d]", g))
	if err != nil {
		v.Blame("carbon.page.damaged", err, at, at+b.Rows)
		return
	}
	for i := range t.Phys {
		p := &t.Phys[i]
		if v.Column = p.Name; p.Parent >= 0 || v.Stopped() {
			continue
		}
		old, err := t.DecodeRows(f, g, p, raw, &v.spare)
		v.old += old
		if err != nil {
			v.Blame("carbon.page.damaged", err, at, at+b.Rows)
			if errors.Is(err, fault.Corrupt) {
				return // the other columns would have the same error
			}
		}
	}
}

// blocklet verifies every page of a blocklet; at is its first row in the file.
func (v *verifier) blocklet(t *table.Table, f *datafile.DataFile, g int, at int64) {
	totals := make([]map[int]int64, len(t.Phys)) // lists and structs: number of children by page; nil: unreadable
	for i := range t.Phys {
		if v.Stopped() {
			return
		}
		p := &t.Phys[i]
		v.Column = p.Name
		if p.Parent >= 0 && totals[p.Parent] == nil {
			continue // its parent is lost, which has been reported
		}
		var counts map[int]int64
		if p.Parent >= 0 {
			counts = totals[p.Parent]
		}
		totals[i] = v.chunk(t, f, g, p, at, counts)
	}
}

// chunk verifies the pages of a column of a blocklet, whose first row is at. For a child, counts has the number of
// entries by page. It returns the sums of the lengths by page; nil if a page cannot be read.
func (v *verifier) chunk(t *table.Table, f *datafile.DataFile, g int, p *schema.Physical, at int64,
	counts map[int]int64) map[int]int64 {
	rows := f.Footer.Blocklet[g].Rows
	col := t.Match(f, p.Root, p.Col)
	c, err := t.NewChunk(v.ctx, f, g, p, col, vec.Range{To: rows})
	if err != nil {
		v.Blame("carbon.chunk.damaged", err, at, at+rows)
		return nil
	}
	d := &pageDecoder{v: v, c: c, object: &f.Object}
	defer d.release()
	if pg, ok := c.Dict(); ok {
		if err := d.dictionary(pg); err != nil {
			code := "carbon.dict.damaged"
			if errors.Is(err, fs.ErrNotExist) {
				code = "carbon.dict.missing"
			}
			v.Blame(code, err, at, at+rows)
			return nil
		}
	}
	sums := map[int]int64{}
	var whole *pred.Bounds
	if p.Parent < 0 && p.Has == format.Values && f.Version == 3 {
		whole = datafile.MinMaxOf(col, f.Footer.Index[g].MinMax, col.Chunk)
		if a, z, yes := datafile.Crossed(col, f.Footer.Index[g].MinMax, col.Chunk); yes {
			d.crossed = func() {
				v.Report("carbon.blocklet.minmax", f.FootSpan(),
					fmt.Sprintf("footer.blocklet_index_list[%d].min_max_index", g),
					"min %v is greater than max %v", a, z)
			}
		}
	}
	for {
		pg, err := c.Next(v.ctx)
		if err == io.EOF {
			return sums
		}
		if err != nil {
			v.Blame("carbon.page.damaged", err, at, at+rows)
			return nil
		}
		n := pg.Entries
		if counts != nil {
			n = counts[pg.Ordinal]
		}
		if !d.page(p, pg, n, at, whole, sums) {
			return nil
		}
	}
}

// pageDecoder decodes pages as the engine does.
type pageDecoder struct {
	v      *verifier
	c      *datafile.Chunk
	object *layout.Object
	dict   *vec.Vector

	crossed func() // to be called if the blocklet has a value: reports that min > max; nil: they are in order
}

func (d *pageDecoder) release() {
	if d.dict != nil {
		d.dict.Release()
	}
}

// task reads the bytes of a page of n entries.
func (d *pageDecoder) task(p format.Page, n int64) (*format.Task, error) {
	d.v.arena.Reset()
	d.v.spare.Reset()
	t := &format.Task{Page: p, N: n, Dict: d.dict, Scratch: &d.v.spare, Limits: d.object.Limits}
	for _, at := range p.Spans {
		if at.Len > d.object.Limits.Page {
			return nil, fault.Limitf(at, "",
				"expected a page of at most %d bytes (page limit or memory limit), found %d", d.object.Limits.Page,
				at.Len)
		}
		src, err := d.object.Tree.Open(d.v.ctx, at.Object)
		if err != nil {
			return nil, err
		}
		if at.Off < 0 || at.Len < 0 || at.End() > src.Size() {
			src.Close()
			return nil, fault.Corruptf(at, "", "reaches past the end of the file (%d)", src.Size())
		}
		b := d.v.arena.Bytes(int(at.Len))
		err = format.ReadFull(d.v.ctx, src, at, "", b)
		src.Close()
		if err != nil {
			return nil, err
		}
		t.Bytes = append(t.Bytes, b)
	}
	return t, nil
}

// dictionary decodes the dictionary of the chunk for its pages.
func (d *pageDecoder) dictionary(p format.Page) error {
	if p.Lost != nil {
		return p.Lost
	}
	t, err := d.task(p, -1)
	if err != nil {
		return err
	}
	v, err := vec.New(d.c.Phys.Type, memory.DefaultAllocator)
	if err != nil {
		return err
	}
	if err := d.c.Decode(t, v); err != nil {
		v.Release()
		return err
	}
	d.dict = v
	return nil
}

// page verifies a page of n entries. at is the blocklet's first row in the file; whole has the blocklet's bounds, nil
// if unknown. The sum of lengths is added to sums. It reports whether the page could be decoded.
func (d *pageDecoder) page(p *schema.Physical, pg format.Page, n, at int64, whole *pred.Bounds,
	sums map[int]int64) bool {
	first, end := at+pg.First, at+pg.First+pg.Rows
	dst, err := vec.New(p.Type, memory.DefaultAllocator)
	if err != nil {
		d.v.Blame("carbon.unsupported", err, first, end)
		return false
	}
	defer dst.Release()
	t, err := d.task(pg, n)
	if err == nil {
		err = d.c.Decode(t, dst)
	}
	if err == nil && int64(dst.Len()) != n {
		d.v.Blame("carbon.page.count", fault.Corruptf(pg.Spans[0], page.PagePath(p.Name, pg.Ordinal),
			"expected %d entries, found %d", n, dst.Len()), first, end)
		return false
	}
	if err != nil {
		d.v.Blame("carbon.page.damaged", err, first, end)
		return false
	}
	if p.Has == format.Lengths {
		for _, k := range vec.Fixed[int32](dst, 0) {
			sums[pg.Ordinal] += int64(k)
		}
		return true
	}
	d.v.old += page.Old(dst)
	d.bounds(p, pg, dst, whole, first, end)
	return true
}

// bounds compares the values of a page, rows first to end, with the bounds of the page and of the blocklet.
func (d *pageDecoder) bounds(p *schema.Physical, pg format.Page, dst *vec.Vector, whole *pred.Bounds, first,
	end int64) {
	lo, hi, odd, ok := page.Extremes(dst)
	if odd >= 0 {
		d.v.Report("carbon.utf8", pg.Spans[0], page.PagePath(p.Name, pg.Ordinal), "the string of row %d is not UTF-8",
			first+int64(odd))
	}
	if !ok {
		return
	}
	if d.crossed != nil {
		d.crossed()
		d.crossed = nil
	}
	if v := d.c; pg.Ordinal < len(v.Tree.Pages) && p.Parent < 0 && v.Tree.Pages[pg.Ordinal].MinMax != nil &&
		v.F.Version == 3 {
		if a, z, yes := datafile.Crossed(v.Col, v.Tree.Pages[pg.Ordinal].MinMax, 0); yes {
			d.v.Scoped(region.Finding{Code: "carbon.page.minmax", At: pg.Spans[0],
				Path:    page.PagePath(p.Name, pg.Ordinal),
				Message: fmt.Sprintf("min %v is greater than max %v", a, z),
				Rows:    [2]int64{first, end}, Lost: -1})
		}
	}
	for _, x := range []struct {
		code string
		b    *pred.Bounds
	}{{"carbon.page.minmax", pg.Bounds}, {"carbon.blocklet.minmax", whole}} {
		if x.b == nil || x.b.Min == nil || x.b.Max == nil {
			continue
		}
		below, ok1 := pred.Compare(lo, *x.b.Min)
		above, ok2 := pred.Compare(hi, *x.b.Max)
		if ok1 && below < 0 || ok2 && above > 0 {
			d.v.Scoped(region.Finding{Code: x.code, At: pg.Spans[0], Path: page.PagePath(p.Name, pg.Ordinal),
				Message: fmt.Sprintf("expected values from %v to %v, found %v to %v", *x.b.Min, *x.b.Max, lo, hi),
				Rows:    [2]int64{first, end}, Lost: -1})
		}
	}
}

// coverage reports bytes that no structure claims. Only row-format files need this check, because other files with such
// bytes cannot be opened.
func (v *verifier) coverage(name string, whole fault.Span) {
	gaps, _, err := describe.Claims(v.ctx, whole, func(out *describe.Outline) error {
		return (&describer{Outline: out, tree: v.tree, o: v.o, opts: v.opts}).dataFile(name)
	})
	if err != nil {
		return // reported already
	}
	for _, at := range gaps {
		v.Report("carbon.coverage.gap", at, "", "no structure claims these %d bytes", at.Len)
	}
}
