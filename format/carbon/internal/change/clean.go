package change

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa/format"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// Cleaned is what Clean removed, or would remove: entries of tablestatus, and files.
type Cleaned = format.Cleaned

// Clean removes what is no longer part of the table: interrupted loads, deleted and compacted segments, files of
// segments that tablestatus does not name, temporary files, earlier update statuses, and delete deltas that the current
// one does not name. A running load holds the lock of its segment and is kept. With dry nothing is removed, and no lock
// taken, as taking one makes its file.
func Clean(ctx context.Context, dir string, dry bool) (out Cleaned, err error) {
	if _, err := ReadTableSchema(dir); err != nil {
		return out, err
	}
	if dry {
		s, err := status.ReadEntries(status.StatusPath(dir))
		if err == nil {
			err = clean(ctx, dir, s, true, &out)
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
	err = changeStatus(ctx, dir, func(s *status.StatusFile) error {
		if err := clean(ctx, dir, *s, false, &out); err != nil {
			return err
		}
		return s.Retire(dir, out.Segments)
	})
	return out, err
}

// clean removes files, or, if dry, only adds them and their segments to out.
func clean(ctx context.Context, dir string, s status.StatusFile, dry bool, out *Cleaned) error {
	keep := cleanEntries(ctx, dir, s, dry, out)
	err := cleanFiles(dir, s, keep, dry, out)
	slices.Sort(out.Files)
	return err
}

// cleanEntries adds the segments to be removed to out, and returns those whose files are kept.
func cleanEntries(ctx context.Context, dir string, s status.StatusFile, dry bool, out *Cleaned) map[string]bool {
	keep := map[string]bool{}
	for _, x := range s {
		e := status.StatusEntry(x)
		name := e.Text("loadName")
		switch stated := e.Text("loadStatus"); {
		case !e.Visible() && !e.Counts(): // it was cleaned before
		case stated == status.StatusDeleted || stated == status.StatusCompacted:
			out.Segments = append(out.Segments, name)
		case e.Loading():
			if running(ctx, dir, "Segment_"+name+".lock", dry) {
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

// running reports whether a load holds its lock.
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

// cleanFiles removes the files that belong to none of the segments keep, or, if dry, only adds them to out.
func cleanFiles(dir string, s status.StatusFile, keep map[string]bool, dry bool, out *Cleaned) error {
	deltas, err := deltasInUse(dir, s)
	if err != nil {
		return err
	}
	var dirs []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
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
		if of, ok := strings.CutPrefix(d.Name(), "Segment_"); ok && strings.HasSuffix(of, ".lock") {
			gone = false
		}
		if !gone {
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
			os.Remove(d) // fails unless it is empty
		}
	}
	return nil
}

// readUpdates reads the update status that tablestatus names; nil if it names none.
func readUpdates(dir string, s status.StatusFile) (list []map[string]any, err error) {
	if len(s) == 0 || status.StatusEntry(s[0]).Text("updateStatusFileName") == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, "Metadata", status.StatusEntry(s[0]).Text("updateStatusFileName")))
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
