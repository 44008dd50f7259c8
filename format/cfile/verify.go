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
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/check"
	"stoa/internal/describe"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// verify implements format.Format.Verify. It reads everything (see format.Depth for less) and reports wrong checksums,
// damaged structures and values, indexes that contradict blocks, values or each other, wrong counts, and bytes that no
// structure claims.
func verify(ctx context.Context, tg format.Target, o format.OpenOptions) iter.Seq[region.Finding] {
	return func(yield func(region.Finding) bool) {
		v := &verifier{Reporter: reporter(ctx, tg.Name, yield), ctx: ctx, depth: o.Depth}
		if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
			v.set(tg, o)
			return
		}
		v.object(tg, o)
	}
}

// unchecked is format.Format.Unchecked: files of version 1, and files without the feature bit, have no checksums.
func unchecked(ctx context.Context, tg format.Target, o format.OpenOptions) (string, error) {
	names := []string{tg.Name}
	if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
		set, err := readSet(ctx, tg, o.Limits)
		if err != nil {
			return "", err
		}
		names = nil
		for _, c := range set.Columns {
			names = append(names, inDir(tg, c.File))
		}
	}
	var withoutSums []string
	for _, name := range names {
		f, err := openTarget(ctx, format.Target{Tree: tg.Tree, Name: name, At: tg.At}, o)
		if err != nil {
			continue // verify reports it
		}
		if !f.Footer.Checksums() {
			withoutSums = append(withoutSums, path.Base(name))
		}
		f.Src.Close()
	}
	return format.WithoutSums(len(names), withoutSums), ctx.Err()
}

// verifier verifies one CFile.
type verifier struct {
	*check.Reporter
	ctx   context.Context
	depth format.Depth
	opts  columnfile.ReadOptions

	f      *columnfile.File
	kind   block.Kind
	arena  vec.Arena // memory for stored bytes
	spare  vec.Arena // memory for decoding
	dict   *vec.Vector
	noDict bool // the dictionary cannot be read, and that has been reported
	vals   *vec.Vector

	blocks    []seenBlock
	places    map[block.BlockPtr]int // of the same; nil: not made yet
	rows      int64                  // total of all blocks
	noFooter  bool                   // header or footer cannot be read or trusted
	uncounted bool                   // some rows could not be counted
	gaps      gaps                   // parts of the indexes that could not be read
	keys      keyOrder
	deltas    deltaOrder
	unusual   unusualValues
}

// seenBlock is a data block that was verified.
type seenBlock struct {
	ptr         block.BlockPtr
	first, last []byte // encoded keys, if the file is sorted
	ok          bool
}

// reporter reports findings about a CFile.
func reporter(ctx context.Context, part string, yield func(region.Finding) bool) *check.Reporter {
	r := check.New(ctx, part, block.Codes, yield)
	r.Read, r.CodeOf = "cfile.read", codeOf
	return r
}

// reportLimit reports an error that is about a limit or wrong use and not about damage. It returns false for other
// errors.
func (v *verifier) reportLimit(err error) bool {
	var e *fault.Error
	if !errors.As(err, &e) || fault.NotDamage(e) == 0 {
		return false
	}
	v.Scoped(region.Finding{Code: "cfile.read", Class: e.Class, At: e.At, Path: e.Path, Message: e.Reason,
		Rows: [2]int64{-1, -1}, Lost: -1})
	return true
}

// codeOf returns the code for an error in a structure: "block", "index", "dict", "header", "footer", "bloom", "delta",
// "rows".
func codeOf(where string, e *fault.Error) string {
	last := e.Path[strings.LastIndexAny(e.Path, "/.")+1:]
	switch {
	case where == "rows":
		return "cfile.numvalues"
	case e.Class == fault.Unsupported:
		return "cfile.unsupported"
	case last == "checksum" && where != "bloom" && where != "delta":
		return "cfile." + where + ".checksum"
	case last == "checksum":
		return "cfile.block.checksum"
	case where == "block" && (last == "num_rows" || last == "bitmap" || last == "num_values" || last == "lengths" ||
		last == "element_bitmap"):
		return "cfile.block.count"
	case where == "block" && last == "ordinal":
		return "cfile.block.ordinal"
	}
	return "cfile." + where + ".damaged"
}

