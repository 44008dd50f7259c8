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

// Load is an entry of tablestatus: a load, or what several were compacted into. Every value is a text.
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
	Changed1   string `json:"modificationOrdeletionTimesStamp"` // as it was called before
}

// The states of a segment. Those that count are read; see counts.
const (
	StatusSuccess   = "Success"
	statusPartial   = "Partial Success"
	statusPartial1  = "Load Partial Success"
	statusForUpdate = "Marked for Update"
	StatusStreaming = "Streaming"
	StatusFinish    = "Streaming Finish"
)

// Counts reports whether the real reader reads the segment.
func (l *Load) Counts() bool {
	switch l.Status {
	case StatusSuccess, statusPartial, statusPartial1, statusForUpdate, StatusStreaming, StatusFinish:
		return true
	}
	return false
}

// KnownStatus reports whether a writer gives a segment the state. Some have two spellings: as the real writer's
// JSON has them, and as it says them.
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

// Id is the segment whose files hold the load.
func (l *Load) Id() string {
	if l.Merged != "" && l.Counts() {
		return l.Merged
	}
	return l.Name
}

// Foreign reports whether the files are of another format than Carbon's.
func (l *Load) Foreign() bool {
	f := strings.ToLower(l.FileFormat)
	return f != "" && f != "columnar_v3" && f != "row_v1" && f != "columnar_v1" && f != "columnar_v2"
}

// Millis is a time of tablestatus: milliseconds since 1970, or, before Carbon 1.3, a text in the writer's time
// zone, which nobody knows; it is read as UTC.
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

// timeText is a time of tablestatus for people.
func timeText(s string) string {
	if ms, ok := Millis(s); ok {
		return layout.Epoch(ms)
	}
	return s
}

// ReadJSON reads a file of JSON into v. Gson's leniency is not copied: a status file that is no JSON is damaged.
func ReadJSON(ctx context.Context, tree store.Tree, name string, l format.Limits, v any) error {
	o, err := layout.OpenObject(ctx, tree, name, l)
	if err != nil {
		return err
	}
	b, err := o.Read(ctx, 0, o.At.Len, "")
	if err != nil {
		return err
	}
	// what is made of it is seldom kept, and is read again
	if err := l.Apart().Memory().Take(budget.JSON(b), o.At, ""); err != nil {
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
		return fault.Corruptf(o.At.Sub(min(off, o.At.Len), 0), path.Base(name), "%v", err)
	}
	if member, off := duplicateMember(b); member != "" {
		return fault.Corruptf(o.At.Sub(off, 0), path.Base(name), "%q is twice in one object: it was two", member)
	}
	return nil
}

// duplicateMember is the first member that an object in JSON has twice, and its offset; "" if there is none. Where the
// bytes between two objects were lost, what is left of both is one object, and still valid JSON.
func duplicateMember(b []byte) (member string, at int64) {
	d := json.NewDecoder(bytes.NewReader(b))
	var open []map[string]bool // of the objects around; nil for an array
	name := false              // the next text is a member's name
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
				if within := open[len(open)-1]; within[s] {
					return s, d.InputOffset()
				} else {
					within[s] = true
				}
				name = false
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

// Folder is what a segment has in a directory.
type Folder struct {
	Files      []string `json:"files"`
	Partitions []string `json:"partitions"`
	Status     string   `json:"status"`
	Merge      string   `json:"mergeFileName"`
	Relative   bool     `json:"isRelative"`
}

// Update is an entry of tableupdatestatus: which delete deltas a block has.
type Update struct {
	Segment string   `json:"segmentName"`
	Block   string   `json:"blockName"`
	Status  string   `json:"segmentStatus"`
	From    string   `json:"deleteDeltaStartTimestamp"`
	To      string   `json:"deleteDeltaEndTimestamp"`
	Actual  string   `json:"actualBlockName"`
	Deleted string   `json:"deletedRowsInBlock"`
	Stamps  []string `json:"deltaFileStamps"`

	Guessed bool // recovering: Stamps are all, Deleted is not known
}

// Gone reports whether the block itself is no more.
func (u *Update) Gone() bool { return u.Status == "Compacted" || u.Status == "Marked for Delete" }

// Words reports a load on a line.
func (l *Load) Words() string {
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

// WhenChanged is when a load was last merged, deleted or updated.
func (l *Load) WhenChanged() string {
	if l.Changed != "" {
		return l.Changed
	}
	return l.Changed1
}

func InstantOf(s string) time.Time {
	if ms, ok := Millis(s); ok && ms > 0 {
		return time.UnixMilli(ms).UTC()
	}
	return time.Time{}
}

func Count64(s string) int64 {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	return -1
}

// SegmentOf is the segment that a file's name says, and its time: of data files, delete deltas, indexes, segment files.
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

// fileName is what the name of a data file says.
//
//	part-0-0_batchno0-BUCKET-SEGMENT-TIME.snappy.carbondata     since 1.5
//	part-0-0_batchno0-BUCKET-TIME.carbondata                    before
//	part-0-TASK-BUCKET-TIME.carbondata                          formats 1 and 2
type fileName struct {
	Block   string // all before the time: by which deletes name the file
	Segment string // "" not said
	Bucket  int    // -1 not said
	Time    int64  // -1 not said
}

func ParseFileName(name string) fileName {
	base := path.Base(name)
	f := fileName{Bucket: -1, Time: -1}
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
		f.Bucket, f.Segment = number0(p[3]), p[4]
	case len(p) == 4:
		f.Bucket = number0(p[3])
	}
	return f
}

// CompareNames orders files of one directory as they were written: like strings, but for numbers, which count by their
// value. So part-2 comes before part-10.
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

func number0(s string) int {
	if n, err := strconv.Atoi(s); err == nil {
		return n
	}
	return -1
}
