package carbon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/table"
	"stoa/internal/describe"
	"stoa/internal/sorted"
	"stoa/internal/thrift"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// anatomy is format.Format.Describe: it describes the structures of a data file, index file, dictionary or schema, or
// of all files of a directory.
func anatomy(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, o.Pages, func(out *describe.Outline) error {
		opts, err := table.ParseOptions(o.Opts)
		if err == nil {
			err = opts.Complete(ctx, tg.Tree, o.Limits)
		}
		if err != nil {
			return err
		}
		return (&describer{Outline: out, tree: tg.Tree, o: o.OpenOptions, opts: opts}).target(tg)
	})
}

// describer describes one target.
type describer struct {
	*describe.Outline
	tree store.Tree
	o    format.OpenOptions
	opts table.ReadOptions
	read map[string]bool // table: the data and index files that readers open; nil: all
}

// target describes a target of any kind.
func (d *describer) target(tg format.Target) error {
	if info, err := d.tree.Stat(d.Ctx, tg.Name); err == nil && !info.Dir && tg.Table == "" {
		if known, err := d.metadata(info); known {
			return err
		}
	}
	tg, k, err := table.Resolve(d.Ctx, tg, &d.opts)
	if err != nil {
		return err
	}
	if k == table.KindTable {
		d.read = table.Read(d.Ctx, d.tree, tg.Name, d.o, d.opts)
	}
	if k == table.KindTable || k == table.KindFiles {
		return d.directory(tg.Name)
	}
	return d.object(tg.Name, k)
}

