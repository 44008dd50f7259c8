package carbon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// describe streams the anatomy of a data file, index file, dictionary or schema; of a directory, those of all
// its files.
func describe(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		opts, err := table.ParseOptions(o.Opts)
		if err == nil {
			err = opts.Complete(ctx, tg.Tree, o.Limits)
		}
		if err != nil {
			yield(region.Node{}, err)
			return
		}
		d := &describer{ctx: ctx, tree: tg.Tree, o: o.OpenOptions, opts: opts, pages: o.Pages, yield: yield}
		if err := d.target(tg); err != nil && !d.stopped {
			yield(region.Node{}, err)
		}
	}
}

// describer describes one target.
type describer struct {
	ctx     context.Context
	tree    store.Tree
	o       format.OpenOptions
	opts    table.ReadOptions
	pages   bool
	yield   func(region.Node, error) bool
	stopped bool
	cover   *region.Coverage
	read    map[string]bool // of a table: its data and index files that count; nil: all do
}

func (d *describer) emit(n region.Node) {
	if d.stopped {
		return
	}
	d.cover.Add(n)
	d.stopped = !d.yield(n, nil)
}

// target describes whatever tg is.
func (d *describer) target(tg format.Target) error {
	tg, k, err := table.Resolve(d.ctx, tg, &d.opts)
	if err != nil {
		return err
	}
	if k == table.KindTable {
		d.read = table.Read(d.ctx, d.tree, tg.Name, d.o, d.opts)
	}
	if k == table.KindTable || k == table.KindFiles {
		return d.directory(tg.Name)
	}
	return d.object(tg.Name, k)
}

