package cfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/internal/describe"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// anatomy streams the structures of a CFile: header, dictionary, the positional tree with its data blocks after each
// leaf, the value tree (with the data blocks if there is no positional tree), footer, and unclaimed bytes.
func anatomy(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, o.Pages, func(out *describe.Outline) error {
		if info, err := tg.Tree.Stat(ctx, tg.Name); err == nil && info.Dir {
			return describeDir(tg, o.OpenOptions, out)
		}
		return (&describer{Outline: out}).object(tg, o.OpenOptions)
	})
}

// describer describes one CFile.
type describer struct {
	*describe.Outline
	f      *columnfile.File
	kind   block.Kind
	blocks int   // data blocks described
	data   int64 // offset at which the last of them ends
	arena  vec.Arena
}

// object describes the CFile at tg. It returns the first error that left something undescribed.
func (d *describer) object(tg format.Target, o format.OpenOptions) error {
	opts, err := columnfile.ParseOptions(o.Opts)
	if err != nil {
		return err
	}
	src, base, size, err := tg.Open(d.Ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	o.NoVerify, o.Tracer = true, nil // blocks are described whether their checksums match or not
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	f, err := columnfile.OpenFile(d.Ctx, src, at, o)
	if d.f, d.kind = f, opts.Kind; d.kind == block.KindUnknown || f.WhyNot(d.kind) != "" {
		d.kind = f.Kind()
	}
	name := "cfile"
	if err == nil {
		name = d.kind.String()
	}
	root := region.Node{Kind: region.Struct, Name: name, Value: d.summary(err), At: at, Inner: -1}
	if err == nil {
		root.Codec = fmt.Sprint(f.Footer.Compression)
		if d.kind == block.KindColumn {
			root.Rows = [2]int64{0, f.Footer.NumValues}
		}
	}
	d.Emit(root)
	f.TraceHeader(d.deeper)
	if err == nil {
		err = d.body()
	}
	f.TraceFooter(d.deeper)
	d.Gaps(1, at)
	return err
}

func (d *describer) deeper(n region.Node) {
	n.Depth++
	d.Emit(n)
}

func (d *describer) summary(err error) string {
	if err != nil {
		return "damaged"
	}
	f := &d.f.Footer
	return fmt.Sprintf("CFile v%d, %s, %s, %s, %s", d.f.Header.Version, f.Type, f.Encoding, f.Compression,
		fault.Count(f.NumValues, "value"))
}

// body describes everything between header and footer.
func (d *describer) body() error {
	var errs []error
	f := &d.f.Footer
	if f.Dict != nil {
		errs = append(errs, d.dictionary(*f.Dict))
	}
	if f.PosIdx != nil {
		errs = append(errs, d.tree(d.f.Positions(), true))
	}
	if f.ValIdx != nil {
		errs = append(errs, d.tree(d.f.Values(), f.PosIdx == nil || errs[len(errs)-1] != nil))
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *describer) dictionary(p block.BlockPtr) error {
	if reason := d.f.Problem(p); reason != "" {
		return fault.Corruptf(d.f.FootSpan(), "footer.dict_block_ptr", "%s", reason)
	}
	return d.block(p, "dictionary", "", d.Pages, func(c *wire.Cursor) { block.ParsePlainBinary(c) })
}

// tree describes an index tree, with its data blocks if data is true.
func (d *describer) tree(w *columnfile.Walker, data bool) error { return d.node(w, w.Root, data) }

// node describes an index block and everything below it.
func (d *describer) node(w *columnfile.Walker, p block.BlockPtr, data bool) error {
	if d.Left() {
		return d.Ctx.Err()
	}
	name := w.Path()
	err := w.Push(d.Ctx, p)
	if err != nil {
		if d.f.Problem(p) == "" && p.Offset >= w.Ends[min(len(w.Stack), columnfile.MaxDepth-1)] {
			err = errors.Join(err, d.block(p, name, "damaged", true,
				func(c *wire.Cursor) { block.ParseIndexBlock(c, d.Pages) }))
		}
		return firstError(err)
	}
	defer func() { w.Stack = w.Stack[:len(w.Stack)-1] }()
	x := w.Top().Node
	value := fmt.Sprintf("internal, %d entries", x.N)
	if x.Leaf {
		value = fmt.Sprintf("leaf, %d entries", x.N)
	}
	bad := d.block(p, name, value, true, func(c *wire.Cursor) { block.ParseIndexBlock(c, d.Pages) })
	for i := range x.N {
		w.Top().I = i
		e, err := w.Current()
		switch {
		case err != nil:
		case !x.Leaf:
			err = d.node(w, e.Ptr, data)
		case data:
			err = d.leafBlock(w, e)
		}
		if bad == nil {
			bad = err
		}
		if d.Left() {
			return nil
		}
	}
	return bad
}

// firstError returns the first of several joined errors, which is the one with a place; any other error is returned
// unchanged.
func firstError(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()[0]
	}
	return err
}

// leafBlock describes the data block of a leaf entry, unless it has already been described.
func (d *describer) leafBlock(w *columnfile.Walker, e block.IndexEntry) error {
	if e.Ptr.Offset+e.Ptr.Size <= d.data {
		return nil
	}
	if err := w.Block(e); err != nil {
		return err
	}
	d.data = w.Data
	value := fmt.Sprintf("key %x", e.Key)
	if n, ok := e.Ordinal(); ok && w.Name == "posidx" {
		value = fmt.Sprintf("from row %d", n)
	}
	name := fmt.Sprintf("block[%d]", d.blocks)
	d.blocks++
	return d.block(e.Ptr, name, value, d.Pages, func(c *wire.Cursor) {
		if d.kind == block.KindBloom {
			columnfile.ParseBloom(c)
			return
		}
		block.ParseDataBlock(c, &d.f.Footer)
	})
}

// block describes a block as one node and, if contents is true, the structures that parse reads from it.
func (d *describer) block(p block.BlockPtr, name, value string, contents bool, parse func(c *wire.Cursor)) error {
	at := d.f.Span(p)
	d.Node(1, region.Struct, name, value, at)
	if !contents || d.Left() {
		return nil
	}
	if err := d.f.CheckSize(at, name); err != nil {
		return err
	}
	d.arena.Reset()
	stored := d.arena.Bytes(int(p.Size))
	if err := format.ReadFull(d.Ctx, d.f.Src, at, name, stored); err != nil {
		return err
	}
	var fr block.Frame
	data := stored
	if d.f.Footer.Checksums() {
		data, fr = block.SplitChecksum(stored)
	}
	err := d.contents(data, stored, at, name, parse)
	if d.f.Footer.Checksums() {
		value := fmt.Sprintf("%#08x", fr.Stored)
		if fr.Stored != fr.Computed {
			value += fmt.Sprintf(" (wrong: computed %#08x)", fr.Computed)
		}
		d.Node(2, region.Data, "checksum", value, at.Sub(int64(len(data)), 4))
	}
	return err
}

// contents describes the structures that parse reads from a block. data is the stored block without its checksum.
func (d *describer) contents(data, stored []byte, at fault.Span, name string, parse func(c *wire.Cursor)) error {
	depth := 2
	if d.f.Codec != nil {
		c := wire.NewCursor(data, at.Sub(0, int64(len(data))), name).Trace(d.Emit, depth)
		h := block.ParseCompressed(c, d.f.Header.Version)
		if c.Err() != nil {
			return c.Err()
		}
		if !h.Plain {
			depth++
		}
	}
	b, err := d.f.OpenBlock(stored, at, &d.arena, true)
	if err != nil {
		return fault.Locate(err, at, true, name)
	}
	c := b.Cursor(name).Trace(d.Emit, depth)
	parse(c)
	return c.Err()
}

// describeDir describes the setFile of a table and the files of its columns, in the order of the columns.
func describeDir(tg format.Target, o format.OpenOptions, out *describe.Outline) error {
	set, err := readSet(out.Ctx, tg, o.Limits)
	if errors.Is(err, fs.ErrNotExist) {
		err = noSet(tg)
	}
	if err != nil {
		return err
	}
	name := inDir(tg, setFile)
	info, err := tg.Tree.Stat(out.Ctx, name)
	if err != nil {
		return err
	}
	out.Node(0, region.Data, setFile, fmt.Sprintf("%s, %s", fault.Count(len(set.Columns), "column"),
		fault.Count(set.Rows, "row")),
		fault.Span{Object: name, Len: info.Size})
	for _, c := range set.Columns {
		name := inDir(tg, c.File)
		err := (&describer{Outline: out}).object(format.Target{Tree: tg.Tree, Name: name}, o)
		if isMissing(err) {
			err = missing(name, c)
		}
		if err != nil || out.Left() {
			return err
		}
	}
	return nil
}
