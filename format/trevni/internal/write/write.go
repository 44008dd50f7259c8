package write

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
	"stoa/format/trevni/internal/table"
	"stoa/store"
)

// outFile writes rows. It is a format.Writer. Files that reach the file size are finished, and others follow.
type outFile struct {
	sink   store.Sink
	opts   writeOptions
	meta   []layout.Pair
	cols   []*outColumn
	fields []outField
	names  []string // of finished files, if there is more than one or the output is a directory
	dir    bool
	seal   string        // seal of the previous file's header
	part   *table.PartOf // metadata of the current file as a part; nil: the file is the whole table

	rows       int64 // of the current file
	total      int64
	bytes      int64
	spillStore spillStore
}

// outField writes one top-level field of a batch.
type outField interface {
	write(a arrow.Array) error
}

// CreateWiki begins a table in the dialect of the Trevni wiki (Dremel levels).
func CreateWiki(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	return create(ctx, s, sc, o, layout.Wiki)
}

// CreateAvro begins a table in the dialect of Apache Avro.
func CreateAvro(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	return create(ctx, s, sc, o, layout.Avro)
}

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions,
	d layout.Dialect) (format.Writer, error) {
	opts, err := ParseOptions(d, o.Opts)
	if err != nil {
		return nil, err
	}
	w := &outFile{sink: s, opts: opts, dir: o.Dir, spillStore: spillStore{ctx: ctx, sink: s, limit: spillMemory}}
	fields := make([]arrow.Field, sc.NumFields())
	for i, f := range sc.Fields() {
		fields[i] = PlainField(f)
	}
	w.fileMeta(sc.Metadata())
	if d == layout.Avro {
		err = w.planAvro(fields)
	} else {
		err = w.planWiki(fields, sc.Fields())
	}
	if err != nil {
		return nil, err
	}
	if opts.ArrowSchema {
		b, err := schema.EncodeSchema(fields)
		if err != nil {
			return nil, fault.Bugf("trevni: the Arrow schema cannot be kept: %v", err)
		}
		w.meta = append(w.meta, layout.Pair{Key: layout.SchemaKey, Value: b})
	}
	seen := map[string]bool{}
	for _, c := range w.cols {
		if seen[c.Name] {
			return nil, fault.Unsupportedf(fault.Span{}, c.Name, "two columns of a Trevni file cannot have the same "+
				"name")
		}
		seen[c.Name] = true
	}
	if err := w.checkFirst(); err != nil {
		return nil, err
	}
	w.spillStore.segment = segmentFor(len(w.cols))
	return w, nil
}

// checkFirst returns an error of class Invalid if option first-values names a column that cannot have any.
func (w *outFile) checkFirst() error {
	var can []string
	for _, c := range w.cols {
		if c.FirstValues || !c.Array && c.Parent < 0 && c.MaxDef == 0 && c.Width == 0 &&
			layout.Types[c.Type].Form != layout.FormNone && c.Type != layout.Boolean {
			can = append(can, c.Name)
		}
	}
	for _, name := range w.opts.first {
		if slices.Contains(can, name) {
			continue
		}
		if len(can) == 0 {
			return fault.Invalidf("trevni: option first-values: not of %q; every column of these is an array, "+
				"boolean, or may be null", name)
		}
		return fault.Invalidf("trevni: option first-values: %q is none of the columns that it is for: %s (not "+
			"arrays, booleans and what may be null)", name, strings.Join(can, ", "))
	}
	return nil
}

// fileMeta begins the file's metadata: codec and checksum, then the schema's own.
func (w *outFile) fileMeta(md arrow.Metadata) {
	codec, sum := "trevni.codec", "trevni.checksum"
	if w.opts.dialect == layout.Wiki {
		codec, sum = "CompressionCodec", "ChecksumAlgorithm"
	}
	w.meta = append(w.meta, layout.Pair{Key: codec, Value: []byte(w.opts.codec)})
	if w.opts.summed {
		w.meta = append(w.meta, layout.Pair{Key: sum, Value: []byte("crc32")})
	}
	for i, k := range md.Keys() {
		if userKey(k) {
			w.meta = append(w.meta, layout.Pair{Key: k, Value: []byte(md.Values()[i])})
		}
	}
}

// column adds a stored column.
func (w *outFile) column(c layout.Column) *outColumn {
	c.Kind, c.Summed = w.opts.kind, w.opts.summed
	o := &outColumn{Column: c, w: w, blockSpill: blockSpill{s: &w.spillStore}}
	w.cols = append(w.cols, o)
	return o
}

// writeSlice is the number of rows that are written before the size of the file is checked again.
const writeSlice = 8 << 10