// directory describes every file below a directory that Carbon keeps. Locks hold nothing.
func (d *describer) directory(dir string) error {
	var first error
	for info, err := range d.tree.List(d.ctx, dir) {
		if err != nil {
			return err
		}
		if d.stopped || d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		base := path.Base(info.Name)
		switch {
		case info.Dir && base == "LockFiles":
		case info.Dir:
			err = d.directory(info.Name)
		case base == "schema" && path.Base(dir) == "Metadata":
			err = d.whole(info.Name, "schema",
				func(c *wire.Cursor) { layout.ParseTableInfo(thrift.NewReader(c, thrift.Compact), "TableInfo") })
		case table.ByName(base) != table.KindNone:
			err = d.counting(info.Name, table.ByName(base))
		case strings.HasPrefix(base, "tablestatus"), strings.HasPrefix(base, "tableupdatestatus"),
			strings.HasSuffix(base, ".segment"), strings.HasSuffix(base, ".deletedelta"):
			d.cover = &region.Coverage{}
			d.emit(region.Node{Kind: region.Data, Name: base, Value: "JSON",
				At: fault.Span{Object: info.Name, Len: info.Size}, Inner: -1})
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// counting describes a file of a directory. What is wrong with one that no reader opens, or can do without, is told in
// a node, and is no error.
func (d *describer) counting(name string, k table.Kind) error {
	err := d.object(name, k)
	spare := d.read != nil && !d.read[name]
	switch k {
	case table.KindDict:
		spare = false
	case table.KindDictMeta, table.KindSort: // the chunks of the dictionary tell as much
		spare = true
	}
	if e := (*fault.Error)(nil); spare && errors.As(err, &e) && e.Class == fault.Corrupt {
		d.cover = &region.Coverage{}
		d.emit(region.Node{Kind: region.Data, Name: path.Base(name), Inner: -1, At: e.At,
			Value: "not described, and not needed: " + err.Error()})
		return nil
	}
	return err
}

// object describes one file.
func (d *describer) object(name string, k table.Kind) error {
	switch k {
	case table.KindIndex, table.KindMerged:
		return d.whole(name, map[table.Kind]string{table.KindIndex: "carbonindex",
			table.KindMerged: "carbonindexmerge"}[k], nil)
	case table.KindDict, table.KindDictMeta, table.KindSort:
		d.cover = &region.Coverage{}
		return table.DescribeDictionary(d.ctx, format.Target{Tree: d.tree, Name: name}, d.o, d.emit)
	}
	return d.dataFile(name)
}

// whole describes a file that is Thrift from its beginning to its end. parse is nil for index files.
func (d *describer) whole(name, title string, parse func(c *wire.Cursor)) error {
	o, err := layout.OpenObject(d.ctx, d.tree, name, d.o.Limits)
	if err != nil {
		return err
	}
	d.cover = &region.Coverage{}
	d.emit(region.Node{Kind: region.Struct, Name: title, Value: path.Base(name), At: o.At, Inner: -1})
	if parse == nil {
		_, err = o.ReadIndex(d.ctx, strings.HasSuffix(name, layout.MergedExt), d.emit)
	} else {
		var b []byte
		if b, err = o.Read(d.ctx, 0, o.At.Len, ""); err == nil {
			c := o.Cursor(b, o.At, title).Trace(d.emit, 1)
			parse(c)
			err = c.Err()
		}
	}
	d.gaps(o.At)
	return err
}

// gaps tells what nothing claims.
func (d *describer) gaps(at fault.Span) {
	gaps, _ := d.cover.Check(at)
	for _, g := range gaps {
		d.emit(region.Node{Depth: 1, Kind: region.Gap, Name: "gap", Value: "no structure claims these bytes", At: g,
			Inner: -1})
	}
}

// dataFile describes a data file of any format: header, blocklets with their chunks and pages, footer.
func (d *describer) dataFile(name string) error {
	o := d.o
	var head, foot []region.Node // told while the file is opened; the data stands between them
	o.Tracer = func(n region.Node) {
		n.Depth++
		if n.Depth == 1 && n.Name == "footer" || len(foot) > 0 {
			foot = append(foot, n)
		} else {
			head = append(head, n)
		}
	}
	f, err := datafile.OpenFile(d.ctx, d.tree, name, o)
	if f.At.Object == "" {
		return err
	}
	d.cover = &region.Coverage{}
	value := fmt.Sprintf("CarbonData V%d, %d rows, %d blocklets, %d columns", f.Version, f.Footer.Rows,
		len(f.Footer.Blocklet), len(f.Columns))
	if err != nil {
		value = "damaged"
	}
	d.emit(region.Node{Kind: region.Struct, Name: "carbondata", Value: value, At: f.At, Inner: -1})
	for _, n := range head {
		d.emit(n)
	}
	if err == nil {
		f.Widths.Learn(int(d.opts.Blocklet))
		for g := range f.Footer.Blocklet {
			if e := d.blocklet(f, g); e != nil && err == nil {
				err = e
			}
		}
	}
	for _, n := range foot {
		d.emit(n)
	}
	d.gaps(f.At)
	return err
}

// piece is a part of a page that has bytes of its own.
type piece struct {
	column, name, value string
	at                  fault.Span
}

// blocklet describes the chunks of a blocklet. In format 1 its pages lie apart from each other, so they are
// told piece by piece.
func (d *describer) blocklet(f *datafile.DataFile, g int) (first error) {
	b := &f.Footer.Blocklet[g]
	name := fmt.Sprintf("blocklet[%d]", g)
	value := fmt.Sprintf("%d rows", b.Rows)
	if f.Version == 3 && len(b.Offsets) > 0 {
		from, to := b.Offsets[0], max(b.End, b.Dims)
		d.emit(region.Node{Depth: 1, Kind: region.Struct, Name: name, Value: value, At: f.At.Sub(from, to-from),
			Inner: -1})
	}
	var apart []piece
	for _, col := range f.Columns {
		if d.stopped || d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		c, err := f.ReadChunk(d.ctx, g, col)
		switch {
		case err != nil:
		case f.Version == 1:
			apart = append(apart, pieces(c, col.Name)...)
		default:
			err = d.chunk(f, g, c, col)
		}
		if err != nil && first == nil {
			first = err
		}
	}
	slices.SortFunc(apart, func(a, b piece) int { return cmp.Compare(a.at.Off, b.at.Off) })
	for i, p := range apart {
		if i > 0 && p.at == apart[i-1].at {
			continue
		}
		d.emit(region.Node{Depth: 1, Kind: region.Data, Name: name + "." + p.column + "." + p.name, Value: p.value,
			At: p.at, Inner: -1})
	}
	return first
}

// pieces are the parts of the one page of a chunk of formats 1 and 2.
func pieces(c *datafile.ChunkAt, column string) (out []piece) {
	p := &c.Pages[0]
	spans := c.Old
	if len(spans) == 1 && p.RowidLen+p.RleLen > 0 { // format 2: they follow each other
		at := spans[0]
		spans = nil
		for _, n := range []int32{p.DataLen, p.RowidLen, p.RleLen} {
			if n > 0 || len(spans) == 0 {
				spans = append(spans, at.Sub(0, int64(n)))
				at = at.Sub(int64(n), at.Len-int64(n))
			}
		}
	}
	names := []string{"data"}
	if p.RowidLen > 0 {
		names = append(names, "rowid")
	}
	if p.RleLen > 0 {
		names = append(names, "rle")
	}
	for i, at := range spans {
		x := piece{column: column, name: names[min(i, len(names)-1)], at: at}
		if i == 0 {
			x.value = p.Encoders.String()
		}
		out = append(out, x)
	}
	return out
}

// chunk describes a column chunk: its metadata, then its pages.
func (d *describer) chunk(f *datafile.DataFile, g int, c *datafile.ChunkAt, col *schema.Column) error {
	end, depth := c.End, 2
	if f.Version == 2 { // there is no node of the blocklet: where its last chunk ends only the chunk says
		depth = 1
	}
	d.emit(region.Node{Depth: depth, Kind: region.Struct, Name: col.Name,
		Value: fmt.Sprintf("%s, %d pages", col.Typ, len(c.Pages)), At: c.At.Sub(0, end-c.At.Off), Inner: -1})
	cur := wire.NewCursor(c.Head, c.At, c.Path).Trace(d.emit, depth+1)
	if f.Version == 3 {
		layout.ParseDataChunk3(thrift.NewReader(cur, thrift.Compact), "DataChunk3")
	} else {
		layout.ParseDataChunk2(thrift.NewReader(cur, thrift.Compact), "DataChunk2")
		for _, p := range pieces(c, col.Name) {
			d.emit(region.Node{Depth: depth + 1, Kind: region.Data, Name: p.name, Value: p.value, At: p.at, Inner: -1})
		}
		return cur.Err()
	}
	for i := range c.Pages {
		d.page(c, i)
	}
	return cur.Err()
}

// page describes a page of format 3.
func (d *describer) page(c *datafile.ChunkAt, i int) {
	p, at := &c.Pages[i], c.PageSpan(i)
	d.emit(region.Node{Depth: 3, Kind: region.Struct, Name: layout.Listed("page", i),
		Value: fmt.Sprintf("%d rows, %s, %s", p.Rows, p.Encoders, p.Codec), At: at, Inner: -1})
	n := int64(p.DataLen)
	d.emit(region.Node{Depth: 4, Kind: region.Data, Name: "data", At: at.Sub(0, n), Inner: -1})
	if d.pages && len(p.Meta) > 0 {
		layout.ParseEncoderMeta(wire.NewInnerCursor(p.Meta[0], c.Within(p.Meta[0]), "encoder_meta").Trace(d.emit,
			5), p.First() == layout.EncRLEIntegral)
	}
	if p.RowidLen > 0 {
		d.emit(region.Node{Depth: 4, Kind: region.Data, Name: "rowid", At: at.Sub(n, int64(p.RowidLen)), Inner: -1})
	}
	n += int64(p.RowidLen)
	if p.RleLen > 0 {
		d.emit(region.Node{Depth: 4, Kind: region.Data, Name: "rle", At: at.Sub(n, int64(p.RleLen)), Inner: -1})
	}
}
