package pieces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/content"
	"stoa/internal/hive"
	"stoa/store"
	"stoa/store/remote"
)

// partitioned writes a table as directories NAME=VALUE, like Hive and Spark: each file holds the rows of one value (of
// each partition column), without these columns. The directory appears only when it is complete.
type partitioned struct {
	out     string // the directory
	ext     string
	sink    store.Sink
	sc      *arrow.Schema // of the files
	wo      stoa.CreateOptions
	parts   []int // the partition columns, in the order of the directories
	rest    []int // the other columns
	open    map[string]format.Writer
	recent  []string // open ones, the most recently used last
	files   map[string]int
	summary format.Summary

	names []string        // of the partition columns
	whole *arrow.Schema   // of the rows
	plan  *content.Plan   // compares the rows with those that are read back
	sum   *content.Summer // of the rows
}

// maxPartitions is how many files are written at a time. If rows of a closed partition follow later, it gets another
// file.
const maxPartitions = 32

// HiveFormat is the name of the format that reads such directories.
const HiveFormat = "hive"

// CreatePartitioned begins a directory out for rows of schema sc, in which the named columns are directories.
func CreatePartitioned(ctx context.Context, a *cli.App, out, ext string, sc *arrow.Schema, columns []string,
	wo stoa.CreateOptions) (*partitioned, error) {
	w := &partitioned{out: out, ext: ext, wo: wo, open: map[string]format.Writer{}, files: map[string]int{}, whole: sc,
		plan: content.Same(sc)}
	w.sum = w.plan.Summer(0)
	if w.sink = (store.Local{}).Sink(out, holdsPartitions); remote.Is(out) {
		var err error
		if w.sink, _, err = a.Sink(ctx, out); err != nil {
			return nil, err
		}
	}
	w.sink = store.Strict(w.sink)
	if wo.Publish != nil { // of the whole, not of each file
		w.sink = store.Announced(w.sink, func() error { return wo.Publish(w.summary) })
		w.wo.Publish = nil
	}
	if !wo.NoCheck {
		w.sink = store.Before(w.sink, func(ctx context.Context, t store.Tree, name string) error {
			return w.check(ctx, a, t, name)
		})
	}
	for _, c := range columns {
		i := slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, c) })
		if i < 0 {
			return nil, fault.Invalidf("the partition column %s is not among the columns", c)
		}
		if slices.Contains(w.parts, i) {
			return nil, fault.Invalidf("the partition column %s is given twice", c)
		}
		w.parts, w.names = append(w.parts, i), append(w.names, sc.Field(i).Name)
	}
	var fields []arrow.Field
	for i, f := range sc.Fields() {
		if !slices.Contains(w.parts, i) {
			w.rest, fields = append(w.rest, i), append(fields, f)
		}
	}
	if len(fields) == 0 {
		return nil, fault.Invalidf("all columns are partition columns: the files would have none")
	}
	w.sc = arrow.NewSchema(fields, nil)
	w.wo.Rows = -1
	return w, nil
}

// holdsPartitions reports whether a directory contains only partitions, so that it may be replaced.
func holdsPartitions(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && !slices.ContainsFunc(list, func(d fs.DirEntry) bool {
		return d.Name() != hive.EmptyMark && d.Name() != hive.SchemaFile &&
			(!d.IsDir() || !strings.Contains(d.Name(), "="))
	})
}

// inSink is one object of a sink, as a sink of its own: it appears when the whole sink is committed.
type inSink struct {
	store.Sink
	name string
}

func (s inSink) Create(ctx context.Context, name string) (store.Object, error) {
	if name != "" {
		return nil, fault.Unsupportedf(fault.Span{Object: s.name}, "",
			"a format that writes directories cannot write partitions")
	}
	return s.Sink.Create(ctx, s.name)
}

func (inSink) Commit(context.Context) error { return nil }
func (inSink) Abort(context.Context) error  { return nil }

