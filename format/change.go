package format

import (
	"context"
	"iter"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/store"
)

// Changer is how the tables of a format are changed in place. A nil function means "this format does not do
// that": the front then says so, by the format's name. Every change is one step for who reads the table: it is
// there as a whole or not at all. With dry nothing is written, not even a lock; what would be done is checked
// as far as that goes, and reported.
//
// What needs rows found (by a predicate, by segment) is found by the front, with Open and the options that
// Positions and Only give.
type Changer struct {
	// Locate finds the table that a name means. A name that can mean none is Invalid; a table that is not there is an
	// error unless fresh says that it is to be made.
	Locate func(ctx context.Context, tree store.Tree, name string, fresh bool) (TablePlace, error)
	// Create makes an empty table with the columns of sc.
	Create func(ctx context.Context, p TablePlace, sc *arrow.Schema, s TableSpec, dry bool) error
	// Drop removes a table with all its files.
	Drop func(ctx context.Context, p TablePlace, dry bool) (Dropped, error)
	// Lock keeps other deletes, updates and compactions from the table until unlock is called.
	Lock func(ctx context.Context, p TablePlace) (unlock func(), err error)
	// Append begins a load of rows with schema sc, whose fields are found by name.
	Append func(ctx context.Context, p TablePlace, sc *arrow.Schema, o LoadOptions) (Load, error)
	// CheckAppend is an error if Append would refuse such rows or options before it has seen a row.
	CheckAppend func(ctx context.Context, p TablePlace, sc *arrow.Schema, o LoadOptions) error
	// Alters are the columns whose values Append changes because options ask for it; nil: none.
	Alters func(p TablePlace, sc *arrow.Schema, o LoadOptions) ([]Alteration, error)
	// CheckText is an error if a text is no value of a column; Append reads texts in the same way.
	CheckText func(p TablePlace, column, text string) error
	// Delete deletes rows and, in the same change, adds those that were written to l, which Append began; nil:
	// none. The lock is held.
	Delete func(ctx context.Context, p TablePlace, rows []RowsOfFile, l Load) (int64, error)
	// DeleteSegments takes whole segments out of the table.
	DeleteSegments func(ctx context.Context, p TablePlace, names []string, dry bool) error
	// PlanCompaction says which segments become one; none: nothing is to be done. The lock is held.
	PlanCompaction func(p TablePlace, o CompactOptions) ([]Compaction, error)
	// Compact begins to make one segment of several; the caller gives it the rows of these. The lock is held.
	Compact func(ctx context.Context, p TablePlace, sc *arrow.Schema, c Compaction, major bool) (Load, error)
	// MergeIndexes makes one index file of several of the segments that are named, or of all.
	MergeIndexes func(ctx context.Context, p TablePlace, segments []string, dry bool) (IndexMerge, error)
	// AddColumn adds a column; rows that are there have the default, a text, or null if there is none.
	AddColumn func(ctx context.Context, p TablePlace, f arrow.Field, def *string, dry bool) error
	// DropColumn takes a column out of the table.
	DropColumn func(ctx context.Context, p TablePlace, name string, dry bool) error
	// Clean removes what is no part of the table any more.
	Clean func(ctx context.Context, p TablePlace, dry bool) (Cleaned, error)
	// Segments lists the segments of a table, in the order of their making. Options are those of Open.
	Segments func(ctx context.Context, t Target, o OpenOptions) ([]Segment, error)

	// Positions are the reading options with which two columns follow those of the table: the name of a row's file
	// (utf8), and its number in that (int64), as RowsOfFile has them.
	Positions map[string]string
	// PositionColumns are the names of these two.
	PositionColumns [2]string
	// Only are the reading options with which only these segments are read, also such as do not count yet.
	Only func(segments []string) map[string]string
}

// TablePlace is where a table is, or is to be: a directory of the local file system.
type TablePlace struct {
	Dir   string `json:"dir"`
	Store string `json:"store,omitempty"` // the directory of the databases; "": it is not known
}

