package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"stoa/internal/sorted"
	"stoa/store"
)

// Tree is the local file system as far as it lies in some places. Names are those of store.Local; what does not lie in
// a place does not exist, and neither does what a link leads to outside of it: names are resolved by os.Root, element
// by element, so that replacing a directory by a link meanwhile leads nowhere either.
type Tree struct{ places []place }

// place is a directory, or one file in a directory.
type place struct {
	name string // as the user gave it, clean, with slashes
	root *os.Root
	file string // the only name in root; "": everything
}

// NewTree returns a tree of places, which must exist. A name with .. is replaced by the absolute one.
func NewTree(names []string) (*Tree, error) {
	t := &Tree{}
	for _, name := range names {
		p, err := newPlace(name)
		if err != nil {
			t.Close()
			return nil, err
		}
		t.places = append(t.places, p)
	}
	return t, nil
}

func newPlace(name string) (p place, err error) {
	if strings.ContainsRune(name, 0) || name == "" {
		return p, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	if hasDotDot(filepath.ToSlash(name)) {
		if name, err = filepath.EvalSymlinks(name); err == nil {
			name, err = filepath.Abs(name)
		}
		if err != nil {
			return p, err
		}
	}
	p.name = path.Clean(filepath.ToSlash(name))
	real, err := filepath.EvalSymlinks(filepath.FromSlash(p.name)) // the place itself may be a link
	if err != nil {
		return p, err
	}
	st, err := os.Stat(real)
	switch {
	case err != nil:
		return p, err
	case st.Mode().IsRegular():
		real, p.file = filepath.Split(real)
		real = cmp.Or(real, ".")
	case !st.IsDir():
		return p, &fs.PathError{Op: "open", Path: name, Err: errors.New("neither a file nor a directory")}
	}
	p.root, err = os.OpenRoot(real)
	return p, err
}

func hasDotDot(name string) bool { return slices.Contains(strings.Split(name, "/"), "..") }

// Close closes the places.
func (t *Tree) Close() error {
	var err error
	for _, p := range t.places {
		err = cmp.Or(err, p.root.Close())
	}
	return err
}

// Places returns the names of the places.
func (t *Tree) Places() (names []string) {
	for _, p := range t.places {
		names = append(names, p.name)
	}
	return names
}

// Unwrap returns the file system whose names these are.
func (t *Tree) Unwrap() store.Tree { return store.Local{} }

// Contains reports whether a name is that of a place or lies below one, by its words alone. A name with .. never does.
func (t *Tree) Contains(name string) bool {
	_, _, err := t.locate("find", name)
	return err == nil
}

// Check returns an error unless a name, PATH or PATH#TABLE, is that of a place or lies below one, by its words alone.
func (t *Tree) Check(name string) error {
	p := name
	if k := store.TableAt(name, t.Contains); k >= 0 && !t.Contains(p) {
		p = name[:k]
	}
	if hasDotDot(name) || !t.Contains(p) || strings.HasPrefix(name, store.RootsMark) {
		return &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return nil
}

// locate returns the place that a name lies in, and the name in its root.
func (t *Tree) locate(op, name string) (place, string, error) {
	missing := &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	slashed := filepath.ToSlash(name)
	if strings.ContainsRune(name, 0) || hasDotDot(slashed) || name == "" {
		return place{}, "", missing
	}
	clean := path.Clean(slashed)
	best := -1
	for i, p := range t.places {
		if within(p.name, clean) && (best < 0 || len(p.name) > len(t.places[best].name)) {
			best = i
		}
	}
	if best < 0 {
		return place{}, "", missing
	}
	p := t.places[best]
	rest := clean
	if p.name != "." {
		rest = strings.TrimPrefix(strings.TrimPrefix(clean, p.name), "/")
	}
	switch {
	case p.file != "" && rest != "":
		return place{}, "", missing
	case p.file != "":
		return p, p.file, nil
	}
	return p, cmp.Or(rest, "."), nil
}

func within(place, name string) bool {
	switch place {
	case ".":
		return !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../")
	case "/":
		return path.IsAbs(name)
	}
	return name == place || strings.HasPrefix(name, place+"/")
}

// Stat describes an object.
func (t *Tree) Stat(_ context.Context, name string) (store.Info, error) {
	p, in, err := t.locate("stat", name)
	if err != nil {
		return store.Info{}, err
	}
	st, err := p.root.Stat(filepath.FromSlash(in))
	if err != nil {
		return store.Info{}, renamed(err, name)
	}
	return infoOf(name, st), nil
}

// renamed returns an error with the name that was asked for. A link that leads out of the place leads to nothing.
func renamed(err error, name string) error {
	pe, ok := err.(*fs.PathError)
	if !ok {
		return err
	}
	if escapes(pe.Err) {
		pe.Err = fs.ErrNotExist
	}
	return &fs.PathError{Op: strings.TrimSuffix(pe.Op, "at"), Path: name, Err: pe.Err}
}

// escapes reports whether an error of os.Root, which has no name, says that a path leads out of it.
func escapes(err error) bool {
	return err != nil && strings.Contains(err.Error(), "escapes from parent")
}

func infoOf(name string, st fs.FileInfo) store.Info {
	if st.IsDir() {
		return store.Info{Name: name, Dir: true}
	}
	return store.Info{Name: name, Size: st.Size(), Stamp: fmt.Sprintf("%d-%d", st.Size(), st.ModTime().UnixNano())}
}

// Open opens a regular file, and nothing else: opening a pipe would wait for its other end.
func (t *Tree) Open(_ context.Context, name string) (store.Source, error) {
	p, in, err := t.locate("open", name)
	if err != nil {
		return nil, err
	}
	in = filepath.FromSlash(in)
	st, err := p.root.Stat(in)
	if err == nil && !st.Mode().IsRegular() {
		return nil, notRegular(name, st)
	}
	if err != nil {
		return nil, renamed(err, name)
	}
	f, err := p.root.OpenFile(in, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may have become a pipe meanwhile
	if err != nil {
		return nil, renamed(err, name)
	}
	if st, err = f.Stat(); err == nil && !st.Mode().IsRegular() {
		err = notRegular(name, st)
	}
	if err != nil {
		f.Close()
		return nil, renamed(err, name)
	}
	return &source{f, st.Size()}, nil
}

// maxCounted is how many files are counted at most.
const maxCounted = 5000

// sizeOf returns the size of a file, or of all files below the place of a table; 0 if that is not known, or there are
// very many.
func (t *Tree) sizeOf(ctx context.Context, name string) (sum int64) {
	there := func(name string) bool {
		_, err := t.Stat(ctx, name)
		return err == nil
	}
	if k := store.TableAt(name, there); k >= 0 && !there(name) {
		name = name[:k]
	}
	info, err := t.Stat(ctx, name)
	if err != nil || !info.Dir {
		return info.Size
	}
	left := maxCounted
	var walk func(dir string, depth int) bool
	walk = func(dir string, depth int) bool {
		for x, err := range t.List(ctx, dir) {
			if left--; err != nil || left < 0 || depth > 32 {
				return false
			}
			if x.Dir && !walk(x.Name, depth+1) {
				return false
			}
			sum += x.Size
		}
		return true
	}
	if !walk(name, 0) {
		return 0
	}
	return sum
}

func notRegular(name string, st fs.FileInfo) error {
	if st.IsDir() {
		return &fs.PathError{Op: "open", Path: name, Err: store.ErrDirectory}
	}
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf("%s: %w", kindOf(st.Mode()), fs.ErrInvalid)}
}

type source struct {
	f    *os.File
	size int64
}

func (s *source) Size() int64  { return s.size }
func (s *source) Close() error { return s.f.Close() }
func (s *source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.f.ReadAt(p, off)
}

// List lists a directory, without what is no object: dangling links and links out of the place, pipes, devices.
func (t *Tree) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for e, err := range t.children(ctx, dir) {
			if e.irregular == nil && !yield(e.Info, err) {
				return
			}
		}
	}
}

