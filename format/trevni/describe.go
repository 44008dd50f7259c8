package trevni

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// describe streams the anatomy of a file: header, then the columns in the order in which they lie, then what
// nothing claims.
func describe(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		d := &describer{ctx: ctx, pages: o.Pages, yield: yield}
		if err := d.object(tg, o.OpenOptions); err != nil && !d.stopped {
			yield(region.Node{}, err)
		}
	}
}

type describer struct {
	ctx     context.Context
	f       *file
	pages   bool
	yield   func(region.Node, error) bool
	stopped bool
	cover   region.Coverage
	arena   vec.Arena
}

func (d *describer) emit(n region.Node) {
	if d.stopped {
		return
	}
	d.cover.Add(n)
	d.stopped = !d.yield(n, nil)
}

// object describes the file at tg. The error is the first that kept it from telling something.
func (d *describer) object(tg format.Target, o format.OpenOptions) error {
	if _, err := parseOptions(o.Opts); err != nil {
		return err
	}
	src, base, size, err := tg.Open(d.ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	name, value := "trevni", ""
	var head []region.Node
	o.NoVerify = true // what a wrong checksum covers is described all the same
	o.Tracer = func(n region.Node) { n.Depth++; head = append(head, n) }
	f, err := openFile(d.ctx, src, at, o)
	if d.f = f; err == nil {
		err = affordable(f)
	}
	if value = "damaged"; err == nil {
		h := &f.header
		value = fmt.Sprintf("dialect %s, version %d, %d rows, %d columns", h.Dialect, h.Version, h.Rows, len(h.Columns))
	}
	d.emit(region.Node{Kind: region.Struct, Name: name, Value: value, At: at, Inner: -1})
	for _, n := range head {
		d.emit(n)
	}
	if err == nil {
		err = d.columns()
	}
	gaps, _ := d.cover.Check(at)
	for _, g := range gaps {
		d.emit(region.Node{Depth: 1, Kind: region.Gap, Name: "gap", Value: "no structure claims these bytes", At: g,
			Inner: -1})
	}
	return err
}

// columns describes the columns, and goes on behind one that is damaged.
func (d *describer) columns() (first error) {
	order := make([]int, len(d.f.header.Columns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(d.f.header.Columns[a].Start, d.f.header.Columns[b].Start)
	})
	for _, i := range order {
		if d.stopped || d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		if err := d.column(i); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (d *describer) column(i int) error {
	col := &d.f.header.Columns[i]
	cb, err := d.f.blocks(d.ctx, i)
	name := d.f.pathOf(i)
	if err != nil {
		return err
	}
	at := cb.desc
	at.Len = min(cb.end, d.f.at.Len) - (at.Off - d.f.at.Off)
	d.emit(region.Node{Depth: 1, Kind: region.Struct, Name: name,
		Value: fmt.Sprintf("%q, %s, %d rows, %d blocks", col.Name, col.Type, cb.rows, len(cb.blocks)), At: at,
		Inner: -1})
	d.emit(region.Node{Depth: 2, Kind: region.Struct, Name: "descriptors", At: cb.desc, Inner: -1})
	if err := d.descriptors(cb, col, name); err != nil {
		return err
	}
	for k := range cb.blocks {
		if e := d.block(col, &cb.blocks[k], k); e != nil && err == nil {
			err = e
		}
		if d.stopped {
			return nil
		}
	}
	return err
}

// descriptors reads them again, with the parser that reads them, and tells.
func (d *describer) descriptors(cb *columnBlocks, col *Column, name string) error {
	buf := make([]byte, cb.desc.Len)
	if err := format.ReadFull(d.ctx, d.f.src, cb.desc, name, buf); err != nil {
		return err
	}
	c := &cursor{Cursor: wire.NewCursor(buf, cb.desc, name).Trace(d.emit, 3)}
	parseDescriptors(c, col, d.f.header.Dialect, cb.desc.Len)
	return c.Err()
}

// block describes a block: data and checksum, and if pages are wanted what is in the data.
func (d *describer) block(col *Column, b *block, k int) error {
	if b.lost != nil {
		return b.lost
	}
	if b.at.Len == 0 {
		return nil
	}
	name := "block[" + strconv.Itoa(k) + "]"
	value := fmt.Sprintf("from row %d, %d rows, %d raw bytes", b.row, b.rows, b.raw)
	if col.MaxRep > 0 {
		value = fmt.Sprintf("from entry %d, %d entries, %d raw bytes", b.row, b.rows, b.raw)
	}
	d.emit(region.Node{Depth: 2, Kind: region.Struct, Name: name, Value: value, At: b.at, Inner: -1})
	data, sum := b.at, fault.Span{}
	if col.summed {
		data.Len -= 4
		sum = b.at.Sub(data.Len, 4)
		if usualSum(d.f.header.Dialect).front {
			sum.Off, data.Off = b.at.Off, b.at.Off+4
			d.emit(region.Node{Depth: 3, Kind: region.Data, Name: "column-checksum", At: sum, Inner: -1})
		}
	}
	if data.Len > 0 {
		d.emit(region.Node{Depth: 3, Kind: region.Data, Name: "data", Value: col.Codec, At: data, Inner: -1})
	}
	var err error
	if d.pages && !d.stopped {
		err = d.inside(col, b, name)
	}
	if col.summed && sum.Off > data.Off {
		d.emit(region.Node{Depth: 3, Kind: region.Data, Name: "column-checksum", At: sum, Inner: -1})
	}
	return err
}

// inside tells the parts of a block's raw bytes.
func (d *describer) inside(col *Column, b *block, name string) error {
	if b.at.Len > d.f.limits.Page {
		return fault.Limitf(b.at, name, "%d bytes are more than a page may have", b.at.Len)
	}
	d.arena.Reset()
	stored := d.arena.Bytes(int(b.at.Len))
	if err := format.ReadFull(d.ctx, d.f.src, b.at, name, stored); err != nil {
		return err
	}
	o, err := d.f.openBlock(col, b, stored, &d.arena, true)
	if err != nil {
		return fault.Locate(err, b.at, false, name)
	}
	tell := func(name, value string, off, n int) {
		if n > 0 {
			d.emit(region.Node{Depth: 4, Kind: region.Data, Name: name, Value: value, At: o.at, Inner: int64(off)})
		}
	}
	if col.MaxDef > 0 {
		l, err := lay(d.f.header.Dialect, o.raw, b.rows, col.MaxDef, col.MaxRep)
		if err != nil {
			return fault.Locate(err, o.at, o.exact, name)
		}
		tell("definition-array", "", l.defAt, len(l.def))
		tell("repetition-array", "", l.repAt, len(l.rep))
		tell("column-values", "", l.valsAt, len(l.values))
		return nil
	}
	if !col.Array {
		tell("column-values", "", 0, len(o.raw))
		return nil
	}
	a := arrays{t: col.Type, src: o.raw}
	for a.pos < len(a.src) && !d.stopped { // length by length, run by run
		from := a.pos
		l, err := a.next()
		if err != nil {
			return fault.Locate(err, o.at, o.exact, name)
		}
		value := strconv.Itoa(int(l))
		if a.run > 0 {
			value = fmt.Sprintf("%d × %d", a.run+1, l)
		}
		tell("length", value, from, a.pos-from)
		begin := a.pos
		for n := int64(0); ; n++ {
			if _, _, _, err := a.over(l); err != nil {
				return fault.Locate(err, o.at, o.exact, name)
			}
			if a.run == 0 || l == 0 || types[a.t].form == formNone {
				a.run = 0
				break
			}
			a.run--
		}
		tell("values", "", begin, a.pos-begin)
	}
	return nil
}
