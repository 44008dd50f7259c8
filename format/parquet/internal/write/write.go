package write

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/nest"
	"stoa/internal/thrift"
	"stoa/store"
)

// sliceRows is the largest number of rows that are shredded at a time.
const sliceRows = 16 << 10

// Writer writes record batches as a Parquet file in one pass: row group by row group, within each column by column,
// then the indexes and the footer. It keeps one row group in memory up to a limit, and the rest of it in a temporary
// file.
type Writer struct {
	out         io.Writer
	off         int64
	o           writeOptions
	sc          *arrow.Schema // of the batches
	stored      *arrow.Schema // of the file: structs without fields have meta.NoFields, and unions are structs
	empty       []string      // columns with such structs
	unions      []string      // columns with unions
	mem         memory.Allocator
	tree        []element
	cols        []*ChunkWriter
	first       []int // index of the first leaf of each field
	keyValues   [][2]string
	Part        func() meta.Part // nil if the file is a whole table
	head        *thrift.Writer
	groups      []groupInfo
	rows        int64
	filled      int64 // rows of the current row group
	failed      error
	closed      bool
	ws          *workspace
	spill       spill         // of the row group
	filterSpill spill         // for Bloom filters
	filterBytes int64         // of Bloom filters in memory
	last        []arrow.Array // of the sorting columns: the last row in the current row group
}

// NewWriter returns a writer of batches with schema sc to w, with the options of Format.WriteKeys (nil for the
// defaults). Close writes the footer; it does not close w.
func NewWriter(w io.Writer, sc *arrow.Schema, opts map[string]string) (*Writer, error) {
	return NewWriterIn(w, sc, opts, nil)
}

// NewWriterIn is NewWriter with an allocator for the parts of batches that are kept; nil for Go's heap.
func NewWriterIn(w io.Writer, sc *arrow.Schema, opts map[string]string, mem memory.Allocator) (*Writer, error) {
	o, err := parseWriteOptions(opts)
	if err != nil {
		return nil, err
	}
	if mem == nil {
		mem = memory.NewGoAllocator()
	}
	out := &Writer{out: w, o: o, sc: sc, mem: mem, head: thrift.NewWriter(thrift.Compact), ws: &workspace{}}
	if err := out.planStored(); err != nil {
		return nil, err
	}
	if err := out.plan(); err != nil {
		return nil, err
	}
	if err := out.planKeyValues(); err != nil {
		return nil, err
	}
	return out, out.write([]byte(o.crypt.magic()))
}

// planKeyValues collects the key/value metadata: those of the schema with the options' changes, and the schema itself.
func (w *Writer) planKeyValues() error {
	var pairs []meta.KeyValue
	for i, k := range w.sc.Metadata().Keys() {
		if k == meta.SealKey || k == meta.PartKey { // copied from another file
			continue
		}
		pairs = append(pairs, meta.KeyValue{Key: k, Value: &w.sc.Metadata().Values()[i]})
	}
	var keys, values []string
	pairs, err := w.o.keyValues.Apply(pairs, w.stored.Fields())
	if err != nil {
		return err
	}
	for _, p := range pairs {
		w.keyValues = append(w.keyValues, [2]string{p.Key, *p.Value})
		keys, values = append(keys, p.Key), append(values, *p.Value)
	}
	md := arrow.NewMetadata(keys, values)
	text, err := meta.EncodeSchema(arrow.NewSchema(w.stored.Fields(), &md))
	w.keyValues = append(w.keyValues, [2]string{meta.StoredSchema, text})
	return err
}

// plan finds the leaves of the schema. A column that Parquet cannot hold is refused by name.
func (w *Writer) plan() error {
	for _, f := range w.stored.Fields() {
		if !w.o.nanos && hasNanoseconds(f.Type) {
			return fault.New(fault.Unsupported, fault.Span{}, "",
				"column %q of type %s cannot be written as Parquet before 2.6, which has no nanoseconds", f.Name,
				f.Type)
		}
		leaves, err := nest.Leaves(f)
		if err != nil {
			return fault.New(fault.Unsupported, fault.Span{}, "",
				"column %q of type %s cannot be written as Parquet: %v", f.Name, f.Type, err)
		}
		w.first = append(w.first, len(w.cols))
		for _, l := range leaves {
			v, ok := planLeaf(l.Type)
			if !ok {
				return fault.New(fault.Unsupported, fault.Span{}, "",
					"column %q of type %s cannot be written as Parquet: %s has no type there", f.Name, f.Type, l.Type)
			}
			w.cols = append(w.cols, &ChunkWriter{Leaf: l, plan: v, nullable: fieldAt(f, l.Path).Nullable, o: &w.o,
				workspace: w.ws, head: thrift.NewWriter(thrift.Compact)})
		}
	}
	w.ws.piece = int(max(4<<10, min(pieceSize, w.o.memory/int64(4*max(1, len(w.cols))))))
	var err error
	if w.tree, err = treeOf(w.stored); err != nil {
		return err
	}
	found := treeLeaves(w.tree)
	if len(found) != len(w.cols) {
		return fault.Bugf("parquet: %d leaves, the file's schema has %d", len(w.cols), len(found))
	}
	for i, l := range found {
		c := w.cols[i]
		if c.treeLeaf = l; l.def != c.MaxDef || l.repLevel != c.MaxRep || l.phys == meta.TypeFixed &&
			l.length != c.plan.to {
			return fault.Bugf("parquet: leaf %s has levels %d and %d, the file's schema says %d and %d",
				c.Leaf.Name, c.MaxDef, c.MaxRep, l.def, l.repLevel)
		}
		if c.cipher, err = w.o.crypt.column(l.dotted(), i); err != nil {
			return err
		}
		if _, c.bloom = w.o.bloom[l.dotted()]; c.bloom {
			w.o.bloom[l.dotted()] = true
		}
	}
	for name, found := range w.o.bloom {
		if !found {
			return fault.Invalidf("bloom=%s: there is no such column", name)
		}
	}
	if err := w.o.crypt.check(); err != nil {
		return err
	}
	return w.planSort()
}

