package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// BeginLoad begins a load of rows with schema sc, whose fields match columns by name, into the table in dir. Columns
// that the rows do not have are null. tablestatus gets an entry of a load in progress. Rows that do not fit the table
// are Invalid; types and options that cannot be written are Unsupported.
func BeginLoad(ctx context.Context, dir string, sc *arrow.Schema, o LoadOptions) (*Load, error) {
	l, roots, err := newLoad(ctx, dir, sc, o)
	if err != nil {
		return nil, err
	}
	if err := l.code(ctx, roots); err != nil {
		return nil, err
	}
	if err := l.begin(ctx); err != nil {
		l.coder.release()
		return nil, err
	}
	return l, nil
}

// newLoad returns a load that has not written anything yet, and the columns of its table.
func newLoad(ctx context.Context, dir string, sc *arrow.Schema, o LoadOptions) (*Load, []*schema.Column, error) {
	l := &Load{dir: dir, o: o, sc: sc, tasks: map[string]*loadTask{}, stamp: status.NowMillis()}
	var err error
	if l.schema, err = ReadTableSchema(dir); err != nil {
		return nil, nil, err
	}
	opts, err := l.lastVersion(ctx)
	if err != nil {
		return nil, nil, err
	}
	if l.wo, err = OptionsOf(l.schema, opts); err != nil {
		return nil, nil, err
	}
	l.list = l.schema.StoredColumns()
	if err := l.beginSpatial(); err != nil {
		return nil, nil, err
	}
	roots, err := l.match()
	if err == nil && o.Partition != nil {
		l.place, err = matchPartition(l.schema, o.Partition)
	}
	if err == nil && l.schema.Partition != nil {
		l.known, err = knownPlaces(ctx, dir, l.schema.Partition.Columns)
	}
	if strings.EqualFold(l.schema.Properties["sort_scope"], globalSort) {
		l.o.Tasks = 1 // each task sorts its own rows
	} else if l.schema.Partition == nil && l.schema.Buckets == 0 && l.wo.Version == 3 {
		l.ranges.column = l.rangeColumn(roots)
	}
	if o.Overwrite {
		l.then = l.overwrite
	}
	if err == nil && l.wo.Rows {
		err = l.fitsStream()
	}
	return l, roots, err
}

// match sets the field of each column; a field without a column is Invalid.
func (l *Load) match() (roots []*schema.Column, err error) {
	used := map[int]bool{}
	if roots, _, err = schema.ColumnTree(l.list, fault.Span{Object: l.dir}, "schema"); err != nil {
		return nil, err
	}
	for _, r := range roots {
		at := -1
		for i, f := range l.sc.Fields() {
			if strings.EqualFold(f.Name, r.Name) {
				at = i
			}
		}
		if l.fields = append(l.fields, at); at < 0 {
			continue
		}
		used[at] = true
		if err := page.CheckFits(r, l.sc.Field(at)); err != nil {
			return nil, err
		}
	}
	for i, f := range l.sc.Fields() {
		if !used[i] {
			return nil, fault.Invalidf("the table %s has no column %q", l.dir, f.Name)
		}
	}
	return roots, nil
}

// begin reserves a segment number, takes the segment's lock, and adds an entry to tablestatus.
func (l *Load) begin(ctx context.Context) error {
	if l.segment = l.o.segment; l.segment != "" {
		return l.lockSegment(ctx)
	}
	return changeStatus(ctx, l.dir, func(s *status.StatusFile) (err error) {
		if l.unlock != nil { // this is not the first attempt
			l.unlock()
			l.unlock = nil
		}
		if l.segment, err = s.NewSegment(l.dir); err != nil {
			return err
		}
		if err := l.lockSegment(ctx); err != nil {
			return err
		}
		if l.stamp <= lastStamp(*s) {
			l.stamp = lastStamp(*s) + 1 // file names must be unique
		}
		if !l.o.hidden {
			*s = append(*s, status.StatusEntry{"loadName": l.segment, "loadStatus": status.StatusLoading,
				"loadStartTime": status.FormatMillis(l.stamp), "timestamp": status.FormatMillis(l.stamp)})
		}
		return nil
	})
}

