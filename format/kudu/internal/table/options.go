package table

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu/internal/fs"
)

// ReadKeys are the options of Open.
var ReadKeys = []format.OptionKey{
	{Name: "at", Values: "TIME", Help: "the table as it was then: operations before TIME are seen. An integer " +
		"is a hybrid time, everything else RFC 3339; default: the latest state"},
	{Name: "wal", Values: "true, false",
		Help: "whether rows and changes that are only in the write-ahead log are read (default true)"},
	{Name: "tablet", Values: "ID", Help: "only this tablet"},
	{Name: "partial", Values: "true, false", Help: "tablets may be missing without the error finding " +
		"kudu.tablet.missing; and where history was removed that a snapshot asks for, the oldest state, with an " +
		"error finding kudu.history.removed (default false)"},
	{Name: "unclaimed", Values: "true, false", Help: "blocks with rows that no superblock names may lie here " +
		"without the error finding kudu.block.unclaimed: what they are is known (default false)"},
	{Name: "live", Values: "true, false",
		Help: "read directories on which a server runs; what it does meanwhile may show as damage (default false)"},
	{Name: "schema", Values: "FILE", Help: "read the blocks that no superblock names, with the schema in FILE " +
		"(JSON, as stoa schema -f json prints it)"},
	{Name: "wal-dir", Values: "DIR", Help: "the directory that holds wals/, instead of looking for it; those " +
		"that are not given are looked for"},
	{Name: "data-dirs", Values: "DIR,DIR,…", Help: "the directories that hold data/, instead of looking for them"},
	{Name: "meta-dir", Values: "DIR", Help: "the directory that holds tablet-meta/, instead of looking for it"},
}

// Options are the options of Open, understood.
type Options struct {
	At      uint64 // hybrid time; operations before it are seen
	NoWAL   bool
	Tablet  string
	Partial bool // history that is gone is read over
	Gaps    bool // tablets may be missing untold
	Blocks  bool // blocks that no superblock names may lie here untold
	Live    bool
	Schema  string // file; "": what superblocks name is read
	Layout  fs.Layout
}

// Latest is a snapshot that sees every operation.
const Latest = math.MaxUint64

// hybridShift is how many bits of a hybrid time count within a microsecond.
const hybridShift = 12

// ParseOptions reads the options; one that is not known is Invalid.
func ParseOptions(opts map[string]string) (o Options, err error) {
	o.At = Latest
	for _, k := range slices.Sorted(maps.Keys(opts)) {
		if err := o.Set(k, opts[k]); err != nil {
			return o, err
		}
	}
	return o, nil
}

func (o *Options) Set(key, v string) (err error) {
	switch key {
	case "at":
		o.At, err = parseTime(v)
	case "wal":
		o.NoWAL, err = yesNo(key, v)
		o.NoWAL = !o.NoWAL
	case "tablet":
		o.Tablet = v
	case "partial":
		o.Partial, err = yesNo(key, v)
		o.Gaps = o.Partial
	case "unclaimed":
		o.Blocks, err = yesNo(key, v)
	case "live":
		o.Live, err = yesNo(key, v)
	case "schema":
		o.Schema = v
	case "wal-dir":
		o.Layout.WALDir = v
	case "data-dirs":
		o.Layout.DataDirs = strings.Split(v, ",")
	case "meta-dir":
		o.Layout.MetaDir = v
	default:
		return fault.Invalidf("kudu: there is no option %q for reading", key)
	}
	return err
}

func yesNo(key, v string) (bool, error) {
	switch v {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, fault.Invalidf("kudu: option %s=%s: true or false is wanted", key, v)
}

// parseTime reads a hybrid time, or a time of the calendar.
func parseTime(v string) (uint64, error) {
	if n, err := strconv.ParseUint(v, 10, 64); err == nil {
		return n, nil
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		return 0, fault.Invalidf("kudu: option at=%s: neither a hybrid time (an integer) nor a time as "+
			"2006-01-02T15:04:05Z", v)
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
		time.UnixMicro(int64(t>>hybridShift)).UTC().Format("2006-01-02T15:04:05.000000Z") + ")"
}
