package status

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"path"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/internal/budget"
	"stoa/store"
)

// Load is an entry of tablestatus: a load, or the result of a compaction. Sizes are decimal numbers of bytes; for times
// see Millis.
type Load struct {
	Timestamp  string `json:"timestamp"`
	Status     string `json:"loadStatus"`
	Name       string `json:"loadName"`
	DataSize   string `json:"dataSize"`
	IndexSize  string `json:"indexSize"`
	Start      string `json:"loadStartTime"`
	Merged     string `json:"mergedLoadName"`
	Visibility string `json:"visibility"`
	Major      string `json:"majorCompacted"`
	FileFormat string `json:"fileFormat"`
	Path       string `json:"path"`
	Segment    string `json:"segmentFile"`
	Deleted    string `json:"isDeleted"`
	Updates    string `json:"updateStatusFileName"`
	UpdateFrom string `json:"updateDeltaStartTimestamp"`
	UpdateTo   string `json:"updateDeltaEndTimestamp"`
	Changed    string `json:"modificationOrDeletionTimestamp"`
	Changed1   string `json:"modificationOrdeletionTimesStamp"` // an earlier name of the same field
}

// States of segments whose rows are read; see Counts.
const (
	StatusSuccess   = "Success"
	statusPartial   = "Partial Success"
	statusPartial1  = "Load Partial Success"
	statusForUpdate = "Marked for Update"
	StatusStreaming = "Streaming"
	StatusFinish    = "Streaming Finish"
)

// Counts reports whether CarbonData reads the segment.
func (l *Load) Counts() bool {
	switch l.Status {
	case StatusSuccess, statusPartial, statusPartial1, statusForUpdate, StatusStreaming, StatusFinish:
		return true
	}
	return false
}

// Cleaned reports whether the segment's files have been removed and only its entry is left, for the other information
// in it.
func (l *Load) Cleaned() bool { return strings.EqualFold(l.Visibility, "false") && !l.Counts() }

// KnownStatus reports whether s is a state of a segment. Some have two spellings: the one for JSON, and the one for
// messages, which earlier writers also wrote to JSON.
func KnownStatus(s string) bool {
	switch s {
	case StatusSuccess, statusPartial, statusPartial1, statusForUpdate, StatusStreaming, StatusFinish,
		StatusDeleted, StatusCompacted,
		"Failure", "Load Failure", "Partial Failure", "In Progress", "Insert In Progress", "Overwrite In Progress",
		"Insert Overwrite In Progress", "Update":
		return true
	}
	return false
}

// SegmentID returns the segment whose files have the rows of the load: its own, or the one it was compacted to.
func (l *Load) SegmentID() string {
	if l.Merged != "" && l.Counts() {
		return l.Merged
	}
	return l.Name
}

// Foreign reports whether the segment's files are not CarbonData's (added by alter table add segment).
func (l *Load) Foreign() bool {
	f := strings.ToLower(l.FileFormat)
	return f != "" && f != "columnar_v3" && f != "row_v1" && f != "columnar_v1" && f != "columnar_v2"
}

// Parquet reports whether the segment's files are Parquet's.
func (l *Load) Parquet() bool { return strings.EqualFold(l.FileFormat, "parquet") }

// Millis parses a time of tablestatus as milliseconds since 1970. Before CarbonData 1.3 it was a text in the writer's
// time zone, which is not recorded; it is read as UTC.
func Millis(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	at := strings.LastIndexByte(s, ':')
	if at < 0 || len(s)-at != 4 {
		return 0, false
	}
	when, err := time.Parse("02-01-2006 15:04:05.000", s[:at]+"."+s[at+1:])
	if err != nil {
		return 0, false
	}
	return when.UnixMilli(), true
}

// timeText formats a time of tablestatus for display.
func timeText(s string) string {
	if ms, ok := Millis(s); ok {
		return layout.FormatTime(ms)
	}
	return s
}

