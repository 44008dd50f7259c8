package carbon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/pred"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// verify reads everything (with format.Quick no pages) and tells what contradicts itself: structure, every page, values against their bounds, indexes against
// footers, deletes against pages, files against the status, bytes that nothing claims.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := &verifier{ctx: ctx, tree: tg.Tree, o: o, yield: yield, part: tg.Name}
		v.o.Tracer = nil
		var err error
		if v.opts, err = parseOptions(o.Opts); err == nil {
			err = v.opts.complete(ctx, tg.Tree, o.Limits)
		}
		if err == nil {
			err = v.target(tg)
		}
		if err != nil && !v.stopped {
			v.blame("carbon.read", err, -1, -1)
		}
	}
}

// verifier verifies one target.
type verifier struct {
	ctx     context.Context
	tree    store.Tree
	o       format.OpenOptions
	opts    readOptions
	yield   func(region.Finding) bool
	stopped bool
	part    string
	column  string

	replaced []string // delete deltas of the table that nothing names any more
	read     []*part  // data files of the table

	arena vec.Arena // stored bytes
	spare vec.Arena // decoding
}

func (v *verifier) give(f region.Finding) {
	if f.Severity < region.Error {
		f.Lost = 0
	}
	if !v.stopped && v.ctx.Err() == nil {
		v.stopped = !v.yield(f)
	}
}

func (v *verifier) tell(code string, at fault.Span, path, format string, args ...any) {
	v.give(region.Finding{Code: code, Severity: severityOf(code), At: at, Path: path, Message: fmt.Sprintf(format, args...), Part: v.part,
		Column: v.column, Rows: [2]int64{-1, -1}, Lost: -1})
}

// blame tells an error about the rows [first, end); -1 is not known. What is not damage has codes of its own.
func (v *verifier) blame(code string, err error, first, end int64) {
	var e *fault.Error
	if !errors.As(err, &e) {
		e, code = fault.New(fault.Bug, fault.Span{Object: v.part}, "", "%v", err), "carbon.read"
	}
	switch e.Class {
	case fault.Unsupported, fault.Limit:
		code = "carbon.unsupported"
	}
	f := region.Finding{Code: code, Severity: severityOf(code), At: e.At, Path: e.Path, Message: e.Reason, Part: v.part, Column: v.column, Rows: [2]int64{first, end}, Lost: -1}
	if e.Cause != nil {
		f.Message = strings.TrimPrefix(f.Message+": "+e.Cause.Error(), ": ")
	}
	if f.At.Object == "" {
		f.At.Object = v.part
	}
	if first >= 0 && end >= first {
		f.Lost = end - first
	}
	v.give(f)
}

func (v *verifier) target(tg format.Target) error {
	if k, _, err := look(v.ctx, tg); err == nil && k == kindStore && tg.Table == "" {
		tables, err := storeTables(v.ctx, v.tree, tg.Name)
		for _, t := range tables {
			v.table(t.dir)
		}
		return err
	}
	tg, k, err := resolve(v.ctx, tg, &v.opts)
	if err != nil {
		return err
	}
	switch k {
	case kindTable:
		v.table(tg.Name)
	case kindFiles:
		v.folder(tg)
	case kindIndex, kindMerged:
		v.index(tg.Name)
	case kindDict, kindDictMeta, kindSort:
		return verifyDictionary(v.ctx, tg, v.o, v.give)
	default:
		v.file(tg.Name, nil, nil)
	}
	return nil
}

// folder verifies a directory of data files and what their index files say of them.
func (v *verifier) folder(tg format.Target) {
	names, err := dataFiles(v.ctx, tg)
	if err != nil {
		v.blame("carbon.read", err, -1, -1)
		return
	}
	known := map[string]*indexed{}
	for info, err := range tg.Tree.List(v.ctx, tg.Name) {
		if err == nil && !info.Dir && (strings.HasSuffix(info.Name, indexExt) || strings.HasSuffix(info.Name, mergedExt)) {
			for k, x := range v.index(info.Name) {
				known[k] = x
			}
		}
	}
	for _, n := range names {
		v.file(n, known[path.Base(n)], nil)
	}
}

