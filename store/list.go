package store

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// List follows links, as Open does, but not to a directory above, which would never end. It leaves out dangling links,
// pipes, sockets and devices, which are not objects: Irregular reports them.
func (Local) List(ctx context.Context, dir string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for info, err := range children(ctx, dir, nil) {
			if irregular := new(Irregular); errors.As(err, &irregular) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Irregular is an entry of a directory that is not an object of a Tree, although it has a name there.
type Irregular struct {
	Name string // full, as in Info
	What string // "a named pipe"
	Link bool   // a dangling link, whose target may have been an object
}

func (o *Irregular) Error() string { return o.Name + ": " + o.What }

// Irregular yields the direct children of a directory that List leaves out, sorted by name. Errors of the directory
// itself are reported by List.
func (Local) Irregular(ctx context.Context, dir string) iter.Seq[Irregular] {
	return func(yield func(Irregular) bool) {
		for _, err := range children(ctx, dir, maybeIrregular) {
			if irregular := new(Irregular); errors.As(err, &irregular) && !yield(*irregular) {
				return
			}
		}
	}
}

// IrregularIn yields what the method Irregular of the innermost tree that has one yields.
func IrregularIn(ctx context.Context, t Tree, dir string) iter.Seq[Irregular] {
	for {
		switch x := t.(type) {
		case interface {
			Irregular(context.Context, string) iter.Seq[Irregular]
		}:
			return x.Irregular(ctx, dir)
		case interface{ Unwrap() Tree }:
			t = x.Unwrap()
		default:
			return func(func(Irregular) bool) {}
		}
	}
}

// Outside reports whether a tree looks nowhere for a name, because it is in a store, or a part of one, that was not
// named.
func Outside(t Tree, name string) bool {
	for {
		switch x := t.(type) {
		case interface{ Outside(name string) bool }:
			return x.Outside(name)
		case interface{ Unwrap() Tree }:
			t = x.Unwrap()
		default:
			return false
		}
	}
}

// maybeIrregular reports whether an entry may be irregular, as far as the directory itself shows.
func maybeIrregular(e fs.DirEntry) bool { return !e.IsDir() && !e.Type().IsRegular() }

// children yields the entries of a directory for which wanted is true (all if it is nil); an irregular one comes as an
// error, an *Irregular.
func children(ctx context.Context, dir string, wanted func(fs.DirEntry) bool) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		at := dir
		if at == "" {
			at = "."
		}
		entries, err := os.ReadDir(filepath.FromSlash(at))
		if err != nil {
			yield(Info{}, err)
			return
		}
		if wanted != nil {
			entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !wanted(e) })
		}
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				yield(Info{}, err)
				return
			}
			if info, err := child(path.Join(dir, e.Name()), e); !errors.Is(err, fs.ErrNotExist) && !yield(info, err) {
				return
			}
		}
	}
}

// child returns the entry e of a directory, whose full name is name. If it was removed meanwhile, the error is
// fs.ErrNotExist.
func child(name string, e fs.DirEntry) (Info, error) {
	link := e.Type()&fs.ModeSymlink != 0
	st, err := os.Stat(filepath.FromSlash(name)) // follows links, as Open does
	switch {
	case link && errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(filepath.FromSlash(name)); err != nil {
			return Info{}, err
		}
		return Info{}, &Irregular{name, "a link to what is not there", true}
	case link && errors.Is(err, syscall.ELOOP):
		return Info{}, &Irregular{name, "a link that leads back to itself", true}
	case err != nil:
		return Info{Name: name}, err
	case link && st.IsDir() && leadsUp(name):
		return Info{}, &Irregular{name, "a link to a directory above", false}
	case !st.IsDir() && !st.Mode().IsRegular():
		return Info{}, &Irregular{name, kindOf(st.Mode()), false}
	}
	return localInfo(name, st), nil
}

// leadsUp reports whether the link at name leads to a directory on the path to it, or to one above: following it would
// never end.
func leadsUp(name string) bool {
	to, err := filepath.EvalSymlinks(filepath.FromSlash(name))
	if err == nil {
		to, err = filepath.Abs(to)
	}
	if err != nil {
		return false
	}
	for dir := path.Dir(name); ; dir = path.Dir(dir) {
		real, err := filepath.EvalSymlinks(filepath.FromSlash(dir))
		if err == nil {
			real, err = filepath.Abs(real)
		}
		if err == nil && (real == to || strings.HasPrefix(real,
			strings.TrimSuffix(to, string(filepath.Separator))+string(filepath.Separator))) {
			return true
		}
		if dir == path.Dir(dir) || dir == "." {
			return false
		}
	}
}
