package format

import (
	"context"
	"iter"
	"time"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/store"
)

// Changer changes the tables of a format in place. A nil function means that the format does not support the change;
// the front then reports that, with the format's name. To a reader of the table each change happens as a whole or not
// at all. With dry, nothing is written, not even a lock: the change is checked as far as possible, and what it would do
// is returned.
//
// The front finds the rows to be changed (by a predicate, by segment), with Open and the options in Positions and Only.
type Changer struct {
	// Locate finds the table that a name refers to. A name that no table can have is Invalid; a table that does not
	// exist is an error unless fresh says that it will be created.
	Locate func(ctx context.Context, tree store.Tree, name string, fresh bool) (TablePlace, error)
	// Create creates an empty table with the columns of sc.
	Create func(ctx context.Context, p TablePlace, sc *arrow.Schema, s TableSpec, dry bool) error
	// Drop removes a table with all its files.
	Drop func(ctx context.Context, p TablePlace, dry bool) (Dropped, error)
	// Lock keeps out other deletes, updates and compactions of the table until unlock is called.
	Lock func(ctx context.Context, p TablePlace) (unlock func(), err error)
	// Append begins a load of rows with schema sc, whose fields are matched by name.
	Append func(ctx context.Context, p TablePlace, sc *arrow.Schema, o LoadOptions) (Load, error)
	// CheckAppend returns the error with which Append would refuse this schema or these options for any rows.
	CheckAppend func(ctx context.Context, p TablePlace, sc *arrow.Schema, o LoadOptions) error
	// Misfits returns a function that finds the values, in batches of this schema, because of which Append would refuse
	// their rows.
	Misfits func(ctx context.Context, p TablePlace, sc *arrow.Schema, o LoadOptions) (
		func(b arrow.RecordBatch) []Misfit, error)
	// Alters returns the columns whose values Append changes because options ask for it; nil means none.
	Alters func(p TablePlace, sc *arrow.Schema, o LoadOptions) ([]Alteration, error)
	// CheckText returns an error if a text is not a value of a column. Append converts texts by the same rules.
	CheckText func(p TablePlace, column, text string) error
	// Delete deletes rows and, in the same change, adds those written to l, which was returned by Append; l may be nil.
	// The lock must be held.
	Delete func(ctx context.Context, p TablePlace, rows []RowsOfFile, l Load) (int64, error)
	// CheckDelete returns the error with which Delete would refuse these rows.
	CheckDelete func(ctx context.Context, p TablePlace, rows []RowsOfFile) error
	// DeleteSegments removes whole segments from the table.
	DeleteSegments func(ctx context.Context, p TablePlace, names []string, dry bool) error
	// PlanCompaction returns which segments would be merged; an empty result means that there is nothing to do. The
	// lock must be held.
	PlanCompaction func(p TablePlace, o CompactOptions) ([]Compaction, error)
	// Compact begins to merge several segments into one; the caller writes their rows to the Load. The lock must be
	// held.
	Compact func(ctx context.Context, p TablePlace, sc *arrow.Schema, c Compaction, major bool) (Load, error)
	// MergeIndexes merges the index files of each directory into one, in the named segments or, without names, in all.
	MergeIndexes func(ctx context.Context, p TablePlace, segments []string, dry bool) (IndexMerge, error)
	// AddColumn adds a column. Existing rows get the default, which is text, or null if def is nil.
	AddColumn func(ctx context.Context, p TablePlace, f arrow.Field, def *string, dry bool) error
	// DropColumn removes a column from the table.
	DropColumn func(ctx context.Context, p TablePlace, name string, dry bool) error
	// AlterColumn changes a column's name, or its type to a wider one.
	AlterColumn func(ctx context.Context, p TablePlace, c ColumnChange, dry bool) error
	// SetProperties sets properties of the table; a nil value removes one.
	SetProperties func(ctx context.Context, p TablePlace, props map[string]*string, dry bool) error
	// Rename moves a table to another place, which must not exist.
	Rename func(ctx context.Context, p, to TablePlace, dry bool) error
	// Truncate removes all segments from the table and returns their names. The lock must be held.
	Truncate func(ctx context.Context, p TablePlace, dry bool) ([]string, error)
	// AddPartition creates a partition without rows or, with a location, adds the partition in that directory as a
	// segment. It returns the name of the segment.
	AddPartition func(ctx context.Context, p TablePlace, of PartitionValues, location string, dry bool) (string, error)
	// DropPartition removes the rows of the partitions that have these values. The lock must be held.
	DropPartition func(ctx context.Context, p TablePlace, of PartitionValues, dry bool) (DroppedPartitions, error)
	// AddSegment makes the files of a directory a segment of the table, where they are, and returns its name.
	AddSegment func(ctx context.Context, p TablePlace, s NewSegment, dry bool) (string, error)
	// Clean removes files that no longer belong to the table.
	Clean func(ctx context.Context, p TablePlace, dry bool) (Cleaned, error)
	// DisableDependents marks whatever the format's system keeps beside the table, computed from its rows, as out of
	// date, and returns the names. Changes of a table with such dependents are refused unless TablePlace.Disabled is
	// set.
	DisableDependents func(ctx context.Context, p TablePlace, dry bool) ([]string, error)
	// Segments lists the segments of a table in the order in which they were made. Options are those of Open.
	Segments func(ctx context.Context, t Target, o OpenOptions) ([]Segment, error)

	// Positions are reading options that add two columns after those of the table: the name of each row's file (utf8),
	// and the row's number in it (int64), as RowsOfFile has them.
	Positions map[string]string
	// PositionColumns are the names of these two columns.
	PositionColumns [2]string
	// External are reading options that also read what a table refers to outside of its directory. A change of a table
	// that was opened with them has TablePlace.External.
	External map[string]string
	// Only returns the reading options that read only these segments, including uncommitted ones.
	Only func(segments []string) map[string]string

	// Stored says how tables in remote stores are changed; nil: tables are changed on a disk only.
	Stored *StoredTable
}