// object verifies the CFile at tg.
func (v *verifier) object(tg format.Target, o format.OpenOptions) {
	opts, err := columnfile.ParseOptions(o.Opts)
	if err != nil {
		v.Blame("cfile.read", err, -1, -1)
		return
	}
	v.opts = opts
	src, base, size, err := tg.Open(v.ctx)
	if isMissing(err) && v.Column != "" {
		v.reportForeign(missing(tg.Name, setColumn{Path: v.Column}), setColumn{Path: v.Column})
		return
	}
	if err != nil {
		v.Report("cfile.read", fault.Span{Object: tg.Name}, "", "%v", err)
		return
	}
	defer src.Close()
	o.Tracer, o.NoVerify = nil, true // frames checks both checksums, so that both are reported
	f, err := columnfile.OpenFile(v.ctx, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o)
	v.f = f
	if f != nil {
		v.Whole = f.At
	}
	if v.frames(err) {
		v.noFooter = true
		return
	}
	f.NoVerify = false
	if v.kind = f.Kind(); opts.Kind != block.KindUnknown && opts.Kind != v.kind {
		if why := f.WhyNot(opts.Kind); why != "" {
			v.Report("cfile.kind", f.FootSpan(), "footer", "%s", why)
		} else {
			v.kind = opts.Kind
		}
	}
	v.contents()
	v.coverage(tg, o)
	v.unusual.checkMetadata(v)
}

// frames verifies header and footer. It returns true if nothing else can be verified.
func (v *verifier) frames(err error) (end bool) {
	f := v.f
	wrong := false
	if f.Footer.Checksums() && len(f.Foot) > block.Tail {
		if _, fr := block.ParseFooter(wire.NewCursor(f.Foot, f.FootSpan(), "footer"), true); fr.Stored != fr.Computed {
			v.Blame("footer", columnfile.ChecksumError(f.FootSpan(), "footer.checksum", fr), -1, -1)
			wrong = true
		}
		if _, fr := block.ParseHeader(wire.NewCursor(f.Head, f.HeadSpan(), "header"),
			true); len(f.Head) > block.Tail && fr.Stored != fr.Computed {
			v.Blame("header", columnfile.ChecksumError(f.HeadSpan(), "header.checksum", fr), -1, -1)
		}
	}
	if err != nil {
		where := "footer"
		var e *fault.Error
		if errors.As(err, &e) && strings.HasPrefix(e.Path, "header") {
			where = "header"
		}
		v.Blame(where, err, -1, -1)
		return true
	}
	if f.Header.Version != f.Footer.Version {
		v.Report("cfile.version.mixed", f.FootSpan(), "footer.magic",
			"the header is of version %d, the footer of version %d", f.Header.Version, f.Footer.Version)
	}
	return wrong || v.Stopped()
}

// contents verifies dictionary, blocks and indexes.
func (v *verifier) contents() {
	t := &v.f.Footer
	if v.depth == format.Sums && !t.Checksums() {
		v.depth = format.Deep // without checksums only decoding shows damage
	}
	if t.Encoding == block.Dict && t.Dict != nil && v.depth != format.Quick {
		v.dictionary()
	}
	if t.PosIdx != nil {
		v.walk(v.f.Positions(), v.data)
	}
	if t.ValIdx != nil {
		w := v.f.Values()
		if t.PosIdx == nil {
			v.walk(w, v.data)
		} else {
			n := 0
			v.walk(w, func(w *columnfile.Walker, e block.IndexEntry) { v.compareIndexes(w, e, &n) })
			if n < len(v.blocks) && !v.gaps.values {
				v.Report("cfile.index.disagree", v.f.FootSpan(), "validx",
					"the value index ends %s before the positional one", fault.Count(len(v.blocks)-n, "block"))
			}
		}
	}
	v.counts()
	// at depths other than quick the blocks have been counted, and their errors are more precise
	if err := v.f.CheckRows(v.ctx); err != nil && (v.depth == format.Quick || v.Errors() == 0) {
		v.Blame("rows", err, -1, -1)
	}
	v.keys.checkMetadata(v)
	if v.kind == block.KindDelta && v.depth == format.Deep {
		v.deltas.checkMetadata(v)
	}
}

func (v *verifier) dictionary() {
	d, err := v.f.ReadDict(v.ctx)
	if err != nil {
		v.Blame("dict", err, -1, -1)
		v.noDict = true
		return
	}
	v.dict = d
	v.unusual.page(v, d, v.f.Span(*v.f.Footer.Dict), "dictionary", -1)
}

// walk walks a whole index tree and continues after damage.
func (v *verifier) walk(w *columnfile.Walker, leaf func(*columnfile.Walker, block.IndexEntry)) {
	var last []byte
	v.node(w, w.Root, &last, leaf)
}

