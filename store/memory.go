package store

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Memory is a Tree in memory to which Sinks can write. The zero value is not usable: see NewMemory.
type Memory struct {
	mu    sync.RWMutex
	files map[string][]byte
}

// NewMemory returns a tree of the given objects (nil: none). The slices are not copied and must not change.
func NewMemory(files map[string][]byte) *Memory {
	m := &Memory{files: map[string][]byte{}}
	maps.Copy(m.files, files)
	return m
}

// Bytes returns the content of an object, nil if it does not exist.
func (m *Memory) Bytes(name string) []byte {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.files[name]
}

// Names returns the names of all objects, sorted.
func (m *Memory) Names() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.files))
}

// Put sets an object's content.
func (m *Memory) Put(name string, b []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[name] = b
}

func (m *Memory) Open(_ context.Context, name string) (Source, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	b, ok := m.files[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return memSource(b), nil
}

func (m *Memory) Stat(_ context.Context, name string) (Info, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if b, ok := m.files[name]; ok {
		return Info{Name: name, Size: int64(len(b)), Stamp: fmt.Sprint(len(b))}, nil
	}
	dir := strings.TrimSuffix(name, "/") + "/"
	for n := range m.files {
		if name == "" || strings.HasPrefix(n, dir) {
			return Info{Name: name, Dir: true}, nil
		}
	}
	return Info{}, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (m *Memory) List(_ context.Context, dir string) iter.Seq2[Info, error] {
	prefix := ""
	if dir != "" {
		prefix = strings.TrimSuffix(dir, "/") + "/"
	}
	m.mu.RLock()
	found := map[string]Info{}
	for n, b := range m.files {
		rest, ok := strings.CutPrefix(n, prefix)
		if !ok {
			continue
		}
		if first, _, deeper := strings.Cut(rest, "/"); deeper {
			found[first] = Info{Name: prefix + first, Dir: true}
		} else {
			found[first] = Info{Name: n, Size: int64(len(b)), Stamp: fmt.Sprint(len(b))}
		}
	}
	m.mu.RUnlock()
	return func(yield func(Info, error) bool) {
		for _, k := range slices.Sorted(maps.Keys(found)) {
			if !yield(found[k], nil) {
				return
			}
		}
	}
}

type memSource []byte

func (s memSource) Size() int64  { return int64(len(s)) }
func (s memSource) Close() error { return nil }
func (s memSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if off < 0 || off > int64(len(s)) {
		return 0, io.EOF
	}
	n := copy(p, s[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Sink returns a sink for name; Commit adds its objects to the tree.
func (m *Memory) Sink(name string) Sink { return &memSink{tree: m, name: name} }

type memSink struct {
	tree *Memory
	name string
	objs map[string]*memObject
	done bool
}

type memObject struct{ bytes.Buffer }

func (*memObject) Close() error { return nil }

func (s *memSink) Create(_ context.Context, name string) (Object, error) {
	full := s.name
	if name != "" {
		full = strings.TrimSuffix(s.name, "/") + "/" + name
	}
	if s.objs == nil {
		s.objs = map[string]*memObject{}
	}
	o := &memObject{}
	s.objs[full] = o
	return o, nil
}

func (s *memSink) Scratch(context.Context) (Scratch, error) { return &memScratch{}, nil }

func (s *memSink) Commit(context.Context) error {
	for n, o := range s.objs {
		s.tree.Put(n, o.Bytes())
	}
	s.done = true
	return nil
}

func (s *memSink) Abort(context.Context) error {
	s.objs = nil
	return nil
}

type memScratch struct{ b []byte }

func (s *memScratch) Write(p []byte) (int, error) { s.b = append(s.b, p...); return len(p), nil }
func (s *memScratch) ReadAt(p []byte, off int64) (int, error) {
	return memSource(s.b).ReadAt(context.Background(), p, off)
}
func (s *memScratch) Close() error { s.b = nil; return nil }
