package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// States of segments whose rows are not read, as spelled in the JSON (SegmentStatus.java, @SerializedName).
const (
	StatusLoading   = "In Progress"
	StatusDeleted   = "Marked for Delete"
	StatusCompacted = "Compacted"
)

// StatusFile is a tablestatus that is being changed, with all members of its entries, including unknown ones.
type StatusFile []map[string]any

// StatusEntry is an entry of a StatusFile.
type StatusEntry map[string]any

// Text returns a member that is a string; "" if there is none.
func (e StatusEntry) Text(key string) string {
	s, _ := e[key].(string)
	return s
}

// StatusPath is the tablestatus of the table in dir.
func StatusPath(dir string) string { return filepath.Join(dir, "Metadata", "tablestatus") }

// HistoryPath is the file with the entries that clean removed from tablestatus; it keeps their numbers from being
// reused.
func HistoryPath(dir string) string { return StatusPath(dir) + ".history" }

// ReadEntries reads tablestatus or its history; nil if there is none. A file that is not valid JSON is Corrupt.
func ReadEntries(name string) (s StatusFile, err error) {
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

// Retire removes the segments names, whose files are being removed, from the table in dir. Their entries move to the
// history, which is written immediately. As in CarbonData's clean files, two entries stay and become invisible: that of
// segment 0, which has the link to the update status, and that of the segment with the highest number, from which the
// number of the next segment is derived. They lose their file format, because CarbonData refuses deletes and updates as
// long as any entry states a foreign one.
func (s *StatusFile) Retire(dir string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	history, err := ReadEntries(HistoryPath(dir))
	if err != nil {
		return err
	}
	stays := s.stays()
	var moved []string
	for _, n := range names {
		e := s.Find(n)
		switch {
		case e == nil:
		case stays[n]:
			e["visibility"] = "false"
			delete(e, "fileFormat")
			if e.Loading() {
				e["loadStatus"] = StatusDeleted
			}
		default:
			hidden := maps.Clone(e)
			hidden["visibility"] = "false"
			history, moved = append(history, hidden), append(moved, n)
		}
	}
	if len(moved) == 0 {
		return nil
	}
	b, err := json.Marshal(history)
	if err != nil {
		return err
	}
	if err := ReplaceFile(HistoryPath(dir), b); err != nil {
		return err
	}
	s.Remove(func(e StatusEntry) bool { return slices.Contains(moved, e.Text("loadName")) })
	return nil
}

// stays returns the segments whose entries Retire leaves in tablestatus.
func (s *StatusFile) stays() map[string]bool {
	return map[string]bool{linkSegment: true, strconv.Itoa(nextNumber(*s) - 1): true}
}

// Staying returns the names of the segment files of the entries that Retire leaves in tablestatus, or has left.
func (s *StatusFile) Staying() map[string]bool {
	stays, out := s.stays(), map[string]bool{}
	for _, x := range *s {
		if e := StatusEntry(x); !e.Visible() || stays[e.Text("loadName")] {
			out[filepath.Base(e.Text("segmentFile"))] = true
		}
	}
	return out
}

// linkSegment is the segment in whose entry CarbonData's deletes and updates write the link to the update status.
const linkSegment = "0"

// linkFirst makes the entry of segment 0 the first: CarbonData writes the link to the update status to the entry of
// segment 0, but reads it from the first entry, so otherwise its deletes and updates would be lost. A missing entry is
// restored from the history, or else created as that of a deleted segment.
func (s *StatusFile) linkFirst(dir string) error {
	if len(*s) == 0 || StatusEntry((*s)[0]).Text("loadName") == linkSegment {
		return nil
	}
	link, updates := s.Find(linkSegment), StatusEntry((*s)[0]).Text("updateStatusFileName")
	if link == nil {
		history, err := ReadEntries(HistoryPath(dir))
		if err != nil {
			return err
		}
		if link = maps.Clone(history.Find(linkSegment)); link == nil {
			now := FormatMillis(NowMillis())
			link = StatusEntry{"loadName": linkSegment, "loadStatus": StatusDeleted, "loadStartTime": now,
				"timestamp": now}
		}
		link["visibility"] = "false"
		if link.Loading() {
			link["loadStatus"] = StatusDeleted
		}
	}
	delete(link, "updateStatusFileName")
	if updates != "" {
		link["updateStatusFileName"] = updates
		delete((*s)[0], "updateStatusFileName")
	}
	s.Remove(func(e StatusEntry) bool { return e.Text("loadName") == linkSegment })
	*s = slices.Insert(*s, 0, map[string]any(link))
	return nil
}

// UnlinkNull removes the link to an update status that is the JSON null, and reports whether there was one. Updates of
// no rows by earlier versions of stoa wrote such files, and CarbonData cannot read a table with one.
func (s StatusFile) UnlinkNull(dir string) bool {
	if len(s) == 0 {
		return false
	}
	e := StatusEntry(s[0])
	b, err := os.ReadFile(filepath.Join(dir, "Metadata", e.Text("updateStatusFileName")))
	if err != nil || string(bytes.TrimSpace(b)) != "null" {
		return false
	}
	delete(e, "updateStatusFileName")
	return true
}

// ChangeStatus reads tablestatus, calls change, and writes it, all under its lock. The file is replaced by one rename,
// so that readers see the table either before or after the change. In a working copy of a table in a store, the change
// is called again if another writer was faster. accept is called first and returns an error if readers refuse the
// table: rewriting a damaged table would make it look sound.
func ChangeStatus(ctx context.Context, dir string, accept func() error, change func(s *StatusFile) error) error {
	unlock, err := Lock(ctx, dir, LockStatus, LockWait)
	if err != nil {
		return err
	}
	defer unlock()
	p := format.PublisherOf(ctx)
	if p == nil {
		return changeOnce(dir, accept, change)
	}
	end := time.Now().Add(LockWait)
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := p.Refresh(ctx, "Metadata/tablestatus", "Metadata/tablestatus.history")
		if err == nil {
			err = changeOnce(dir, accept, change)
		}
		if err == nil {
			err = p.Publish(ctx)
		}
		if !errors.Is(err, store.ErrChanged) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		select { // writers that change the table at once must not keep in step
		case <-time.After(rand.N(wait)):
		case <-ctx.Done():
		}
	}
}