func (v *verifier) node(w *columnfile.Walker, p block.BlockPtr, last *[]byte,
	leaf func(*columnfile.Walker, block.IndexEntry)) {
	if v.Stopped() {
		return
	}
	if err := w.Push(v.ctx, p); err != nil {
		v.lost(w)
		v.Blame("index", err, -1, -1)
		return
	}
	defer func() { w.Stack = w.Stack[:len(w.Stack)-1] }()
	for i := range w.Top().Node.N {
		w.Top().I = i
		e, err := w.Current()
		if err != nil {
			v.lost(w)
			v.Blame("index", err, -1, -1)
			continue
		}
		if !w.Top().Node.Leaf {
			v.node(w, e.Ptr, last, leaf)
			continue
		}
		if *last != nil && bytes.Compare(e.Key, *last) < 0 && v.kind != block.KindDelta {
			v.Report("cfile.index.order", w.Place(), w.Path()+".key", "%x after %x", e.Key, *last)
		}
		*last = append((*last)[:0], e.Key...)
		leaf(w, e)
	}
}

// lost records that a part of an index could not be read.
func (v *verifier) lost(w *columnfile.Walker) {
	v.uncounted = v.uncounted || w.Name == "posidx" || v.f.Footer.PosIdx == nil
	if w.Name == "posidx" {
		v.gaps.positions = true
	} else {
		v.gaps.values = true
	}
}

// data verifies the data block of a leaf entry.
func (v *verifier) data(w *columnfile.Walker, e block.IndexEntry) {
	b := &columnfile.DataBlock{Ptr: e.Ptr, First: -1, Rows: -1}
	end := int64(-1)
	if w.Name == "posidx" {
		var err error
		c := columnfile.Chunk{F: v.f, Walk: w, N: 2}
		if len(v.blocks) == 0 && !v.gaps.positions {
			c.N = 1
		}
		if b.First, b.Rows, err = c.Place(e); err != nil {
			v.Blame("index", err, -1, -1)
			b.First, b.Rows = -1, -1
		} else {
			end = b.First + b.Rows
		}
	}
	s := seenBlock{ptr: e.Ptr}
	err := w.Block(e)
	switch {
	case err != nil:
		v.Blame("index", err, b.First, end)
	case v.depth == format.Quick:
		err = v.unread(w, b)
	case v.kind == block.KindBloom:
		_, err = v.f.ReadBloom(v.ctx, e.Ptr, w.Path())
		if err != nil {
			v.Blame("bloom", err, -1, -1)
		}
	default:
		if err = v.block(w, b, &s); err != nil {
			v.Blame("block", err, b.First, end)
		}
	}
	s.ok = err == nil
	v.uncounted = v.uncounted || err != nil && b.Rows < 0
	if err != nil && b.Rows >= 0 {
		v.rows += b.Rows
	}
	v.keys.block(v, w, e, &s)
	v.blocks = append(v.blocks, s)
}

// unread counts the rows of a block that is not decoded, as the index states them.
func (v *verifier) unread(w *columnfile.Walker, b *columnfile.DataBlock) error {
	v.uncounted = v.uncounted || b.Rows < 0
	if err := v.f.CheckSize(v.f.Span(b.Ptr), w.Path()); err != nil {
		return err
	}
	v.rows += max(0, b.Rows)
	return nil
}

// block decodes a data block page by page, and checks the values.
func (v *verifier) block(w *columnfile.Walker, b *columnfile.DataBlock, s *seenBlock) error {
	at := v.f.Span(b.Ptr)
	if err := v.f.CheckSize(at, w.Path()); err != nil {
		return err
	}
	v.arena.Reset()
	stored := v.arena.Bytes(int(b.Ptr.Size))
	if err := format.ReadFull(v.ctx, v.f.Src, at, w.Path(), stored); err != nil {
		return err
	}
	if v.depth == format.Sums {
		if _, fr := block.SplitChecksum(stored); fr.Stored != fr.Computed {
			return fault.Locate(columnfile.ChecksumError(at, "checksum", fr), at, true, w.Path())
		}
		return v.outline(w, b, stored, at)
	}
	if err := v.makeVals(); err != nil {
		return err
	}
	for sub, step := int64(0), int64(block.MaxSub); ; sub += step {
		v.vals.Reset()
		v.spare.Reset()
		t := format.Task{Page: format.Page{Sub: sub, Spans: []fault.Span{at}, Own: b}, N: step,
			Bytes: [][]byte{stored}, Dict: v.dict, Scratch: &v.spare, Limits: v.f.Limits}
		lay, err := v.f.Decode(&t, v.vals, nil)
		// the codes stand for very long strings: process fewer at a time
		if n := int64(v.vals.Fit(v.vals.Len(), maxSpelled)); err == nil && n < int64(v.vals.Len()) {
			step, sub = n, sub-n
			continue
		}
		if v.noDict && err != nil && lay.Values.Form == block.FormCodes {
			v.rows += int64(lay.Rows)
			return nil // the damaged dictionary has already been reported
		}
		if err == nil {
			err = v.values(w, b, sub, &lay, s)
		}
		if err != nil {
			return fault.Locate(err, at, true, w.Path())
		}
		if sub+step >= int64(lay.Rows) {
			v.rows += int64(lay.Rows)
			return v.layout(w, b, &lay, at)
		}
	}
}