// ReadJSON reads a JSON file into v. A file that is not valid JSON is Corrupt, as is one with a duplicate member; Gson,
// which CarbonData uses, accepts both.
func ReadJSON(ctx context.Context, tree store.Tree, name string, l format.Limits, v any) error {
	b, at, err := layout.ReadObject(ctx, tree, name, l)
	if err != nil {
		return err
	}
	// the parsed value is rarely kept, and read again when needed, so it is charged only briefly
	if err := l.Apart().Memory().Take(budget.JSON(b), at, ""); err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		off := int64(0)
		switch e := err.(type) {
		case *json.SyntaxError:
			off = e.Offset
		case *json.UnmarshalTypeError:
			off = e.Offset
		}
		return fault.Corruptf(at.Sub(min(off, at.Len), 0), path.Base(name), "%v", err)
	}
	if member, off := duplicateMember(b); member != "" {
		return fault.Corruptf(at.Sub(off, 0), path.Base(name),
			"one object has the member %q twice: bytes between two "+
				"objects are missing", member)
	}
	return nil
}

// duplicateMember returns the first member that an object in b has twice, and its offset; "" if there is none. If the
// bytes between two objects are lost, the remaining halves form one object, which is still valid JSON but has duplicate
// members.
func duplicateMember(b []byte) (member string, at int64) {
	d := json.NewDecoder(bytes.NewReader(b))
	var open []map[string]bool // members of the enclosing objects; nil for an array
	name := false              // the next string is a member's name
	for {
		t, err := d.Token()
		if err != nil {
			return "", 0
		}
		switch t {
		case json.Delim('{'):
			open, name = append(open, map[string]bool{}), true
			continue
		case json.Delim('['):
			open, name = append(open, nil), false
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		default:
			if s, ok := t.(string); ok && name {
				members := open[len(open)-1]
				if members[s] {
					return s, d.InputOffset()
				}
				members[s], name = true, false
				continue
			}
		}
		name = len(open) > 0 && open[len(open)-1] != nil
	}
}

// SegmentFile is Metadata/segments/N_TIME.segment.
type SegmentFile struct {
	Locations map[string]Folder `json:"locationMap"`
	Options   map[string]string `json:"options"`
	Metadata  string            `json:"segmentMetaDataInfo"`
}

// Folder has the files of a segment in one directory.
type Folder struct {
	Files      []string `json:"files"`
	Partitions []string `json:"partitions"`
	Status     string   `json:"status"`
	Merge      string   `json:"mergeFileName"`
	Relative   bool     `json:"isRelative"`
}

// Update is an entry of tableupdatestatus: the delete deltas of a block.
type Update struct {
	Segment string   `json:"segmentName"`
	Block   string   `json:"blockName"`
	Status  string   `json:"segmentStatus"`
	From    string   `json:"deleteDeltaStartTimestamp"`
	To      string   `json:"deleteDeltaEndTimestamp"`
	Actual  string   `json:"actualBlockName"`
	Deleted string   `json:"deletedRowsInBlock"`
	Stamps  []string `json:"deltaFileStamps"`

	Guessed bool // in recovery: Stamps are those of all deltas that were found, Deleted is unknown
}

// Gone reports whether the block was removed because all its rows were deleted or compacted.
func (u *Update) Gone() bool { return u.Status == StatusCompacted || u.Status == StatusDeleted }

// Summary summarizes a load on one line.
func (l *Load) Summary() string {
	s := l.Status
	for _, x := range []struct{ name, value string }{{"from", timeText(l.Start)}, {"to", timeText(l.Timestamp)},
		{"data", l.DataSize}, {"index", l.IndexSize},
		{"merged into", l.Merged}, {"format", l.FileFormat}, {"path", l.Path}} {
		if x.value != "" {
			s += ", " + x.name + " " + x.value
		}
	}
	return s
}

// ChangedAt returns the time at which a load was last merged, deleted or updated, see Millis; "" means never.
func (l *Load) ChangedAt() string {
	if l.Changed != "" {
		return l.Changed
	}
	return l.Changed1
}

