package change

import (
	"context"
	"strings"

	"stoa/format"
	"stoa/format/carbon/internal/datafile"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/format/carbon/internal/status"

	"github.com/apache/arrow-go/v18/arrow"
)

// LoadOptions are those of a load.
type LoadOptions struct {
	Opts  map[string]string // as Create's; the table's properties hold where they say nothing
	Tasks int               // data files that are written side by side; 0: one

	Dictionary DictionaryWay // how columns with a global dictionary get their codes

	// Check is asked about the segment when all of it is written, before tablestatus says that it counts; nil:
	// nobody is. After an error the load has failed.
	Check func(ctx context.Context, segment string) error

	segment string // "" the next number
	hidden  bool   // no entry in tablestatus until the commit: what is written belongs to another change
}

// Load is a new segment of a table that is being written. It is not seen before Close returned nil.
type Load struct {
	dir     string
	o       LoadOptions
	wo      schema.WriteOptions
	schema  *layout.TableSchema
	list    []layout.ColumnSchema
	sc      *arrow.Schema
	fields  []int         // field of each stored top-level column; -1: the rows have none
	coder   *coder        // of columns with global dictionaries; nil: there are none
	coded   *arrow.Schema // of what it makes of the rows
	segment string
	stamp   int64
	unlock  func() // of the segment's lock

	tasks map[string]*loadTask
	order []*loadTask
	next  int // the task that takes the next batch
	rows  int64
	held  int64 // bytes of rows that are to be sorted
	done  bool
	// changes more of tablestatus in the same rename
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

// fieldOf is the array of a column; nil if the rows have none.
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