// StoredTable says what the files of a table in a remote store are. A change there is made in a local working copy,
// whose files then become visible one after the other, the last one by compare-and-swap. Names are relative to the
// table's directory.
type StoredTable struct {
	// Whole reports whether a change reads a file not through TablePlace.Tree but as a local one.
	Whole func(name string) bool
	// Rank is the order in which changed files become visible: those of rank 0 in any order, as nothing refers to them
	// yet; then the others, one by one. The last one makes the change visible. Files are removed in the reverse order.
	Rank func(name string) int
	// Local reports whether a file has no meaning in a store, such as a lock of local processes.
	Local func(name string) bool
	// Locks are the files that the format's own programs lock while they change a table in a store that has locks.
	Locks []string
	// Held reports whether a local lock that a change holds until it ends is one that those programs look at, too.
	Held func(name string) bool
}

// Publisher makes visible what a change has done to a working copy so far, for changes that have several steps. See
// PublisherOf.
type Publisher interface {
	// Refresh brings the copy up to date, if the change can be made whatever others have changed meanwhile. The named
	// files, relative to the table's directory, are then those of the store, even if they were changed.
	Refresh(ctx context.Context, names ...string) error
	// Publish makes the changed files visible. store.ErrChanged: somebody else has changed the table; after Refresh the
	// change can be tried again.
	Publish(ctx context.Context) error
}

type publisherKey struct{}

// WithPublisher returns a context for a change of a working copy.
func WithPublisher(ctx context.Context, p Publisher) context.Context {
	return context.WithValue(ctx, publisherKey{}, p)
}

// PublisherOf returns the Publisher of a change; nil: it changes the table itself.
func PublisherOf(ctx context.Context) Publisher {
	p, _ := ctx.Value(publisherKey{}).(Publisher)
	return p
}

// TablePlace is the location of an existing or a new table: a directory of the local file system.
type TablePlace struct {
	Dir string `json:"dir"`
	// Tree has the table's files, in Dir, for reading; nil: the local file system.
	Tree  store.Tree `json:"-"`
	Store string     `json:"store,omitempty"` // the directory of the databases; "": unknown
	// External: also read what the table refers to outside of its directory, such as segments that were added.
	External bool `json:"external,omitempty"`
	// Kept: in a remote store, Clean keeps files that were written later, as a writer may be about to commit them.
	Kept time.Time `json:"-"`
	// Disabled: the dependents of the table's rows are disabled, see Changer.DisableDependents.
	Disabled bool `json:"disabled,omitempty"`
}

// TableSpec is the definition of a new table besides its columns. All names are names of columns.
type TableSpec struct {
	SortColumns []string `json:"sort_columns,omitempty"`
	Inverted    []string `json:"inverted,omitempty"` // sort columns with an inverted index
	// strings that may be longer than the format usually allows
	LongStrings []string          `json:"long_strings,omitempty"`
	Partition   []string          `json:"partition,omitempty"` // one directory per value
	BucketBy    []string          `json:"bucket_by,omitempty"`
	Buckets     int               `json:"buckets,omitempty"` // 0: not bucketed
	Properties  map[string]string `json:"properties,omitempty"`
}

// MetaType is the metadata key of a field whose value names the column's type in the format, where several of its types
// correspond to one Arrow type: CarbonData's "varchar".
const MetaType = "stoa.type"

// MetaComment is the key of a field's metadata with the column's comment.
const MetaComment = "stoa.comment"

// MetaComputed is the key of a field's metadata with the columns from which loads compute it, if the rows lack it.
const MetaComputed = "stoa.computed"

// Dependents is the key of the fact that lists what its system computes from the rows of a table, such as indexes and
// views.
const Dependents = "dependents"

// IndexTables are one kind of dependents: tables with some of the columns of another, and the positions of its rows.
const IndexTables = "secondary index tables"

// PartitionValues maps the names of partition columns to values; nil means null.
type PartitionValues map[string]*string

