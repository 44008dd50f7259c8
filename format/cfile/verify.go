package cfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// verify reads everything (see format.Depth for less) and tells what is wrong: checksums, structure, every value; indexes against blocks, values and
// each other; counts; bytes that nothing claims.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := &verifier{ctx: ctx, yield: yield, part: tg.Name, depth: o.Depth}
		if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
			v.set(tg, o)
			return
		}
		v.object(tg, o)
	}
}

// verifier verifies one CFile.
// unchecked is format.Format.Unchecked: version 1, and files whose feature bit is not set, have no checksums.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	names := []string{tg.Name}
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		set, err := readSet(ctx, tg)
		if err != nil {
			return "", err
		}
		names = nil
		for _, c := range set.Columns {
			names = append(names, inDir(tg, c.File))
		}
	}
	var bare []string
	for _, name := range names {
		f, err := openTarget(ctx, format.Target{Tree: tg.Tree, Name: name, At: tg.At}, o)
		if err != nil {
			continue // verify tells
		}
		if !f.footer.Checksums() {
			bare = append(bare, path.Base(name))
		}
		f.src.Close()
	}
	return format.WithoutSums(len(names), bare), ctx.Err()
}

type verifier struct {
	ctx     context.Context
	yield   func(region.Finding) bool
	part    string
	column  string
	stopped bool
	depth   format.Depth

	f      *file
	kind   Kind
	arena  vec.Arena // stored bytes
	spare  vec.Arena // decoding
	dict   *vec.Vector
	noDict bool // it cannot be read, which was told
	vals   *vec.Vector

	blocks   []seenBlock
	rows     int64 // of all blocks
	noFooter bool  // nothing is known of the file
	lostAt   bool  // some rows could not be counted
	keys     keyOrder
	deltas   deltaOrder
	odd      oddValues
}

// seenBlock is a data block that was verified.
type seenBlock struct {
	ptr         blockPtr
	first, last []byte // encoded keys, if the file is sorted
	ok          bool
}

func (v *verifier) tell(code string, at fault.Span, path, format string, args ...any) *region.Finding {
	return v.give(region.Finding{Code: code, Severity: severityOf(code), At: at, Path: path,
		Message: fmt.Sprintf(format, args...), Part: v.part, Column: v.column, Rows: [2]int64{-1, -1}, Lost: -1})
}

func (v *verifier) give(f region.Finding) *region.Finding {
	if f.Severity < region.Error {
		f.Lost = 0
	}
	if !v.stopped && v.ctx.Err() == nil {
		v.stopped = !v.yield(f)
	}
	return &f
}

// blame tells an error about the rows [first, end), of which lost are lost; -1 is not known.
func (v *verifier) blame(where string, err error, first, end int64) {
	var e *fault.Error
	if !errors.As(err, &e) {
		e = fault.New(fault.Bug, v.f.at, "", "%v", err)
		where = ""
	}
	f := region.Finding{Code: codeOf(where, e), At: e.At, Path: e.Path, Message: e.Reason, Part: v.part, Column: v.column,
		Rows: [2]int64{first, end}, Lost: -1}
	if e.Class == fault.Limit {
		f.Class = e.Class
	}
	if e.Cause != nil {
		f.Message = strings.TrimPrefix(f.Message+": "+e.Cause.Error(), ": ")
	}
	if f.At.Object == "" {
		f.At = v.f.at
	}
	f.At = within(f.At, v.f.at)
	f.Severity = severityOf(f.Code)
	if first >= 0 && end >= first {
		f.Lost = end - first
	}
	v.give(f)
}

// within cuts a place to the file.
func within(at, all fault.Span) fault.Span {
	from := min(max(at.Off, all.Off), all.End())
	return fault.Span{Object: at.Object, Off: from, Len: min(max(at.End(), from), all.End()) - from}
}

