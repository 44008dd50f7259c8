package cfile

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// describe streams the anatomy of a CFile: header, dictionary, the positional tree with its data blocks behind each leaf, the
// value tree (with the data blocks, if there is no positional one), footer, and what nothing claims.
func describe(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
			describeDir(ctx, tg, o, yield)
			return
		}
		d := &describer{ctx: ctx, pages: o.Pages, yield: yield}
		if err := d.object(tg, o.OpenOptions); err != nil && !d.stopped {
			yield(region.Node{}, err)
		}
	}
}

// describer describes one CFile.
type describer struct {
	ctx     context.Context
	f       *file
	kind    Kind
	pages   bool
	yield   func(region.Node, error) bool
	stopped bool
	cover   region.Coverage
	blocks  int   // data blocks told
	data    int64 // where the last of them ended
	arena   vec.Arena
}

func (d *describer) emit(n region.Node) {
	if d.stopped {
		return
	}
	d.cover.Add(n)
	d.stopped = !d.yield(n, nil)
}

// object describes the CFile at tg. The error is the first that kept it from telling something.
func (d *describer) object(tg format.Target, o format.OpenOptions) error {
	opts, err := parseOptions(o.Opts)
	if err != nil {
		return err
	}
	src, base, size, err := tg.Open(d.ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	o.NoVerify, o.Tracer = true, nil // what a wrong checksum covers is described all the same
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	f, err := openFile(d.ctx, src, at, o)
	if d.f, d.kind = f, opts.kind; d.kind == KindUnknown || f.unfit(d.kind) != "" {
		d.kind = f.kind()
	}
	name := "cfile"
	if err == nil {
		name = d.kind.String()
	}
	d.emit(region.Node{Kind: region.Struct, Name: name, Value: d.summary(err), At: at, Inner: -1})
	f.traceHeader(d.deeper)
	if err == nil {
		err = d.body()
	}
	f.traceFooter(d.deeper)
	gaps, _ := d.cover.Check(at)
	for _, g := range gaps {
		d.emit(region.Node{Depth: 1, Kind: region.Gap, Name: "gap", Value: "no structure claims these bytes", At: g, Inner: -1})
	}
	return err
}

func (d *describer) deeper(n region.Node) {
	n.Depth++
	d.emit(n)
}

func (d *describer) summary(err error) string {
	if err != nil {
		return "damaged"
	}
	f := &d.f.footer
	return fmt.Sprintf("CFile v%d, %s, %s, %s, %d values", d.f.header.Version, f.Type, f.Encoding, f.Compression, f.NumValues)
}

// body describes everything between header and footer.
func (d *describer) body() error {
	var errs []error
	f := &d.f.footer
	if f.Dict != nil {
		errs = append(errs, d.dictionary(*f.Dict))
	}
	if f.PosIdx != nil {
		errs = append(errs, d.tree(d.f.positions(), true))
	}
	if f.ValIdx != nil {
		errs = append(errs, d.tree(d.f.values(), f.PosIdx == nil || errs[len(errs)-1] != nil))
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *describer) dictionary(p blockPtr) error {
	if reason := d.f.bad(p); reason != "" {
		return fault.Corruptf(d.f.footSpan(), "footer.dict_block_ptr", "%s", reason)
	}
	return d.block(p, "dictionary", "", d.pages, func(c *wire.Cursor) { parsePlainBinary(c) })
}

// tree describes an index tree; data says whether the data blocks, too.
func (d *describer) tree(w *walker, data bool) error { return d.node(w, w.root, data) }

// node describes an index block and what lies below.
func (d *describer) node(w *walker, p blockPtr, data bool) error {
	if err := d.ctx.Err(); err != nil || d.stopped {
		return err
	}
	name := w.path()
	err := w.push(d.ctx, p)
	if err != nil {
		if d.f.bad(p) == "" && p.offset >= w.ends[min(len(w.stack), maxDepth-1)] {
			err = errors.Join(err, d.block(p, name, "damaged", true, func(c *wire.Cursor) { parseIndexBlock(c, d.pages) }))
		}
		return first(err)
	}
	defer func() { w.stack = w.stack[:len(w.stack)-1] }()
	x := w.top().node
	value := fmt.Sprintf("internal, %d entries", x.n)
	if x.leaf {
		value = fmt.Sprintf("leaf, %d entries", x.n)
	}
	bad := d.block(p, name, value, true, func(c *wire.Cursor) { parseIndexBlock(c, d.pages) })
	for i := range x.n {
		w.top().i = i
		e, err := w.current()
		switch {
		case err != nil:
		case !x.leaf:
			err = d.node(w, e.ptr, data)
		case data:
			err = d.leafBlock(w, e)
		}
		if bad == nil {
			bad = err
		}
		if d.stopped {
			return nil
		}
	}
	return bad
}

// first is the first of joined errors, which has a place of its own.
func first(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()[0]
	}
	return err
}

// leafBlock describes the data block of a leaf entry. Blocks that were told before are passed over.
func (d *describer) leafBlock(w *walker, e indexEntry) error {
	if e.ptr.offset+e.ptr.size <= d.data {
		return nil
	}
	if err := w.block(e); err != nil {
		return err
	}
	d.data = w.data
	value := fmt.Sprintf("key %x", e.key)
	if n, ok := e.ordinal(); ok && w.name == "posidx" {
		value = fmt.Sprintf("from row %d", n)
	}
	name := fmt.Sprintf("block[%d]", d.blocks)
	d.blocks++
	return d.block(e.ptr, name, value, d.pages, func(c *wire.Cursor) {
		if d.kind == KindBloom {
			parseBloom(c)
			return
		}
		parseDataBlock(c, &d.f.footer)
	})
}

// block describes a block: as one node, or inside, too, with the parser that reads it.
func (d *describer) block(p blockPtr, name, value string, inside bool, parse func(c *wire.Cursor)) error {
	at := d.f.span(p)
	d.emit(region.Node{Depth: 1, Kind: region.Struct, Name: name, Value: value, At: at, Inner: -1})
	if !inside || d.stopped {
		return nil
	}
	if err := d.f.fit(at, name); err != nil {
		return err
	}
	d.arena.Reset()
	stored := d.arena.Bytes(int(p.size))
	if err := format.ReadFull(d.ctx, d.f.src, at, name, stored); err != nil {
		return err
	}
	var fr frame
	data := stored
	if d.f.footer.Checksums() {
		data, fr = splitChecksum(stored)
	}
	err := d.inside(data, stored, at, name, parse)
	if d.f.footer.Checksums() {
		value := fmt.Sprintf("%#08x", fr.crc)
		if fr.crc != fr.want {
			value += fmt.Sprintf(" (wrong: %#08x is right)", fr.want)
		}
		d.emit(region.Node{Depth: 2, Kind: region.Data, Name: "checksum", Value: value, At: at.Sub(int64(len(data)), 4), Inner: -1})
	}
	return err
}

// inside describes what is in a block. data is stored without its checksum.
func (d *describer) inside(data, stored []byte, at fault.Span, name string, parse func(c *wire.Cursor)) error {
	depth := 2
	if d.f.codec != nil {
		c := wire.NewCursor(data, at.Sub(0, int64(len(data))), name).Trace(d.emit, depth)
		h := parseCompressed(c, d.f.header.Version)
		if c.Err() != nil {
			return c.Err()
		}
		if !h.plain {
			depth++
		}
	}
	b, err := d.f.openBlock(stored, at, &d.arena, true)
	if err != nil {
		return fault.Locate(err, at, true, name)
	}
	c := b.cursor(name).Trace(d.emit, depth)
	parse(c)
	return c.Err()
}
