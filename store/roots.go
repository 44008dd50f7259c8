package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"strings"
	"sync"
)

// RootsMark begins the name of a place that consists of several places: @FILE.
const RootsMark = "@"

// maxRoots is the maximum size of a file of roots in bytes.
const maxRoots = 1 << 20

// Roots returns t with an additional kind of name, by which several directories can be one place: @FILE is a directory
// whose children are the places listed in FILE, one per line (empty lines and lines that begin with # are ignored;
// relative names are relative to the directory of FILE). The contents of the place /disk1/kudu have names that begin
// with @FILE/disk1/kudu/. An existing object of t with such a name takes precedence.
func Roots(t Tree) Tree {
	if r, ok := t.(*roots); ok {
		return r
	}
	return &roots{Tree: t, sets: map[string]*rootSet{}}
}

// Joined returns a Tree in which several directories are one place, as if their names were listed in a file, and the
// place's name. A single directory is its own place.
func Joined(t Tree, names []string) (Tree, string, error) {
	if len(names) == 1 {
		return Roots(t), names[0], nil
	}
	set := &rootSet{}
	for _, name := range names {
		if err := set.add(path.Clean(name)); err != nil {
			return nil, "", err
		}
	}
	return &roots{Tree: t, sets: map[string]*rootSet{RootsMark: set}}, RootsMark, nil
}

type roots struct {
	Tree
	mu   sync.Mutex
	sets map[string]*rootSet // by the part of names before the place; nil: it is not a file of roots
}

// rootSet is the content of a file of roots.
type rootSet struct {
	file  string
	names []string // of the places, in the tree below
	shown []string // names as children of the set
}

// Unwrap returns the underlying tree.
func (r *roots) Unwrap() Tree { return r.Tree }

// Below returns the name that an object of a Tree has in the trees that it wraps.
func Below(t Tree, name string) string {
	for {
		if r, ok := t.(*roots); ok {
			if in, err := r.find(context.Background(), name); err == nil && in.set != nil && !in.top {
				name = in.name
			}
		}
		w, ok := t.(interface{ Unwrap() Tree })
		if !ok {
			return name
		}
		t = w.Unwrap()
	}
}

// RootsOf returns the places that name consists of; none if it is not such a name.
func RootsOf(ctx context.Context, t Tree, name string) ([]string, error) {
	r, ok := t.(*roots)
	for w := t; !ok; {
		inner, wraps := w.(interface{ Unwrap() Tree })
		if !wraps {
			r = Roots(t).(*roots)
			break
		}
		w = inner.Unwrap()
		r, ok = w.(*roots)
	}
	in, err := r.find(ctx, name)
	if err != nil || in.set == nil || !in.top {
		return nil, err
	}
	return in.set.names, nil
}

// inRoots is the meaning of a name: the set itself, or an object in one of its places.
type inRoots struct {
	set      *rootSet // nil: the name belongs to the tree below
	top      bool
	root     int
	name     string // in the tree below
	shown    string // of the place
	original string // of the place, in the tree below
}

func (r *roots) find(ctx context.Context, name string) (in inRoots, err error) {
	if !strings.HasPrefix(name, RootsMark) {
		return in, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	set, before, err := r.setOf(ctx, name)
	if err != nil || set == nil {
		return in, err
	}
	rest := strings.TrimPrefix(path.Clean("/"+strings.TrimPrefix(name, before)), "/")
	if rest == "" {
		return inRoots{set: set, top: true}, nil
	}
	for i, shown := range set.shown {
		if rest == shown || strings.HasPrefix(rest, shown+"/") {
			return inRoots{set: set, root: i, shown: before + "/" + shown, original: set.names[i],
				name: path.Join(set.names[i], strings.TrimPrefix(rest, shown))}, nil
		}
	}
	return in, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// setOf returns the set whose name is, or begins, a name. The caller holds mu.
func (r *roots) setOf(ctx context.Context, name string) (set *rootSet, before string, err error) {
	for end := 0; end < len(name); {
		if set := r.sets[RootsMark]; end == 0 && set != nil && (name == RootsMark || name[len(RootsMark)] == '/') {
			return set, RootsMark, nil
		}
		end = max(end, len(RootsMark))
		if end >= len(name) {
			break
		}
		if k := strings.IndexByte(name[end+1:], '/'); k >= 0 {
			end += 1 + k
		} else {
			end = len(name)
		}
		before = name[:end]
		set, known := r.sets[before]
		if !known {
			if set, err = r.read(ctx, before); err != nil {
				return nil, "", err
			}
			r.sets[before] = set
		}
		if set != nil {
			return set, before, nil
		}
	}
	return nil, "", nil
}

// read reads the file of roots that a name refers to; nil if it does not refer to one.
func (r *roots) read(ctx context.Context, name string) (*rootSet, error) {
	if _, err := r.Tree.Stat(ctx, name); err == nil {
		return nil, nil
	}
	file := strings.TrimPrefix(name, RootsMark)
	info, err := r.Tree.Stat(ctx, file)
	if err != nil || info.Dir {
		return nil, nil // the caller reports that name does not exist
	}
	bad := func(layout string, args ...any) error {
		return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf(layout, args...)}
	}
	if info.Size > maxRoots {
		return nil, bad("%d bytes are no list of places", info.Size)
	}
	src, err := r.Tree.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	b := make([]byte, info.Size)
	if n, err := src.ReadAt(ctx, b, 0); err != nil && !errors.Is(err, io.EOF) || n < len(b) {
		return nil, errors.Join(err, bad("the file is shorter than it was"))
	}
	set := &rootSet{file: file}
	for _, line := range strings.Split(strings.TrimPrefix(string(b), "\ufeff"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.TrimSpace(line) == "" || line[0] == '#' {
			continue
		}
		if !path.IsAbs(line) {
			line = path.Join(path.Dir(file), line)
		}
		if line = path.Clean(line); !utf8Line(line) {
			return nil, bad("it is no list of places, one a line")
		}
		if err := set.add(line); err != nil {
			return nil, bad("%w", err)
		}
	}
	if len(set.names) == 0 {
		return nil, bad("it names no place")
	}
	return set, nil
}

// utf8Line reports whether a line can be a name.
func utf8Line(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == '\uFFFD' })
}