// codeOf is the code of an error that was met in where: "block", "index", "dict", "header", "footer", "bloom", "delta".
func codeOf(where string, e *fault.Error) string {
	last := e.Path[strings.LastIndexAny(e.Path, "/.")+1:]
	switch {
	case where == "":
		return "cfile.read"
	case e.Class == fault.Unsupported:
		return "cfile.unsupported"
	case last == "checksum" && where != "bloom" && where != "delta":
		return "cfile." + where + ".checksum"
	case last == "checksum":
		return "cfile.block.checksum"
	case where == "block" && (last == "num_rows" || last == "bitmap" || last == "num_values" || last == "lengths" || last == "element_bitmap"):
		return "cfile.block.count"
	case where == "block" && last == "ordinal":
		return "cfile.block.ordinal"
	}
	return "cfile." + where + ".damaged"
}

// object verifies the CFile at tg.
func (v *verifier) object(tg format.Target, o format.OpenOptions) {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		v.tell("cfile.read", fault.Span{Object: tg.Name}, "", "%v", err)
		return
	}
	src, base, size, err := tg.Open(v.ctx)
	if errors.Is(err, fs.ErrNotExist) && v.column != "" {
		v.foreign(missing(tg.Name, setColumn{Path: v.column}), setColumn{Path: v.column})
		return
	}
	if err != nil {
		v.tell("cfile.read", fault.Span{Object: tg.Name}, "", "%v", err)
		return
	}
	defer src.Close()
	o.Tracer, o.NoVerify = nil, true // the checksums of header and footer are looked at here, so that both are
	f, err := openFile(v.ctx, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o)
	v.f = f
	if v.frames(err) {
		v.noFooter = true
		return
	}
	f.noVerify = false
	if v.kind = f.kind(); opts.kind != KindUnknown && opts.kind != v.kind {
		if why := f.unfit(opts.kind); why != "" {
			v.tell("cfile.kind", f.footSpan(), "footer", "%s", why)
		} else {
			v.kind = opts.kind
		}
	}
	v.contents()
	v.coverage(tg, o)
	v.odd.tell(v)
}

// frames verifies header and footer. It reports whether nothing else can be.
func (v *verifier) frames(err error) (end bool) {
	f := v.f
	wrong := false
	if f.footer.Checksums() && len(f.foot) > tail {
		if _, fr := parseFooter(wire.NewCursor(f.foot, f.footSpan(), "footer"), true); fr.crc != fr.want {
			v.blame("footer", checksumError(f.footSpan(), "footer.checksum", fr), -1, -1)
			wrong = true
		}
		if _, fr := parseHeader(wire.NewCursor(f.head, f.headSpan(), "header"), true); len(f.head) > tail && fr.crc != fr.want {
			v.blame("header", checksumError(f.headSpan(), "header.checksum", fr), -1, -1)
		}
	}
	if err != nil {
		where := "footer"
		var e *fault.Error
		if errors.As(err, &e) && strings.HasPrefix(e.Path, "header") {
			where = "header"
		}
		v.blame(where, err, -1, -1)
		return true
	}
	if f.header.Version != f.footer.Version {
		v.tell("cfile.version.mixed", f.footSpan(), "footer.magic", "the header is of version %d, the footer of version %d", f.header.Version, f.footer.Version)
	}
	return wrong || v.stopped
}

// contents verifies dictionary, blocks and indexes.
func (v *verifier) contents() {
	t := &v.f.footer
	if v.depth == format.Sums && !t.Checksums() {
		v.depth = format.Deep // nothing else shows damage
	}
	if t.Encoding == Dict && t.Dict != nil && v.depth != format.Quick {
		v.dictionary()
	}
	if t.PosIdx != nil {
		v.walk(v.f.positions(), v.data)
	}
	if t.ValIdx != nil {
		w := v.f.values()
		if t.PosIdx == nil {
			v.walk(w, v.data)
		} else {
			n := 0
			v.walk(w, func(w *walker, e indexEntry) { v.same(w, e, &n) })
			if n < len(v.blocks) {
				v.tell("cfile.index.disagree", v.f.footSpan(), "validx", "the value index has %d blocks, the positional one %d", n, len(v.blocks))
			}
		}
	}
	v.counts()
	v.keys.tell(v)
	if v.kind == KindDelta && v.depth == format.Deep {
		v.deltas.tell(v)
	}
}