// Write divides the rows: each run of rows of one partition is written to its file.
func (w *partitioned) Write(ctx context.Context, b arrow.RecordBatch) error {
	n := int(b.NumRows())
	w.sum.Add(b)
	for from := 0; from < n; {
		dir, err := w.directory(b, from)
		if err != nil {
			return err
		}
		to := from + 1
		for to < n && w.same(b, from, to) {
			to++
		}
		if err := w.run(ctx, dir, b, from, to); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func (w *partitioned) same(b arrow.RecordBatch, i, j int) bool {
	for _, k := range w.parts {
		c := b.Column(k)
		if c.IsNull(i) != c.IsNull(j) || !c.IsNull(i) && c.ValueStr(i) != c.ValueStr(j) {
			return false
		}
	}
	return true
}

// directory returns the directory of row i.
func (w *partitioned) directory(b arrow.RecordBatch, i int) (string, error) {
	var parts []string
	for _, k := range w.parts {
		dir, err := hive.Dir(b.ColumnName(k), b.Column(k), i)
		if err != nil {
			return "", err
		}
		parts = append(parts, dir)
	}
	return strings.Join(parts, "/"), nil
}

func (w *partitioned) run(ctx context.Context, dir string, b arrow.RecordBatch, from, to int) error {
	p := w.open[dir]
	if p == nil {
		if len(w.recent) >= maxPartitions {
			if err := w.finish(ctx, w.recent[0]); err != nil {
				return err
			}
		}
		name := dir + fmt.Sprintf("/part-%05d%s", w.files[dir], w.ext)
		wo := w.wo
		wo.Sink = inSink{w.sink, name} // a file in it cannot be read back; all are, once the directory exists
		var err error
		if p, err = stoa.Create(ctx, filepath.Join(w.out, name), w.sc, wo); err != nil {
			return err
		}
		w.open[dir] = p
		w.files[dir]++
		w.summary.Files = append(w.summary.Files, filepath.Join(w.out, name))
	}
	if i := slices.Index(w.recent, dir); i >= 0 {
		w.recent = slices.Delete(w.recent, i, i+1)
	}
	w.recent = append(w.recent, dir)
	cols := make([]arrow.Array, len(w.rest))
	for i, k := range w.rest {
		cols[i] = array.NewSlice(b.Column(k), int64(from), int64(to))
		defer cols[i].Release()
	}
	part := array.NewRecordBatch(w.sc, cols, int64(to-from))
	defer part.Release()
	return p.Write(ctx, part)
}

// finish closes the file of a partition.
func (w *partitioned) finish(ctx context.Context, dir string) error {
	s, err := w.open[dir].Close(ctx)
	if err != nil {
		return err
	}
	delete(w.open, dir)
	w.recent = slices.DeleteFunc(w.recent, func(d string) bool { return d == dir })
	w.summary.Rows += s.Rows
	w.summary.Bytes += s.Bytes
	return nil
}

// Close closes all files and gives the directory its name. It replaces the directory of an earlier run.
func (w *partitioned) Close(ctx context.Context) (format.Summary, error) {
	for len(w.recent) > 0 {
		if err := w.finish(ctx, w.recent[0]); err != nil {
			return w.summary, err
		}
	}
	if len(w.summary.Files) == 0 { // otherwise nothing would show that there is a table
		if err := w.put(ctx, hive.EmptyMark, nil); err != nil {
			return w.summary, err
		}
	}
	b, err := hive.Encode(w.whole, w.names)
	if err == nil {
		err = w.put(ctx, hive.SchemaFile, b)
	}
	if err != nil {
		return w.summary, err
	}
	err = w.sink.Commit(ctx)
	return w.summary, err
}

// put writes a small file.
func (w *partitioned) put(ctx context.Context, name string, b []byte) error {
	obj, err := w.sink.Create(ctx, name)
	if err != nil {
		return err
	}
	_, err = obj.Write(b)
	return errors.Join(err, obj.Close())
}

// check reads the directory back before it gets its name, and compares it with the rows that were written.
func (w *partitioned) check(ctx context.Context, a *cli.App, tree store.Tree, name string) error {
	fail := func(reason string, rows int64, err error) error {
		return &stoa.UnprovenError{Output: w.out, Rows: [2]int64{w.sum.Sum().Rows, rows}, Reason: reason, Err: err}
	}
	t, err := stoa.Open(ctx, name, stoa.OpenOptions{Formats: a.Formats, From: HiveFormat, Tree: tree, KeepPages: -1})
	if err != nil {
		return fail("it cannot be read: "+cli.Line(err), 0, err)
	}
	defer t.Close()
	plan := w.plan.Reading(w.whole, t.Schema())
	back := plan.Summer(1)
	for b, err := range t.Scan(ctx, stoa.ScanSpec{Alloc: cli.Pool, Unordered: true}) {
		if err != nil {
			return fail("it cannot be read: "+cli.Line(err), 0, err)
		}
		back.Add(b)
	}
	in, out := w.sum.Sum(), back.Sum()
	unchecked := plan.Incomparable()
	if in.Rows != out.Rows || len(unchecked) == 0 && in.String() != out.String() {
		return fail(fmt.Sprintf("%d rows went in, %d are read, and their checksums are %s and %s", in.Rows,
			out.Rows, in, out), out.Rows, nil)
	}
	w.summary.Checked, w.summary.Unchecked = true, unchecked
	return nil
}

// Abort removes what was written.
func (w *partitioned) Abort(ctx context.Context) error {
	var errs []error
	for _, p := range w.open {
		errs = append(errs, p.Abort(ctx))
	}
	return errors.Join(append(errs, w.sink.Abort(ctx))...)
}
