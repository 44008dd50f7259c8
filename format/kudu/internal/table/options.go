package table

import (
	"math"
	"strconv"
	"time"

	"stoa/fault"
	"stoa/format/kudu/internal/fs"
	"stoa/format/option"
)

// Moment is a hybrid time, an integer, or a time as RFC 3339 has it.
type Moment string

// ReadOptions are those of Open; package kudu has them with their meaning.
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
}

// ReadTable are the options of Open.
var ReadTable = option.Table[ReadOptions]{Format: "kudu", For: "reading", Options: []option.Option[ReadOptions]{
	option.Text("at", "TIME", "the table as it was then: operations before TIME are seen. An integer is a hybrid "+
		"time, else it is RFC 3339, a day such as 2026-11-20 (its beginning, UTC), or first or last: as the table "+
		"was after its first, or last, operation; default: the latest state",
		func(o *ReadOptions) *Moment { return &o.At }),
	option.Not("wal", "whether rows and changes that are only in the write-ahead log are read (default true)",
		func(o *ReadOptions) *bool { return &o.NoWAL }),
	option.Text("tablet", "ID", "only this tablet", func(o *ReadOptions) *string { return &o.Tablet }),
	option.Bool("partial", "tablets may be missing without the error finding kudu.tablet.missing; and where history "+
		"was removed that a snapshot asks for, the oldest state, with an error finding kudu.history.removed (default "+
		"false)", func(o *ReadOptions) *bool { return &o.Partial }),
	option.Bool("unclaimed", "blocks with rows that no superblock names may lie here without the error finding "+
		"kudu.block.unclaimed: what they are is known (default false)",
		func(o *ReadOptions) *bool { return &o.Unclaimed }),
	option.Bool("live", "read directories on which a server runs; what it does meanwhile may show as damage (default "+
		"false)", func(o *ReadOptions) *bool { return &o.Live }),
	option.Text("schema", "FILE", "read the blocks that no superblock names, with the schema in FILE (JSON, as stoa "+
		"schema -f json prints it)", func(o *ReadOptions) *string { return &o.Schema }),
	option.Text("wal-dir", "DIR", "the directory that holds wals/, instead of looking for it; those that are not "+
		"given are looked for", func(o *ReadOptions) *string { return &o.WALDir }),
	option.List("data-dirs", "DIR,DIR,…", "the directories that hold data/, instead of looking for them",
		func(o *ReadOptions) *[]string { return &o.DataDirs }),
	option.Text("meta-dir", "DIR", "the directory that holds tablet-meta/, instead of looking for it",
		func(o *ReadOptions) *string { return &o.MetaDir }),
}}

// Options are the options of Open, understood.
type Options struct {
	At      uint64 // hybrid time; operations before it are seen
	End     Moment // First or Last: At is to be found out
	NoWAL   bool
	Tablet  string
	Partial bool // history that is gone is read over
	Gaps    bool // tablets may be missing untold
	Blocks  bool // blocks that no superblock names may lie here untold
	Live    bool
	Schema  string // file; "": what superblocks name is read
	Layout  fs.Layout
}

// The ends of a table's life: after its first operation, and after its last.
const First, Last Moment = "first", "last"

// Latest is a snapshot that sees every operation.
const Latest = math.MaxUint64

// hybridShift is how many bits of a hybrid time count within a microsecond.
const hybridShift = 12

// ParseOptions reads the options; one that is not known is Invalid.
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

// parseTime reads a hybrid time, or a time of the calendar.
func parseTime(v string) (uint64, error) {
	if n, err := strconv.ParseUint(v, 10, 64); err == nil {
		return n, nil
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		t, err = time.Parse(time.DateOnly, v)
	}
	if err != nil {
		return 0, fault.Invalidf("kudu: option at=%s: neither a hybrid time (an integer) nor a time as "+
			"2006-01-02T15:04:05Z, a day as 2006-01-02, first or last", v)
	}
	us := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		us++ // an operation within that microsecond is not after it
	}
	if us < 0 || us > math.MaxInt64>>hybridShift {
		return 0, fault.Invalidf("kudu: option at=%s: no hybrid time is so far away", v)
	}
	return uint64(us) << hybridShift, nil
}

// TimeText is a hybrid time for people.
func TimeText(t uint64) string {
	return strconv.FormatUint(t, 10) + " (" +
		Calendar(t).Format("2006-01-02T15:04:05.000000Z") + ")"
}

// Calendar is the microsecond of a hybrid time.
func Calendar(t uint64) time.Time { return time.UnixMicro(int64(t >> hybridShift)).UTC() }