// fieldAt is the field at path below f.
func fieldAt(f arrow.Field, path []int) arrow.Field {
	for _, i := range path {
		switch t := f.Type.(type) {
		case *arrow.MapType:
			key := t.KeyField()
			key.Nullable = false
			f = arrow.Field{Type: arrow.StructOf(key, t.ItemField())}
		case arrow.NestedType:
			f = t.Fields()[i]
		}
	}
	return f
}

// hasNanoseconds reports whether t is or contains a nanosecond timestamp.
func hasNanoseconds(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.TimestampType:
		return t.Unit == arrow.Nanosecond
	case *arrow.DictionaryType:
		return hasNanoseconds(t.ValueType)
	case arrow.NestedType:
		for _, f := range t.Fields() {
			if hasNanoseconds(f.Type) {
				return true
			}
		}
	}
	return false
}

func (w *Writer) write(b []byte) error {
	_, err := output{w}.Write(b)
	return err
}

// output counts what is written.
type output struct{ w *Writer }

func (o output) Write(b []byte) (int, error) {
	n, err := o.w.out.Write(b)
	o.w.off += int64(n)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return n, err
}

// Write appends the rows of b. Row groups are cut as the options say. After an error, every call returns it.
func (w *Writer) Write(b arrow.RecordBatch) error {
	if w.failed == nil {
		if w.failed = meta.CheckBatch(b, w.sc); w.failed == nil {
			if b, w.failed = w.asStored(b); w.failed == nil {
				defer b.Release()
				w.failed = w.batch(b)
			}
		}
	}
	return w.failed
}

func (w *Writer) batch(b arrow.RecordBatch) error {
	for from := int64(0); from < b.NumRows(); {
		to := sliceEnd(b, from, min(b.NumRows(), from+sliceRows, from+w.o.groupRows-w.filled),
			min(w.o.memory, w.o.groupSize)/8) // so that a row group exceeds its limit only slightly
		part := b.NewSlice(from, to)
		err := w.checkOrder(part)
		if err == nil {
			err = w.slice(part)
		}
		part.Release()
		if err != nil {
			return err
		}
		w.rows += to - from
		w.filled += to - from
		held, full := int64(0), w.filled == w.o.groupRows
		for _, c := range w.cols {
			held += c.pending()
			full = full || c.cipher.full(len(c.pages), sliceRows)
		}
		if full || held >= w.o.groupSize {
			err = w.endGroup()
		} else {
			err = w.reduceMemory()
		}
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// slice adds a few rows to all columns.
func (w *Writer) slice(b arrow.RecordBatch) error {
	for i, f := range w.stored.Fields() {
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

// Rows returns the number of rows written so far.
func (w *Writer) Rows() int64 { return w.rows }

// Flush does nothing: a row group is written when it is full.
func (w *Writer) Flush() error { return nil }

// Close writes the last row group and the footer.
func (w *Writer) Close() error {
	if w.failed == nil && !w.closed {
		w.closed = true
		w.failed = w.close()
	}
	return w.failed
}

func (w *Writer) close() error {
	if err := w.endGroup(); err != nil {
		return err
	}
	if err := w.writeBlooms(); err != nil {
		return err
	}
	if err := w.filterSpill.end(); err != nil {
		return err
	}
	if w.o.index {
		if err := w.writeIndexes(); err != nil {
			return err
		}
	}
	if w.Part != nil {
		text, err := json.Marshal(w.Part())
		if err != nil {
			return err
		}
		w.keyValues = append(w.keyValues, [2]string{meta.PartKey, string(text)})
	}
	return w.writeFooter()
}

// fileWriter is a writer with temporary files, which Abort removes.
type fileWriter struct {
	format.Writer
	w *Writer
}

// Close adds notes for the user to the summary.
func (c fileWriter) Close(ctx context.Context) (format.Summary, error) {
	s, err := c.Writer.Close(ctx)
	s.Notes = append(s.Notes, c.w.notes()...)
	return s, err
}

func (c fileWriter) Abort(ctx context.Context) error {
	return errors.Join(c.w.spill.end(), c.w.filterSpill.end(), c.Writer.Abort(ctx))
}

// Create implements Format.Create.
func Create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	out, _, err := create(ctx, s, sc, o)
	return out, err
}

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, *Writer,
	error) {
	var enc *Writer
	out, err := format.CreateObject(ctx, s, func(w io.Writer) (_ format.Encoder, err error) {
		if enc, err = NewWriterIn(w, sc, o.Opts, o.Mem); err == nil {
			enc.spill.open = func() (store.Scratch, error) { return s.Scratch(ctx) }
			enc.filterSpill.open = enc.spill.open
		}
		return enc, err
	})
	if err != nil {
		return nil, nil, err
	}
	return fileWriter{out, enc}, enc, nil
}