// lastStamp returns the latest start time of a load, in milliseconds since 1970.
func lastStamp(s status.StatusFile) (last int64) {
	for _, e := range s {
		if ms, ok := status.Millis(status.StatusEntry(e).Text("loadStartTime")); ok {
			last = max(last, ms)
		}
	}
	return last
}

func (l *Load) lockSegment(ctx context.Context) (err error) {
	l.unlock, err = status.Lock(ctx, l.dir, "Segment_"+l.segment+".lock", 0)
	return err
}

// Segment is the number of the load's segment.
func (l *Load) Segment() string { return l.segment }

// Write is format.Load.Write. A value that the table cannot hold is Invalid, with its row and column.
func (l *Load) Write(ctx context.Context, b arrow.RecordBatch) error {
	if l.spatial == nil {
		return l.write(ctx, b)
	}
	b, err := l.withSpatial(b)
	if err != nil {
		return datafile.Located(err, l.rows)
	}
	defer b.Release()
	return l.write(ctx, b)
}

func (l *Load) write(ctx context.Context, b arrow.RecordBatch) error {
	if l.wo.Rows {
		return l.addStream(ctx, b)
	}
	if l.ranges.column != "" {
		return l.addRange(ctx, b)
	}
	if l.schema.Partition == nil && l.schema.Buckets == 0 {
		n := max(1, l.o.Tasks)
		t, err := l.task(fmt.Sprint(l.next%n), 0, nil)
		if err != nil {
			return err
		}
		l.next++
		before := l.rows
		err = l.add(ctx, t, b, func(i int) int64 { return before + int64(i) })
		l.rows += b.NumRows()
		return datafile.Located(err, before)
	}
	return l.route(ctx, b)
}

// route adds each row of a batch to the task of its partition and bucket.
func (l *Load) route(ctx context.Context, b arrow.RecordBatch) error {
	var tasks []*loadTask
	mine := map[*loadTask][]datafile.SortedRow{}
	for i := range int(b.NumRows()) {
		t, err := l.taskOf(b, i)
		if err != nil {
			return datafile.Located(err, l.rows)
		}
		if mine[t] == nil {
			tasks = append(tasks, t)
		}
		mine[t] = append(mine[t], datafile.SortedRow{Row: int32(i)})
	}
	fields := b.Schema().Fields()
	for i := range fields {
		fields[i] = page.PlainField(fields[i])
	}
	sc := arrow.NewSchema(fields, nil)
	for _, t := range tasks {
		rows := mine[t]
		err := datafile.GatherRows(sc, []arrow.RecordBatch{b}, rows, func(part arrow.RecordBatch) error {
			err := l.add(ctx, t, part, func(i int) int64 { return l.rows + int64(rows[i].Row) })
			var v *page.ValueError
			if errors.As(err, &v) {
				v.Row = int(rows[v.Row].Row)
			}
			rows = rows[part.NumRows():]
			return err
		})
		if err != nil {
			return datafile.Located(err, l.rows)
		}
	}
	l.rows += b.NumRows()
	return nil
}

// add adds rows to a task, with codes instead of values where columns have a global dictionary. ordinal gives the
// ordinal of each row of the batch among those of the load.
func (l *Load) add(ctx context.Context, t *loadTask, b arrow.RecordBatch, ordinal func(i int) int64) error {
	if l.coder != nil {
		coded, err := l.coder.coded(b)
		if err != nil {
			return err
		}
		defer coded.Release()
		b = coded
	}
	return l.addCoded(ctx, t, b, ordinal)
}

// addCoded adds rows to a task. All tasks share the memory for sorting.
func (l *Load) addCoded(ctx context.Context, t *loadTask, b arrow.RecordBatch, ordinal func(i int) int64) error {
	if t.sort == nil {
		return t.Add(ctx, b, l.fields, 0, int(b.NumRows()))
	}
	l.held -= t.sort.Bytes
	err := t.sort.Add(ctx, b, ordinal)
	l.held += t.sort.Bytes
	for err == nil && l.held >= l.memory() {
		most := slices.MaxFunc(l.order, func(a, b *loadTask) int { return cmp.Compare(a.sort.Bytes, b.sort.Bytes) })
		l.held -= most.sort.Bytes
		err = most.sort.Spill(ctx)
	}
	return err
}

