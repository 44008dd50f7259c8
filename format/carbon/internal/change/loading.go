package change

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"
	"stoa/store"

	"github.com/apache/arrow-go/v18/arrow"
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

	segment string     // "": the next number
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

	place *partitionMatch // of o.Partition; nil: any

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
	dir    string // relative to the table
	values []string
	sort   *datafile.Sorter
	files  *filePlace
}

// fieldOf is the array of a column; nil if the rows do not have it.
func (l *Load) fieldOf(b arrow.RecordBatch, c *layout.ColumnSchema) arrow.Array {
	for i, f := range l.sc.Fields() {
		if strings.EqualFold(f.Name, c.Name) {
			return b.Column(i)
		}
	}
	return nil
}

// LoadSummary reports what a load wrote.
type LoadSummary = format.LoadSummary

// streamTask writes the one file of a segment of rows.
type streamTask struct {
	w     *datafile.StreamWriter
	files *filePlace
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
