package delta

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/delta/internal/log"
	"stoa/format/internal/lake"
	"stoa/store"
)

// Change is a version that is being added to a table: files with deleted rows are replaced by files with the others,
// and rows are added. Nothing is visible before the file that Close prepares is written.
type Change struct {
	op      *versionReader
	adds    []*log.Add // by data file
	table   *lake.Table
	sink    store.Sink
	wo      format.WriteOptions
	draft   *draft
	writers []*lake.Writer
	added   *lake.Writer    // of new rows; nil if there are none
	kept    *lake.Writer    // of the other rows of files with deleted ones
	files   []lake.File     // of both
	deleted map[int][]int64 // by data file
}

// changeable are the features of tables that stoa changes: they ask nothing of a writer of whole files.
var changeable = []string{"timestampNtz", "columnMapping", "appendOnly", "invariants"}

// OpenChange begins a change of the table in a directory. What it writes goes to sink; time is that of the version in
// milliseconds since 1970, and 0 means now.
func OpenChange(ctx context.Context, tree store.Tree, dir string, sink store.Sink, wo format.WriteOptions,
	time int64) (*Change, error) {
	op, err := openVersion(ctx, format.Target{Tree: tree, Name: dir}, format.OpenOptions{})
	if err != nil {
		return nil, err
	}
	if err := op.changeable(); err != nil {
		return nil, err
	}
	if err := op.ours(ctx); err != nil {
		return nil, err
	}
	r, err := op.reader()
	if err != nil {
		return nil, err
	}
	for _, a := range op.adds() { // where the protocol does not have them
		if a.Vector != nil {
			at := fault.Span{Object: path.Join(op.dir, log.Dir)}
			return nil, fault.Unsupportedf(at, "deletionVector", "%s has a deletion vector: stoa does not change the "+
				"table", a.Path)
		}
	}
	c := &Change{op: op, adds: op.adds(), table: r, sink: sink, wo: wo, deleted: map[int][]int64{},
		draft: &draft{o: Table{Time: time}, stored: r.Schema(), mapped: op.mode != ""}}
	var terms []lake.Term
	for _, name := range op.metadata.Partitions {
		terms = append(terms, lake.Term{Transform: "identity", Column: name, Name: name})
	}
	c.draft.terms, err = lake.Bind(terms, r.Schema())
	return c, err
}

// changeable returns an error if the table asks more of writers than stoa does.
func (op *versionReader) changeable() error {
	at := fault.Span{Object: path.Join(op.dir, log.Dir)}
	p, set := op.protocol, op.metadata.Configuration
	if name := renamedField(op.fields); name != "" {
		return fault.Unsupportedf(at, "metaData.schemaString", "the column %s has another name in the files: stoa "+
			"does not change the table", name)
	}
	for _, f := range p.WriterFeatures {
		if !slices.Contains(changeable, f) {
			return fault.Unsupportedf(at, "protocol", "the table needs the writer feature %s, which stoa does not have",
				f)
		}
	}
	if v := p.MinWriter; v != 7 && v > 2 && !(v == 5 && op.mode != "") {
		return fault.Unsupportedf(at, "protocol", "expected a writer version of 2 or 7, found %d: stoa changes no "+
			"other tables", v)
	}
	if set["delta.appendOnly"] == "true" || set["delta.enableChangeDataFeed"] == "true" {
		return fault.Unsupportedf(at, "metaData.configuration", "the table is append-only, or has a change data feed: "+
			"stoa does not change it")
	}
	for k := range set {
		if strings.HasPrefix(k, "delta.constraints.") {
			return fault.Unsupportedf(at, "metaData.configuration", "the table has the constraint %s: stoa does not "+
				"change it", k)
		}
	}
	for _, k := range []string{"delta.invariants", "delta.generationExpression", "delta.identity."} {
		if strings.Contains(op.metadata.Schema, k) {
			return fault.Unsupportedf(at, "metaData.schemaString", "a column has %s: stoa does not change the table", k)
		}
	}
	return nil
}

// ours returns an error if others have changed the rows since stoa did so last: a change that gives the table the rows
// of its source would delete theirs. Versions that only rearrange files, or change properties, do not count.
func (op *versionReader) ours(ctx context.Context) error {
	for v := op.version; v >= 0; v-- {
		if op.versions[v] == "" {
			return fault.Unsupportedf(fault.Span{Object: path.Join(op.dir, log.Dir)}, "", "version %d is not in the "+
				"log any more, so that it is not known whether others have changed rows since stoa did so last: "+
				"catching up may delete theirs, and does not change the table", v)
		}
		s, err := op.alone(ctx, v, op.o.Limits)
		switch {
		case err != nil:
			return err
		case s.engine == engine:
			return nil
		case s.changed:
			return fault.Unsupportedf(fault.Span{Object: op.versions[v]}, "commitInfo", "others have changed rows "+
				"of the table since stoa did so last (%s): catching up would undo that, and does not change the table",
				strings.TrimSpace(s.operation+" by "+cmp.Or(s.engine, "an unknown engine")))
		}
	}
	return nil
}

// Schema returns the columns of the table.
func (c *Change) Schema() *arrow.Schema { return c.table.Schema() }