func (w *outFile) Write(ctx context.Context, b arrow.RecordBatch) error {
	for from := int64(0); from < b.NumRows(); from += writeSlice {
		if err := ctx.Err(); err != nil {
			return err
		}
		part := b.NewSlice(from, min(from+writeSlice, b.NumRows()))
		err := w.writeRows(ctx, part)
		part.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *outFile) writeRows(ctx context.Context, b arrow.RecordBatch) error {
	if w.rows > 0 && w.stored() >= w.opts.fileSize {
		if err := w.finish(ctx, w.nextName(), false); err != nil {
			return err
		}
	}
	if err := w.writeFields(b); err != nil {
		return err
	}
	w.rows += b.NumRows()
	return nil
}

// stored returns the number of bytes of all finished blocks.
func (w *outFile) stored() (n int64) {
	for _, c := range w.cols {
		n += c.blockSpill.size
	}
	return n
}

// writeFields writes the fields of a batch in parallel, with a goroutine for each processor: they are independent.
func (w *outFile) writeFields(b arrow.RecordBatch) error {
	errs := make([]error, len(w.fields))
	var next atomic.Int64
	work := func() {
		for i := next.Add(1) - 1; i < int64(len(errs)); i = next.Add(1) - 1 {
			errs[i] = w.writeField(int(i), b.Column(int(i)))
		}
	}
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(errs)) - 1 {
		all.Go(work)
	}
	work()
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// writeField writes one field. A panic becomes an error: the caller cannot recover a panic of another goroutine.
func (w *outFile) writeField(i int, a arrow.Array) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.Bugf("trevni: writing field %d panicked: %v", i, p)
		}
	}()
	return w.fields[i].write(a)
}

// nextName returns the name of the next file in a directory.
func (w *outFile) nextName() string { return table.PartName(len(w.names)) }

// finish writes the current file and begins the next, if it is not the last.
func (w *outFile) finish(ctx context.Context, name string, last bool) (err error) {
	if name != "" {
		p := &table.PartOf{Number: len(w.names), Last: last}
		if w.part != nil {
			p.After = w.seal
		}
		w.part = p
	}
	for _, c := range w.cols {
		if err := c.flush(); err != nil {
			return err
		}
	}
	obj, err := w.sink.Create(ctx, name)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(obj, 64<<10)
	if err := w.put(out); err != nil {
		return errors.Join(err, obj.Close())
	}
	if err := out.Flush(); err != nil {
		return errors.Join(err, obj.Close())
	}
	if err := obj.Close(); err != nil {
		return err
	}
	w.names = append(w.names, name)
	w.total += w.rows
	w.rows = 0
	for _, c := range w.cols {
		c.blocks, c.last, c.unsorted, c.raw = c.blocks[:0], nil, false, nil
		c.blockSpill.reset()
	}
	return w.spillStore.reset()
}

// put writes the header and the columns.
func (w *outFile) put(out *bufio.Writer) error {
	head := w.header()
	w.bytes += int64(len(head))
	if _, err := out.Write(head); err != nil {
		return err
	}
	var buf, desc []byte
	for _, c := range w.cols {
		desc = c.descriptors(desc[:0])
		w.bytes += int64(len(desc)) + c.blockSpill.size
		if _, err := out.Write(desc); err != nil {
			return err
		}
		if err := c.blockSpill.copy(out, &buf); err != nil {
			return err
		}
	}
	return nil
}

// descriptors appends the block count and the descriptors.
func (c *outColumn) descriptors(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(len(c.blocks)))
	for _, k := range c.blocks {
		b = le.AppendUint32(b, uint32(k.rows))
		b = le.AppendUint32(b, uint32(k.raw))
		b = le.AppendUint32(b, uint32(k.stored))
		b = append(b, k.first...)
	}
	return b
}

// header returns magic, counts, metadata and column starts, sealed.
func (w *outFile) header() []byte {
	le := binary.LittleEndian
	b := append([]byte(layout.Magic), w.opts.version)
	b = le.AppendUint64(b, uint64(w.rows))
	b = le.AppendUint32(b, uint32(len(w.cols)))
	meta := w.meta[:len(w.meta):len(w.meta)]
	if w.part != nil {
		meta = append(meta, layout.Pair{Key: layout.PartKey, Value: w.part.Text()})
	}
	b = appendMetadata(b, append(meta, layout.Pair{Key: layout.SealKey, Value: []byte(layout.NoSeal)}))
	sealAt := len(b) - len(layout.NoSeal)
	for _, c := range w.cols {
		meta := append(c.Meta[:len(c.Meta):len(c.Meta)],
			layout.Pair{Key: layout.DescKey, Value: layout.SealText(c.descriptors(nil))})
		if c.last != nil && !c.unsorted {
			meta = append(meta[:len(meta):len(meta)], layout.Pair{Key: layout.SortedKey, Value: []byte("true")})
		}
		b = appendMetadata(b, meta)
	}
	start := int64(len(b) + 8*len(w.cols))
	for _, c := range w.cols {
		b = le.AppendUint64(b, uint64(start))
		start += int64(len(c.descriptors(nil))) + c.blockSpill.size
	}
	layout.Seal(b, sealAt)
	w.seal = string(b[sealAt : sealAt+len(layout.NoSeal)])
	return b
}

func appendMetadata(b []byte, pairs []layout.Pair) []byte {
	b = layout.AppendLong(b, int64(len(pairs)))
	for _, p := range pairs {
		b = layout.AppendText(b, p.Key)
		b = layout.AppendText(b, p.Value)
	}
	return b
}

func (w *outFile) Close(ctx context.Context) (format.Summary, error) {
	name := ""
	if w.dir || len(w.names) > 0 {
		name = w.nextName()
	}
	if err := w.finish(ctx, name, true); err != nil {
		return format.Summary{}, err
	}
	if err := w.sink.Commit(ctx); err != nil {
		return format.Summary{}, err
	}
	sum := format.Summary{Rows: w.total, Bytes: w.bytes}
	if name != "" {
		sum.Files = w.names
	}
	return sum, nil
}

func (w *outFile) Abort(ctx context.Context) error {
	return errors.Join(w.spillStore.reset(), w.sink.Abort(ctx))
}