func (v *verifier) dictionary() {
	d, err := v.f.readDict(v.ctx)
	if err != nil {
		v.blame("dict", err, -1, -1)
		v.noDict = true
		return
	}
	v.dict = d
	v.odd.look(v, d, v.f.span(*v.f.footer.Dict), "dictionary", -1)
}

// walk goes over a whole index tree, past what is damaged.
func (v *verifier) walk(w *walker, leaf func(*walker, indexEntry)) {
	var last []byte
	v.node(w, w.root, &last, leaf)
}

func (v *verifier) node(w *walker, p blockPtr, last *[]byte, leaf func(*walker, indexEntry)) {
	if v.stopped || v.ctx.Err() != nil {
		return
	}
	if err := w.push(v.ctx, p); err != nil {
		v.lostAt = v.lostAt || w.name == "posidx" || v.f.footer.PosIdx == nil
		v.blame("index", err, -1, -1)
		return
	}
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	for i := range w.top().node.n {
		w.top().i = i
		e, err := w.current()
		if err != nil {
			v.lostAt = v.lostAt || w.name == "posidx" || v.f.footer.PosIdx == nil
			v.blame("index", err, -1, -1)
			continue
		}
		if !w.top().node.leaf {
			v.node(w, e.ptr, last, leaf)
			continue
		}
		if *last != nil && bytes.Compare(e.key, *last) < 0 && v.kind != KindDelta {
			v.tell("cfile.index.order", w.place(), w.path()+".key", "%x after %x", e.key, *last)
		}
		*last = append((*last)[:0], e.key...)
		leaf(w, e)
	}
}

// data verifies the data block of a leaf entry.
func (v *verifier) data(w *walker, e indexEntry) {
	b := &dataBlock{ptr: e.ptr, first: -1, rows: -1}
	end := int64(-1)
	if w.name == "posidx" {
		var err error
		c := chunk{f: v.f, walk: w, n: 2}
		if len(v.blocks) == 0 {
			c.n = 1
		}
		if b.first, b.rows, err = c.place(e); err != nil {
			v.blame("index", err, -1, -1)
			b.first, b.rows = -1, -1
		} else {
			end = b.first + b.rows
		}
	}
	s := seenBlock{ptr: e.ptr}
	err := w.block(e)
	switch {
	case err != nil:
		v.blame("index", err, b.first, end)
	case v.depth == format.Quick:
		err = v.unread(w, b)
	case v.kind == KindBloom:
		_, err = v.f.readBloom(v.ctx, e.ptr, w.path())
		if err != nil {
			v.blame("bloom", err, -1, -1)
		}
	default:
		if err = v.block(w, b, &s); err != nil {
			v.blame("block", err, b.first, end)
		}
	}
	s.ok = err == nil
	v.lostAt = v.lostAt || err != nil && b.rows < 0
	if err != nil && b.rows >= 0 {
		v.rows += b.rows
	}
	v.keys.block(v, w, e, &s)
	v.blocks = append(v.blocks, s)
}

// unread takes the rows of a block that is not decoded from the index.
func (v *verifier) unread(w *walker, b *dataBlock) error {
	v.lostAt = v.lostAt || b.rows < 0
	if err := v.f.fit(v.f.span(b.ptr), w.path()); err != nil {
		return err
	}
	v.rows += max(0, b.rows)
	return nil
}