// taskOf returns the task for row i, which its partition and bucket determine.
func (l *Load) taskOf(b arrow.RecordBatch, i int) (*loadTask, error) {
	bucket := 0
	if l.schema.Buckets > 0 {
		h := int32(0)
		for k := range l.schema.BucketBy {
			x, err := bucketHash(l, b, i, &l.schema.BucketBy[k])
			if err != nil {
				return nil, err
			}
			h += x
		}
		bucket = int((h%l.schema.Buckets + l.schema.Buckets) % l.schema.Buckets)
	}
	values, err := l.partitionOf(b, i)
	if err != nil {
		return nil, err
	}
	if l.place != nil && !l.place.has(values) {
		return nil, datafile.InColumn(page.ValueErrorf(i, "%s", l.place.refused(values)), l.place.columns[0])
	}
	return l.task("", bucket, values)
}

// partitionOf returns NAME=VALUE of each partition column of row i, as in directory names.
func (l *Load) partitionOf(b arrow.RecordBatch, i int) (values []string, err error) {
	if p := l.schema.Partition; p != nil {
		for k := range p.Columns {
			v, err := l.partitionText(b, i, &p.Columns[k])
			if err != nil {
				return nil, err
			}
			values = append(values, schema.Escape(p.Columns[k].Name)+"="+v)
		}
	}
	return values, nil
}

// misplaced returns the rows of a batch, except those in found, that belong to other partitions than that of the load.
func (l *Load) misplaced(b arrow.RecordBatch, found []format.Misfit) (out []format.Misfit) {
	if l.place == nil {
		return nil
	}
	for i := range int(b.NumRows()) {
		if slices.ContainsFunc(found, func(m format.Misfit) bool { return m.Row == i }) {
			continue
		}
		values, err := l.partitionOf(b, i)
		if err == nil && !l.place.has(values) {
			out = append(out, format.Misfit{Row: i, Column: l.place.columns[0].Name, Reason: l.place.refused(values)})
		}
	}
	return out
}

// partitionText returns the escaped text that stands for the partition value of row i in a directory name.
func (l *Load) partitionText(b arrow.RecordBatch, i int, c *layout.ColumnSchema) (string, error) {
	a := l.fieldOf(b, c)
	if a == nil || a.IsNull(i) {
		return schema.HiveNull, nil
	}
	x := &page.Cells{}
	col := &schema.Column{ColumnSchema: c}
	if err := x.Add(col, a, i, i+1, &l.wo); err != nil {
		return "", datafile.InColumn(err, col)
	}
	v := constantOf(x)
	s := schema.PartitionText(c, v)
	if s == schema.HiveNull && !l.wo.Merge {
		return "", datafile.InColumn(page.ValueErrorf(i, "%q in a partition column would be read as null (option "+
			"nulls=merge writes it nevertheless)", a.ValueStr(i)), col)
	}
	if n := len(schema.Escape(c.Name)) + 1 + len(schema.Escape(s)); n > maxName {
		return "", datafile.InColumn(page.ValueErrorf(i, "a partition is a directory, and this one's name would have "+
			"%d bytes, where file systems take %d", n, maxName), col)
	}
	return schema.Escape(s), nil
}

// maxName is how many bytes the name of a directory has at most.
const maxName = 255

// constantOf returns the only entry of cells, which is not null.
func constantOf(x *page.Cells) (v schema.Constant) {
	switch {
	case len(x.Ints) > 0:
		v.I = x.Ints[0]
	case len(x.Nums) > 0:
		v.F = x.Nums[0]
	case len(x.Decs) > 0:
		v.D = x.Decs[0]
	default:
		v.S = string(x.Text(0))
	}
	return v
}

