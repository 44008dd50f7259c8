package kudu

import (
	"strconv"
	"time"

	"stoa/format/kudu/internal/table"
)

// Moment is the time of a snapshot: a hybrid time as an integer, an RFC 3339 time, a day as 2006-01-02, or First or
// Last.
type Moment = table.Moment

// AtTime returns the snapshot at a calendar time, which includes the operations before it.
func AtTime(t time.Time) Moment { return Moment(t.UTC().Format(time.RFC3339Nano)) }

// AtHybrid returns the snapshot at a hybrid time, which includes the operations before it.
func AtHybrid(t uint64) Moment { return Moment(strconv.FormatUint(t, 10)) }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	At        Moment   // read the table as of this moment; "": the latest state
	NoWAL     bool     // do not read rows and changes that are only in the write-ahead log
	Tablet    string   // the id of the only tablet to read; "": all
	Partial   bool     // missing tablets are not reported, and if history was removed, the oldest known state is read
	Unclaimed bool     // blocks with rows that no superblock names are not reported
	Live      bool     // a server may be running on the directories; its writes may look like damage
	Schema    string   // file written by stoa schema -f json: read the blocks that no superblock names with this schema
	WALDir    string   // the directory that holds wals/; "": search for it
	DataDirs  []string // the directories that hold data/; nil: search for them
	MetaDir   string   // the directory that holds tablet-meta/; "": search for it
	Keys      string   // of encrypted servers: "default", or a file; "": there are none
}

// Strings are the options as strings, by name: the form of stoa.OpenOptions.Opts.
func (o ReadOptions) Strings() map[string]string {
	s := table.ReadOptions(o)
	return table.ReadTable.Strings(&s)
}

// Formats are the names of the formats that have the options.
func (ReadOptions) Formats() []string { return []string{Format.Name} }
