package table

import (
	"math"

	"stoa/format/kudu/internal/fs"
	"stoa/format/option"
)

// Moment is the value of option at: a hybrid time (an integer), an RFC 3339 time, a day, First or Last.
type Moment string

// ReadOptions are the options of Open as a struct; ReadTable documents them.
type ReadOptions struct {
	At        Moment
	NoWAL     bool
	Tablet    string
	Partial   bool
	Unclaimed bool
	Live      bool
	Schema    string
	WALDir    string
	DataDirs  []string
	MetaDir   string
	Keys      string
}

// ReadTable are the options of Open.
var ReadTable = option.Table[ReadOptions]{Format: "kudu", For: "reading", Options: []option.Option[ReadOptions]{
	option.Text("at", "TIME", "read the table as it was at TIME: with all operations before it. TIME is a hybrid time "+
		"(an integer), an RFC 3339 time, a day such as 2026-11-20 (its beginning, UTC), or first or last: after the "+
		"table's first or last operation; default: the latest state",
		func(o *ReadOptions) *Moment { return &o.At }),
	option.Not("wal", "read rows and changes that are only in the write-ahead log (default true)",
		func(o *ReadOptions) *bool { return &o.NoWAL }),
	option.Text("tablet", "ID", "only this tablet", func(o *ReadOptions) *string { return &o.Tablet }),
	option.Bool("partial", "missing tablets are expected: no error finding kudu.tablet.missing; and if the history "+
		"that a snapshot needs was removed, read the oldest known state, with an error finding kudu.history.removed "+
		"(default false)", func(o *ReadOptions) *bool { return &o.Partial }),
	option.Bool("unclaimed", "blocks with rows that no superblock names are expected: no error finding "+
		"kudu.block.unclaimed (default false)",
		func(o *ReadOptions) *bool { return &o.Unclaimed }),
	option.Bool("live", "read directories on which a server runs; what it writes meanwhile may look like damage "+
		"(default false)", func(o *ReadOptions) *bool { return &o.Live }),
	option.Text("schema", "FILE", "read the blocks that no superblock names, with the schema in FILE (JSON, as stoa "+
		"schema -f json prints it)", func(o *ReadOptions) *string { return &o.Schema }),
	option.Text("wal-dir", "DIR", "the directory that holds wals/, instead of searching for it; directories that are "+
		"not given are searched for", func(o *ReadOptions) *string { return &o.WALDir }),
	option.List("data-dirs", "DIR,DIR,…", "the directories that hold data/, instead of searching for them",
		func(o *ReadOptions) *[]string { return &o.DataDirs }),
	option.Text("meta-dir", "DIR", "the directory that holds tablet-meta/, instead of searching for it",
		func(o *ReadOptions) *string { return &o.MetaDir }),
	option.Text("encryption-key", "FILE", "read the directories of encrypted servers: default for keys of Kudu's "+
		"default provider, else a file with the servers' keys as their KMS decrypted them: one key, or lines UUID KEY",
		func(o *ReadOptions) *string { return &o.Keys }),
}}

// Options are the parsed options of Open.
type Options struct {
	At      uint64 // hybrid time; operations before it are read
	End     Moment // First or Last: At is determined when the table is opened; else ""
	Until   uint64 // of a history: operations of the log count if they are before this hybrid time; 0: all
	NoWAL   bool
	Tablet  string
	Partial bool // removed history is a finding and not an error
	Gaps    bool // missing tablets are not reported
	Blocks  bool // blocks that no superblock names are not reported
	Live    bool
	Rebuild bool   // tablets without a superblock are rebuilt from their logs
	Schema  string // schema file; "": read the blocks that superblocks name
	Layout  fs.Layout
}

// First and Last are the snapshots after a table's first and its last operation.
const First, Last Moment = "first", "last"

// Latest is the hybrid time of a snapshot with every operation.
const Latest = math.MaxUint64

// ParseOptions parses the options of Open. Unknown options and bad values are Invalid.
func ParseOptions(opts map[string]string) (Options, error) {
	r, err := ReadTable.Parse(opts)
	o := Options{At: Latest, NoWAL: r.NoWAL, Tablet: r.Tablet, Partial: r.Partial, Gaps: r.Partial, Blocks: r.Unclaimed,
		Live: r.Live, Schema: r.Schema, Layout: fs.Layout{WALDir: r.WALDir, DataDirs: r.DataDirs, MetaDir: r.MetaDir}}
	if r.At == First || r.At == Last {
		o.End = r.At
	} else if err == nil && r.At != "" {
		o.At, err = parseTime(string(r.At))
	}
	return o, err
}
