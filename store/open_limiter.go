package store

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// OpenLimiter is a Tree that keeps at most a number of another tree's objects open at a time, however many Sources it
// has returned: the least recently read one is closed, and opened again when it is needed. A table may have more files
// than a process may have open.
type OpenLimiter struct {
	Tree
	limit int

	mu     sync.Mutex
	order  *list.List        // of *limitedSource with an open source, most recent first
	stamps map[string]string // of the objects, from before they were first opened
}

// NewOpenLimiter returns a tree that keeps at most limit objects of t open, besides those that are being read.
func NewOpenLimiter(t Tree, limit int) *OpenLimiter {
	return &OpenLimiter{Tree: t, limit: limit, order: list.New(), stamps: map[string]string{}}
}

// Unwrap returns the underlying tree.
func (f *OpenLimiter) Unwrap() Tree { return f.Tree }

func (f *OpenLimiter) Open(ctx context.Context, name string) (Source, error) {
	f.Stamp(ctx, name)
	src, err := f.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	if Unsized(src) { // a stream cannot be opened a second time
		return src, nil
	}
	s := &limitedSource{limiter: f, name: name, size: src.Size(), local: LocalSource(src)}
	f.mu.Lock()
	defer f.mu.Unlock()
	s.open(src)
	return s, f.close()
}

// Stamp returns the stamp that the object had when Stamp was first called for it, which is at the latest before it was
// first opened; "" for a directory, or if it is not known.
func (f *OpenLimiter) Stamp(ctx context.Context, name string) string {
	f.mu.Lock()
	was, known := f.stamps[name]
	f.mu.Unlock()
	if known {
		return was
	}
	info, err := f.Tree.Stat(ctx, name)
	if err != nil { // Open reports the reason
		return ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.stamps[name]; !known {
		f.stamps[name] = info.Stamp
	}
	return f.stamps[name]
}

// Unchanged returns ErrChanged if the object's stamp is not what Stamp returned. An object that was removed since was
// read unchanged. Without a stamp, changes cannot be detected.
func (f *OpenLimiter) Unchanged(ctx context.Context, name string) error {
	was := f.Stamp(ctx, name)
	if was == "" {
		return nil
	}
	switch info, err := f.Tree.Stat(ctx, name); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Stamp != was:
		return fmt.Errorf("it %w while it was read: it was %s, now it is %s", ErrChanged, was, info.Stamp)
	}
	return nil
}

// close closes unused objects beyond the limit.
func (f *OpenLimiter) close() error {
	var err error
	for e := f.order.Back(); e != nil && f.order.Len() > f.limit; {
		s := e.Value.(*limitedSource)
		e = e.Prev()
		if s.users == 0 {
			err = errors.Join(err, s.closeFile())
		}
	}
	return err
}

// limitedSource is guarded by limiter.mu.
type limitedSource struct {
	limiter *OpenLimiter
	name    string
	size    int64
	local   bool
	src     Source // nil while it is closed
	at      *list.Element
	users   int
	closed  bool
}

func (s *limitedSource) open(src Source) {
	s.src = src
	s.at = s.limiter.order.PushFront(s)
}

// closeFile closes the file, which is opened again when it is needed.
func (s *limitedSource) closeFile() error {
	src := s.src
	s.limiter.order.Remove(s.at)
	s.src, s.at = nil, nil
	return src.Close()
}

func (s *limitedSource) Size() int64 { return s.size }

func (s *limitedSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	src, err := s.use(ctx)
	if err != nil {
		return 0, err
	}
	defer s.done()
	return src.ReadAt(ctx, p, off)
}

// Foresee passes the ranges on.
func (s *limitedSource) Foresee(ctx context.Context, ranges []Range) (done func()) {
	src, err := s.use(ctx)
	if err != nil {
		return nil // a read will say so
	}
	defer s.done()
	return Foresee(ctx, src, ranges)
}

func (s *limitedSource) use(ctx context.Context) (Source, error) {
	f := s.limiter
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
			return nil, errors.Join(fmt.Errorf("%s %w while it was read: it had %d bytes, now it has %d", s.name,
				ErrChanged, s.size, src.Size()), src.Close())
		}
		s.open(src)
	}
	s.users++
	return s.src, f.close()
}

func (s *limitedSource) done() {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	if s.users--; s.users == 0 && s.closed && s.src != nil {
		_ = s.closeFile() // closed while it was being read; nothing was written
	}
}

// Close closes the object, after waiting for reads in progress.
func (s *limitedSource) Close() error {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if s.src == nil || s.users > 0 {
		return nil
	}
	return s.closeFile()
}
