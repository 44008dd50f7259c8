package change

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// Cleaned is what Clean removed, or would remove: entries of tablestatus, and files.
type Cleaned = format.Cleaned

// Clean removes what is no longer part of the table: interrupted loads, deleted and compacted segments, files of
// segments that tablestatus does not name, temporary files, earlier update statuses, and delete deltas that the current
// one does not name. Directories that were added to the table are kept with everything in them. A running load, which
// holds the lock of its segment, is kept. With dry nothing is removed and no lock is taken, because taking a lock
// creates its file.
func Clean(ctx context.Context, dir string, dry bool) (out Cleaned, err error) {
	return cleanTable(ctx, dir, time.Time{}, dry)
}

// cleanTable is Clean, but also keeps loads that began after a time.
func cleanTable(ctx context.Context, dir string, kept time.Time, dry bool) (out Cleaned, err error) {
	if _, err := ReadTableSchema(dir); err != nil {
		return out, err
	}
	if dry {
		s, err := status.ReadEntries(status.StatusPath(dir))
		if err == nil {
			s.UnlinkNull(dir)
			err = clean(ctx, dir, s, kept, true, &out)
		}
		return out, err
	}
	for _, name := range []string{status.LockCompaction, status.LockUpdate} {
		unlock, err := status.Lock(ctx, dir, name, status.LockWait)
		if err != nil {
			return out, err
		}
		defer unlock()
	}
	// what tablestatus names is removed only after it no longer names it
	if s, err := status.ReadEntries(status.StatusPath(dir)); err == nil && s.UnlinkNull(dir) {
		if err := changeStatus(ctx, dir, func(*status.StatusFile) error { return nil }); err != nil {
			return out, err
		}
	}
	err = changeStatus(ctx, dir, func(s *status.StatusFile) error {
		if err := clean(ctx, dir, *s, kept, false, &out); err != nil {
			return err
		}
		return s.Retire(dir, out.Segments)
	})
	return out, err
}

// clean removes files and adds them and their segments to out; with dry it removes nothing.
func clean(ctx context.Context, dir string, s status.StatusFile, kept time.Time, dry bool, out *Cleaned) error {
	keep := cleanEntries(ctx, dir, s, kept, dry, out)
	err := cleanFiles(dir, s, keep, dry, out)
	slices.Sort(out.Files)
	return err
}

// cleanEntries adds the segments to be removed to out, and returns the segments whose files are kept.
func cleanEntries(ctx context.Context, dir string, s status.StatusFile, kept time.Time, dry bool,
	out *Cleaned) map[string]bool {
	keep := map[string]bool{}
	for _, x := range s {
		e := status.StatusEntry(x)
		name := e.Text("loadName")
		switch stated := e.Text("loadStatus"); {
		case !e.Visible() && !e.Counts(): // it has already been cleaned
		case stated == status.StatusDeleted || stated == status.StatusCompacted:
			out.Segments = append(out.Segments, name)
		case e.Loading():
			began := status.ParseTime(e.Text("loadStartTime"))
			if !kept.IsZero() && began.After(kept) || running(ctx, dir, "Segment_"+name+".lock", dry) {
				keep[name] = true
				continue
			}
			out.Segments = append(out.Segments, name)
		default:
			keep[name] = true
		}
	}
	return keep
}

// running reports whether the lock is held, which means that a load is running.
func running(ctx context.Context, dir, lock string, dry bool) bool {
	if dry {
		return !status.Free(dir, lock)
	}
	unlock, err := status.Lock(ctx, dir, lock, 0)
	if err == nil {
		unlock()
	}
	return err != nil
}

// cleanFiles removes the files that belong to none of the segments in keep, and adds them to out; with dry it removes
// nothing.
func cleanFiles(dir string, s status.StatusFile, keep map[string]bool, dry bool, out *Cleaned) error {
	deltas, err := deltasInUse(dir, s)
	added, err2 := placedFolders(dir, s)
	if err = cmp.Or(err, err2); err != nil {
		return err
	}
	// CarbonData's INSERT OVERWRITE of a partition reads the segment file of every entry, whatever its state, and fails
	// if one is missing.
	named := s.Staying()
	var dirs []string
	root := real(dir)
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel, err := filepath.Rel(dir, name); err != nil || added[filepath.Join(root, rel)] {
				return filepath.SkipDir // harmless: files that are not visited are kept
			}
			dirs = append(dirs, name)
			return nil
		}
		of, _ := segmentOfPath(name)
		gone := of != "" && !keep[of] || strings.HasPrefix(d.Name(), store.TempPrefix)
		if strings.HasSuffix(d.Name(), ".deletedelta") {
			gone = !deltas[d.Name()] || !keep[of]
		}
		if strings.HasPrefix(d.Name(), "tableupdatestatus-") {
			gone = len(s) == 0 || d.Name() != status.StatusEntry(s[0]).Text("updateStatusFileName")
		}
		of, lock := strings.CutPrefix(d.Name(), "Segment_")
		if !gone || named[d.Name()] || lock && strings.HasSuffix(of, ".lock") {
			return nil
		}
		if info, err := d.Info(); err == nil {
			out.Bytes += info.Size()
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if out.Files = append(out.Files, filepath.ToSlash(rel)); dry {
			return nil
		}
		return os.Remove(name)
	})
	if err != nil || dry {
		return err
	}
	slices.Reverse(dirs)
	for _, d := range dirs {
		if base := filepath.Base(d); strings.HasPrefix(base, "Segment_") || strings.Contains(base, "=") {
			os.Remove(d) // fails unless the directory is empty
		}
	}
	return nil
}