func (v *verifier) makeVals() (err error) {
	if v.vals == nil {
		v.vals, err = vec.New(v.f.Field(v.opts).Type, memory.DefaultAllocator)
	}
	return err
}

// outline compares a block whose checksum is right with the footer and the index, which may state another type, place
// or number of rows under checksums that are right as well. The first block is decoded, of the others the first value.
func (v *verifier) outline(w *columnfile.Walker, b *columnfile.DataBlock, stored []byte, at fault.Span) error {
	if err := v.makeVals(); err != nil {
		return err
	}
	t := format.Task{Page: format.Page{Spans: []fault.Span{at}, Own: b}, N: 1, Bytes: [][]byte{stored}, Dict: v.dict,
		Scratch: &v.spare, Limits: v.f.Limits, NoVerify: true}
	if len(v.blocks) == 0 {
		t.N = block.MaxSub
	}
	v.vals.Reset()
	v.spare.Reset()
	lay, err := v.f.Decode(&t, v.vals, nil)
	if v.noDict && lay.Values.Form == block.FormCodes {
		err = nil // the damaged dictionary has already been reported
	}
	if first := int64(lay.Values.Ordinal); err == nil && b.First < 0 && !v.uncounted && first != v.rows {
		err = fault.Rel(0, 0, "ordinal", "the block begins at row %d, the one before ends at %d", first, v.rows)
	}
	if err != nil {
		return fault.Locate(err, at, true, w.Path())
	}
	v.rows += int64(lay.Rows)
	return nil
}

// maxSpelled is the largest number of bytes of strings that are expanded from codes at once.
const maxSpelled = 64 << 20

// values checks decoded values, the first of which is row sub of the block.
func (v *verifier) values(w *columnfile.Walker, b *columnfile.DataBlock, sub int64, lay *block.Layout,
	s *seenBlock) error {
	if err := v.vals.Plain(); err != nil {
		return err
	}
	first := int64(lay.Values.Ordinal)
	if sub == 0 && b.First < 0 && !v.uncounted && first != v.rows && v.kind != block.KindBloom {
		return fault.Rel(0, 0, "ordinal", "the block begins at row %d, the one before ends at %d", first, v.rows)
	}
	at := v.f.Span(b.Ptr)
	v.unusual.page(v, v.vals, at, w.Path(), first+sub)
	v.keys.values(v, at, w.Path(), first+sub, s)
	if v.kind == block.KindDelta {
		v.deltas.values(v, at, w.Path(), first+sub, s)
	}
	return nil
}

// layout checks the parts of a block that decoding does not need.
func (v *verifier) layout(w *columnfile.Walker, _ *columnfile.DataBlock, lay *block.Layout, at fault.Span) error {
	if lay.Values.Form == block.FormPrefix {
		if reason := lay.Values.RestartProblem(); reason != "" {
			v.Report("cfile.prefix.restarts", at, w.Path()+".restarts", "%s", reason)
		}
	}
	return nil
}

// counts compares the footer's number of values with the blocks.
func (v *verifier) counts() {
	if n := v.f.Footer.NumValues; v.kind != block.KindBloom && !v.uncounted && v.rows != n {
		v.Report("cfile.numvalues", v.f.FootSpan(), "footer.num_values", "expected %d, the rows of the blocks, found "+
			"%d", v.rows, n)
	}
}

