package carbon

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/store"
)

// States that only writers give, as the real writer's JSON has them (SegmentStatus.java, @SerializedName).
const (
	statusLoading   = "In Progress"
	statusDeleted   = "Marked for Delete"
	statusCompacted = "Compacted"
)

// statusFile is tablestatus as it is changed: fields that nobody here knows stay.
type statusFile []map[string]any

func (e statusEntry) text(key string) string {
	s, _ := e[key].(string)
	return s
}

// statusEntry is an entry of tablestatus.
type statusEntry map[string]any

func statusPath(dir string) string { return filepath.Join(dir, "Metadata", "tablestatus") }

// historyPath has the entries that were cleaned away: their numbers are not given again.
func historyPath(dir string) string { return statusPath(dir) + ".history" }

// readStatusFile reads tablestatus if readers do: what they refuse is refused in their words.
func readStatusFile(dir string) (statusFile, error) {
	if _, err := readTableSchema(dir); err != nil {
		return nil, err
	}
	return readEntries(statusPath(dir))
}

func readEntries(name string) (s statusFile, err error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fault.Corruptf(fault.Span{Object: name, Len: int64(len(b))}, "", "%v", err)
	}
	return s, nil
}

// retire moves entries to the history.
func (s *statusFile) retire(dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	history, err := readEntries(historyPath(dir))
	if err != nil {
		return err
	}
	for _, n := range names {
		if e := s.find(n); e != nil {
			old := maps.Clone(e)
			old["visibility"] = "false"
			history = append(history, old)
		}
	}
	b, err := json.Marshal(history)
	if err != nil {
		return err
	}
	if err := replaceFile(historyPath(dir), b); err != nil {
		return err
	}
	s.remove(func(e statusEntry) bool { return slices.Contains(names, e.text("loadName")) })
	return nil
}

// changeStatus reads tablestatus, has it changed, and writes it anew, all under its lock. The file is replaced by one rename, so
// that readers see the table as it was before, or as it is after. What readers refuse is not changed: it
// would look as if it had been sound.
func changeStatus(ctx context.Context, dir string, change func(s *statusFile) error) error {
	unlock, err := lock(ctx, dir, lockStatus, lockWait)
	if err != nil {
		return err
	}
	defer unlock()
	s, err := readStatusFile(dir)
	if err != nil {
		return err
	}
	if err := change(&s); err != nil {
		return err
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return replaceFile(statusPath(dir), b)
}

// replaceFile puts a file in the place of another, or of none, at once.
func replaceFile(name string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), store.TempPrefix+"*-"+filepath.Base(name))
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(name))
}

// syncDir makes names in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// newSegment is the number of the next load.
func (s statusFile) newSegment(dir string) (string, error) {
	history, err := readEntries(historyPath(dir))
	if err != nil {
		return "", err
	}
	next := 0
	for _, e := range slices.Concat(s, history) {
		whole, _, _ := strings.Cut(statusEntry(e).text("loadName"), ".")
		if n, err := strconv.Atoi(whole); err == nil && n >= next {
			next = n + 1
		}
	}
	return strconv.Itoa(next), nil
}

// remove takes entries out. The first entry names the update status: the one that is first then must.
func (s *statusFile) remove(gone func(e statusEntry) bool) {
	if len(*s) == 0 {
		return
	}
	updates := statusEntry((*s)[0]).text("updateStatusFileName")
	*s = slices.DeleteFunc(*s, func(e map[string]any) bool { return gone(e) })
	if len(*s) > 0 && updates != "" {
		(*s)[0]["updateStatusFileName"] = updates
	}
}

// find is the entry of a segment; nil if there is none.
func (s statusFile) find(name string) statusEntry {
	for _, e := range s {
		if statusEntry(e).text("loadName") == name {
			return e
		}
	}
	return nil
}

// loading reports whether a load began and did not end. What the real writer's JSON has differs from what it prints; earlier writers,
// stoa's among them, left the latter.
func (e statusEntry) loading() bool {
	switch e.text("loadStatus") {
	case statusLoading, "Insert In Progress", "Overwrite In Progress", "Insert Overwrite In Progress":
		return true
	}
	return false
}

// counts reports whether the segment's rows are read.
func (e statusEntry) counts() bool {
	l := load{Status: e.text("loadStatus")}
	return l.counts()
}

func now() int64 { return time.Now().UnixMilli() }

func msText(ms int64) string { return strconv.FormatInt(ms, 10) }