// DroppedPartitions are partitions that no longer belong to a table.
type DroppedPartitions struct {
	Partitions []string `json:"partitions"` // NAME=VALUE/NAME=VALUE, like their directories
	Segments   []string `json:"segments"`   // with rows in these partitions
}

// ColumnChange says how to change a column.
type ColumnChange struct {
	Column string       `json:"column"`
	Name   string       `json:"name,omitempty"` // the new name; "": unchanged
	Type   *arrow.Field `json:"-"`              // has the new type; nil: unchanged
}

// NewSegment is a directory of files that becomes a segment.
type NewSegment struct {
	Path   string `json:"path"`
	Format string `json:"format,omitempty"` // of the files; "": the table's own
}

// LoadOptions are the options of a load.
type LoadOptions struct {
	// Overwrite: the load replaces all other rows, or those in Partition. The lock is held.
	Overwrite bool
	Partition PartitionValues // all rows are in this partition

	Opts       map[string]string // as Create's; the table's properties supply the defaults
	Tasks      int               // data files that are written in parallel; 0 means one
	Set        []string          // columns that an update sets, in rows of the table
	Dictionary string            // how columns with a global dictionary get their codes; "": the format's default

	// Again returns the rows of the load once more, for dictionary modes that read all of them before loading; nil: the
	// rows can only be read once.
	Again func() iter.Seq2[arrow.RecordBatch, error]
	// Check is called with the segment after it was written and before it is committed. An error fails the load. nil:
	// nothing is checked.
	Check func(ctx context.Context, segment string) error

	DryRun bool // of Misfits: it also finds the rows of which no value is wrong that Append would refuse
}

// Misfit is a value of a row that does not fit its column in a table.
type Misfit struct {
	Row    int    `json:"row"`    // index in the batch
	Column string `json:"column"` // of the table
	Reason string `json:"reason"`
}

// Load adds rows to a table. They become visible when Close returns nil. After an error the caller calls Abort, which
// does nothing after such a Close.
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
	Files      []string `json:"files"` // data files, relative to the table's directory
}

// RowsOfFile are rows of a data file by their numbers in it, ascending; deleted rows count in the numbering.
type RowsOfFile struct {
	File string  `json:"file"` // as in the file column of Changer.Positions
	Rows []int64 `json:"rows"`
}

// CountRows returns how many rows there are in a list.
func CountRows(list []RowsOfFile) (n int64) {
	for _, f := range list {
		n += int64(len(f.Rows))
	}
	return n
}

// CompactOptions say which segments to merge. The zero value is a minor compaction, which merges a few loads at a time
// by the format's own rules.
type CompactOptions struct {
	Major    bool     `json:"major,omitempty"`    // merge all segments, as far as the policy permits it
	Segments []string `json:"segments,omitempty"` // merge these
	// Streams rewrites each finished segment of a stream as an ordinary one, and with Close also those to which no
	// stream appends at the moment.
	Streams bool `json:"streams,omitempty"`
	Close   bool `json:"close,omitempty"`
	// Settings is a file with the format's settings, such as carbon.properties, which may have a policy. "": the
	// table's own policy, or the default.
	Settings string `json:"settings,omitempty"`
}

// Compaction names segments that are merged into one.
type Compaction struct {
	From []string `json:"from"` // oldest first
	To   string   `json:"to"`   // of a stream: the expected name; Load.Close returns the actual one
}

// IndexMerge reports what MergeIndexes did, or with dry would do.
type IndexMerge struct {
	Segments []string `json:"segments"` // whose index files were merged
	Files    int      `json:"files"`    // index files that were merged
}

// Cleaned reports what Clean removed, or with dry would remove.
type Cleaned struct {
	Segments []string `json:"segments"` // whose entries were removed from the table
	Files    []string `json:"files"`    // relative to the table's directory
	Bytes    int64    `json:"bytes"`
}

// Dropped reports what Drop removed, or with dry would remove.
type Dropped struct {
	Dir   string `json:"dir"`
	Files int64  `json:"files"`
	Bytes int64  `json:"bytes"`
}

// Segment is the rows that one load added to a table, or that a compaction made of several loads.
type Segment struct {
	Name       string
	Status     string    // in the table's terms: Success, Compacted, Marked for Delete, …
	Read       bool      // read by default
	Began      time.Time // when the load began; zero if not known
	Ended      time.Time
	Changed    time.Time // when it was last merged, deleted or updated; zero: never
	Files      int       // data files that exist; -1: not known
	Rows       int64     // in these files, including deleted ones; -1: known only by reading
	Deleted    int64     // how many of Rows are deleted
	Data       int64     // bytes of data files; -1: not known
	Index      int64     // bytes of index files; -1: not known
	MergedInto string    // the segment that has its rows now
	Merged     []string  // the segments whose rows it has
	Format     string    // "": the table's own
	Path       string    // "": the usual place
	// why its files cannot be listed; nil if they can, or if the segment is inactive and its files were cleaned up
	Err error
}