// TableSpec says what a new table is, besides its columns. Names are those of columns.
type TableSpec struct {
	SortColumns []string `json:"sort_columns,omitempty"`
	Inverted    []string `json:"inverted,omitempty"` // sort columns with an inverted index
	// strings that may be longer than the format's usual ones
	LongStrings []string          `json:"long_strings,omitempty"`
	Partition   []string          `json:"partition,omitempty"` // a directory for each value
	BucketBy    []string          `json:"bucket_by,omitempty"`
	Buckets     int               `json:"buckets,omitempty"` // 0: none
	Properties  map[string]string `json:"properties,omitempty"`
}

// MetaType is the key of a field's metadata that says which of a format's types a column has, where several are
// the same in Arrow: CarbonData's "varchar".
const MetaType = "stoa.type"

// LoadOptions are those of a load.
type LoadOptions struct {
	Opts       map[string]string // as Create's; the table's properties hold where they say nothing
	Tasks      int               // data files that are written side by side; 0: one
	Dictionary string            // how columns with a global dictionary get their codes; "": the format's usual way

	// Again are the rows of the load once more, for ways that read all of them before they are loaded; nil:
	// there are none.
	Again func() iter.Seq2[arrow.RecordBatch, error]
	// Check is asked about the segment when all of it is written, before it counts; nil: nobody is. After an error the
	// load has failed.
	Check func(ctx context.Context, segment string) error
}

// Load is rows that are being added to a table. They are not seen before Close returned nil; after an error the caller
// calls Abort, which does nothing after that Close.
type Load interface {
	Write(ctx context.Context, b arrow.RecordBatch) error
	Close(ctx context.Context) (LoadSummary, error)
	Abort(ctx context.Context) error
}

// LoadSummary reports what a load wrote.
type LoadSummary struct {
	Segment    string   `json:"segment"`
	Rows       int64    `json:"rows"`
	DataBytes  int64    `json:"data_bytes"`
	IndexBytes int64    `json:"index_bytes"`
	Files      []string `json:"files"` // data files, below the table's directory
}

// RowsOfFile are rows of a data file: their numbers in it, ascending, deleted ones counted.
type RowsOfFile struct {
	File string  `json:"file"` // as the column of Changer.Positions gives it
	Rows []int64 `json:"rows"`
}

// CompactOptions say which segments become one. The zero value is a minor compaction: a few loads each, as the
// format's own rules say.
type CompactOptions struct {
	Major    bool     `json:"major,omitempty"`    // all of them
	Segments []string `json:"segments,omitempty"` // these
}

// Compaction is segments that become one.
type Compaction struct {
	From []string `json:"from"` // oldest first
	To   string   `json:"to"`
}

// IndexMerge is what MergeIndexes did, or would do.
type IndexMerge struct {
	Segments []string `json:"segments"` // that had single index files
	Files    int      `json:"files"`    // index files that became one a directory
}

// Cleaned is what Clean removed, or would remove.
type Cleaned struct {
	Segments []string `json:"segments"` // that are no entries of the table any more
	Files    []string `json:"files"`    // below the table's directory
	Bytes    int64    `json:"bytes"`
}

// Dropped is what Drop removed, or would remove.
type Dropped struct {
	Dir   string `json:"dir"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Segment is what one load added to a table, or what several loads were compacted into.
type Segment struct {
	Name       string
	Status     string    // as the table has it: Success, Compacted, Marked for Delete, …
	Read       bool      // it counts: a reader without options reads it
	Began      time.Time // of the load; zero if it is not said
	Ended      time.Time
	Changed    time.Time // when it was last merged, deleted or updated; zero if it never was
	Files      int       // data files that are there; -1 not known
	Rows       int64     // in them, deleted ones too; -1 not known: only reading reports
	Deleted    int64     // rows of them that are deleted
	Data       int64     // bytes of data files; -1 not known
	Index      int64     // bytes of index files; -1 not known
	MergedInto string    // the segment that has its rows now
	Merged     []string  // the segments whose rows it has
	Format     string    // "" is the table's own
	Path       string    // "" is the usual place
	// why its files cannot be listed; nil if they can, or if it does not count and was cleaned away
	Err error
}
