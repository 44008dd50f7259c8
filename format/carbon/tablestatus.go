package carbon

import (
	"context"
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// load is an entry of tablestatus: a load, or what several were compacted into. Every value is a text.
type load struct {
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
	statusSuccess   = "Success"
	statusPartial   = "Partial Success"
	statusPartial1  = "Load Partial Success"
	statusForUpdate = "Marked for Update"
	statusStreaming = "Streaming"
	statusFinish    = "Streaming Finish"
)

// counts reports whether the real reader reads the segment.
func (l *load) counts() bool {
	switch l.Status {
	case statusSuccess, statusPartial, statusPartial1, statusForUpdate, statusStreaming, statusFinish:
		return true
	}
	return false
}

// knownStatus reports whether a writer gives a segment the state. Some have two spellings: as the real writer's JSON has them, and
// as it tells them.
func knownStatus(s string) bool {
	switch s {
	case statusSuccess, statusPartial, statusPartial1, statusForUpdate, statusStreaming, statusFinish, statusDeleted, statusCompacted,
		"Failure", "Load Failure", "Partial Failure", "In Progress", "Insert In Progress", "Overwrite In Progress", "Insert Overwrite In Progress", "Update":
		return true
	}
	return false
}

// id is the segment whose files hold the load.
func (l *load) id() string {
	if l.Merged != "" && l.counts() {
		return l.Merged
	}
	return l.Name
}

// foreign reports whether the files are of another format than Carbon's.
func (l *load) foreign() bool {
	f := strings.ToLower(l.FileFormat)
	return f != "" && f != "columnar_v3" && f != "row_v1" && f != "columnar_v1" && f != "columnar_v2"
}

// millis is a time of tablestatus: milliseconds since 1970, or, before Carbon 1.3, a text in the writer's time zone, which
// nobody knows; it is read as UTC.
func millis(s string) (int64, bool) {
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

func epoch(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// timeText is a time of tablestatus for people.
func timeText(s string) string {
	if ms, ok := millis(s); ok {
		return epoch(ms)
	}
	return s
}

// readJSON reads a file of JSON into v. Gson's leniency is not copied: a status file that is no JSON is damaged.
func readJSON(ctx context.Context, tree store.Tree, name string, l format.Limits, v any) error {
	o, err := openObject(ctx, tree, name, l)
	if err != nil {
		return err
	}
	b, err := o.read(ctx, 0, o.at.Len, "")
	if err != nil {
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
		return fault.Corruptf(o.at.Sub(min(off, o.at.Len), 0), path.Base(name), "%v", err)
	}
	return nil
}

// segmentFile is Metadata/segments/N_TIME.segment.
type segmentFile struct {
	Locations map[string]folder `json:"locationMap"`
	Options   map[string]string `json:"options"`
	Metadata  string            `json:"segmentMetaDataInfo"`
}

// folder is what a segment has in a directory.
type folder struct {
	Files      []string `json:"files"`
	Partitions []string `json:"partitions"`
	Status     string   `json:"status"`
	Merge      string   `json:"mergeFileName"`
	Relative   bool     `json:"isRelative"`
}

// update is an entry of tableupdatestatus: which delete deltas a block has.
type update struct {
	Segment string   `json:"segmentName"`
	Block   string   `json:"blockName"`
	Status  string   `json:"segmentStatus"`
	From    string   `json:"deleteDeltaStartTimestamp"`
	To      string   `json:"deleteDeltaEndTimestamp"`
	Actual  string   `json:"actualBlockName"`
	Deleted string   `json:"deletedRowsInBlock"`
	Stamps  []string `json:"deltaFileStamps"`

	guessed bool // recovering: Stamps are all, Deleted is not known
}

// gone reports whether the block itself is no more.
func (u *update) gone() bool { return u.Status == "Compacted" || u.Status == "Marked for Delete" }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