// Rows calls yield with the rows of the table as it is. position returns the position of row i of the batch in its data
// file, for Delete.
func (c *Change) Rows(ctx context.Context, yield func(file int, position func(i int) int64, b arrow.RecordBatch) error,
) error {
	return c.table.Each(ctx, yield)
}

// Delete deletes the row at a position of a data file.
func (c *Change) Delete(file int, position int64) {
	c.deleted[file] = append(c.deleted[file], position)
}

// Write adds rows. Their columns are those of Schema, in types that can be stored as its types.
func (c *Change) Write(ctx context.Context, b arrow.RecordBatch) error {
	return c.adder(b).Write(ctx, b)
}

// Check returns an error if Write would refuse the rows.
func (c *Change) Check(b arrow.RecordBatch) error { return c.adder(b).Check(b) }

// adder returns the writer of new rows such as those of b.
func (c *Change) adder(b arrow.RecordBatch) *lake.Writer {
	if c.added == nil {
		c.added = c.writer(b.Schema())
	}
	return c.added
}

// writer returns a writer of files that are known by c.files when it is closed.
func (c *Change) writer(in *arrow.Schema) *lake.Writer {
	commit := func(_ context.Context, _ store.Sink, files []lake.File) ([]string, int64, error) {
		c.files = append(c.files, files...)
		return nil, 0, nil
	}
	w := lake.NewWriter(c.sink, in, c.draft.stored, lake.WriterOptions{Terms: c.draft.terms, Write: c.wo,
		Dir: c.dir(), Commit: commit})
	c.writers = append(c.writers, w)
	return w
}

// dir returns the directory of new files: data, where all files of the table are, as of one that Iceberg's catalogue
// has, too.
func (c *Change) dir() string {
	const data = "data"
	if len(c.adds) == 0 || slices.ContainsFunc(c.adds, func(a *log.Add) bool {
		return !strings.HasPrefix(a.Path, data+"/")
	}) {
		return ""
	}
	return data
}

// keep writes the rows that are not deleted of files with deleted ones.
func (c *Change) keep(ctx context.Context) error {
	for k, in := range c.table.Files() {
		gone := c.deleted[k]
		if len(gone) == 0 {
			continue
		}
		slices.Sort(gone)
		err := c.table.EachOf(ctx, in, func(position func(int) int64, b arrow.RecordBatch) error {
			n := int(b.NumRows())
			for from := 0; from < n; {
				to := from
				for to < n && !has(gone, position(to)) {
					to++
				}
				if to > from {
					if err := c.keepRows(ctx, b.NewSlice(int64(from), int64(to))); err != nil {
						return err
					}
				}
				from = to + 1 // row to is deleted
			}
			return ctx.Err()
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func has(sorted []int64, n int64) bool {
	_, ok := slices.BinarySearch(sorted, n)
	return ok
}

func (c *Change) keepRows(ctx context.Context, b arrow.RecordBatch) error {
	defer b.Release()
	if c.kept == nil {
		c.kept = c.writer(b.Schema())
	}
	return c.kept.Write(ctx, b)
}

// Close writes the files, and returns the version with the name of its file in the table's directory. The change is
// made when this file is there; there must be none of this name before.
func (c *Change) Close(ctx context.Context) (name string, version []byte, s format.Summary, err error) {
	if err := c.keep(ctx); err != nil {
		return "", nil, s, err
	}
	for _, w := range c.writers {
		one, err := w.Close(ctx)
		if err != nil {
			return "", nil, s, err
		}
		s.Rows, s.Bytes, s.Files = s.Rows+one.Rows, s.Bytes+one.Bytes, append(s.Files, one.Files...)
	}
	c.writers = nil
	actions, err := c.actions()
	if err != nil {
		return "", nil, s, err
	}
	version, err = encode(actions)
	return path.Join(log.Dir, fmt.Sprintf("%020d.json", c.op.version+1)), version, s, err
}

// actions returns those of the new version.
func (c *Change) actions() ([]log.Action, error) {
	now := max(cmp.Or(c.draft.o.Time, time.Now().UnixMilli()), c.op.time)
	text := func(n int) string { return strconv.Itoa(n) }
	info := map[string]any{"timestamp": now, "operation": "WRITE", "readVersion": c.op.version, "engineInfo": engine,
		"operationParameters": map[string]any{"mode": "Append"}, "isBlindAppend": len(c.deleted) == 0,
		"operationMetrics": map[string]any{"numFiles": text(len(c.files)), "numRemovedFiles": text(len(c.deleted))}}
	if len(c.deleted) > 0 {
		info["operation"], info["operationParameters"] = "MERGE", map[string]any{}
	}
	out := []log.Action{{CommitInfo: info}}
	for k, a := range c.adds {
		if len(c.deleted[k]) > 0 {
			out = append(out, log.Action{Remove: &log.Remove{Path: a.Path, Deleted: now, Changed: true, Extended: true,
				Partition: a.Partition, Size: a.Size}})
		}
	}
	for _, f := range c.files {
		a, err := c.draft.add(f, now)
		if err != nil {
			return nil, err
		}
		out = append(out, log.Action{Add: a})
	}
	return out, nil
}

// Abort gives up the change.
func (c *Change) Abort(ctx context.Context) error {
	errs := []error{c.table.Close()}
	for _, w := range c.writers {
		errs = append(errs, w.Abort(ctx))
	}
	return errors.Join(append(errs, c.sink.Abort(ctx))...)
}
