package trevni

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/page"
	"stoa/format/trevni/internal/schema"
	"stoa/format/trevni/internal/table"
	"stoa/internal/describe"
	"stoa/internal/sorted"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// anatomy streams the structures of a file: the header, the columns in file order, and unclaimed bytes.
func anatomy(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, o.Pages, func(out *describe.Outline) error {
		return (&describer{Outline: out}).object(tg, o.OpenOptions)
	})
}

type describer struct {
	*describe.Outline
	f     *container.File
	arena vec.Arena
}

// object describes the file at tg. It returns the first error that left something undescribed.
func (d *describer) object(tg format.Target, o format.OpenOptions) error {
	if _, err := table.ParseOptions(o.Opts); err != nil {
		return err
	}
	src, base, size, err := tg.Open(d.Ctx)
	if err != nil {
		return err
	}
	defer src.Close()
	at := fault.Span{Object: tg.Name, Off: base, Len: size}
	name, value := "trevni", ""
	var head []region.Node
	o.NoVerify = true // blocks are described whether their checksums match or not
	o.Tracer = func(n region.Node) { n.Depth++; head = append(head, n) }
	f, err := container.OpenFile(d.Ctx, src, at, o)
	if d.f = f; err == nil {
		err = schema.CheckLimits(f)
	}
	if value = "damaged"; err == nil {
		h := &f.Header
		value = fmt.Sprintf("dialect %s, version %d, %s, %s", h.Dialect, h.Version, fault.Count(h.Rows, "row"),
			fault.Count(len(h.Columns), "column"))
	}
	d.Emit(region.Node{Kind: region.Struct, Name: name, Value: value, At: at, Inner: -1})
	for _, n := range head {
		d.Emit(n)
	}
	if err == nil {
		err = d.columns()
	}
	d.Gaps(1, at)
	return err
}

// columns describes the columns, and continues after one that is damaged.
func (d *describer) columns() (first error) {
	order := make([]int, len(d.f.Header.Columns))
	for i := range order {
		order[i] = i
	}
	sorted.StablyBy(order, func(a, b int) int {
		return cmp.Compare(d.f.Header.Columns[a].Start, d.f.Header.Columns[b].Start)
	})
	for _, i := range order {
		if d.Left() {
			return d.Ctx.Err()
		}
		if err := d.column(i); err != nil && first == nil {
			first = err
		}
	}
	return first
}

func (d *describer) column(i int) error {
	col := &d.f.Header.Columns[i]
	cb, err := d.f.Blocks(d.Ctx, i)
	name := d.f.PathOf(i)
	if err != nil {
		return err
	}
	at := cb.Desc
	at.Len = min(cb.End, d.f.At.Len) - (at.Off - d.f.At.Off)
	d.Emit(region.Node{Depth: 1, Kind: region.Struct, Name: name,
		Value: fmt.Sprintf("%q, %s, %s, %s", col.Name, col.Type, fault.Count(cb.Rows, "row"),
			fault.Count(len(cb.Blocks), "block")), At: at,
		Inner: -1, Codec: cmp.Or(col.Codec, "null")})
	d.Node(2, region.Struct, "descriptors", "", cb.Desc)
	if err := d.descriptors(cb, col, name); err != nil {
		return err
	}
	for k := range cb.Blocks {
		if e := d.block(i, &cb.Blocks[k], k); e != nil && err == nil {
			err = e
		}
		if d.Left() {
			return nil
		}
	}
	return err
}

// descriptors parses the descriptors again, with the reader's parser, and describes them.
func (d *describer) descriptors(cb *container.ColumnBlocks, col *layout.Column, name string) error {
	buf := make([]byte, cb.Desc.Len)
	if err := format.ReadFull(d.Ctx, d.f.Src, cb.Desc, name, buf); err != nil {
		return err
	}
	c := &layout.Cursor{Cursor: wire.NewCursor(buf, cb.Desc, name).Trace(d.Emit, 3)}
	container.ParseDescriptors(c, col, d.f.Header.Dialect, cb.Desc.Len)
	return c.Err()
}

// block describes a block: its data and checksum and, if pages are wanted, what the data contains.
func (d *describer) block(i int, b *container.Block, k int) error {
	col := &d.f.Header.Columns[i]
	if b.Lost != nil {
		return b.Lost
	}
	if b.At.Len == 0 {
		return nil
	}
	name := "block[" + strconv.Itoa(k) + "]"
	value := fmt.Sprintf("from row %d, %s, %d raw bytes", b.Row, fault.Count(b.Rows, "row"), b.Raw)
	if col.MaxRep > 0 {
		value = fmt.Sprintf("from entry %d, %d entries, %d raw bytes", b.Row, b.Rows, b.Raw)
	}
	d.Node(2, region.Struct, name, value, b.At)
	data, sum := b.At, fault.Span{}
	if col.Summed {
		data.Len -= 4
		sum = b.At.Sub(data.Len, 4)
		if container.UsualSum(d.f.Header.Dialect).Front {
			sum.Off, data.Off = b.At.Off, b.At.Off+4
			d.Node(3, region.Data, "column-checksum", "", sum)
		}
	}
	if data.Len > 0 {
		d.Node(3, region.Data, "data", col.Codec, data)
	}
	var err error
	if d.Pages && !d.Left() {
		err = d.blockParts(i, b, name)
	}
	if col.Summed && sum.Off > data.Off {
		d.Node(3, region.Data, "column-checksum", "", sum)
	}
	return err
}

// blockParts describes the parts of a block's raw bytes: levels and values, or lengths and values.
func (d *describer) blockParts(i int, b *container.Block, name string) error {
	col := &d.f.Header.Columns[i]
	o, _, err := d.f.ReadBlock(d.Ctx, i, b, name, &d.arena, true)
	if err != nil {
		return err
	}
	emit := func(name, value string, off, n int) {
		if n > 0 {
			d.Emit(region.Node{Depth: 4, Kind: region.Data, Name: name, Value: value, At: o.At, Inner: int64(off)})
		}
	}
	if col.MaxDef > 0 {
		l, err := page.SplitLevels(d.f.Header.Dialect, o.Raw, b.Rows, col.MaxDef, col.MaxRep)
		if err != nil {
			return fault.Locate(err, o.At, o.Exact, name)
		}
		emit("definition-array", "", l.DefAt, len(l.Def))
		emit("repetition-array", "", l.RepAt, len(l.Rep))
		emit("column-values", "", l.ValsAt, len(l.Values))
		return nil
	}
	if !col.Array {
		emit("column-values", "", 0, len(o.Raw))
		return nil
	}
	a := page.Arrays{Type: col.Type, Bytes: o.Raw}
	for a.Pos < len(a.Bytes) && !d.Left() { // one node per length or run of lengths
		from := a.Pos
		l, err := a.Next()
		if err != nil {
			return fault.Locate(err, o.At, o.Exact, name)
		}
		value := strconv.Itoa(int(l))
		if a.Run > 0 {
			value = fmt.Sprintf("%d × %d", a.Run+1, l)
		}
		emit("length", value, from, a.Pos-from)
		begin := a.Pos
		for n := int64(0); ; n++ {
			if _, _, _, err := a.Values(l); err != nil {
				return fault.Locate(err, o.At, o.Exact, name)
			}
			if a.Run == 0 || l == 0 || layout.Types[a.Type].Form == layout.FormNone {
				a.Run = 0
				break
			}
			a.Run--
		}
		emit("values", "", begin, a.Pos-begin)
	}
	return nil
}
