package write

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/internal/nest"
	"stoa/internal/thrift"
	"stoa/store"
)

// Random is the source of the markers of sync blocks; tests replace it.
var Random = rand.Reader

// sliceRows is the maximum number of rows of a slice, see sliceEnd.
const sliceRows = 4096

// Create implements format.Format.Create.
func Create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	opts, err := ParseOptions(o.Opts)
	if err != nil {
		return nil, err
	}
	w := &writer{sink: s, schema: sc, opts: opts, mem: o.Mem}
	if w.mem == nil {
		w.mem = memory.DefaultAllocator
	}
	if o.Dir && opts.split == "none" {
		w.opts.split = "metadata"
	}
	if err := w.plan(); err != nil {
		return nil, err
	}
	if err := w.begin(ctx); err != nil {
		w.Abort(ctx)
		return nil, err
	}
	return w, nil
}

// writer is the format.Writer. It writes in one pass: row group by row group, the metadata last.
type writer struct {
	sink   store.Sink
	schema *arrow.Schema
	opts   createOptions
	mem    memory.Allocator

	fields []arrow.Field
	cols   []*columnWriter
	first  []int // number of the first column of each field
	meta   layout.FileMeta
	marker [16]byte

	obj       store.Object // the data file that is being written
	name      string
	out       *bufio.Writer
	off       int64
	files     []string
	bytes     int64
	spill     store.Scratch
	spillSize int64 // bytes in spill

	rows      int64 // of the row group that is being filled
	groupFrom int64
	failed    error
	done      bool
}

// plan derives columns and metadata from the schema.
func (w *writer) plan() error {
	w.fields = w.schema.Fields()
	sc := schema.CanonicalSchema(w.schema)
	tree, err := schema.TreeOf(sc)
	if err != nil {
		return err
	}
	leaves, err := schema.ArrowLeaves(sc)
	if err != nil {
		return err
	}
	if len(leaves) == 0 {
		return fault.Unsupportedf(fault.Span{}, "", "a RedFile needs at least one column")
	}
	own := schema.LeavesOf(tree)
	if len(own) != len(leaves) {
		return fault.Bugf("redfile: %d leaves in the file's schema, %d in Arrow's", len(own), len(leaves))
	}
	used := map[string]bool{}
	last := -1
	for i, l := range leaves {
		if own[i].MaxDef != l.MaxDef || own[i].MaxRep != l.MaxRep || own[i].Type != l.Type {
			return fault.Bugf("redfile: column %s: levels %d and %d in the file's schema, %d and %d in Arrow's",
				l.Column.Name, own[i].MaxDef, own[i].MaxRep, l.MaxDef, l.MaxRep)
		}
		l.Path, l.Converted = own[i].Path, own[i].Converted
		c := &columnWriter{l: l, o: &w.opts, enc: w.opts.encoding, head: thrift.NewWriter(w.protocol())}
		if e, ok := w.opts.column[l.Column.Name]; ok {
			c.enc, used[l.Column.Name] = e, true
			if e == layout.GroupVarInt && l.Type != layout.Int32 && l.Type != layout.Int64 {
				return fault.Invalidf("redfile: column %s: group-varint is not defined for %s", l.Column.Name, l.Type)
			}
		}
		if l.Type != layout.Int32 && l.Type != layout.Int64 {
			c.enc = layout.Plain
		}
		if l.Column.Path[0] != last {
			last = l.Column.Path[0]
			w.first = append(w.first, i)
		}
		w.cols = append(w.cols, c)
	}
	for name := range w.opts.column {
		if !used[name] {
			return fault.Invalidf("redfile: option encoding.%s: there is no such column", name)
		}
	}
	if len(leaves) > math.MaxInt32 {
		return fault.Unsupportedf(fault.Span{}, "", "%d columns", len(leaves))
	}
	w.meta = layout.FileMeta{Gen: w.opts.gen, Protocol: w.protocol(), Version: 1, NumCols: int32(len(leaves)),
		HasCRC: !w.opts.noCRC}
	if w.meta.Gen == layout.GenE {
		w.meta.Schema = tree.Elements(nil)
		w.meta.Schema[0].Repetition = -1
	}
	return w.pairs()
}

