package catchup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"stoa/store"
	"stoa/store/remote"
)

// Home is the directory of a table, in the local file system or at an address.
type Home struct {
	tree   store.Tree // in which the table is read
	dir    string     // its name there
	place  *remote.Place
	remote *remote.Tree
	single bool
}

// At returns the directory with a name: an address in t, or a local path. single: nobody else writes there, so that a
// store that ignores conditions will do.
func At(ctx context.Context, t *remote.Tree, name string, single bool) (Home, error) {
	if !remote.Is(name) {
		return Home{tree: store.Local{}, dir: name}, nil
	}
	dir, err := t.Enter(ctx, name)
	if err != nil {
		return Home{}, err
	}
	place, err := t.Place(dir)
	return Home{tree: t, dir: dir, place: place, remote: t, single: single}, err
}

// Kinds returns the formats of which the table in the directory is, in the order in which they are changed.
func (h Home) Kinds(ctx context.Context) (kinds []string, err error) {
	if h.place != nil { // another process may have written there since it was listed
		if _, err := h.place.List(ctx); err != nil {
			return nil, err
		}
	}
	for _, k := range []struct{ kind, dir, suffix string }{{"iceberg", "metadata", ".metadata.json"},
		{"delta", "_delta_log", ".json"}} {
		for info, err := range h.tree.List(ctx, path.Join(filepath.ToSlash(h.dir), k.dir)) {
			if errors.Is(err, fs.ErrNotExist) {
				break
			}
			if err != nil {
				return nil, err
			}
			base := path.Base(info.Name)
			checkpoint := k.kind == "delta" && strings.Contains(base, ".checkpoint.") // versions before it may be gone
			if strings.HasSuffix(base, k.suffix) || checkpoint {
				kinds = append(kinds, k.kind)
				break
			}
		}
	}
	return kinds, nil
}

// renewHint corrects the file by which some readers find the newest metadata: a run that was killed after its change
// has left the number of those before it.
func (o *Options) renewHint(ctx context.Context) error {
	if o.DryRun || o.Delta {
		return nil
	}
	h := o.Home
	const dir, hint = "metadata", "metadata/version-hint.text"
	newest := 0
	for info, err := range h.tree.List(ctx, h.name(dir)) {
		if err != nil {
			return err
		}
		name, ours := strings.CutPrefix(path.Base(info.Name), "v")
		name, whole := strings.CutSuffix(name, ".metadata.json")
		if n, err := strconv.Atoi(name); ours && whole && err == nil {
			newest = max(newest, n)
		}
	}
	src, err := h.tree.Open(ctx, h.name(hint))
	if err != nil {
		return nil // there is none, and readers find the newest themselves
	}
	defer src.Close()
	text := make([]byte, min(src.Size(), 32))
	if n, err := src.ReadAt(ctx, text, 0); n < len(text) && err != nil {
		return err
	}
	if was, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil || was >= newest {
		return nil
	}
	return h.replace(ctx, hint, []byte(strconv.Itoa(newest)))
}

// Later reports whether a catalogue of the table has other versions than the first. It may have removed that one.
func (h Home) Later(ctx context.Context) bool {
	for _, k := range []struct{ dir, suffix, first string }{{"metadata", ".metadata.json", "v1.metadata.json"},
		{"_delta_log", ".json", "00000000000000000000.json"}} {
		n, first := 0, false
		for info, err := range h.tree.List(ctx, h.name(k.dir)) {
			if base := path.Base(info.Name); err == nil && strings.HasSuffix(base, k.suffix) {
				n, first = n+1, first || base == k.first
			}
		}
		if n > 1 || n == 1 && !first {
			return true
		}
	}
	return false
}

// check returns an error if the store lets two writers overwrite each other.
func (h Home) check(ctx context.Context) error {
	if h.place == nil || h.single {
		return nil
	}
	return h.place.CheckConditions(ctx)
}

// sink returns the sink of one file.
func (h Home) sink(ctx context.Context, rel string) (store.Sink, error) {
	if h.place != nil {
		return h.remote.Sink(ctx, remote.Shown(h.dir)+"/"+rel, remote.SinkOptions{})
	}
	to := filepath.Join(h.dir, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return nil, err
	}
	return store.Strict(store.Local{}.Sink(to, nil)), nil
}

