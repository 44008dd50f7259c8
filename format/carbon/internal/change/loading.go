package change

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/store"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// LoadOptions are the options of a load.
type LoadOptions struct {
	Opts  map[string]string // options of Create; the table's properties apply to those not set
	Tasks int               // number of data files written at the same time; 0: one

	Dictionary DictionaryWay // how columns with a global dictionary get their codes

	// With Overwrite the load replaces all other segments, or the partitions with the values in Partition. The caller
	// holds the lock of updates.
	Overwrite bool
	Partition format.PartitionValues // values that all rows must have

	// Check, if not nil, is called after the segment is written and before the commit. If it fails, so does the load.
	Check func(ctx context.Context, segment string) error

	Set []string // columns that an update sets

	segment string     // "": the next number
	kept    bool       // the rows are those of other segments
	hidden  bool       // no entry in tablestatus before the commit
	tree    store.Tree // has the table's files; nil: the local file system
}

// Load is a new segment of a table that is being written. It is invisible until Close has returned nil. It is a
// format.Load.
type Load struct {
	dir     string
	o       LoadOptions
	wo      schema.WriteOptions
	schema  *layout.TableSchema
	list    []layout.ColumnSchema
	sc      *arrow.Schema
	fields  []int         // field of each stored top-level column; -1: the rows lack it
	coder   *coder        // nil: there are no columns with a global dictionary
	coded   *arrow.Schema // schema of the rows after coder
	segment string
	stamp   int64  // milliseconds since 1970
	unlock  func() // of the segment's lock

	stream streamTask // of a load of rows
	ranges rowRanges  // of a load into a table with a range column

	place *partitionMatch       // of o.Partition; nil: any
	known map[string]knownPlace // see knownPlaces

	spatial *layout.Spatial // the geohash index that the load computes or checks; nil: none

	tasks map[string]*loadTask
	order []*loadTask
	next  int // task that gets the next batch
	rows  int64
	held  int64 // bytes of rows in the sorters of all tasks
	done  bool
	// then makes further changes to tablestatus in the same commit
	then func(l *Load, s *status.StatusFile, entry status.StatusEntry) error
}

// loadTask writes the files of one task, bucket and partition.
type loadTask struct {
	*datafile.TaskWriter
	dir     string // relative to the table or, outside of it, the location as the segment files have it
	outside bool
	values  []string
	sort    *datafile.Sorter
	files   *filePlace
}

// setPlace sets the directory of a task with a partition, the one that the partition has if there is one.
func (l *Load) setPlace(t *loadTask) error {
	of := strings.Join(t.values, "/")
	if known, ok := l.known[of]; ok {
		t.values, t.dir, t.outside = known.values, known.outside, known.outside != ""
	}
	if !t.outside {
		t.dir = "/" + strings.Join(t.values, "/")
		return nil
	}
	if l.o.tree != nil || !filepath.IsAbs(localName(t.dir)) {
		return fault.Unsupportedf(fault.Span{Object: l.dir}, "", "the partition %s is at %s: rows are added to "+
			"partitions outside of a table only in the local file system", of, t.dir)
	}
	return nil
}

// folder returns the name of a task's directory.
func (l *Load) folder(t *loadTask) string {
	if t.outside {
		return localName(t.dir)
	}
	return filepath.Join(l.dir, t.dir)
}

// shown returns the name of a file of the task, relative to the table if it is in it.
func (t *loadTask) shown(name string) string {
	if t.outside {
		return filepath.Join(localName(t.dir), name)
	}
	return filepath.Join(t.dir, name)[1:]
}

// removeOutside removes the load's files outside of the table.
func (l *Load) removeOutside() (err error) {
	for _, t := range l.order {
		if !t.outside {
			continue
		}
		list, failed := os.ReadDir(l.folder(t))
		for _, d := range list {
			if of, ms := status.SegmentOf(d.Name()); of == l.segment && ms == l.stamp {
				failed = errors.Join(failed, os.Remove(filepath.Join(l.folder(t), d.Name())))
			}
		}
		err = errors.Join(err, failed)
	}
	return err
}

// fieldOf is the array of a column; nil if the rows do not have it.
func (l *Load) fieldOf(b arrow.RecordBatch, c *layout.ColumnSchema) arrow.Array {
	return l.fieldIn(b, c.Name)
}

// LoadSummary reports what a load wrote.
type LoadSummary = format.LoadSummary

// streamTask writes the one file of a segment of rows.
type streamTask struct {
	w     *datafile.StreamWriter
	files *filePlace
}

