package ipc

import (
	"context"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/flat"
	"stoa/internal/settle"
	"stoa/store"
	"stoa/vec"
)

// Writer writes record batches as an Arrow file or stream.
type Writer struct {
	lib      *ipc.Writer
	sc       *arrow.Schema
	dicts    []*dictTree // of a file; nil for a stream
	holdback *holdback   // of a stream made by create
	rows     int64

	stream  bool
	batches int64
	empty   arrow.RecordBatch // of a stream with dictionaries: zero rows of the last batch, which keep them
}

// NewStreamWriter writes a stream of batches of schema sc to w. Close ends the stream; it does not close w.
func NewStreamWriter(w io.Writer, sc *arrow.Schema) *Writer {
	return &Writer{lib: ipc.NewWriter(w, options(sc)...), sc: sc, stream: true}
}

// NewFileWriter writes a file of batches of schema sc to w. Close writes the footer; it does not close w.
func NewFileWriter(w io.Writer, sc *arrow.Schema) *Writer {
	return newFile(w, sc, options(sc), nil)
}

func newFile(w io.Writer, sc *arrow.Schema, opts []ipc.Option, mem memory.Allocator) *Writer {
	return &Writer{lib: ipc.NewWriterWithPayloadWriter(&frame{w: w}, opts...), sc: sc,
		dicts: dictTreesOf(sc.Fields(), mem)}
}

func options(sc *arrow.Schema) []ipc.Option {
	return []ipc.Option{ipc.WithSchema(sc), ipc.WithDictionaryDeltas(true)}
}

// Write appends b, which must have the writer's columns, as one batch.
func (w *Writer) Write(b arrow.RecordBatch) error {
	if int(b.NumCols()) != w.sc.NumFields() {
		return fault.Bugf("a batch of %d columns for a writer of %d", b.NumCols(), w.sc.NumFields())
	}
	t, err := translate(b, w.sc, w.dicts)
	if err != nil {
		return err
	}
	defer t.Release()
	if !w.stream {
		w.rows += b.NumRows()
		return w.lib.Write(t)
	}
	if slices.ContainsFunc(w.sc.Fields(), func(f arrow.Field) bool { return settle.HasDictionaries(f.Type) }) {
		if w.empty != nil && mistaken(w.empty, t) {
			if err := w.forget(); err != nil {
				return err
			}
		}
		w.drop()
		w.empty = t.NewSlice(0, 0)
	}
	err = w.place(t, false)
	w.rows += b.NumRows()
	return err
}

// place writes a batch with its position in the stream: without it, a missing or repeated batch leaves no trace.
func (w *Writer) place(b arrow.RecordBatch, end bool) error {
	kv := map[string]string{flat.KeyBatch: strconv.FormatInt(w.batches, 10), flat.KeyRow: strconv.FormatInt(w.rows, 10)}
	if end {
		kv[flat.KeyEnd] = "true"
	}
	w.batches++
	b = array.NewRecordBatchWithMetadata(w.sc, b.Columns(), b.NumRows(), arrow.MetadataFrom(kv))
	defer b.Release()
	return w.lib.Write(b)
}

// finish writes the batch without rows that follows the last one and shows that none is missing. It writes nothing to a
// stream without batches.
func (w *Writer) finish() error {
	if !w.stream || w.batches == 0 {
		return nil
	}
	defer w.drop()
	b := w.empty
	if b == nil {
		none := array.NewRecordBuilder(memory.NewGoAllocator(), w.sc)
		defer none.Release()
		b = none.NewRecordBatch()
		defer b.Release()
	}
	return w.place(b, true)
}

// forget writes zero rows of the last batch with empty dictionaries. They replace the previous dictionaries, so that
// the next ones are written in full.
func (w *Writer) forget() error {
	cols := make([]arrow.Array, w.empty.NumCols())
	for i, c := range w.empty.Columns() {
		d := withoutValues(c.Data())
		defer d.Release()
		cols[i] = array.MakeFromData(d)
		defer cols[i].Release()
	}
	b := array.NewRecordBatch(w.sc, cols, 0)
	defer b.Release()
	return w.place(b, false)
}

func (w *Writer) drop() {
	if w.empty != nil {
		w.empty.Release()
		w.empty = nil
	}
}

// Flush does nothing: batches are written immediately.
func (w *Writer) Flush() error { return nil }

// Rows returns the number of rows written.
func (w *Writer) Rows() int64 { return w.rows }

// Close ends the stream or file.
func (w *Writer) Close() error {
	for _, g := range w.dicts {
		g.release()
	}
	w.dicts = nil
	if err := w.finish(); err != nil {
		return err
	}
	if err := w.lib.Close(); err != nil || w.holdback == nil {
		return err
	}
	return w.holdback.end(nil)
}

// torn is the beginning of an incomplete message: it declares 64 bytes of metadata, but only 8 follow.
var torn = []byte{0xFF, 0xFF, 0xFF, 0xFF, 64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}

// Tear ends a stream within a message, so that readers report it as incomplete. Batches written before stay readable.
func (w *Writer) Tear() error {
	w.drop()
	if w.holdback == nil {
		return nil
	}
	return w.holdback.end(torn)
}

// maxDepth is the maximum nesting of lists, maps and structs that the library can write, not counting the leaf.
const maxDepth = 63

func create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	opts, stream, err := writeOptions(sc, o)
	if err != nil {
		return nil, err
	}
	if (format.Limits{Depth: maxDepth, Fields: math.MaxInt64}).Fit(sc, fault.Span{}, "schema") != nil {
		return nil, fault.Limitf(fault.Span{}, "schema", "at most %d lists, maps and structs in each other are written",
			maxDepth)
	}
	return format.CreateObject(ctx, s, func(w io.Writer) (format.Encoder, error) {
		if stream {
			held := newHoldback(w)
			return &Writer{lib: ipc.NewWriter(held, opts...), holdback: held, sc: sc, stream: true}, nil
		}
		return newFile(w, sc, opts, o.Mem), nil
	})
}

func writeOptions(sc *arrow.Schema, o format.WriteOptions) (opts []ipc.Option, stream bool, err error) {
	s, err := writing.Parse(o.Opts)
	if err != nil {
		return nil, false, err
	}
	opts = options(sc)
	if o.Mem != nil {
		opts = append(opts, ipc.WithAllocator(vec.Zeroed{Allocator: o.Mem}))
	}
	switch s.Compression {
	case CompressLZ4:
		opts = append(opts, ipc.WithLZ4())
	case CompressZstd:
		opts = append(opts, ipc.WithZstd())
	}
	if s.Stream != nil {
		return opts, *s.Stream, nil
	}
	return opts, strings.HasSuffix(strings.ToLower(o.Name), ".arrows"), nil // readers also go by the name
}
