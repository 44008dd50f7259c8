package cfile

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"runtime"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/write"
	"stoa/internal/arrowschema"
	"stoa/store"
)

// create implements format.Format.Create. A schema of one column that is not a struct is written as one file, unless a
// directory is asked for; any other schema is written as a directory with setFile and one file for each leaf and each
// nullable struct.
func create(ctx context.Context, s store.Sink, sc *arrow.Schema, o format.WriteOptions) (format.Writer, error) {
	leaves, structs, err := write.Planned(sc, o.Opts)
	if err != nil {
		return nil, err
	}
	opts, err := write.ParseCreateOptions(o.Opts, leaves)
	if err != nil {
		return nil, err
	}
	if e := opts.Unused(leaves); e != "" {
		return nil, fault.Invalidf("cfile: encoding %s is defined for the type of no column", e)
	}
	w := &tableWriter{sink: s, schema: sc, opts: opts, structs: structs}
	w.single = !structs && sc.NumFields() == 1 && len(leaves) == 1 && len(leaves[0].Steps) == 1 && !opts.Dir && !o.Dir
	w.retyped = write.Retyped(leaves, w.single, opts.PlainMetadata)
	names := fileNames(leaves)
	for i := range leaves {
		name := names[i]
		if w.single {
			name = ""
		}
		if err := w.open(ctx, leaves[i], name, len(leaves) > 1); err != nil {
			return nil, errors.Join(err, w.Abort(ctx))
		}
	}
	return w, nil
}

// tableWriter implements format.Writer.
type tableWriter struct {
	sink    store.Sink
	schema  *arrow.Schema
	opts    write.CreateOptions
	single  bool
	structs bool     // structs stay structs; otherwise they are flattened
	retyped []string // columns that are read back as another type
	columns []*columnWriter
	rows    int64
	id      string // of the set, 32 hexadecimal digits; "": it has none
	failed  error
	done    bool
}

// columnWriter writes one file of a tableWriter.
type columnWriter struct {
	write.Leaf
	file string
	obj  store.Object

	present bool // see setColumn
	hashed  *hashingWriter
	marker  marker
	marks   []byte // over the file without its footer, see marker
	buf     *bufio.Writer
	w       *write.Writer
}

// hashingWriter forwards writes and computes their total length in bytes and their SHA-256.
type hashingWriter struct {
	to io.Writer
	n  int64
	h  hash.Hash
}

func (s *hashingWriter) Write(b []byte) (int, error) {
	n, err := s.to.Write(b)
	s.n += int64(n)
	s.h.Write(b[:n])
	return n, err
}

// open creates the file of one column.
func (t *tableWriter) open(ctx context.Context, l write.Leaf, name string, several bool) error {
	o := t.opts.ForLeaf(&l, several)
	if !t.opts.PlainMetadata {
		o.Meta = []write.Pair{l.Stored()}
		if !t.single {
			o.Digest = sha256.New()
		}
	}
	present := o.ValueIndex && l.Col.Nullable && !l.Col.Array // Append refuses a null
	if present {
		l.Col.Nullable = false
	}
	if _, err := o.WithDefaults(&l.Col); err != nil { // before anything is created
		return err
	}
	obj, err := t.sink.Create(ctx, name)
	if err != nil {
		return err
	}
	c := &columnWriter{Leaf: l, file: name, present: present, obj: obj,
		hashed: &hashingWriter{to: obj, h: sha256.New()}}
	to := io.Writer(obj)
	if t.opts.PlainMetadata && !t.single {
		to = c.hashed
	}
	c.buf = bufio.NewWriterSize(to, 32<<10)
	t.columns = append(t.columns, c)
	to = c.buf
	if !t.single {
		to = io.MultiWriter(c.buf, &c.marker)
	}
	c.w, err = write.NewWriter(to, l.Col, o)
	return err
}