// index verifies an index file and gives what it says, by data file.
func (v *verifier) index(name string) map[string]*indexed {
	v.part = name
	out := map[string]*indexed{}
	o, err := openObject(v.ctx, v.tree, name, v.o.Limits)
	if err != nil {
		v.blame("carbon.read", err, -1, -1)
		return out
	}
	files, err := o.readIndex(v.ctx, strings.HasSuffix(name, mergedExt), nil)
	if err != nil {
		v.blame("carbon.index.damaged", err, -1, -1)
	}
	collect(out, files)
	return out
}

// table verifies a table's directory.
func (v *verifier) table(dir string) {
	v.part = dir
	t, err := openManaged(v.ctx, v.tree, dir, v.o, v.opts, nil)
	if err != nil {
		code := "carbon.status.damaged"
		var e *fault.Error
		if !errors.As(err, &e) || path.Base(e.At.Object) == "schema" {
			code = "carbon.schema.damaged"
		}
		v.blame(code, err, -1, -1)
		names, _ := filesBelow(v.ctx, v.tree, dir, 8)
		for _, n := range names { // as far as they go by themselves
			v.file(n, nil, nil)
		}
		return
	}
	counts := func(l load) bool { return l.counts() }
	if t.dicts != nil && v.o.Depth != format.Quick && slices.ContainsFunc(t.loads, counts) { // without data there need be no dictionaries
		if err := t.dicts.verify(v.ctx, t.roots, v.give); err != nil {
			v.blame("carbon.read", err, -1, -1)
		}
	}
	v.replaced, v.read = nil, nil
	for i := range t.loads {
		if v.stopped || v.ctx.Err() != nil {
			return
		}
		if l := &t.loads[i]; t.o.wants(l) {
			v.segment(t, l)
		}
	}
	v.part, v.column = dir, ""
	if err := t.untied(v.ctx, v.read); err != nil {
		v.blame("carbon.read", err, -1, -1)
	}
	for _, f := range t.Findings() {
		v.give(f)
	}
	v.leftovers(t)
}

// segment verifies a segment of a table.
func (v *verifier) segment(t *managed, l *load) {
	used := map[string]bool{} // delete deltas that hold
	v.part = t.path
	parts, h, err := t.segmentHolding(v.ctx, l)
	if err != nil {
		code := "carbon.segment.missing"
		if e := (*fault.Error)(nil); errors.As(err, &e) && t.updates != "" && e.At.Object == t.updates {
			code = "carbon.delete.damaged"
		}
		v.blame(code, err, -1, -1) // what is there is looked at all the same
	} else {
		v.sizes(t, l, h)
		v.segmentBounds(t, l, parts, h.unknown)
	}
	newer := map[string]bool{}
	for _, f := range t.Findings() {
		v.give(f)
		newer[f.At.Object] = f.Code == "carbon.delete.unnamed"
	}
	t.notes = nil
	for k := range parts {
		p := &parts[k]
		v.read = append(v.read, p)
		v.file(p.name, p.indexed(), t)
		v.deletes(t, p, used)
	}
	for _, name := range h.deltas {
		if l.counts() && !used[name] && !newer[name] {
			v.replaced = append(v.replaced, name)
		}
	}
}

// indexed is what the index says of a part; nil if there is none.
func (p *part) indexed() *indexed {
	if p.blocks == nil {
		return nil
	}
	return &indexed{blocks: p.blocks, columns: p.columns}
}

// deletes verifies the delete deltas of a part, and notes in used which they are.
func (v *verifier) deletes(t *managed, p *part, used map[string]bool) {
	if p.update == nil {
		return
	}
	v.part, v.column = p.name, ""
	if names, err := t.deltaNames(v.ctx, p.update, path.Dir(p.name)); err == nil {
		for _, n := range names {
			used[n] = true
		}
	}
	d, err := t.readDeletes(v.ctx, p.update, path.Dir(p.name))
	if err != nil {
		v.blame("carbon.delete.damaged", err, -1, -1)
		return
	}
	f, err := t.file(v.ctx, p.name)
	if err != nil {
		return // told already
	}
	for k, rows := range d {
		var have int64
		if k.blocklet < int64(len(f.footer.blocklet)) {
			if starts, err := f.pageStarts(v.ctx, int(k.blocklet)); err == nil && k.page < int64(len(starts)-1) {
				have = starts[k.page+1] - starts[k.page]
			}
		}
		if last := rows[len(rows)-1]; rows[0] < 0 || last >= have {
			v.tell("carbon.delete.range", fault.Span{Object: t.updates}, p.update.Block, "row %d of page %d of blocklet %d is deleted, the page has %d", last, k.page, k.blocklet, have)
		}
	}
}