func (w *writer) protocol() thrift.Protocol {
	if w.opts.binary {
		return thrift.Binary
	}
	return thrift.Compact
}

// pairs makes the key/value metadata.
func (w *writer) pairs() error {
	w.meta.Pairs = append(w.meta.Pairs, layout.KeyValue{Key: "writer", Value: "stoa"})
	if !w.opts.NoArrow {
		text, err := schema.SchemaText(schema.CanonicalSchema(w.schema))
		if err != nil {
			return err
		}
		w.meta.Pairs = append(w.meta.Pairs, layout.KeyValue{Key: schema.SchemaKey, Value: text},
			layout.KeyValue{Key: schema.SumKey, Value: schema.SumOf(text)})
	}
	if w.opts.sync > 0 {
		if _, err := io.ReadFull(Random, w.marker[:]); err != nil {
			return err
		}
		w.meta.Pairs = append(w.meta.Pairs,
			layout.KeyValue{Key: layout.SyncKey, Value: hex.EncodeToString(w.marker[:])})
	}
	return nil
}

// begin creates the first data file.
func (w *writer) begin(ctx context.Context) error {
	switch w.opts.split {
	case "none":
		return w.create(ctx, "")
	case "metadata":
		return w.create(ctx, layout.DataFile)
	}
	return nil // row-group: each row group creates its own file
}

// create begins a data file.
func (w *writer) create(ctx context.Context, name string) error {
	obj, err := w.sink.Create(ctx, name)
	if err != nil {
		return err
	}
	w.obj, w.name, w.off = obj, name, 0
	w.files = append(w.files, name)
	w.out = bufio.NewWriterSize(obj, 64<<10)
	if err := w.write([]byte(layout.Magic)); err != nil {
		return err
	}
	w.groupFrom = w.off
	if w.opts.sync > 0 {
		return w.sync(true)
	}
	return nil
}

func (w *writer) write(b []byte) error {
	n, err := w.out.Write(b)
	w.off += int64(n)
	return err
}

// Write appends a batch.
func (w *writer) Write(ctx context.Context, b arrow.RecordBatch) error {
	if w.failed != nil {
		return w.failed
	}
	w.failed = w.batch(ctx, b)
	return w.failed
}

func (w *writer) batch(ctx context.Context, b arrow.RecordBatch) error {
	if int(b.NumCols()) != len(w.fields) {
		return fault.Invalidf("redfile: a batch of %d columns for a schema of %d", b.NumCols(), len(w.fields))
	}
	for from := int64(0); from < b.NumRows(); {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := w.sliceEnd(b, from, min(b.NumRows(), from+sliceRows, from+w.opts.groupRows-w.rows))
		part := b.NewSlice(from, to)
		err := w.slice(part)
		part.Release()
		if err != nil {
			return err
		}
		w.rows += to - from
		w.meta.Rows += to - from
		from = to
		if err := w.full(ctx); err != nil {
			return err
		}
	}
	return nil
}

// slice adds a few rows to all columns.
func (w *writer) slice(b arrow.RecordBatch) error {
	for i, f := range w.fields {
		parts, err := nest.Shred(f, b.Column(i))
		if err != nil {
			return err
		}
		for k := range parts {
			if err := w.cols[w.first[i]+k].add(&parts[k], w.mem); err != nil {
				return err
			}
		}
	}
	return nil
}

// full ends the row group if it is large enough, and spills pages if they take too much memory.
func (w *writer) full(ctx context.Context) error {
	size, held := int64(0), int64(0)
	for _, c := range w.cols {
		size += c.end + int64(len(c.vals))
		held += c.pending()
	}
	if size >= w.opts.groupSize || w.rows >= w.opts.groupRows {
		return w.group(ctx)
	}
	if held > w.opts.memory {
		return w.spillPages(ctx)
	}
	return nil
}