// task returns the task with the given name, bucket and partition, and starts it if it is new.
func (l *Load) task(name string, bucket int, values []string) (*loadTask, error) {
	key := fmt.Sprintf("%s\x00%d\x00%s", name, bucket, strings.Join(values, "/"))
	if t := l.tasks[key]; t != nil {
		return t, nil
	}
	if name == "" {
		if name = "0"; values != nil {
			name = fmt.Sprint(len(l.order))
		}
	}
	p, err := datafile.NewPlan(l.list, &l.wo, l.stamp)
	if err != nil {
		return nil, err
	}
	p.Task, p.Bucket, p.Segment = name, bucket, l.segment
	t := &loadTask{dir: "/Fact/Part0/Segment_" + l.segment, values: values}
	if values != nil {
		if err := l.setPlace(t); err != nil {
			return nil, err
		}
	}
	full := l.folder(t)
	if err := os.MkdirAll(full, 0o777); err != nil {
		return nil, err
	}
	t.files = &filePlace{dir: full, sizes: map[string]int64{}, own: l.wo.Version < 3}
	if l.coder != nil {
		l.coder.measure(p)
	}
	t.TaskWriter = datafile.NewTask(p, t.files, false)
	// the number of codes, which determines their width, is known only after the last row
	if len(l.wo.SortColumns) > 0 || l.coder != nil && l.coder.grows {
		if t.sort, err = datafile.NewSorter(t.files, l.coded, l.wo.SortColumns, t.Roots, l.memory()); err != nil {
			return nil, err
		}
	}
	l.tasks[key] = t
	l.order = append(l.order, t)
	return t, nil
}

// Close commits the load: its rows are part of the table if it returns nil.
func (l *Load) Close(ctx context.Context) (LoadSummary, error) {
	sum := LoadSummary{Segment: l.segment, Rows: l.rows}
	if l.rows == 0 {
		return sum, l.closeEmpty(ctx, &sum)
	}
	if l.wo.Rows {
		return sum, l.closeStream(ctx, &sum)
	}
	if err := l.divide(ctx); err != nil {
		return sum, err
	}
	seg := segmentText{Locations: map[string]folderText{}}
	indexes := map[string][]*loadTask{}
	for _, t := range l.order {
		if l.coder != nil {
			l.coder.measure(t.WritePlan)
		}
		if err := l.closeTask(ctx, t); err != nil {
			return sum, err
		}
		for name, n := range t.files.sizes {
			sum.DataBytes += n
			sum.Files = append(sum.Files, t.shown(name))
		}
		indexes[t.dir] = append(indexes[t.dir], t)
	}
	if l.coder != nil && l.coder.grows { // before the commit, so that visible data files have no unknown codes
		if err := l.coder.save(); err != nil {
			return sum, err
		}
	}
	if l.wo.Version < 3 {
		err := l.closeV12(ctx, &sum)
		return sum, err
	}
	merged := fmt.Sprintf("%s_%d%s", l.segment, l.stamp, layout.MergedExt)
	for _, dir := range layout.SortedKeys(indexes) {
		n, err := l.mergeIndexes(merged, indexes[dir])
		if err != nil {
			return sum, err
		}
		sum.IndexBytes += n
		f := folderText{Files: []string{}, Partitions: []string{}, Status: status.StatusSuccess, Merge: merged,
			Relative: !indexes[dir][0].outside}
		f.Partitions = append(f.Partitions, indexes[dir][0].values...)
		seg.Locations[dir] = f
	}
	slices.Sort(sum.Files)
	name := fmt.Sprintf("%s_%d.segment", l.segment, l.stamp)
	if err := writeSegmentFile(l.dir, name, seg); err != nil {
		return sum, err
	}
	err := l.enter(ctx, &sum, name, status.FormatMillis)
	return sum, err
}

// closeEmpty commits a load without rows: a segment without files whose entry marks it as deleted.
func (l *Load) closeEmpty(ctx context.Context, sum *LoadSummary) error {
	text := status.FormatMillis
	if l.wo.Version < 3 {
		text = DayFirstTime
	}
	l.abandon()
	if err := errors.Join(removeSegment(l.dir, l.segment, l.stamp), l.stream.remove()); err != nil {
		return err
	}
	defer l.coder.release()
	return l.enter(ctx, sum, "", text)
}

