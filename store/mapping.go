package store

import (
	"context"
	"errors"
	"sync/atomic"
)

// Mapping is the contents of a file, mapped into memory. The bytes are those of the file at the time at which they are
// looked at. After the file was cut short, looking at those beyond its end faults; the same happens if the disk fails.
// Code that looks at them must recover from that (see runtime/debug.SetPanicOnFault) and read instead.
type Mapping struct {
	bytes []byte
	users atomic.Int64 // including the one that Map returned it to
}

// Bytes returns the whole file. They are valid until Release.
func (m *Mapping) Bytes() []byte { return m.bytes }

// Retain adds a user, and reports false if the last one has left already.
func (m *Mapping) Retain() bool {
	for {
		n := m.users.Load()
		if n == 0 {
			return false
		}
		if m.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// Release removes a user. The last one unmaps the file.
func (m *Mapping) Release() error {
	if m.users.Add(-1) > 0 {
		return nil
	}
	b := m.bytes
	m.bytes = nil
	return unmap(b)
}

// mappable is a Source that is a file of the local file system, or passes reads on to one.
type mappable interface {
	isLocal() bool
	mapped(ctx context.Context) ([]byte, error)
}

// LocalSource reports whether s reads a file of the local file system, where asking in advance gains nothing: the
// operating system reads ahead by itself.
func LocalSource(s Source) bool {
	m, ok := s.(mappable)
	return ok && m.isLocal()
}

// Map maps a file into memory. The error is errors.ErrUnsupported if s is not a file of the local file system, or is
// empty, or the operating system maps no files. s may be closed before the mapping is.
func Map(ctx context.Context, s Source) (*Mapping, error) {
	m, ok := s.(mappable)
	if !ok || !m.isLocal() {
		return nil, errors.ErrUnsupported
	}
	b, err := m.mapped(ctx)
	if err != nil {
		return nil, err
	}
	out := &Mapping{bytes: b}
	out.users.Store(1)
	return out, nil
}

func (s *localSource) isLocal() bool { return true }

func (s *localSource) mapped(context.Context) ([]byte, error) { return mapFile(s.f, s.size) }

func (s *limitedSource) isLocal() bool { return s.local }

func (s *limitedSource) mapped(ctx context.Context) ([]byte, error) {
	src, err := s.use(ctx)
	if err != nil {
		return nil, err
	}
	defer s.done()
	m, ok := src.(mappable)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return m.mapped(ctx)
}
