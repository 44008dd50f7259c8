package convert

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/format"
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
}

// maxPartitions is how many files are written at a time. If rows of a closed partition follow later, it gets another
// file.
const maxPartitions = 32

// defaultPartition is the directory for null.
const defaultPartition = "__HIVE_DEFAULT_PARTITION__"

// emptyMark is the file of a table without rows. Hive and Spark ignore names that begin with an underscore.
const emptyMark = "_EMPTY"

// createPartitioned begins a directory out for rows of schema sc, in which the named columns are directories.
func createPartitioned(ctx context.Context, a *cli.App, out, ext string, sc *arrow.Schema, columns []string,
	wo stoa.CreateOptions) (*partitioned, error) {
	w := &partitioned{out: out, ext: ext, wo: wo, open: map[string]format.Writer{}, files: map[string]int{}}
	if w.sink = (store.Local{}).Sink(out, holdsPartitions); remote.Is(out) {
		var err error
		if w.sink, _, err = a.Sink(ctx, out); err != nil {
			return nil, err
		}
	}
	w.sink = store.Strict(w.sink)
	for _, c := range columns {
		i := slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, c) })
		if i < 0 {
			return nil, fault.Invalidf("the partition column %s is not among the columns", c)
		}
		w.parts = append(w.parts, i)
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
		return d.Name() != emptyMark && (!d.IsDir() || !strings.Contains(d.Name(), "="))
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
		v, err := partitionText(b.Column(k), i)
		if err != nil {
			return "", fault.Invalidf("partition column %s: %v", b.ColumnName(k), err)
		}
		parts = append(parts, escapePart(b.ColumnName(k))+"="+v)
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
		obj, err := w.sink.Create(ctx, emptyMark)
		if err != nil {
			return w.summary, err
		}
		if err := obj.Close(); err != nil {
			return w.summary, err
		}
	}
	return w.summary, w.sink.Commit(ctx)
}

// Abort removes what was written.
func (w *partitioned) Abort(ctx context.Context) error {
	var errs []error
	for _, p := range w.open {
		errs = append(errs, p.Abort(ctx))
	}
	return errors.Join(append(errs, w.sink.Abort(ctx))...)
}

// instantLayout is Spark's form of timestamps in names; the fraction is optional.
const instantLayout = "2006-01-02 15:04:05.999999999"

// partitionText returns a value as it is written in the name of a directory. An empty text has no representation: Hive
// and Spark read it as null.
func partitionText(a arrow.Array, i int) (string, error) {
	if a.IsNull(i) {
		return defaultPartition, nil
	}
	var s string
	switch a := a.(type) {
	case *array.Timestamp:
		s = a.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit).Format(instantLayout)
	case *array.Float32:
		s = floatText(float64(a.Value(i)), 32)
	case *array.Float64:
		s = floatText(a.Value(i), 64)
	case array.StringLike:
		s = a.Value(i)
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16, *array.Uint32,
		*array.Uint64, *array.Boolean, *array.Date32,
		*array.Decimal128, *array.Dictionary:
		s = a.ValueStr(i)
	default:
		return "", fmt.Errorf("values of type %s cannot be names of directories", a.DataType())
	}
	if s == "" || s == defaultPartition {
		return "", fmt.Errorf("%q cannot be told from null in the name of a directory", s)
	}
	return escapePart(s), nil
}

func floatText(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+") + "inity"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// escapePart writes as %XX the characters that Hive and Spark escape in names of partitions.
func escapePart(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0 || i == 0 && c == '.' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func unescapePart(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// readPartitioned reads the output of partitioned, file by file, as rows of schema sc. The values of the partition
// columns come from the names of the directories.
func readPartitioned(a *cli.App, ctx context.Context, dir string, sc *arrow.Schema, columns []string,
	o stoa.OpenOptions) cli.Batches {
	return func(yield func(arrow.RecordBatch, error) bool) {
		done := errors.New("done")
		err := a.Walk(ctx, dir, func(f store.Info) error {
			name := f.Name
			if strings.HasPrefix(path.Base(name), "_") {
				return nil
			}
			values := map[string]string{}
			for _, part := range strings.Split(strings.TrimPrefix(path.Dir(name), filepath.ToSlash(dir)), "/") {
				if k, v, ok := strings.Cut(part, "="); ok {
					values[strings.ToLower(unescapePart(k))] = v
				}
			}
			t, err := stoa.Open(ctx, name, o)
			if err != nil {
				return err
			}
			defer t.Close()
			for b, err := range t.Scan(ctx, stoa.ScanSpec{Alloc: cli.Pool}) {
				if err != nil {
					return err
				}
				b, err = withPartitions(b, sc, columns, values)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				more := yield(b, nil)
				b.Release()
				if !more {
					return done
				}
			}
			return nil
		})
		if err != nil && err != done {
			yield(nil, err)
		}
	}
}

// withPartitions inserts the columns that are directories at their positions.
func withPartitions(b arrow.RecordBatch, sc *arrow.Schema, columns []string,
	values map[string]string) (arrow.RecordBatch, error) {
	cols := make([]arrow.Array, sc.NumFields())
	next := 0
	for i, f := range sc.Fields() {
		if !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, f.Name) }) {
			if next >= int(b.NumCols()) {
				return nil, fmt.Errorf("the column %s is not there", f.Name)
			}
			cols[i] = b.Column(next)
			cols[i].Retain()
			next++
			continue
		}
		v, ok := values[strings.ToLower(f.Name)]
		if !ok {
			return nil, fmt.Errorf("no directory says %s", f.Name)
		}
		c, err := repeated(f.Type, v, int(b.NumRows()))
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", f.Name, v, err)
		}
		cols[i] = c
	}
	fields := slices.Clone(sc.Fields())
	for i := range fields {
		fields[i].Type, fields[i].Nullable = cols[i].DataType(), true
	}
	out := array.NewRecordBatch(arrow.NewSchema(fields, nil), cols, b.NumRows())
	for _, c := range cols {
		c.Release()
	}
	return out, nil
}

// repeated returns an array with n times the value in the name of a directory.
func repeated(t arrow.DataType, text string, n int) (arrow.Array, error) {
	b := array.NewBuilder(cli.Pool, t)
	defer b.Release()
	if text == defaultPartition {
		b.AppendNulls(n)
		return b.NewArray(), nil
	}
	text = unescapePart(text)
	for range n {
		if ts, ok := b.(*array.TimestampBuilder); ok {
			when, err := time.Parse(instantLayout, text)
			if err != nil {
				return nil, err
			}
			v, err := arrow.TimestampFromTime(when, t.(*arrow.TimestampType).Unit)
			if err != nil {
				return nil, err
			}
			ts.Append(v)
			continue
		}
		if err := b.AppendValueFromString(text); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}
