// Package watched has a tree that records failures, for callers that ask whether something is theirs: a "no" after a
// failure proves nothing.
package watched

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"sync"

	"stoa/store"
)

// Denied reports whether err means that the operating system refuses access.
func Denied(err error) bool { return errors.Is(err, fs.ErrPermission) }

// Tree passes everything on to another tree and records failures.
type Tree struct {
	store.Tree
	Name string // what is asked about

	mu     sync.Mutex
	Failed error // the first failure
	Own    error // the first failure to open or read Name
	Around error // the first failure on anything else, except where access was denied
}

// Unwrap returns the underlying tree.
func (w *Tree) Unwrap() store.Tree { return w.Tree }

// note records err if it is a failure. read says that it came from opening or reading.
func (w *Tree) note(name string, read bool, err error) {
	if !store.Failing(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Failed == nil {
		w.Failed = err
	}
	switch own := read && name == w.Name; {
	case own && w.Own == nil:
		w.Own = err
	case !own && w.Around == nil && !Denied(err):
		w.Around = err
	}
}

func (w *Tree) Open(ctx context.Context, name string) (store.Source, error) {
	src, err := w.Tree.Open(ctx, name)
	if err == nil {
		return source{src, w, name}, nil
	}
	if info, serr := w.Tree.Stat(ctx, name); serr != nil || !info.Dir { // a directory is probed by name, too
		w.note(name, true, err)
	}
	return nil, err
}

func (w *Tree) Stat(ctx context.Context, name string) (store.Info, error) {
	info, err := w.Tree.Stat(ctx, name)
	w.note(name, false, err)
	return info, err
}

func (w *Tree) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range w.Tree.List(ctx, dir) {
			if w.note(dir, false, err); !yield(info, err) {
				return
			}
		}
	}
}

type source struct {
	store.Source
	w    *Tree
	name string
}

func (s source) Unsized() bool { return store.Unsized(s.Source) }

// ReadAt treats bytes missing before the source's end as a failure: the object was truncated meanwhile.
func (s source) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(ctx, p, off)
	if !errors.Is(err, io.EOF) || !s.Unsized() && off+int64(n) < min(s.Size(), off+int64(len(p))) {
		s.w.note(s.name, true, err)
	}
	return n, err
}