// spillPages moves all finished pages to the temporary file.
func (w *writer) spillPages(ctx context.Context) error {
	if w.spill == nil {
		var err error
		if w.spill, err = w.sink.Scratch(ctx); err != nil {
			return err
		}
	}
	for _, c := range w.cols {
		if len(c.pages) == 0 {
			continue
		}
		if _, err := w.spill.Write(c.pages); err != nil {
			return err
		}
		c.spilled = append(c.spilled, segment{w.spillSize, int64(len(c.pages))})
		w.spillSize += int64(len(c.pages))
		c.pages = c.pages[:0]
	}
	return nil
}

// group writes the row group: of each chunk the pages, the index page and the column metadata.
func (w *writer) group(ctx context.Context) error {
	if w.rows == 0 {
		return nil
	}
	if w.opts.split == "row-group" {
		if err := w.create(ctx, layout.PartName(len(w.meta.Groups))); err != nil {
			return err
		}
	}
	w.groupFrom = w.off
	g := layout.RowGroup{Rows: w.rows}
	for _, c := range w.cols {
		chunk, err := w.chunk(c)
		if err != nil {
			return err
		}
		g.Bytes += c.raw
		g.Columns = append(g.Columns, chunk)
		c.reset()
	}
	w.meta.Groups = append(w.meta.Groups, g)
	w.rows = 0
	if w.spill != nil { // each row group spills to its own file
		w.spill.Close()
		w.spill, w.spillSize = nil, 0
	}
	if w.opts.split == "row-group" {
		return w.endPart()
	}
	if w.opts.sync > 0 {
		if err := w.sync(false); err != nil {
			return err
		}
		if len(w.meta.Groups)%w.opts.sync == 0 {
			if err := w.footer(w.meta.SoFar()); err != nil {
				return err
			}
		}
	}
	return w.out.Flush() // so that a complete row group survives a crash of the writer
}

// chunk writes a column chunk.
func (w *writer) chunk(c *columnWriter) (layout.ColumnChunk, error) {
	var out layout.ColumnChunk
	if err := c.cut(); err != nil {
		return out, err
	}
	m := &layout.ColumnMeta{Type: c.l.Type, Path: c.l.Path, Codec: w.opts.codec, Values: c.values,
		HasLevels: w.opts.gen == layout.GenA,
		MaxDef:    int32(c.l.MaxDef), MaxRep: int32(c.l.MaxRep), Raw: c.raw, Stored: c.stored, Data: w.off, Index: -1}
	m.Encodings = []layout.Encoding{c.enc}
	if w.opts.gen != layout.GenA { // generation E has no fields for levels, which recovery needs
		m.Pairs = []layout.KeyValue{{Key: layout.LevelsKey, Value: fmt.Sprintf("%d,%d", c.l.MaxDef, c.l.MaxRep)}}
	}
	if c.l.Converted == layout.ConvUTF8 {
		m.Pairs = append(m.Pairs, layout.KeyValue{Key: layout.TextKey, Value: "UTF8"})
	}
	for _, s := range c.spilled {
		if err := w.copySpilled(s); err != nil {
			return out, err
		}
	}
	if err := w.write(c.pages); err != nil {
		return out, err
	}
	if !w.opts.noIndex {
		m.Index = w.off
		tw := thrift.NewWriter(w.protocol())
		layout.WriteIndex(tw, c.index)
		page := c.appendPage(nil, layout.PageHeader{Kind: layout.IndexPage, Entries: int32(len(c.index))}, tw.Encoded())
		if err := w.write(page); err != nil {
			return out, err
		}
	}
	out.Offset, out.Meta = w.off, m
	if w.opts.split != "none" {
		out.File = w.name
	}
	tw := thrift.NewWriter(w.protocol())
	m.Write(tw, thrift.Item, w.opts.gen)
	return out, w.write(tw.Encoded())
}