// Remove removes a file of the directory; it is not an error if there is none.
func (h Home) Remove(ctx context.Context, rel string) error { return h.remove(ctx, rel) }

// remove removes a file; it is not an error if there is none.
func (h Home) remove(ctx context.Context, rel string) error {
	if h.place != nil {
		return h.place.Remove(ctx, rel)
	}
	err := os.Remove(filepath.Join(h.dir, filepath.FromSlash(rel)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// commit makes the change: the file appears whole, or not at all if another writer was faster.
func (h Home) commit(ctx context.Context, rel string, b []byte) (err error) {
	shown := path.Join(h.dir, rel)
	if h.place != nil {
		shown = remote.Shown(h.dir) + "/" + rel
		err = h.create(ctx, rel, b)
	} else {
		err = createLocal(filepath.Join(h.dir, filepath.FromSlash(rel)), b)
	}
	if errors.Is(err, fs.ErrExist) && !uncertain(err) { // after a lost answer, the file may be ours
		return fmt.Errorf("%s: another writer has changed the table meanwhile; nothing was committed: run again", shown)
	}
	return err
}

// uncertain reports whether a write that failed may have been done.
func uncertain(err error) bool { return errors.As(err, new(*remote.UncertainError)) }

// create creates an object that must not exist. A store with locks has no conditions: there the lock keeps two writers
// of stoa apart.
func (h Home) create(ctx context.Context, rel string, b []byte) error {
	unlock, err := h.place.Lock(ctx, path.Join(path.Dir(rel), "_stoa.lock"))
	if err != nil {
		return err
	}
	_, err = h.place.Put(ctx, rel, bytes.NewReader(b), int64(len(b)), remote.Condition{Absent: !h.single})
	if unlock != nil {
		_ = unlock() // the object is there or not all the same, and what it names must be kept; the lock ends with us
	}
	return err
}

func createLocal(to string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	tmp, remove, err := store.Local{}.TempDir(to)
	if err != nil {
		return err
	}
	defer remove()
	from := filepath.Join(tmp, filepath.Base(to))
	if err := write(context.Background(), store.Strict(store.Local{}.Sink(from, nil)), b); err != nil {
		return err
	}
	return os.Link(from, to)
}

// replace writes a file that may exist.
func (h Home) replace(ctx context.Context, rel string, b []byte) error {
	s, err := h.sink(ctx, rel)
	if err != nil {
		return err
	}
	return write(ctx, s, b)
}

func write(ctx context.Context, s store.Sink, b []byte) error {
	o, err := s.Create(ctx, "")
	if err != nil {
		return err
	}
	if _, err := bytes.NewReader(b).WriteTo(o); err != nil {
		return errors.Join(err, o.Close(), s.Abort(ctx))
	}
	if err := o.Close(); err != nil {
		return errors.Join(err, s.Abort(ctx))
	}
	return s.Commit(ctx)
}

// with returns the tree of the directory with one more file in it.
func (h Home) with(rel string, b []byte) store.Tree {
	return &withFile{Tree: h.tree, name: path.Join(filepath.ToSlash(h.dir), rel), bytes: b}
}

// withFile is a tree with one more file.
type withFile struct {
	store.Tree
	name  string
	bytes []byte
}

func (t *withFile) memory() *store.Memory { return store.NewMemory(map[string][]byte{t.name: t.bytes}) }

// is reports whether a name is that of the file, however it is written.
func (t *withFile) is(name string) bool { return path.Clean(filepath.ToSlash(name)) == t.name }

func (t *withFile) Open(ctx context.Context, name string) (store.Source, error) {
	if t.is(name) {
		return t.memory().Open(ctx, t.name)
	}
	return t.Tree.Open(ctx, name)
}

func (t *withFile) Stat(ctx context.Context, name string) (store.Info, error) {
	if t.is(name) {
		return t.memory().Stat(ctx, t.name)
	}
	info, err := t.Tree.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) { // the file's may be the first in its directory
		if own, e := t.memory().Stat(ctx, path.Clean(filepath.ToSlash(name))); e == nil {
			return own, nil
		}
	}
	return info, err
}

func (t *withFile) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		seen := map[string]bool{}
		for info, err := range t.Tree.List(ctx, dir) {
			if errors.Is(err, fs.ErrNotExist) && t.has(ctx, dir) {
				break
			}
			seen[path.Base(info.Name)] = true
			if !yield(info, err) {
				return
			}
		}
		for info, err := range t.memory().List(ctx, path.Clean(filepath.ToSlash(dir))) {
			if err == nil && !seen[path.Base(info.Name)] && !yield(info, nil) {
				return
			}
		}
	}
}

