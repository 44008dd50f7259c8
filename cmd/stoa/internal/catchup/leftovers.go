package catchup

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"stoa/format"
	"stoa/internal/health"
	"stoa/store"
)

// Leftover is a file in the directory of a table that no snapshot or version of it has.
type Leftover struct {
	Name  string // below the directory
	Bytes int64
}

// Leftovers returns what killed runs have left in the directory of a table. busy: a running process may still write or
// commit some of it, because it holds a lock, or because not all of it is from before a time.
func (h Home) Leftovers(ctx context.Context, formats []format.Format, before time.Time) (left []Leftover, busy bool,
	err error) {
	var changed func(rel string) (time.Time, error)
	if h.place != nil {
		objects, err := h.place.List(ctx) // and the tree has no older view of it from now on
		if err != nil {
			return nil, false, err
		}
		changed = func(rel string) (time.Time, error) { return objects[rel].Changed, nil }
	} else {
		// Its own name shows the tables around it, whose files may be here, from wherever it is called what.
		if h.dir, err = filepath.EvalSymlinks(h.dir); err == nil {
			h.dir, err = filepath.Abs(h.dir)
		}
		if err != nil {
			return nil, false, err
		}
		unlock, free := h.lock()
		defer unlock()
		busy = !free
		changed = func(rel string) (time.Time, error) {
			st, err := os.Lstat(filepath.Join(h.dir, filepath.FromSlash(rel)))
			if err != nil {
				return time.Time{}, err
			}
			return st.ModTime(), nil
		}
	}
	dir := path.Clean(filepath.ToSlash(h.dir))
	files, err := health.Unnamed(ctx, formats, format.Target{Tree: h.tree, Name: dir}, format.OpenOptions{})
	if err != nil {
		return nil, false, err
	}
	for _, f := range files {
		rel := strings.TrimPrefix(f.Name, dir+"/")
		if h.place == nil && linked(h.dir, rel) { // another table may have it
			continue
		}
		at, err := changed(rel)
		if errors.Is(err, fs.ErrNotExist) { // its writer has renamed or removed it meanwhile
			busy = true
			continue
		}
		if err != nil {
			return nil, false, err
		}
		busy = busy || at.IsZero() || !at.Before(before)
		left = append(left, Leftover{rel, f.Size})
	}
	return left, busy, nil
}

// linked reports whether a file below a directory is reached by a symbolic link.
func linked(dir, rel string) bool {
	for at := path.Dir(rel); at != "."; at = path.Dir(at) {
		st, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(at)))
		if err != nil || st.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// hold locks a local table, so that other processes do not take the files of a change for what a killed run has left.
// It is not what keeps two changes apart, and a change does without it if need be: what is recent is kept, too.
func (h Home) hold() (unlock func()) {
	unlock, _ = h.lock()
	return unlock
}

// lock locks a local table; free: no other run had it.
func (h Home) lock() (unlock func(), free bool) {
	if h.place != nil {
		return func() {}, true
	}
	f, err := os.Open(h.dir)
	if err != nil {
		return func() {}, true
	}
	return func() { f.Close() }, store.TryLock(f)
}

// RemoveLeftover removes a file that Leftovers has returned.
func (h Home) RemoveLeftover(ctx context.Context, l Leftover) error {
	if h.place == nil && strings.HasPrefix(path.Base(l.Name), store.TempPrefix) { // it may be a directory
		return os.RemoveAll(filepath.Join(h.dir, filepath.FromSlash(l.Name)))
	}
	return h.remove(ctx, l.Name)
}