// Irregular yields what List leaves out.
func (t *Tree) Irregular(ctx context.Context, dir string) iter.Seq[store.Irregular] {
	return func(yield func(store.Irregular) bool) {
		for e := range t.children(ctx, dir) {
			if e.irregular != nil && !yield(*e.irregular) {
				return
			}
		}
	}
}

// children yields the entries of a directory; what is no object comes as an Irregular.
func (t *Tree) children(ctx context.Context, dir string) iter.Seq2[entry, error] {
	return func(yield func(entry, error) bool) {
		p, in, err := t.locate("list", dir)
		var entries []fs.DirEntry
		if err == nil {
			entries, err = readDir(p.root, filepath.FromSlash(in))
		}
		if err != nil {
			yield(entry{}, renamed(err, dir))
			return
		}
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				yield(entry{}, err)
				return
			}
			child, err := p.child(path.Join(dir, e.Name()), path.Join(in, e.Name()), e)
			if !errors.Is(err, fs.ErrNotExist) && !yield(child, err) {
				return
			}
		}
	}
}

func readDir(root *os.Root, name string) ([]fs.DirEntry, error) {
	d, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its other end
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	sorted.By(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

// entry is an object in a directory, or what is none.
type entry struct {
	store.Info
	irregular *store.Irregular
}

// child returns the entry e of a directory; in is its name in the place's root. If it was removed meanwhile, the error
// is fs.ErrNotExist.
func (p place) child(name, in string, e fs.DirEntry) (entry, error) {
	other := func(what string, link bool) (entry, error) {
		return entry{irregular: &store.Irregular{Name: name, What: what, Link: link}}, nil
	}
	link := e.Type()&fs.ModeSymlink != 0
	st, err := p.root.Stat(filepath.FromSlash(in))
	switch {
	case link && err != nil && escapes(err):
		return other("a link out of what is served", true)
	case link && errors.Is(err, fs.ErrNotExist):
		return other("a link to what is not there", true)
	case link && err != nil:
		return other("a link that cannot be followed", true)
	case err != nil:
		return entry{Info: store.Info{Name: name}}, renamed(err, name)
	case link && st.IsDir() && p.leadsUp(in, st):
		return other("a link to a directory above", false)
	case !st.IsDir() && !st.Mode().IsRegular():
		return other(kindOf(st.Mode()), false)
	}
	return entry{Info: infoOf(name, st)}, nil
}

// leadsUp reports whether a link at in, which leads to a directory, leads to one on the path to it: following it would
// never end.
func (p place) leadsUp(in string, to fs.FileInfo) bool {
	for dir := path.Dir(in); ; dir = path.Dir(dir) {
		if st, err := p.root.Stat(filepath.FromSlash(dir)); err == nil && os.SameFile(st, to) {
			return true
		}
		if dir == "." {
			return false
		}
	}
}

func kindOf(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