// has reports whether the file lies in a directory, at any depth.
func (t *withFile) has(ctx context.Context, dir string) bool {
	info, err := t.memory().Stat(ctx, path.Clean(filepath.ToSlash(dir)))
	return err == nil && info.Dir
}

func (t *withFile) Irregular(ctx context.Context, dir string) iter.Seq[store.Irregular] {
	return store.IrregularIn(ctx, t.Tree, dir)
}

func (t *withFile) Outside(name string) bool { return store.Outside(t.Tree, name) }

// adding is a sink that adds files to a directory: each appears when it is complete.
type adding struct {
	home Home
	made []*added // those that have not appeared
	done []string // all
}

// added is a file that is being written.
type added struct {
	store.Object
	sink   store.Sink
	closed bool
}

func (o *added) Close() error {
	o.closed = true
	return o.Object.Close()
}

func (s *adding) Create(ctx context.Context, name string) (store.Object, error) {
	one, err := s.home.sink(ctx, name)
	if err != nil {
		return nil, err
	}
	o, err := one.Create(ctx, "")
	if err != nil {
		return nil, err
	}
	f := &added{Object: o, sink: one}
	s.made, s.done = append(s.made, f), append(s.done, name)
	return f, nil
}

func (s *adding) Scratch(context.Context) (store.Scratch, error) { return store.NewScratch() }

// Commit gives the files their names that are complete: several writers share the sink. Nothing refers to them before
// the metadata do.
func (s *adding) Commit(ctx context.Context) error {
	var open []*added
	for _, f := range s.made {
		if !f.closed {
			open = append(open, f)
		} else if err := f.sink.Commit(ctx); err != nil {
			return err
		}
	}
	s.made = open
	return nil
}

// Abort removes the files.
func (s *adding) Abort(ctx context.Context) (err error) {
	for _, f := range s.made {
		err = errors.Join(err, f.sink.Abort(ctx))
	}
	for _, name := range slices.Backward(s.done) {
		err = errors.Join(err, s.home.remove(ctx, name))
	}
	s.keep()
	return err
}

// keep forgets the files: they are part of the table, or may be.
func (s *adding) keep() { s.made, s.done = nil, nil }

// Upload writes the table in a local directory to a sink: data before the metadata that name them, and these in their
// order.
func Upload(ctx context.Context, dir string, sink store.Sink) (err error) {
	var data, catalogue []string
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, name) // name begins with dir
		switch rel = filepath.ToSlash(rel); {
		case err != nil || d.IsDir():
		case strings.HasPrefix(rel, "_delta_log/") || strings.HasPrefix(rel, "metadata/"):
			catalogue = append(catalogue, rel)
		default:
			data = append(data, rel)
		}
		return err
	})
	for _, rel := range append(data, catalogue...) {
		if err == nil {
			err = uploadFile(ctx, filepath.Join(dir, filepath.FromSlash(rel)), sink, rel)
		}
	}
	if err == nil {
		err = sink.Commit(ctx)
	}
	if err != nil {
		return errors.Join(err, sink.Abort(ctx))
	}
	return nil
}

func uploadFile(ctx context.Context, from string, sink store.Sink, rel string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	o, err := sink.Create(ctx, rel)
	if err != nil {
		return err
	}
	_, err = io.Copy(o, f)
	return errors.Join(err, o.Close())
}