// coverage reports bytes that no structure claims, and bytes that several do.
func (v *verifier) coverage(tg format.Target, o format.OpenOptions) {
	if v.Stopped() {
		return
	}
	gaps, overlaps, err := describe.Claims(v.ctx, v.f.At, func(out *describe.Outline) error {
		return (&describer{Outline: out}).object(tg, o)
	})
	if err != nil {
		return // damage has been reported, and is not a gap
	}
	v.Unclaimed("cfile.coverage", gaps, overlaps)
}

// reportForeign reports that the file of column c does not belong to the set. err may be nil.
func (v *verifier) reportForeign(err error, c setColumn) {
	var e *fault.Error
	if errors.As(err, &e) {
		v.Column = c.Path
		v.Report("cfile.set", e.At, e.Path, "%s", e.Reason)
	}
}

// withoutSet verifies the files of a directory whose setFile cannot be read. If there is no setFile, they may be
// columns that were written separately and happen to have the same number of rows; these cannot be distinguished from a
// table.
func (v *verifier) withoutSet(tg format.Target, o format.OpenOptions, err error) {
	code := "cfile.set"
	if errors.Is(err, fs.ErrNotExist) {
		code, err = "cfile.set.missing",
			fault.Corruptf(fault.Span{Object: inDir(tg, setFile)}, "", "the file is missing: each CFile is a column "+
				"by itself, or "+unknownTable)
	}
	var e *fault.Error
	if !errors.As(err, &e) {
		e = fault.New(fault.Corrupt, fault.Span{Object: inDir(tg, setFile)}, "", "%v", err)
	}
	v.Report(code, e.At, e.Path, "%s", e.Reason)
	files, err := looseFiles(v.ctx, tg, o.Limits)
	if err != nil {
		v.Report("cfile.read", fault.Span{Object: tg.Name}, "", "%v", err)
	}
	for _, c := range files {
		one := &verifier{Reporter: v.For(inDir(tg, c.File), c.Path), ctx: v.ctx, depth: o.Depth}
		if v.Stopped() {
			return
		}
		one.object(format.Target{Tree: tg.Tree, Name: inDir(tg, c.File)}, o)
	}
}

// set verifies the files of a directory.
func (v *verifier) set(tg format.Target, o format.OpenOptions) {
	o.Limits = o.Limits.Together()
	set, err := readSet(v.ctx, tg, o.Limits)
	if v.reportLimit(err) {
		return
	}
	if err != nil {
		v.withoutSet(tg, o, err)
		return
	}
	leaves, err := set.leaves()
	if v.reportLimit(err) {
		return
	}
	if err != nil {
		v.Report("cfile.set", fault.Span{Object: inDir(tg, setFile)}, "", "%v", err)
	}
	known := map[string]bool{setFile: true}
	for _, c := range set.Columns {
		known[c.File] = true
	}
	for _, f := range set.unread(v.ctx, tg, o.Limits) {
		known[path.Base(f.At.Object)] = true
		v.Emit(f)
	}
	for info, err := range tg.Tree.List(v.ctx, tg.Name) {
		if err == nil && !known[path.Base(info.Name)] {
			v.Report("cfile.set.unknown", fault.Span{Object: info.Name}, "", "%s does not name the file", setFile)
		}
	}
	for i, c := range set.Columns {
		one := &verifier{Reporter: v.For(inDir(tg, c.File), c.Path), ctx: v.ctx, depth: o.Depth}
		one.object(format.Target{Tree: tg.Tree, Name: inDir(tg, c.File)}, o)
		if v.Stopped() {
			return
		}
		if one.f != nil && one.f.Foot != nil && one.f.Footer.NumValues != set.Rows {
			v.Column = c.Path
			v.Report("cfile.set", one.f.FootSpan(), fmt.Sprintf("columns[%d]", i), "%s has %s, %s says %d",
				c.File, fault.Count(one.f.Footer.NumValues, "row"), setFile, set.Rows)
		}
		other := false
		if one.f != nil && one.f.Foot != nil && !one.noFooter && err == nil {
			why := cmp.Or(set.checkColumn(one.f, i, leafAt(leaves, i)), set.checkID(one.f, i))
			v.reportForeign(why, c)
			other = why != nil
		}
		if o.Depth != format.Quick && !other {
			v.reportForeign(c.checkBytes(v.ctx, format.Target{Tree: tg.Tree, Name: inDir(tg, c.File)}), c)
		}
	}
	if set.Version >= withStructs && o.Depth != format.Quick {
		v.Column = ""
		v.structs(tg, o)
	}
}
