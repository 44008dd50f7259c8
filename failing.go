package stoa

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"sync"

	"stoa/store"
)

// denied reports whether the operating system refuses access.
func denied(err error) bool { return errors.Is(err, fs.ErrPermission) }

// watched is a tree that records failures, for callers that ask whether something is theirs: a "no" after a failure
// proves nothing.
type watched struct {
	store.Tree
	name string

	mu     sync.Mutex
	failed error // the first failure
	own    error // the first failure to open or read name
	around error // the first failure on anything else, except where access was denied
}

// Unwrap returns the underlying tree.
func (w *watched) Unwrap() store.Tree { return w.Tree }

// note records err if it is a failure. read says that it came from opening or reading.
func (w *watched) note(name string, read bool, err error) {
	if !store.Failing(err) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed == nil {
		w.failed = err
	}
	switch own := read && name == w.name; {
	case own && w.own == nil:
		w.own = err
	case !own && w.around == nil && !denied(err):
		w.around = err
	}
}

func (w *watched) Open(ctx context.Context, name string) (store.Source, error) {
	src, err := w.Tree.Open(ctx, name)
	if err == nil {
		return watchedSource{src, w, name}, nil
	}
	if info, serr := w.Tree.Stat(ctx, name); serr != nil || !info.Dir { // a directory is probed by name, too
		w.note(name, true, err)
	}
	return nil, err
}

func (w *watched) Stat(ctx context.Context, name string) (store.Info, error) {
	info, err := w.Tree.Stat(ctx, name)
	w.note(name, false, err)
	return info, err
}

func (w *watched) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		for info, err := range w.Tree.List(ctx, dir) {
			if w.note(dir, false, err); !yield(info, err) {
				return
			}
		}
	}
}

type watchedSource struct {
	store.Source
	w    *watched
	name string
}

func (s watchedSource) Unsized() bool { return store.Unsized(s.Source) }

// ReadAt treats bytes missing before the source's end as a failure: the object was truncated meanwhile.
func (s watchedSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(ctx, p, off)
	if !errors.Is(err, io.EOF) || !s.Unsized() && off+int64(n) < min(s.Size(), off+int64(len(p))) {
		s.w.note(s.name, true, err)
	}
	return n, err
}