// file verifies a data file. known is what an index file says of it, t its table; both may be nil.
func (v *verifier) file(name string, known *indexed, t *managed) {
	v.part, v.column = name, ""
	f, err := openFile(v.ctx, v.tree, name, v.o)
	if err != nil {
		code := "carbon.footer.damaged"
		var e *fault.Error
		if errors.As(err, &e) && strings.HasPrefix(e.Path, "header") {
			code = "carbon.header.damaged"
		}
		v.blame(code, err, -1, -1)
		return
	}
	if v.opts.blocklet > 0 {
		f.widths.learn(int(v.opts.blocklet))
	}
	own := &table{tree: v.tree, name: name, opts: v.o, files: map[string]*dataFile{}, zone: v.opts.zone, blocklet: v.opts.blocklet}
	own.keep(f)
	own.dates, _ = v.opts.rule()
	if t != nil {
		own.dicts = t.dicts
		if err := t.belongs(f); err != nil {
			v.blame("carbon.header.damaged", err, -1, -1)
		}
	}
	if err := own.columns(f.roots); err != nil {
		v.blame("carbon.unsupported", err, -1, -1)
		return
	}
	v.compare(f, known)
	at := int64(0)
	for g := range f.footer.blocklet {
		if v.o.Depth == format.Quick {
			break
		}
		if f.stream != nil {
			v.rows(own, f, g, at)
		} else {
			v.blocklet(own, f, g, at)
		}
		at += f.footer.blocklet[g].rows
	}
	v.column = ""
	v.coverage(name)
}

// compare holds what an index file says of a data file against its footer.
func (v *verifier) compare(f *dataFile, known *indexed) {
	if known == nil {
		return
	}
	bad := func(b *blockIndex, format string, args ...any) {
		v.tell("carbon.index.disagree", b.at, path.Base(f.at.Object), format, args...)
	}
	var rows int64
	for i := range known.blocks {
		b := &known.blocks[i]
		rows += b.count()
		if b.offset != f.footAt && f.stream == nil {
			bad(b, "the footer is at %d, the index says %d", f.footAt, b.offset)
		}
		if b.info == nil || i >= len(f.footer.blocklet) {
			continue
		}
		if b.count() != f.footer.blocklet[i].rows {
			bad(b, "blocklet %d has %d rows, the index says %d", i, f.footer.blocklet[i].rows, b.count())
		}
		if b.rows != f.footer.rows && b.rows != b.count() {
			bad(b, "the file has %d rows, num_rows in the index says %d", f.footer.rows, b.rows)
		}
		if !sameBounds(b.index.minMax, f.footer.index[i].minMax) {
			bad(b, "the least and greatest values of blocklet %d are others than those of the footer", i)
		}
	}
	if rows != f.footer.rows && len(known.blocks) > 0 {
		bad(&known.blocks[0], "the file has %d rows, the index says %d", f.footer.rows, rows)
	}
}

// sameBounds compares bounds; an index may have been told to keep those of some columns only.
func sameBounds(a, b *minMax) bool {
	if a == nil || b == nil || len(a.min) != len(b.min) || len(a.max) != len(b.max) {
		return true
	}
	for i := range a.min {
		if len(a.min[i]) > 0 && !bytes.Equal(a.min[i], b.min[i]) {
			return false
		}
	}
	for i := range a.max {
		if len(a.max[i]) > 0 && !bytes.Equal(a.max[i], b.max[i]) {
			return false
		}
	}
	return true
}