// abandon ends all tasks; their files are not used.
func (l *Load) abandon() {
	l.stream.w.Abandon()
	if l.ranges.sort != nil {
		l.ranges.sort.Close()
	}
	for _, t := range l.order {
		t.Abandon()
		if t.sort != nil {
			t.sort.Close()
		}
	}
}

// enter commits the segment to tablestatus. file is the name of its segment file, "" in formats 1 and 2. A segment
// without rows is entered as deleted, as CarbonData does, which cannot read segments without files.
func (l *Load) enter(ctx context.Context, sum *LoadSummary, file string, timeText func(ms int64) string) error {
	state := status.StatusSuccess
	if l.rows == 0 {
		state = status.StatusDeleted
	} else if l.o.Check != nil {
		if err := l.o.Check(ctx, l.segment); err != nil {
			return err
		}
	}
	err := changeStatus(ctx, l.dir, func(s *status.StatusFile) error {
		e := s.Find(l.segment)
		if e == nil {
			e = status.StatusEntry{"loadName": l.segment}
			*s = append(*s, e)
		} else if !e.Loading() {
			return fault.Invalidf("segment %s of %s became %s while it was loaded: nothing is loaded", l.segment, l.dir,
				e.Text("loadStatus"))
		}
		e["loadStartTime"] = timeText(l.stamp)
		e["loadStatus"], e["timestamp"] = state, timeText(max(status.NowMillis(), l.stamp))
		e["dataSize"], e["indexSize"] = fmt.Sprint(sum.DataBytes), fmt.Sprint(sum.IndexBytes)
		if file != "" {
			e["segmentFile"] = file
		}
		if l.then != nil {
			return l.then(l, s, e)
		}
		return nil
	})
	if err == nil {
		l.done = true
		l.unlock()
	}
	return err
}

func (l *Load) closeTask(ctx context.Context, t *loadTask) error {
	if t.sort != nil {
		err := t.sort.Each(ctx, func(b arrow.RecordBatch) error {
			return datafile.LocatedSorted(t.Add(ctx, b, l.fields, 0, int(b.NumRows())), b)
		})
		if err != nil {
			return err
		}
	}
	return t.Close(ctx)
}

// mergeIndexes writes the indexes of all tasks of a directory to one file.
func (l *Load) mergeIndexes(merged string, tasks []*loadTask) (int64, error) {
	var names []string
	var files [][]byte
	for _, t := range tasks {
		names, files = append(names, t.IndexName()), append(files, t.files.index)
	}
	b := mergedIndex(names, files)
	full := l.folder(tasks[0])
	err := status.ReplaceFile(filepath.Join(full, merged), b)
	if err == nil {
		err = store.SyncDir(full)
	}
	for !tasks[0].outside && err == nil && len(full) > len(filepath.Clean(l.dir)) { // newly created directories, too
		full = filepath.Dir(full)
		err = store.SyncDir(full)
	}
	return int64(len(b)), err
}

// Abort removes what was written; after a successful Close it does nothing.
func (l *Load) Abort(ctx context.Context) error {
	if l.done {
		return nil
	}
	l.done = true
	defer l.unlock()
	defer l.coder.release()
	l.abandon()
	var errs []error
	errs = append(errs, removeSegment(l.dir, l.segment, l.stamp), l.removeOutside(), l.stream.remove())
	errs = append(errs, changeStatus(ctx, l.dir, func(s *status.StatusFile) error {
		s.Remove(func(e status.StatusEntry) bool {
			return e.Text("loadName") == l.segment && e.Loading()
		})
		return nil
	}))
	return errors.Join(errs...)
}

// overwrite is the Load.then of a load that replaces other rows: all rows, or those of its partition.
func (l *Load) overwrite(_ *Load, s *status.StatusFile, _ status.StatusEntry) error {
	if l.place != nil {
		_, err := dropPlaces(l.dir, *s, l.segment, l.stamp, false, l.place.has)
		return err
	}
	for _, x := range *s {
		if e := status.StatusEntry(x); e.Counts() && e.Text("loadName") != l.segment {
			e["loadStatus"], e["modificationOrDeletionTimestamp"] = status.StatusDeleted, status.FormatMillis(l.stamp)
		}
	}
	return nil
}