// readUpdates reads the update status that tablestatus names; nil if it names none.
func readUpdates(dir string, s status.StatusFile) (list []map[string]any, err error) {
	if len(s) == 0 || status.StatusEntry(s[0]).Text("updateStatusFileName") == "" {
		return nil, nil
	}
	name := status.StatusEntry(s[0]).Text("updateStatusFileName")
	b, err := os.ReadFile(filepath.Join(dir, "Metadata", name))
	if _, ok := status.Millis(name); ok && errors.Is(err, fs.ErrNotExist) { // a time, see table.overwritten
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(b, &list)
}

// deltasInUse are the names of the delete deltas whose times are in the ranges of the update status.
func deltasInUse(dir string, s status.StatusFile) (map[string]bool, error) {
	list, err := readUpdates(dir, s)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		base, ok := strings.CutSuffix(d.Name(), ".deletedelta")
		i := strings.LastIndexByte(base, '-')
		if err != nil || !ok || i < 0 {
			return err
		}
		at, _ := status.Millis(base[i+1:])
		for _, x := range list {
			u := status.StatusEntry(x)
			from, _ := status.Millis(u.Text("deleteDeltaStartTimestamp"))
			to, _ := status.Millis(u.Text("deleteDeltaEndTimestamp"))
			if u.Text("blockName") == base[:i] && at >= from && at <= to {
				out[d.Name()] = true
			}
		}
		return nil
	})
	return out, err
}

// placedFolders returns the directories inside the table in dir whose files were not written by loads of the segment
// that contains them: those of segments and partitions that were added. The numbers in the names of their files are
// those of other tables and segments, so only tablestatus and the segment files tell which segment they belong to. The
// history counts as well: the files of an added segment belong to whoever put them there, even after the segment was
// deleted and cleaned.
func placedFolders(dir string, s status.StatusFile) (map[string]bool, error) {
	history, err := status.ReadEntries(status.HistoryPath(dir))
	if err != nil {
		return nil, err
	}
	root := real(dir)
	out := map[string]bool{}
	add := func(folder string) {
		if folder = real(folder); folder == root || strings.HasPrefix(folder, root+string(filepath.Separator)) {
			out[folder] = true
		}
	}
	for _, x := range append(s[:len(s):len(s)], history...) {
		e := status.StatusEntry(x)
		if p := e.Text("path"); p != "" && p != "NA" {
			add(localName(p))
		}
		if e.Text("segmentFile") == "" {
			continue
		}
		name := filepath.Join(dir, "Metadata", "segments", filepath.Base(e.Text("segmentFile")))
		var seg status.SegmentFile
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(b, &seg)
		}
		if err != nil && e.Counts() { // the directories of the segment are unknown
			return nil, fault.Corruptf(fault.Span{Object: name}, "", "%v", err)
		}
		for k, f := range seg.Locations {
			if place := localName(k); !f.Relative && placed(f, place, e.Text("loadName")) {
				add(place)
			} else if place = filepath.Join(dir, place); f.Relative && placed(f, place, e.Text("loadName")) {
				add(place)
			}
		}
	}
	return out, nil
}

// placed reports whether a segment's files in a directory were written by something other than a load of that segment.
func placed(f status.Folder, place, segment string) bool {
	for _, index := range append([]string{f.Merge}, f.Files...) {
		if of, _ := status.SegmentOf(index); of != "" && of != segment {
			return true
		}
	}
	base := filepath.Base(place)
	return !f.Relative && base != "Segment_"+segment && !strings.Contains(base, "=")
}

// localName converts a Hadoop address of a local file to a file name.
func localName(location string) string {
	if rest, ok := strings.CutPrefix(location, "file:"); ok {
		location = "/" + strings.TrimLeft(rest, "/")
	}
	return filepath.FromSlash(location)
}

// real returns the absolute name of a directory with symbolic links resolved, as far as the directory exists.
func real(name string) string {
	if full, err := filepath.Abs(name); err == nil {
		name = full
	}
	if full, err := filepath.EvalSymlinks(name); err == nil {
		name = full
	}
	return filepath.Clean(name)
}