// directory describes CarbonData's files below a directory, except for locks, which are empty. It returns the first
// error.
func (d *describer) directory(dir string) error {
	var first error
	for info, err := range d.tree.List(d.Ctx, dir) {
		if err != nil {
			return err
		}
		if d.Left() {
			return d.Ctx.Err()
		}
		base := path.Base(info.Name)
		switch {
		case info.Dir && base == "LockFiles":
		case info.Dir:
			err = d.directory(info.Name)
		case table.ByName(base) != table.KindNone:
			err = d.directoryFile(info.Name, table.ByName(base))
		default:
			_, err = d.metadata(info)
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// metadataKind returns what a file of a table's metadata is, by its name; "" for others.
func metadataKind(name string) string {
	base, above := path.Base(name), path.Base(path.Dir(name))
	switch {
	case above == "Metadata" && base == "schema":
		return "schema"
	case above == "Metadata" && strings.HasPrefix(base, "tablestatus"),
		above == "Metadata" && strings.HasPrefix(base, "tableupdatestatus"),
		above == "segments" && strings.HasSuffix(base, ".segment"), strings.HasSuffix(base, ".deletedelta"):
		return "JSON"
	case above == "LockFiles" && strings.HasSuffix(base, ".lock"):
		return "lock"
	}
	return ""
}

func isMetadata(name string) bool { return metadataKind(name) != "" }

// metadata describes a file of a table's metadata; known is false for others.
func (d *describer) metadata(info store.Info) (known bool, err error) {
	switch kind := metadataKind(info.Name); kind {
	case "":
		return false, nil
	case "schema":
		return true, d.thriftFile(info.Name, "schema",
			func(c *wire.Cursor) { layout.ParseTableInfo(thrift.NewReader(c, thrift.Compact), "TableInfo") })
	default:
		d.Node(0, region.Data, path.Base(info.Name), kind, fault.Span{Object: info.Name, Len: info.Size})
		return true, nil
	}
}

// directoryFile describes a file of a directory. Damage of a file that no reader needs becomes a node and not an error.
func (d *describer) directoryFile(name string, k table.Kind) error {
	err := d.object(name, k)
	spare := d.read != nil && !d.read[name]
	switch k {
	case table.KindDict:
		spare = false
	case table.KindDictMeta, table.KindSort: // readers can do without them
		spare = true
	}
	if e := (*fault.Error)(nil); spare && errors.As(err, &e) && e.Class == fault.Corrupt {
		d.Node(0, region.Data, path.Base(name), "damaged, and not needed: "+err.Error(), e.At)
		return nil
	}
	return err
}

// object describes one file.
func (d *describer) object(name string, k table.Kind) error {
	switch k {
	case table.KindIndex, table.KindMerged:
		return d.thriftFile(name, map[table.Kind]string{table.KindIndex: "carbonindex",
			table.KindMerged: "carbonindexmerge"}[k], nil)
	case table.KindDict, table.KindDictMeta, table.KindSort:
		return table.DescribeDictionary(d.Ctx, format.Target{Tree: d.tree, Name: name}, d.o, d.Emit)
	}
	return d.dataFile(name)
}

// thriftFile describes a file that consists of Thrift structures. parse is nil for index files.
func (d *describer) thriftFile(name, title string, parse func(c *wire.Cursor)) error {
	o, err := layout.OpenObject(d.Ctx, d.tree, name, d.o.Limits)
	if err != nil {
		return err
	}
	d.Node(0, region.Struct, title, path.Base(name), o.At)
	if parse == nil {
		_, err = o.ReadIndex(d.Ctx, strings.HasSuffix(name, layout.MergedExt), d.Emit)
	} else {
		var b []byte
		if b, err = o.Read(d.Ctx, 0, o.At.Len, ""); err == nil {
			c := o.Cursor(b, o.At, title).Trace(d.Emit, 1)
			parse(c)
			err = c.Err()
		}
	}
	d.Gaps(1, o.At)
	return err
}

// dataFile describes a data file of any format: header, blocklets with their chunks and pages, footer.
func (d *describer) dataFile(name string) error {
	o := d.o
	var head, foot []region.Node // traced while the file is opened; the nodes of the data are emitted between the two
	o.Tracer = func(n region.Node) {
		n.Depth++
		if n.Depth == 1 && n.Name == "footer" || len(foot) > 0 {
			foot = append(foot, n)
		} else {
			head = append(head, n)
		}
	}
	f, err := datafile.OpenFile(d.Ctx, d.tree, name, o)
	if f.At.Object == "" {
		return err
	}
	value := fmt.Sprintf("CarbonData V%d, %s, %s, %s", f.Version, fault.Count(f.Footer.Rows, "row"),
		fault.Count(len(f.Footer.Blocklet), "blocklet"), fault.Count(len(f.Columns), "column"))
	if err != nil {
		value = "damaged"
	}
	d.Node(0, region.Struct, "carbondata", value, f.At)
	for _, n := range head {
		d.Emit(n)
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
		d.Emit(n)
	}
	d.Gaps(1, f.At)
	return err
}

// rowsOf are the rows of a blocklet.
func rowsOf(f *datafile.DataFile, g int) (rows [2]int64) {
	for _, b := range f.Footer.Blocklet[:g+1] {
		rows = [2]int64{rows[1], rows[1] + int64(b.Rows)}
	}
	return rows
}

// piece is a part of a page: data, row ids or runs.
type piece struct {
	column, name, value string
	at                  fault.Span
}

// blocklet describes the chunks of a blocklet. In format 1 the pieces of a page are not adjacent, so each piece is a
// separate node.
func (d *describer) blocklet(f *datafile.DataFile, g int) (first error) {
	b := &f.Footer.Blocklet[g]
	name := fmt.Sprintf("blocklet[%d]", g)
	value := fault.Count(b.Rows, "row")
	if f.Version == 3 && len(b.Offsets) > 0 {
		from, to := b.Offsets[0], max(b.MeasuresEnd, b.DimensionsEnd)
		d.Emit(region.Node{Depth: 1, Kind: region.Struct, Name: name, Value: value, At: f.At.Sub(from, to-from),
			Inner: -1, Rows: rowsOf(f, g)})
	}
	var apart []piece
	for _, col := range f.Columns {
		if d.Left() {
			return d.Ctx.Err()
		}
		c, err := f.ReadChunk(d.Ctx, g, col)
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
	sorted.By(apart, func(a, b piece) int { return cmp.Compare(a.at.Off, b.at.Off) })
	for i, p := range apart {
		if i > 0 && p.at == apart[i-1].at {
			continue
		}
		d.Node(1, region.Data, name+"."+p.column+"."+p.name, p.value, p.at)
	}
	return first
}

// pieces are the pieces of the one page of a chunk of formats 1 and 2.
func pieces(c *datafile.ChunkAt, column string) (out []piece) {
	p := &c.Pages[0]
	spans := c.V12Spans
	if len(spans) == 1 && p.RowidLen+p.RleLen > 0 { // format 2: they are adjacent
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
	if f.Version == 2 { // the blocklet has no node, because the footer does not record its end
		depth = 1
	}
	d.Node(depth, region.Struct, col.Name, fmt.Sprintf("%s, %s", col.Type, fault.Count(len(c.Pages), "page")),
		c.At.Sub(0, end-c.At.Off))
	cur := wire.NewCursor(c.Head, c.At, c.Path).Trace(d.Emit, depth+1)
	if f.Version == 3 {
		layout.ParseDataChunk3(thrift.NewReader(cur, thrift.Compact), "DataChunk3")
	} else {
		layout.ParseDataChunk2(thrift.NewReader(cur, thrift.Compact), "DataChunk2")
		for _, p := range pieces(c, col.Name) {
			d.Node(depth+1, region.Data, p.name, p.value, p.at)
		}
		return cur.Err()
	}
	first := rowsOf(f, g)[0]
	for i := range c.Pages {
		d.page(c, i, first)
		first += int64(c.Pages[i].Rows)
	}
	return cur.Err()
}

// page describes a page of format 3.
func (d *describer) page(c *datafile.ChunkAt, i int, first int64) {
	p, at := &c.Pages[i], c.PageSpan(i)
	d.Emit(region.Node{Depth: 3, Kind: region.Struct, Name: layout.ElementName("page", i), At: at, Inner: -1,
		Value: fmt.Sprintf("%s, %s, %s", fault.Count(p.Rows, "row"), p.Encoders, p.Codec), Codec: fmt.Sprint(p.Codec),
		Rows: [2]int64{first, first + int64(p.Rows)}})
	n := int64(p.DataLen)
	d.Node(4, region.Data, "data", "", at.Sub(0, n))
	if d.Pages && len(p.Meta) > 0 {
		layout.ParseEncoderMeta(wire.NewInnerCursor(p.Meta[0], c.Within(p.Meta[0]), "encoder_meta").Trace(d.Emit,
			5), p.FirstEncoding() == layout.EncRLEIntegral)
	}
	if p.RowidLen > 0 {
		d.Node(4, region.Data, "rowid", "", at.Sub(n, int64(p.RowidLen)))
	}
	n += int64(p.RowidLen)
	if p.RleLen > 0 {
		d.Node(4, region.Data, "rle", "", at.Sub(n, int64(p.RleLen)))
	}
}
