package lake

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/store"
)

// File is a Parquet file of a table.
type File struct {
	Name      string // below the table's directory
	Bytes     int64
	Partition []any // the values of the spec's terms, see Term.Value
	Sorted    bool  // its rows are in the order of WriterOptions.Sort
	parquet.FileFacts
}

// Commit writes the catalogue after all files have been written, and returns the names and the total bytes of what it
// wrote.
type Commit func(ctx context.Context, s store.Sink, files []File) (names []string, bytes int64, err error)

// WriterOptions determine how a table's files are written.
type WriterOptions struct {
	Terms   []Term            // how rows are divided; bound to the schema of the files
	Sort    []SortColumn      // an order that rows may be in; files that are not are told apart
	Size    int64             // approximate size of a file, in bytes; 0: 512 MiB
	Parquet map[string]string // options of the files
	Dir     string            // of the files, below that of the table
	Write   format.WriteOptions
	Commit  Commit
}

const (
	defaultFileSize = 512 << 20
	// maxOpen is the number of files that are written at a time. A partition whose rows recur later gets another file.
	maxOpen = 32
	// maxBuffered is the number of rows of a partition that are collected before they are encoded.
	maxBuffered = 8192
)

// Writer writes the rows of a table into files.
type Writer struct {
	o            WriterOptions
	sink         store.Sink
	in           *arrow.Schema // of the batches
	stored       *arrow.Schema // as which their values are stored
	mem          memory.Allocator
	run          string // part of the names of files
	open         map[string]*openFile
	recent       []string
	files        []File
	paused       int // files of earlier pauses
	sum          format.Summary
	changedTypes []string
}

// openFile is a file that is being written.
type openFile struct {
	w            format.Writer
	facts        func() parquet.FileFacts
	name         string
	size         *int64
	partition    []any
	order        order
	buffered     []arrow.RecordBatch // rows that have not been encoded yet
	bufferedRows int64               // of held
}

// NewWriter returns a writer of batches of schema in, whose values are stored as in schema stored.
func NewWriter(s store.Sink, in, stored *arrow.Schema, o WriterOptions) *Writer {
	w := &Writer{o: o, sink: s, in: in, stored: stored, open: map[string]*openFile{}, mem: o.Write.Mem}
	if w.mem == nil {
		w.mem = memory.NewGoAllocator()
	}
	if w.o.Size == 0 {
		w.o.Size = defaultFileSize
	}
	var salt [4]byte
	_, _ = rand.Read(salt[:])
	w.run = hex.EncodeToString(salt[:])
	for i, f := range in.Fields() {
		if !sameMeaning(f.Type, stored.Field(i).Type) {
			w.changedTypes = append(w.changedTypes, fmt.Sprintf("%s (%s as %s)", f.Name, f.Type,
				shortType(stored.Field(i).Type)))
		}
	}
	return w
}

// shortType returns a type without the ids of its fields.
func shortType(t arrow.DataType) string {
	s := t.String()
	if len(s) > 60 {
		return s[:strings.IndexAny(s+"<", "<")]
	}
	return s
}

// sameMeaning reports whether types differ at most in the memory layout of their values.
func sameMeaning(a, b arrow.DataType) bool {
	if arrow.TypeEqual(a, b) {
		return true
	}
	text := func(t arrow.DataType) bool {
		return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING || t.ID() == arrow.STRING_VIEW
	}
	octets := func(t arrow.DataType) bool {
		return t.ID() == arrow.BINARY || t.ID() == arrow.LARGE_BINARY || t.ID() == arrow.BINARY_VIEW
	}
	if text(a) && text(b) || octets(a) && octets(b) {
		return true
	}
	if x, ok := a.(arrow.DecimalType); ok {
		y, ok := b.(arrow.DecimalType)
		return ok && x.GetScale() == y.GetScale()
	}
	x, ok1 := a.(arrow.NestedType)
	y, ok2 := b.(arrow.NestedType)
	if !ok1 || !ok2 || (a.ID() == arrow.STRUCT) != (b.ID() == arrow.STRUCT) || x.NumFields() != y.NumFields() {
		return false
	}
	for i, f := range x.Fields() {
		if !sameMeaning(f.Type, y.Fields()[i].Type) {
			return false
		}
	}
	return true
}

// cast converts a batch to the types in which it is stored.
func (w *Writer) cast(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, b.NumCols())
	defer func() {
		for _, c := range cols {
			if c != nil {
				c.Release()
			}
		}
	}()
	for i, f := range w.stored.Fields() {
		c, err := Cast(b.Column(i), f.Type, w.mem)
		if err != nil {
			return nil, fault.Locate(err, fault.Span{}, false, f.Name)
		}
		cols[i] = c
	}
	return array.NewRecordBatch(w.stored, cols, b.NumRows()), nil
}

