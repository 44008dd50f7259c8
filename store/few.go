package store

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// Few is a Tree that holds at most so many objects of another open at a time, however many Sources it gave: the one
// that was read least recently is closed, and opened again when it is needed. A table may have more files than a
// process may have open.
type Few struct {
	Tree
	limit int

	mu    sync.Mutex
	order *list.List // of *fewSource with an open source, most recent in front
}

// NewFew holds at most limit objects of t open, and those that are being read.
func NewFew(t Tree, limit int) *Few { return &Few{Tree: t, limit: limit, order: list.New()} }

// Unwrap is the tree below.
func (f *Few) Unwrap() Tree { return f.Tree }

func (f *Few) Open(ctx context.Context, name string) (Source, error) {
	src, err := f.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if Unsized(src) { // a stream cannot be opened a second time
		return src, nil
	}
	s := &fewSource{few: f, name: name, size: src.Size()}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.open(src)
	return s, f.close()
}

// close closes what is too much and not in use.
func (f *Few) close() error {
	var err error
	for e := f.order.Back(); e != nil && f.order.Len() > f.limit; {
		s := e.Value.(*fewSource)
		e = e.Prev()
		if s.users == 0 {
			err = errors.Join(err, s.shut())
		}
	}
	return err
}

// fewSource is guarded by few.mu.
type fewSource struct {
	few    *Few
	name   string
	size   int64
	src    Source // nil while it is closed
	at     *list.Element
	users  int
	closed bool
}

func (s *fewSource) open(src Source) {
	s.src = src
	s.at = s.few.order.PushFront(s)
}

func (s *fewSource) shut() error {
	src := s.src
	s.few.order.Remove(s.at)
	s.src, s.at = nil, nil
	return src.Close()
}

func (s *fewSource) Size() int64 { return s.size }

func (s *fewSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	src, err := s.use(ctx)
	if err != nil {
		return 0, err
	}
	defer s.done()
	return src.ReadAt(ctx, p, off)
}

func (s *fewSource) use(ctx context.Context) (Source, error) {
	f := s.few
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("%s: %w", s.name, fs.ErrClosed)
	}
	if s.src != nil {
		f.order.MoveToFront(s.at)
	} else {
		src, err := f.Tree.Open(ctx, s.name)
		if err != nil {
			return nil, err
		}
		if src.Size() != s.size {
			return nil, errors.Join(fmt.Errorf("%s changed while it was read: it had %d bytes, now it has %d", s.name, s.size, src.Size()), src.Close())
		}
		s.open(src)
	}
	s.users++
	return s.src, f.close()
}

func (s *fewSource) done() {
	s.few.mu.Lock()
	defer s.few.mu.Unlock()
	if s.users--; s.users == 0 && s.closed && s.src != nil {
		_ = s.shut() // closed while it was read; nothing was written
	}
}

// Close closes the object. A read that is under way ends first.
func (s *fewSource) Close() error {
	s.few.mu.Lock()
	defer s.few.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.src == nil || s.users > 0 {
		return nil
	}
	return s.shut()
}