// The first and the longest time in which a change of a table in a store is tried again.
const (
	firstWait = 20 * time.Millisecond
	lastWait  = time.Second
)

func changeOnce(dir string, accept func() error, change func(s *StatusFile) error) error {
	if err := accept(); err != nil {
		return err
	}
	s, err := ReadEntries(StatusPath(dir))
	if err != nil {
		return err
	}
	s.UnlinkNull(dir)
	if err := change(&s); err != nil {
		return err
	}
	if err := s.linkFirst(dir); err != nil {
		return err
	}
	if s == nil {
		s = StatusFile{} // CarbonData does not read null
	}
	b, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return ReplaceFile(StatusPath(dir), b)
}

// ReplaceFile writes a file, or replaces it, by one rename, and syncs it and its directory.
func ReplaceFile(name string, b []byte) error {
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
	return store.SyncDir(filepath.Dir(name))
}

// NewSegment returns the number for the next load: one more than the highest in tablestatus and its history.
func (s StatusFile) NewSegment(dir string) (string, error) {
	history, err := ReadEntries(HistoryPath(dir))
	if err != nil {
		return "", err
	}
	return strconv.Itoa(nextNumber(slices.Concat(s, history))), nil
}

// nextNumber returns one more than the highest segment number.
func nextNumber(s StatusFile) (next int) {
	for _, e := range s {
		whole, _, _ := strings.Cut(StatusEntry(e).Text("loadName"), ".")
		if n, err := strconv.Atoi(whole); err == nil && n >= next {
			next = n + 1
		}
	}
	return next
}

// Visible reports whether the files of the segment still exist.
func (e StatusEntry) Visible() bool { return !strings.EqualFold(e.Text("visibility"), "false") }

// Remove removes entries. The first entry names the update status; if it is removed, its successor takes over the name.
func (s *StatusFile) Remove(gone func(e StatusEntry) bool) {
	if len(*s) == 0 {
		return
	}
	updates := StatusEntry((*s)[0]).Text("updateStatusFileName")
	*s = slices.DeleteFunc(*s, func(e map[string]any) bool { return gone(e) })
	if len(*s) > 0 && updates != "" {
		(*s)[0]["updateStatusFileName"] = updates
	}
}

// Find returns the entry of a segment; nil if there is none.
func (s StatusFile) Find(name string) StatusEntry {
	for _, e := range s {
		if StatusEntry(e).Text("loadName") == name {
			return e
		}
	}
	return nil
}

// Loading reports whether a load has begun and not ended. Like KnownStatus it accepts both spellings.
func (e StatusEntry) Loading() bool {
	switch e.Text("loadStatus") {
	case StatusLoading, "Insert In Progress", "Overwrite In Progress", "Insert Overwrite In Progress":
		return true
	}
	return false
}

// Counts reports whether the segment's rows are read.
func (e StatusEntry) Counts() bool {
	l := Load{Status: e.Text("loadStatus")}
	return l.Counts()
}

// NowMillis returns the current time in milliseconds since 1970, the unit of tablestatus and file names.
func NowMillis() int64 { return time.Now().UnixMilli() }

// FormatMillis formats milliseconds since 1970 for tablestatus and file names.
func FormatMillis(ms int64) string { return strconv.FormatInt(ms, 10) }