// rows verifies a blocklet of a file of rows, column by column.
func (v *verifier) rows(t *table, f *dataFile, g int, at int64) {
	b := &f.stream.blocklets[g]
	raw, err := f.read(v.ctx, b.data.Off, b.data.Len, fmt.Sprintf("blocklet[%d]", g))
	if err != nil {
		v.blame("carbon.page.damaged", err, at, at+b.rows)
		return
	}
	for i := range t.phys {
		p := &t.phys[i]
		if v.column = p.Name; p.Parent >= 0 || v.stopped {
			continue
		}
		if err := t.decodeRows(f, g, p, raw, &v.spare); err != nil {
			v.blame("carbon.page.damaged", err, at, at+b.rows)
			if errors.Is(err, fault.Corrupt) {
				return // the others would say the same
			}
		}
	}
}

// blocklet verifies every page of a blocklet, whose first row is row at of the file.
func (v *verifier) blocklet(t *table, f *dataFile, g int, at int64) {
	totals := make([]map[int]int64, len(t.phys)) // entries below a list or struct, by page; nil: it cannot be read
	for i := range t.phys {
		if v.stopped || v.ctx.Err() != nil {
			return
		}
		p := &t.phys[i]
		v.column = p.Name
		if p.Parent >= 0 && totals[p.Parent] == nil {
			continue // its parent is lost, which was told
		}
		var counts map[int]int64
		if p.Parent >= 0 {
			counts = totals[p.Parent]
		}
		totals[i] = v.chunk(t, f, g, p, at, counts)
	}
}

// chunk verifies the pages of a column of a blocklet. counts is how many entries each page has, of a child. It gives the sums of
// the lengths by page.
func (v *verifier) chunk(t *table, f *dataFile, g int, p *physical, at int64, counts map[int]int64) map[int]int64 {
	rows := f.footer.blocklet[g].rows
	col := t.match(f, p.root, p.col)
	c, err := t.newChunk(v.ctx, f, g, p, col, vec.Range{To: rows})
	if err != nil {
		v.blame("carbon.chunk.damaged", err, at, at+rows)
		return nil
	}
	d := &pageDecoder{v: v, c: c, object: &f.object}
	defer d.release()
	if page, ok := c.Dict(); ok {
		if err := d.dictionary(page); err != nil {
			code := "carbon.dict.damaged"
			if errors.Is(err, fs.ErrNotExist) {
				code = "carbon.dict.missing"
			}
			v.blame(code, err, at, at+rows)
			return nil
		}
	}
	sums := map[int]int64{}
	var whole *pred.Bounds
	if p.Parent < 0 && p.Has == format.Values && f.version == 3 {
		whole = col.minMax(f.footer.index[g].minMax, col.chunk)
		if a, z, yes := col.crossed(f.footer.index[g].minMax, col.chunk); yes {
			d.crossed = func() {
				v.tell("carbon.blocklet.minmax", f.footSpan(), fmt.Sprintf("footer.blocklet_index_list[%d].min_max_index", g), "the least value is %v, and the greatest %v", a, z)
			}
		}
	}
	for {
		page, err := c.Next(v.ctx)
		if err == io.EOF {
			return sums
		}
		if err != nil {
			v.blame("carbon.page.damaged", err, at, at+rows)
			return nil
		}
		n := page.Entries
		if counts != nil {
			n = counts[page.Ordinal]
		}
		if !d.page(p, page, n, at, whole, sums) {
			return nil
		}
	}
}

// pageDecoder decodes pages as the engine does.
type pageDecoder struct {
	v      *verifier
	c      *chunk
	object *object
	dict   *vec.Vector

	crossed func() // tells that the blocklet's bounds are the wrong way round, if there is a value; nil: they are not
}

func (d *pageDecoder) release() {
	if d.dict != nil {
		d.dict.Release()
	}
}