// block decodes a data block, page by page, and looks at the values.
func (v *verifier) block(w *walker, b *dataBlock, s *seenBlock) error {
	at := v.f.span(b.ptr)
	if err := v.f.fit(at, w.path()); err != nil {
		return err
	}
	v.arena.Reset()
	stored := v.arena.Bytes(int(b.ptr.size))
	if err := format.ReadFull(v.ctx, v.f.src, at, w.path(), stored); err != nil {
		return err
	}
	if v.depth == format.Sums {
		if _, fr := splitChecksum(stored); fr.crc != fr.want {
			return fault.Locate(checksumError(at, "checksum", fr), at, true, w.path())
		}
		return v.unread(w, b)
	}
	if v.vals == nil {
		t := v.f.field(readOptions{scale: -1}).Type
		var err error
		if v.vals, err = vec.New(t, memory.DefaultAllocator); err != nil {
			return err
		}
	}
	for sub, step := int64(0), int64(maxSub); ; sub += step {
		v.vals.Reset()
		v.spare.Reset()
		t := format.Task{Page: format.Page{Sub: sub, Spans: []fault.Span{at}, Own: b}, N: step, Bytes: [][]byte{stored}, Dict: v.dict, Scratch: &v.spare, Limits: v.f.limits}
		lay, err := v.f.decode(&t, v.vals, nil)
		if n := int64(v.vals.Fit(v.vals.Len(), maxSpelled)); err == nil && n < int64(v.vals.Len()) { // codes that stand for very long strings: fewer at a time
			step, sub = n, sub-n
			continue
		}
		if v.noDict && err != nil && lay.values.form == formCodes {
			v.rows += int64(lay.rows)
			return nil // it was told what is wrong: the dictionary
		}
		if err == nil {
			err = v.values(w, b, sub, &lay, s)
		}
		if err != nil {
			return fault.Locate(err, at, true, w.path())
		}
		if sub+step >= int64(lay.rows) {
			v.rows += int64(lay.rows)
			return v.layout(w, b, &lay, at)
		}
	}
}

// maxSpelled is how many bytes of strings are spelled out of codes at once.
const maxSpelled = 64 << 20

// values looks at decoded values: the first at row sub of the block.
func (v *verifier) values(w *walker, b *dataBlock, sub int64, lay *layout, s *seenBlock) error {
	if err := v.vals.Plain(); err != nil {
		return err
	}
	first := int64(lay.values.ordinal)
	if sub == 0 && b.first < 0 && !v.lostAt && first != v.rows && v.kind != KindBloom {
		return fault.Rel(0, 0, "ordinal", "the block begins at row %d, the one before ends at %d", first, v.rows)
	}
	at := v.f.span(b.ptr)
	v.odd.look(v, v.vals, at, w.path(), first+sub)
	v.keys.values(v, at, w.path(), first+sub, s)
	if v.kind == KindDelta {
		v.deltas.values(v, at, w.path(), first+sub, s)
	}
	return nil
}

// layout looks at what decoding does not need.
func (v *verifier) layout(w *walker, _ *dataBlock, lay *layout, at fault.Span) error {
	if lay.values.form == formPrefix {
		if reason := lay.values.badRestart(); reason != "" {
			v.tell("cfile.prefix.restarts", at, w.path()+".restarts", "%s", reason)
		}
	}
	return nil
}

// same holds the value index against the blocks that the positional one has.
func (v *verifier) same(w *walker, e indexEntry, n *int) {
	i := *n
	*n++
	if i >= len(v.blocks) {
		if i == len(v.blocks) && !v.lostAt {
			v.tell("cfile.index.disagree", w.place(), w.path(), "the value index has more blocks than the positional one")
		}
		return
	}
	if s := v.blocks[i]; s.ptr != e.ptr {
		v.tell("cfile.index.disagree", w.place(), w.path(), "the block is [%d+%d] here, and [%d+%d] in the positional index", e.ptr.offset, e.ptr.size, s.ptr.offset, s.ptr.size)
		return
	}
	v.keys.separator(v, w, e, i)
}

// counts holds the footer's number of values against the blocks.
func (v *verifier) counts() {
	if n := v.f.footer.NumValues; v.kind != KindBloom && !v.lostAt && v.rows != n {
		v.tell("cfile.numvalues", v.f.footSpan(), "footer.num_values", "%d, but the blocks have %d rows", n, v.rows)
	}
}