// remove removes the files of the segment: no load has its number, and their names have no time.
func (s *streamTask) remove() error {
	if s.files == nil {
		return nil
	}
	var errs []error
	for _, name := range []string{datafile.StreamIndexName, s.w.Name()} {
		if err := os.Remove(filepath.Join(s.files.dir, name)); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	_ = os.Remove(s.files.dir) // fails unless it is empty
	return errors.Join(errs...)
}

// fitsStream returns an error if the table cannot have a segment of rows, by the rules of CarbonData.
func (l *Load) fitsStream() error {
	at := fault.Span{Object: l.dir}
	switch {
	case !strings.EqualFold(l.schema.Properties["streaming"], "true"):
		return fault.Invalidf("%s: a segment of rows needs the table property streaming=true", l.dir)
	case l.schema.Partition != nil:
		return fault.Unsupportedf(at, "", "a segment of rows in a table with partitions")
	case l.schema.Buckets > 0:
		return fault.Unsupportedf(at, "", "a segment of rows in a table with buckets")
	case l.o.Overwrite:
		return fault.Unsupportedf(at, "", "overwriting with a segment of rows")
	}
	l.then = func(_ *Load, _ *status.StatusFile, e status.StatusEntry) error {
		e["fileFormat"] = rowFormat
		if l.rows > 0 { // nobody appends to it, and CarbonData's hand-off takes it
			e["loadStatus"] = status.StatusFinish
		}
		return nil
	}
	p, err := datafile.NewPlan(l.list, &l.wo, l.stamp)
	if err == nil {
		err = datafile.FitsStream(p)
	}
	return err
}

// addStream adds rows to the segment's one file.
func (l *Load) addStream(ctx context.Context, b arrow.RecordBatch) error {
	if l.stream.w == nil {
		p, err := datafile.NewPlan(l.list, &l.wo, l.stamp)
		if err != nil {
			return err
		}
		p.Segment = l.segment
		dir := filepath.Join(l.dir, "Fact", "Part0", "Segment_"+l.segment)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		l.stream.files = &filePlace{dir: dir, sizes: map[string]int64{}, own: true}
		if l.stream.w, err = datafile.NewStream(ctx, p, l.stream.files); err != nil {
			return err
		}
	}
	before := l.rows
	l.rows += b.NumRows()
	return datafile.Located(l.stream.w.Add(ctx, b, l.fields), before)
}

// closeStream commits a load of rows.
func (l *Load) closeStream(ctx context.Context, sum *LoadSummary) error {
	if err := l.stream.w.Close(ctx); err != nil {
		return err
	}
	for dir := l.stream.files.dir; len(dir) > len(filepath.Clean(l.dir)); dir = filepath.Dir(dir) {
		if err := store.SyncDir(dir); err != nil {
			return err
		}
	}
	for _, name := range layout.SortedKeys(l.stream.files.sizes) {
		n := l.stream.files.sizes[name]
		if strings.HasSuffix(name, layout.IndexExt) {
			sum.IndexBytes += n
			continue
		}
		sum.DataBytes += n
		sum.Files = append(sum.Files, filepath.Join("Fact", "Part0", "Segment_"+l.segment, name))
	}
	return l.enter(ctx, sum, "", status.FormatMillis)
}

// rowRanges has the rows of a load into a table with a range column, sorted by it. When all have come, they are cut
// into ranges with equal numbers of rows; each goes to a task of its own, which sorts it by the table's sort columns.
// So a filter on the column reads few files, even if it is no sort column. CarbonData's loads do the same with bounds
// from a sample of the rows.
type rowRanges struct {
	column string // ""; there are no ranges
	sort   *datafile.Sorter
}

// rangeFiles is the number of full data files for which CarbonData makes one range (its load option SCALE_FACTOR).
const rangeFiles = 3

// rangeColumn returns the name of the table's range column; "" if it has none, or the rows do not have it.
func (l *Load) rangeColumn(roots []*schema.Column) string {
	want := l.schema.Properties[rangeColumn]
	for i, r := range roots {
		if want != "" && strings.EqualFold(r.Name, want) && l.fields[i] >= 0 {
			return r.Name
		}
	}
	return ""
}

// memory is the number of bytes that the sorters of the tasks may hold together. With ranges it is half of the option,
// because the rows go to the tasks while the sorter of the ranges still holds as many.
func (l *Load) memory() int64 {
	if l.ranges.column != "" {
		return l.wo.Memory / 2
	}
	return l.wo.Memory
}

// addRange is Write for a table with a range column.
func (l *Load) addRange(ctx context.Context, b arrow.RecordBatch) error {
	before := l.rows
	l.rows += b.NumRows()
	if l.coder != nil {
		coded, err := l.coder.coded(b)
		if err != nil {
			return datafile.Located(err, before)
		}
		defer coded.Release()
		b = coded
	}
	if l.ranges.sort == nil {
		p, err := datafile.NewPlan(l.list, &l.wo, l.stamp)
		if err != nil {
			return err
		}
		dir := filepath.Join(l.dir, "Fact", "Part0", "Segment_"+l.segment)
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		l.ranges.sort, err = datafile.NewSorter(&filePlace{dir: dir}, l.coded, []string{l.ranges.column}, p.Roots,
			l.memory())
		if err != nil {
			return err
		}
		l.coded = l.ranges.sort.Schema()
	}
	err := l.ranges.sort.Add(ctx, b, func(i int) int64 { return before + int64(i) })
	return datafile.Located(err, before)
}

// divide gives each range of the rows to its task: as many ranges as data files are to be written in parallel, or as
// many as CarbonData makes of rows of this size. Equal values may be in two neighbouring ranges.
func (l *Load) divide(ctx context.Context) error {
	if l.ranges.sort == nil {
		return nil
	}
	full := rangeFiles * max(1, l.wo.Block)
	n := max(1, int64(l.o.Tasks), (l.ranges.sort.Total+full-1)/full)
	each := (l.rows + n - 1) / n
	at := int64(0)
	return l.ranges.sort.Each(ctx, func(b arrow.RecordBatch) error {
		for from := int64(0); from < b.NumRows(); {
			k := at / each
			to := min(b.NumRows(), from+(k+1)*each-at)
			if err := l.addPart(ctx, fmt.Sprint(k), b.NewSlice(from, to)); err != nil {
				return err
			}
			at += to - from
			from = to
		}
		return nil
	})
}

// addPart adds sorted rows, which it releases, to the task with a name.
func (l *Load) addPart(ctx context.Context, name string, b arrow.RecordBatch) error {
	defer b.Release()
	t, err := l.task(name, 0, nil)
	if err != nil {
		return err
	}
	err = l.addCoded(ctx, t, b, func(i int) int64 { return datafile.Ordinal(b, i) })
	return datafile.LocatedSorted(err, b)
}

// beginSpatial adds the column of the table's geohash index to those of the rows, if they lack it: the load computes
// it.
func (l *Load) beginSpatial() error {
	x := l.schema.Spatial()
	if x == nil || l.o.kept {
		return nil
	}
	for _, name := range l.o.Set {
		if x.Uses(name) {
			return fault.Invalidf("column %s cannot be set: the index %s is computed once, when rows are loaded",
				name, x.Column)
		}
	}
	l.spatial = x
	if fieldNamed(l.sc, x.Column) < 0 {
		f := arrow.Field{Name: x.Column, Type: arrow.PrimitiveTypes.Int64, Nullable: true}
		l.sc = arrow.NewSchema(append(slices.Clone(l.sc.Fields()), f), nil)
	}
	return nil
}

// withSpatial returns the rows with the values of the geohash index. If they have such a column, its values are kept,
// as CarbonData keeps them, but a null where a value can be computed is Invalid. If they have none, a row without a
// longitude or latitude is Invalid, as in CarbonData, which cannot search for points in a table with such a row.
func (l *Load) withSpatial(b arrow.RecordBatch) (arrow.RecordBatch, error) {
	own := &schema.Column{ColumnSchema: l.schema.FindColumn(l.spatial.Column)}
	n, without := int(b.NumRows()), l.sourceless(b)
	if a := l.fieldIn(b, own.Name); a != nil {
		for i := range n {
			if a.IsNull(i) && without(i) == "" {
				return nil, datafile.InColumn(page.ValueErrorf(i, "null, though %s can be computed: it is, if the "+
					"rows have no such column", own.Name), own)
			}
		}
		b.Retain()
		return b, nil
	}
	var from [2]*page.Cells
	for k, name := range l.spatial.Sources {
		c := &schema.Column{ColumnSchema: l.schema.FindColumn(name)}
		from[k] = page.NewCells(c)
		if a := l.fieldIn(b, name); a != nil {
			if err := from[k].Add(c, a, 0, n, &l.wo); err != nil {
				return nil, datafile.InColumn(err, c)
			}
		}
	}
	ids := array.NewInt64Builder(memory.DefaultAllocator)
	defer ids.Release()
	for i := range n {
		if why := without(i); why != "" {
			return nil, datafile.InColumn(page.ValueErrorf(i, "%s", why), own)
		}
		ids.Append(l.spatial.ID(from[0].Ints[i], from[1].Ints[i]))
	}
	a := ids.NewArray()
	defer a.Release()
	return array.NewRecordBatch(l.sc, append(slices.Clone(b.Columns()), a), b.NumRows()), nil
}

// sourceless returns a function that says why the geohash index of a row cannot be computed; "": it can.
func (l *Load) sourceless(b arrow.RecordBatch) func(i int) string {
	x := l.spatial
	from := [2]arrow.Array{l.fieldIn(b, x.Sources[0]), l.fieldIn(b, x.Sources[1])}
	return func(i int) string {
		for k, a := range from {
			if a == nil || a.IsNull(i) {
				return fmt.Sprintf("%s is null, so the index cannot be computed", x.Sources[k])
			}
		}
		return ""
	}
}

// fieldNamed returns the index of a field; -1 if there is none.
func fieldNamed(sc *arrow.Schema, name string) int {
	return slices.IndexFunc(sc.Fields(), func(f arrow.Field) bool { return strings.EqualFold(f.Name, name) })
}

// fieldIn is the array of a column in rows that may lack the geohash index; nil if they lack the column.
func (l *Load) fieldIn(b arrow.RecordBatch, name string) arrow.Array {
	if i := fieldNamed(l.sc, name); i >= 0 && i < int(b.NumCols()) {
		return b.Column(i)
	}
	return nil
}