// task reads a page's bytes.
func (d *pageDecoder) task(p format.Page, n int64) (*format.Task, error) {
	d.v.arena.Reset()
	d.v.spare.Reset()
	t := &format.Task{Page: p, N: n, Dict: d.dict, Scratch: &d.v.spare, Limits: d.object.limits}
	for _, at := range p.Spans {
		if at.Len > d.object.limits.Page {
			return nil, fault.Limitf(at, "", "%d bytes are more than a page may have", at.Len)
		}
		src, err := d.object.tree.Open(d.v.ctx, at.Object)
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

func (d *pageDecoder) dictionary(p format.Page) error {
	if p.Lost != nil {
		return p.Lost
	}
	t, err := d.task(p, -1)
	if err != nil {
		return err
	}
	v, err := vec.New(d.c.phys.Type, memory.DefaultAllocator)
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

// page verifies one page; at is the file's row at which the blocklet begins. It reports whether it could be decoded.
func (d *pageDecoder) page(p *physical, page format.Page, n, at int64, whole *pred.Bounds, sums map[int]int64) bool {
	first, end := at+page.First, at+page.First+page.Rows
	dst, err := vec.New(p.Type, memory.DefaultAllocator)
	if err != nil {
		d.v.blame("carbon.unsupported", err, first, end)
		return false
	}
	defer dst.Release()
	t, err := d.task(page, n)
	if err == nil {
		err = d.c.Decode(t, dst)
	}
	if err == nil && int64(dst.Len()) != n {
		d.v.blame("carbon.page.count", fault.Corruptf(page.Spans[0], pagePath(p.Name, page.Ordinal), "%d entries, %d are expected", dst.Len(), n), first, end)
		return false
	}
	if err != nil {
		d.v.blame("carbon.page.damaged", err, first, end)
		return false
	}
	if p.Has == format.Lengths {
		for _, k := range vec.Fixed[int32](dst, 0) {
			sums[page.Ordinal] += int64(k)
		}
		return true
	}
	d.bounds(p, page, dst, whole, first, end)
	return true
}

// bounds holds the values of a page against what page and blocklet say of them.
func (d *pageDecoder) bounds(p *physical, page format.Page, dst *vec.Vector, whole *pred.Bounds, first, end int64) {
	lo, hi, odd, ok := extremes(dst)
	if odd >= 0 {
		d.v.tell("carbon.utf8", page.Spans[0], pagePath(p.Name, page.Ordinal), "the string of row %d is not UTF-8", first+int64(odd))
	}
	if !ok {
		return
	}
	if d.crossed != nil {
		d.crossed()
		d.crossed = nil
	}
	if v := d.c; page.Ordinal < len(v.tree.pages) && p.Parent < 0 && v.tree.pages[page.Ordinal].minMax != nil && v.f.version == 3 {
		if a, z, yes := v.col.crossed(v.tree.pages[page.Ordinal].minMax, 0); yes {
			d.v.give(region.Finding{Code: "carbon.page.minmax", Severity: severityOf("carbon.page.minmax"), At: page.Spans[0], Path: pagePath(p.Name, page.Ordinal),
				Message: fmt.Sprintf("the least value is %v, and the greatest %v", a, z), Part: d.v.part, Column: p.Name, Rows: [2]int64{first, end}, Lost: -1})
		}
	}
	for _, x := range []struct {
		code string
		b    *pred.Bounds
	}{{"carbon.page.minmax", page.Bounds}, {"carbon.blocklet.minmax", whole}} {
		if x.b == nil || x.b.Min == nil || x.b.Max == nil {
			continue
		}
		below, ok1 := pred.Compare(lo, *x.b.Min)
		above, ok2 := pred.Compare(hi, *x.b.Max)
		if ok1 && below < 0 || ok2 && above > 0 {
			d.v.give(region.Finding{Code: x.code, Severity: severityOf(x.code), At: page.Spans[0], Path: pagePath(p.Name, page.Ordinal),
				Message: fmt.Sprintf("values from %v to %v, the bounds are %v and %v", lo, hi, *x.b.Min, *x.b.Max), Part: d.v.part, Column: p.Name, Rows: [2]int64{first, end}, Lost: -1})
		}
	}
}

// coverage tells bytes that nothing or more than one structure claims.
func (v *verifier) coverage(name string) {
	cover := &region.Coverage{}
	var all fault.Span
	d := &describer{ctx: v.ctx, tree: v.tree, o: v.o, opts: v.opts, yield: func(n region.Node, err error) bool {
		if err == nil {
			if all.Object == "" {
				all = n.At
			}
			cover.Add(n)
		}
		return true
	}}
	if err := d.dataFile(name); err != nil {
		return // told already
	}
	gaps, overlaps := cover.Check(all)
	for _, at := range gaps {
		v.tell("carbon.coverage.gap", at, "", "no structure claims these %d bytes", at.Len)
	}
	for _, at := range overlaps {
		v.tell("carbon.coverage.overlap", at, "", "two structures claim these %d bytes", at.Len)
	}
}