// Write appends a batch, with several columns in parallel if it is large enough.
func (t *tableWriter) Write(ctx context.Context, b arrow.RecordBatch) error {
	if t.failed != nil {
		return t.failed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	workers := min(runtime.GOMAXPROCS(0), len(t.columns))
	if b.NumRows() < 4096 {
		workers = 1
	}
	t.failed = parallel(workers, len(t.columns), func(i int) error {
		c := t.columns[i]
		arr, err := c.Array(b, t.opts.Strict, t.rows)
		if err != nil {
			return err
		}
		defer arr.Release()
		return c.w.Append(arr)
	})
	t.rows += b.NumRows()
	return t.failed
}

// parallel calls f(0) to f(n-1) from several goroutines and returns the error of the lowest number.
func parallel(workers, n int, f func(i int) error) error {
	errs := make([]error, n)
	if workers <= 1 {
		for i := range n {
			if err := f(i); err != nil {
				return err
			}
		}
		return nil
	}
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range next {
				errs[i] = f(i)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close completes the files, writes setFile and makes everything visible.
func (t *tableWriter) Close(ctx context.Context) (format.Summary, error) {
	sum := format.Summary{Rows: t.rows, Retyped: t.retyped}
	if t.failed == nil && t.done {
		t.failed = fault.Bugf("Close twice")
	}
	if t.failed != nil {
		return sum, t.failed
	}
	t.failed = t.close(ctx, &sum)
	return sum, t.failed
}

func (t *tableWriter) close(ctx context.Context, sum *format.Summary) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !t.single && !t.opts.PlainMetadata {
		if err := t.identify(); err != nil {
			return err
		}
	}
	for _, c := range t.columns {
		if err := c.w.Seal(); err != nil {
			return err
		}
		c.marks = c.marker.marks()
		s, err := c.w.Close()
		if err != nil {
			return err
		}
		if err := c.buf.Flush(); err != nil {
			return err
		}
		obj := c.obj
		c.obj = nil
		if err := obj.Close(); err != nil {
			return err
		}
		sum.Bytes += s.Bytes
		sum.Files = append(sum.Files, c.file)
	}
	if !t.single {
		n, err := t.writeSet(ctx)
		if err != nil {
			return err
		}
		sum.Bytes += n
		sum.Files = append(sum.Files, setFile)
	}
	if err := t.sink.Commit(ctx); err != nil {
		return err
	}
	t.done = true
	return nil
}

// identify sets the id of the set and its files to a digest of all file contents, so that the same rows and options
// produce the same bytes.
func (t *tableWriter) identify() error {
	h := sha256.New()
	for _, c := range t.columns {
		if err := c.w.Seal(); err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %d %x\n", c.Path, t.rows, c.w.O.Digest.Sum(nil))
	}
	t.id = fmt.Sprintf("%x", h.Sum(nil)[:16])
	for _, c := range t.columns {
		c.w.O.Meta = append(c.w.O.Meta, write.Pair{Key: block.SetKey, Value: []byte(t.id)})
	}
	return nil
}

// writeSet writes setFile.
func (t *tableWriter) writeSet(ctx context.Context) (int64, error) {
	schema, err := arrowschema.Encode(t.schema)
	if err != nil {
		return 0, err
	}
	set := fileSet{Stoa: setKind, Version: 1, ID: t.id, Schema: schema, Rows: t.rows, Columns: []setColumn{}}
	if t.structs {
		set.Version = withStructs
	}
	for _, c := range t.columns {
		one := setColumn{Path: c.Path, File: c.file, Present: c.present, Marks: c.marks}
		if t.id == "" {
			one.Size, one.Sum = c.hashed.n, fmt.Sprintf("%x", c.hashed.h.Sum(nil))
		}
		if c.Validity {
			one.Holds = block.HoldsValidity
		}
		set.Columns = append(set.Columns, one)
	}
	body, err := set.sealed()
	if err != nil {
		return 0, err
	}
	obj, err := t.sink.Create(ctx, setFile)
	if err != nil {
		return 0, err
	}
	n, err := obj.Write(body)
	if err == nil && n < len(body) {
		err = io.ErrShortWrite
	}
	return int64(n), errors.Join(err, obj.Close())
}

// Abort removes everything that was written. After a successful Close it does nothing.
func (t *tableWriter) Abort(ctx context.Context) error {
	if t.done {
		return nil
	}
	t.done = true
	if t.failed == nil {
		t.failed = fault.Bugf("the writer was aborted")
	}
	for _, c := range t.columns {
		if c.obj != nil {
			c.obj.Close() // the object is removed next, so a close error does not matter
			c.obj = nil
		}
	}
	return t.sink.Abort(ctx)
}