// add adds a place. Places must not contain each other, as their contents would then appear twice.
func (s *rootSet) add(name string) error {
	shown := strings.TrimPrefix(name, "/")
	for strings.HasPrefix(shown, "../") {
		shown = shown[len("../"):]
	}
	if shown == "" || shown == ".." || shown == "." {
		shown = "root"
	}
	for i, other := range s.names {
		switch {
		case other == name:
			return fmt.Errorf("%s is named twice", name)
		case contains(other, name) || contains(name, other):
			return fmt.Errorf("of the places %s and %s, one lies in the other", other, name)
		case contains(s.shown[i], shown) || contains(shown, s.shown[i]) || s.shown[i] == shown:
			return fmt.Errorf("%s and %s cannot be told apart; write them as absolute paths", other, name)
		}
	}
	s.names, s.shown = append(s.names, name), append(s.shown, shown)
	return nil
}

func contains(dir, name string) bool {
	return strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

func (r *roots) Open(ctx context.Context, name string) (Source, error) {
	in, err := r.find(ctx, name)
	switch {
	case err != nil:
		return nil, err
	case in.top:
		return nil, &fs.PathError{Op: "open", Path: name, Err: noFile("a directory")}
	case in.set == nil:
		return r.Tree.Open(ctx, name)
	}
	return r.Tree.Open(ctx, in.name)
}

func (r *roots) Stat(ctx context.Context, name string) (Info, error) {
	in, err := r.find(ctx, name)
	switch {
	case err != nil:
		return Info{}, err
	case in.top:
		return Info{Name: name, Dir: true}, nil
	case in.set == nil:
		return r.Tree.Stat(ctx, name)
	}
	info, err := r.Tree.Stat(ctx, in.name)
	info.Name = name
	return info, err
}

func (r *roots) List(ctx context.Context, dir string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		in, err := r.find(ctx, dir)
		switch {
		case err != nil:
			yield(Info{}, err)
			return
		case in.top:
			for i, root := range in.set.names {
				info, err := r.Tree.Stat(ctx, root)
				if err != nil { // a missing place must not look like an empty one
					yield(Info{}, err)
					return
				}
				if info.Name = path.Clean(dir) + "/" + in.set.shown[i]; !yield(info, nil) {
					return
				}
			}
			return
		case in.set == nil:
			r.Tree.List(ctx, dir)(yield)
			return
		}
		for info, err := range r.Tree.List(ctx, in.name) {
			if info.Name != "" {
				info.Name = in.show(info.Name)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Irregular yields that of the tree below.
func (r *roots) Irregular(ctx context.Context, dir string) iter.Seq[Irregular] {
	return func(yield func(Irregular) bool) {
		in, err := r.find(ctx, dir)
		if err != nil || in.top {
			return
		}
		below := dir
		if in.set != nil {
			below = in.name
		}
		for irregular := range IrregularIn(ctx, r.Tree, below) {
			if in.set != nil {
				irregular.Name = in.show(irregular.Name)
			}
			if !yield(irregular) {
				return
			}
		}
	}
}

// show returns the name in the set of an object with a name in the tree below.
func (in inRoots) show(name string) string {
	return path.Join(in.shown, strings.TrimPrefix(path.Clean(name), path.Clean(in.original)))
}

// ResolveDotDot is that of the tree below, for names of that tree.
func (r *roots) ResolveDotDot(name string) string {
	local, ok := r.Tree.(interface{ ResolveDotDot(string) string })
	if !ok || strings.HasPrefix(name, RootsMark) {
		return name
	}
	return local.ResolveDotDot(name)
}