// coverage looks for bytes that nothing claims, and that several do.
func (v *verifier) coverage(tg format.Target, o format.OpenOptions) {
	if v.stopped {
		return
	}
	d := &describer{ctx: v.ctx, yield: func(region.Node, error) bool { return v.ctx.Err() == nil }}
	if d.object(tg, o) != nil {
		return // what it could not read has been told, and is no gap
	}
	gaps, overlaps := d.cover.Check(v.f.at)
	for _, g := range gaps {
		v.tell("cfile.coverage.gap", g, "", "%d bytes that no structure claims", g.Len)
	}
	for _, g := range overlaps {
		v.tell("cfile.coverage.overlap", g, "", "%d bytes that two structures claim", g.Len)
	}
}

// foreign tells that the file of column c is not the set's.
func (v *verifier) foreign(err error, c setColumn) {
	var e *fault.Error
	if errors.As(err, &e) {
		v.column = c.Path
		v.tell("cfile.set", e.At, e.Path, "%s", e.Reason)
	}
}

// withoutSet verifies the files of a directory whose setFile cannot be read. Where there is none, the files may be columns by themselves, which happen to
// have as many rows each: nobody can tell these from a table.
func (v *verifier) withoutSet(tg format.Target, o format.OpenOptions, err error) {
	code := "cfile.set"
	if errors.Is(err, fs.ErrNotExist) {
		code, err = "cfile.set.missing", fault.Corruptf(fault.Span{Object: inDir(tg, setFile)}, "", "there is none: each file is a column by itself, or nothing says any more which were the table's, in which order, and of how many rows")
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		e = fault.New(fault.Corrupt, fault.Span{Object: inDir(tg, setFile)}, "", "%v", err)
	}
	v.tell(code, e.At, e.Path, "%s", e.Reason)
	files, err := looseFiles(v.ctx, tg)
	if err != nil {
		v.tell("cfile.read", fault.Span{Object: tg.Name}, "", "%v", err)
	}
	for _, c := range files {
		one := &verifier{ctx: v.ctx, yield: v.yield, part: inDir(tg, c.File), column: c.Path, depth: o.Depth}
		if v.stopped {
			return
		}
		one.object(format.Target{Tree: tg.Tree, Name: inDir(tg, c.File)}, o)
		v.stopped = one.stopped
	}
}

// set verifies the files of a directory.
func (v *verifier) set(tg format.Target, o format.OpenOptions) {
	set, err := readSet(v.ctx, tg)
	if err != nil {
		v.withoutSet(tg, o, err)
		return
	}
	leaves, err := set.leaves()
	if err != nil {
		v.tell("cfile.set", fault.Span{Object: inDir(tg, setFile)}, "", "%v", err)
	}
	known := map[string]bool{setFile: true}
	for _, c := range set.Columns {
		known[c.File] = true
	}
	for info, err := range tg.Tree.List(v.ctx, tg.Name) {
		if err == nil && !known[path.Base(info.Name)] {
			v.tell("cfile.set.unknown", fault.Span{Object: info.Name}, "", "%s does not name it", setFile)
		}
	}
	for i, c := range set.Columns {
		one := &verifier{ctx: v.ctx, yield: v.yield, part: inDir(tg, c.File), column: c.Path, depth: o.Depth}
		one.object(format.Target{Tree: tg.Tree, Name: inDir(tg, c.File)}, o)
		if one.stopped || v.ctx.Err() != nil {
			return
		}
		if one.f != nil && one.f.foot != nil && one.f.footer.NumValues != set.Rows {
			v.column = c.Path
			v.tell("cfile.set", one.f.footSpan(), fmt.Sprintf("columns[%d]", i), "%s has %d rows, %s says %d", c.File, one.f.footer.NumValues, setFile, set.Rows)
		}
		if one.f != nil && one.f.foot != nil && !one.noFooter && err == nil {
			v.foreign(cmp.Or(set.belongs(one.f, i, leafAt(leaves, i)), set.sameSet(one.f, i)), c)
		}
	}
}
