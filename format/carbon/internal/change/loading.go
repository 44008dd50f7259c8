package change

import (
	"context"
	"strings"

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