// copySpilled copies pages from the temporary file.
func (w *writer) copySpilled(s segment) error {
	n, err := io.Copy(w.out, io.NewSectionReader(w.spill, s.off, s.n))
	w.off += n
	if err == nil && n != s.n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// footer writes metadata, its length and the magic.
func (w *writer) footer(m *layout.FileMeta) error {
	b := m.Encode()
	if len(b) > math.MaxInt32 {
		return fault.Limitf(fault.Span{}, "", "%d bytes of metadata: there are too many row groups", len(b))
	}
	b = binary.LittleEndian.AppendUint32(slices.Clone(b), uint32(len(b)))
	return w.write(append(b, layout.Magic...))
}

// endPart ends a part of a split table with its own metadata, which makes it a complete RedFile.
func (w *writer) endPart() error {
	one := w.meta
	g := w.meta.Groups[len(w.meta.Groups)-1]
	one.Rows = g.Rows
	g.Columns = slices.Clone(g.Columns)
	for i := range g.Columns {
		g.Columns[i].File = ""
	}
	one.Groups = []layout.RowGroup{g}
	if err := w.footer(&one); err != nil {
		return err
	}
	return w.closeObject()
}

func (w *writer) closeObject() error {
	if err := w.out.Flush(); err != nil {
		return err
	}
	obj := w.obj
	w.obj = nil
	w.bytes += w.off
	return obj.Close()
}

// Close writes the last row group and the metadata, and commits the sink.
func (w *writer) Close(ctx context.Context) (format.Summary, error) {
	sum := format.Summary{Rows: w.meta.Rows}
	if w.failed == nil && w.done {
		w.failed = fault.Bugf("Close twice")
	}
	if w.failed == nil {
		w.failed = w.close(ctx)
	}
	sum.Bytes, sum.Files = w.bytes, w.files
	return sum, w.failed
}

func (w *writer) close(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := w.group(ctx); err != nil {
		return err
	}
	if w.opts.split == "metadata" { // the data file is also a complete RedFile
		own := w.meta
		own.Groups = slices.Clone(own.Groups)
		for i := range own.Groups {
			own.Groups[i].Columns = slices.Clone(own.Groups[i].Columns)
			for k := range own.Groups[i].Columns {
				own.Groups[i].Columns[k].File = ""
			}
		}
		if err := w.footer(&own); err != nil {
			return err
		}
		if err := w.closeObject(); err != nil {
			return err
		}
	}
	if w.opts.split != "none" {
		w.opts.sync = 0 // a file of metadata has nothing to recover
		if err := w.create(ctx, layout.MetadataFile); err != nil {
			return err
		}
	}
	if err := w.footer(&w.meta); err != nil {
		return err
	}
	if err := w.closeObject(); err != nil {
		return err
	}
	if err := w.sink.Commit(ctx); err != nil {
		return err
	}
	w.done = true
	return nil
}

// Abort removes everything that was written. After a successful Close it does nothing.
func (w *writer) Abort(ctx context.Context) error {
	if w.done {
		return nil
	}
	w.done = true
	if w.failed == nil {
		w.failed = fault.Bugf("the writer was aborted")
	}
	if w.spill != nil {
		w.spill.Close()
		w.spill = nil
	}
	if w.obj != nil {
		w.obj.Close() // the object is removed next, so a close error does not matter
		w.obj = nil
	}
	return w.sink.Abort(ctx)
}

// sync writes a sync block. The first one in a file contains a copy of the metadata without row groups.
func (w *writer) sync(first bool) error {
	s := layout.SyncBlock{Marker: w.marker[:], Offset: w.off, Groups: int32(len(w.meta.Groups)), Rows: w.meta.Rows}
	if first {
		m := w.meta
		m.Groups = nil
		m.Rows = 0
		if s.Groups, s.Rows = 0, 0; w.opts.split == "row-group" { // identifies the part
			s.Groups, s.Rows = int32(len(w.meta.Groups)), w.meta.Rows-w.rows
		}
		s.Metadata = slices.Clone(m.Encode())
	} else {
		g := &w.meta.Groups[len(w.meta.Groups)-1]
		for _, c := range g.Columns {
			s.Columns = append(s.Columns, c.Offset)
		}
		s.GroupRows = g.Rows
	}
	tw := thrift.NewWriter(w.protocol())
	s.Write(tw)
	body := tw.Encoded()
	h := layout.PageHeader{Kind: layout.SyncPage, Raw: int32(len(body)), Stored: int32(len(body)),
		CRC: layout.CRC(body)}
	hw := thrift.NewWriter(w.protocol())
	h.Write(hw)
	return w.write(append(slices.Clone(hw.Encoded()), body...))
}