// ParseTime is Millis with a time.Time as the result; the zero time if s is not a time.
func ParseTime(s string) time.Time {
	if ms, ok := Millis(s); ok && ms > 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

// ParseCount parses a decimal number; -1 if s is not a number.
func ParseCount(s string) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return -1
}

// SegmentOf returns the segment and the time, in milliseconds since 1970, that the name of a data file, delete delta,
// index or segment file contains; "" and -1 if it contains none.
func SegmentOf(name string) (segment string, stamp int64) {
	switch {
	case strings.HasSuffix(name, layout.DataExt), strings.HasSuffix(name, ".deletedelta"):
		f := ParseFileName(name)
		return f.Segment, f.Time
	case strings.HasSuffix(name, layout.MergedExt), strings.HasSuffix(name, ".segment"):
		base := name[:strings.LastIndexByte(name, '.')]
		if i := strings.LastIndexByte(base, '_'); i > 0 {
			ms, ok := Millis(base[i+1:])
			if ok {
				return base[:i], ms
			}
		}
	case strings.HasSuffix(name, layout.IndexExt):
		f := ParseFileName("part-0-" + name)
		return f.Segment, f.Time
	}
	return "", -1
}

// HiddenFromSpark reports whether Spark's listings leave out a file with this name, which it then does not read in a
// segment of Parquet (InMemoryFileIndex.shouldFilterOut, PartitioningAwareFileIndex.isDataPath).
func HiddenFromSpark(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") && !strings.Contains(name, "=") ||
		strings.HasSuffix(name, "._COPYING_")
}

// FileName has the parts of a data file's name.
//
//	part-0-0_batchno0-BUCKET-SEGMENT-TIME.snappy.carbondata     since 1.5
//	part-0-0_batchno0-BUCKET-TIME.carbondata                    before
//	part-0-TASK-BUCKET-TIME.carbondata                          formats 1 and 2
type FileName struct {
	Block   string // everything before the time, by which update statuses and delete deltas name the file
	Segment string // "": unknown
	Bucket  int    // -1: unknown
	Time    int64  // milliseconds since 1970; -1: unknown
}

// ParseFileName splits the name of a data file; parts that the name lacks are unknown.
func ParseFileName(name string) FileName {
	base := path.Base(name)
	f := FileName{Bucket: -1, Time: -1}
	i := strings.LastIndexByte(base, '-')
	if i < 0 {
		return f
	}
	f.Block = base[:i]
	stamp, _, _ := strings.Cut(base[i+1:], ".")
	if n, err := strconv.ParseInt(stamp, 10, 64); err == nil {
		f.Time = n
	}
	p := strings.Split(f.Block, "-")
	switch {
	case len(p) == 5:
		f.Bucket, f.Segment = parseInt(p[3]), p[4]
	case len(p) == 4:
		f.Bucket = parseInt(p[3])
	}
	return f
}

// CompareNames compares the names of files in one directory by the order in which they were written: as strings, except
// that runs of digits compare as numbers, so part-2 comes before part-10.
func CompareNames(a, b string) int {
	digits := func(s string) (number string) {
		for i := range len(s) {
			if s[i] < '0' || s[i] > '9' {
				return s[:i]
			}
		}
		return s
	}
	x, y := a, b
	for x != "" && y != "" {
		n, m := digits(x), digits(y)
		if n == "" || m == "" {
			if x[0] != y[0] {
				return cmp.Compare(x[0], y[0])
			}
			x, y = x[1:], y[1:]
			continue
		}
		v, w := strings.TrimLeft(n, "0"), strings.TrimLeft(m, "0")
		if c := cmp.Or(cmp.Compare(len(v), len(w)), strings.Compare(v, w)); c != 0 {
			return c
		}
		x, y = x[len(n):], y[len(m):]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(a, b))
}

// parseInt parses a decimal number; -1 if s is not a number.
func parseInt(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return -1
}