// Check returns an error if Write would refuse the rows: if a value cannot be stored, or not divide them.
func (w *Writer) Check(b arrow.RecordBatch) error {
	b, err := w.checked(b)
	if err == nil {
		b.Release()
	}
	return err
}

// checked returns the rows as they are stored. The caller releases them.
func (w *Writer) checked(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	b, err := w.cast(b)
	if err != nil {
		return nil, err
	}
	for i := range w.o.Terms {
		if err := w.o.Terms[i].Check(b.Column(w.o.Terms[i].Index)); err != nil {
			b.Release()
			return nil, err
		}
	}
	return b, nil
}

func (w *Writer) Write(ctx context.Context, b arrow.RecordBatch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := w.checked(b)
	if err != nil {
		return err
	}
	defer b.Release()
	if len(w.o.Terms) == 0 {
		return w.add(ctx, "", nil, b)
	}
	n := int(b.NumRows())
	for from := 0; from < n; {
		values, key := w.partition(b, from)
		to := from + 1
		for to < n {
			if _, k := w.partition(b, to); k != key {
				break
			}
			to++
		}
		part := b.NewSlice(int64(from), int64(to))
		err := w.add(ctx, key, values, part)
		part.Release()
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// partition returns the partition of row i, and a key for it.
func (w *Writer) partition(b arrow.RecordBatch, i int) (values []any, key string) {
	var k []byte
	for j := range w.o.Terms {
		t := &w.o.Terms[j]
		v := t.Value(b.Column(t.Index), i)
		values = append(values, v)
		switch x := v.(type) {
		case nil:
			k = append(k, 'n')
		case int32:
			k = strconv.AppendInt(append(k, 'i'), int64(x), 36)
		case int64:
			k = strconv.AppendInt(append(k, 'i'), x, 36)
		case string:
			k = append(strconv.AppendInt(append(k, 's'), int64(len(x)), 36), ":"+x...)
		case []byte:
			k = append(append(strconv.AppendInt(append(k, 's'), int64(len(x)), 36), ':'), x...)
		default:
			k = fmt.Append(append(k, 'x'), x)
		}
		k = append(k, 0)
	}
	return values, string(k)
}

// add adds rows to a partition's file.
func (w *Writer) add(ctx context.Context, key string, values []any, b arrow.RecordBatch) error {
	f := w.open[key]
	if f == nil {
		if len(w.recent) >= maxOpen {
			if err := w.finish(ctx, w.recent[0]); err != nil {
				return err
			}
		}
		var err error
		if f, err = w.begin(ctx, values); err != nil {
			return err
		}
		w.open[key] = f
		w.recent = append(w.recent, key)
	} else if last := len(w.recent) - 1; w.recent[last] != key {
		i := slices.Index(w.recent, key)
		w.recent = append(slices.Delete(w.recent, i, i+1), key)
	}
	if len(w.o.Terms) == 0 || b.NumRows() >= maxBuffered {
		if err := w.flush(ctx, f); err != nil {
			return err
		}
		if err := w.encode(ctx, f, b); err != nil {
			return err
		}
	} else {
		b.Retain()
		f.buffered, f.bufferedRows = append(f.buffered, b), f.bufferedRows+b.NumRows()
		if f.bufferedRows >= maxBuffered || len(f.buffered) >= maxBuffered/4 {
			if err := w.flush(ctx, f); err != nil {
				return err
			}
		}
	}
	if *f.size >= w.o.Size {
		return w.finish(ctx, key)
	}
	return nil
}

// flush encodes the rows that a file has collected.
func (w *Writer) flush(ctx context.Context, f *openFile) error {
	if len(f.buffered) == 0 {
		return nil
	}
	defer f.drop()
	cols := make([]arrow.Array, w.stored.NumFields())
	for i := range cols {
		parts := make([]arrow.Array, len(f.buffered))
		for k, b := range f.buffered {
			parts[k] = b.Column(i)
		}
		c, err := array.Concatenate(parts, w.mem)
		if err != nil {
			return err
		}
		defer c.Release()
		cols[i] = c
	}
	b := array.NewRecordBatch(w.stored, cols, f.bufferedRows)
	defer b.Release()
	return w.encode(ctx, f, b)
}

func (f *openFile) drop() {
	for _, b := range f.buffered {
		b.Release()
	}
	f.buffered, f.bufferedRows = nil, 0
}

func (w *Writer) encode(ctx context.Context, f *openFile, b arrow.RecordBatch) error {
	w.sum.Rows += b.NumRows()
	f.order.add(b)
	return f.w.Write(ctx, b)
}

// counted is a sink for one file that counts its bytes. It is committed together with the whole table.
type counted struct {
	store.Sink
	name string
	size *int64
}

type countedObject struct {
	store.Object
	size *int64
}

func (o countedObject) Write(p []byte) (int, error) {
	n, err := o.Object.Write(p)
	*o.size += int64(n)
	return n, err
}

func (s counted) Create(ctx context.Context, _ string) (store.Object, error) {
	o, err := s.Sink.Create(ctx, s.name)
	return countedObject{o, s.size}, err
}
func (s counted) Commit(context.Context) error { return nil }
func (s counted) Abort(context.Context) error  { return nil }

// begin begins a file.
func (w *Writer) begin(ctx context.Context, values []any) (*openFile, error) {
	n := len(w.files) + len(w.open)
	f := &openFile{size: new(int64), partition: values, order: order{by: w.o.Sort}}
	f.name = path.Join(w.o.Dir, PathOf(w.o.Terms, values), fmt.Sprintf("%05d-%s.parquet", n, w.run))
	wo := w.o.Write
	wo.Opts, wo.Dir = w.o.Parquet, false
	if _, given := wo.Opts["memory"]; len(w.o.Terms) > 0 && !given { // many files are written at a time
		wo.Opts = map[string]string{"memory": "32MiB"}
		for k, v := range w.o.Parquet {
			wo.Opts[k] = v
		}
	}
	var err error
	f.w, f.facts, err = parquet.CreateWithFacts(ctx, counted{w.sink, f.name, f.size}, w.stored, wo)
	return f, err
}

// finish ends the file of a partition.
func (w *Writer) finish(ctx context.Context, key string) error {
	f := w.open[key]
	if err := w.flush(ctx, f); err != nil {
		return err
	}
	s, err := f.w.Close(ctx)
	if err != nil {
		return err
	}
	delete(w.open, key)
	i := slices.Index(w.recent, key)
	w.recent = slices.Delete(w.recent, i, i+1)
	w.files = append(w.files, File{Name: f.name, Bytes: *f.size, Partition: f.partition,
		Sorted: f.order.kept(), FileFacts: f.facts()})
	w.sum.Bytes += *f.size
	w.sum.Files = append(w.sum.Files, f.name)
	for _, note := range s.Notes {
		if !slices.Contains(w.sum.Notes, note) {
			w.sum.Notes = append(w.sum.Notes, note)
		}
	}
	return nil
}

// Close ends all files, writes the catalogue, and makes the table visible.
func (w *Writer) Close(ctx context.Context) (format.Summary, error) {
	for len(w.recent) > 0 {
		if err := w.finish(ctx, w.recent[0]); err != nil {
			return w.sum, err
		}
	}
	names, n, err := w.o.Commit(ctx, w.sink, w.files)
	if err != nil {
		return w.sum, err
	}
	w.sum.Files, w.sum.Bytes = append(w.sum.Files, names...), w.sum.Bytes+n
	w.sum.Retyped = w.changedTypes
	return w.sum, w.sink.Commit(ctx)
}

// Summary returns what Close returns, as far as it is known.
func (w *Writer) Summary() format.Summary { return w.sum }

// Abort removes the files that were written.
func (w *Writer) Abort(ctx context.Context) error {
	var errs []error
	for _, f := range w.open {
		f.drop()
		f.order.drop()
		errs = append(errs, f.w.Abort(ctx))
	}
	return errors.Join(append(errs, w.sink.Abort(ctx))...)
}

// WriteFile writes a Parquet file of the sink with the rows of a batch, whose fields have ids.
func WriteFile(ctx context.Context, s store.Sink, name string, b arrow.RecordBatch, wo format.WriteOptions) (File,
	error) {
	f, size := File{Name: name}, new(int64)
	wo.Opts, wo.Dir, wo.Rows = nil, false, b.NumRows()
	w, facts, err := parquet.CreateWithFacts(ctx, counted{s, name, size}, b.Schema(), wo)
	if err != nil {
		return f, err
	}
	if err := w.Write(ctx, b); err != nil {
		return f, errors.Join(err, w.Abort(ctx))
	}
	if _, err := w.Close(ctx); err != nil {
		return f, err
	}
	f.Bytes, f.FileFacts = *size, facts()
	return f, nil
}

// NewUUID returns a random UUID, of version 4.
func NewUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Put writes an object of a sink at once.
func Put(ctx context.Context, s store.Sink, name string, b []byte) error {
	o, err := s.Create(ctx, name)
	if err != nil {
		return err
	}
	_, err = o.Write(b)
	return errors.Join(err, o.Close())
}

// Owns reports whether a directory of the local file system contains only files of the kinds that a table written by
// stoa has, in the directories named or in directories NAME=VALUE: only such tables are replaced.
func Owns(dir string, own ...string) bool {
	list, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	ours := false
	for _, e := range list {
		switch {
		case e.IsDir() && slices.Contains(own, e.Name()):
			ours = ours || e.Name() != dataDir
		case e.IsDir() && strings.Contains(e.Name(), "="):
		case !e.IsDir() && strings.HasSuffix(e.Name(), ".parquet"):
		default:
			return false
		}
	}
	return ours
}

const dataDir = "data"
