package kudu

import (
	"strconv"
	"time"

	"stoa/format/kudu/internal/table"
)

// Moment is a time of a table's history: a hybrid time as an integer, or a time as RFC 3339 has it.
type Moment = table.Moment

// AtTime is a time of the calendar.
func AtTime(t time.Time) Moment { return Moment(t.UTC().Format(time.RFC3339Nano)) }

// AtHybrid is a hybrid time, as Kudu's operations carry it.
func AtHybrid(t uint64) Moment { return Moment(strconv.FormatUint(t, 10)) }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	At        Moment   // the table as it was then: operations before are seen; "": the latest state
	NoWAL     bool     // rows and changes that are only in the write-ahead log are not read
	Tablet    string   // the id of the only tablet that is read; "": all are
	Partial   bool     // tablets may be missing, and history that was removed is the oldest state
	Unclaimed bool     // blocks with rows that no superblock names may lie there: what they are is known
	Live      bool     // a server may run on the directories; what it does meanwhile may show as damage
	Schema    string   // a file, as stoa schema -f json prints it: the blocks that no superblock names are read with it
	WALDir    string   // the directory that holds wals/; "": it is looked for
	DataDirs  []string // the directories that hold data/; nil: they are looked for
	MetaDir   string   // the directory that holds tablet-meta/; "": it is looked for
}

// Strings are the options as --source-opt has them.
func (o ReadOptions) Strings() map[string]string {
	s := table.ReadOptions(o)
	return table.ReadTable.Strings(&s)
}

// Formats are those that have the options.
func (ReadOptions) Formats() []string { return []string{Format.Name} }
