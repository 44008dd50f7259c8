package store

import (
	"context"
	"iter"
	"path"
	"path/filepath"
	"strings"
)

// Peeker is an optional interface of a Sink: objects that were created in it and closed can be read before the commit.
type Peeker interface {
	// Peek returns a tree in which the objects have their final names, and the name of the place in it. It returns a
	// nil tree if nothing was created.
	Peek() (Tree, string)
}

// Peek returns the temporary objects, under their final names.
func (s *localSink) Peek() (Tree, string) {
	tmp, err := s.unfinished()
	if err != nil || tmp == "" {
		return nil, ""
	}
	return moved{from: filepath.ToSlash(s.path), to: filepath.ToSlash(tmp)}, filepath.ToSlash(s.path)
}

// moved is the local file system with the objects at to appearing at from.
type moved struct {
	Local
	from, to string
}

// real returns the path of a name in the file system.
func (m moved) real(name string) string {
	if rest, ok := strings.CutPrefix(path.Clean(name), m.from); ok && (rest == "" || rest[0] == '/') {
		return m.to + rest
	}
	return name
}

func (m moved) Open(ctx context.Context, name string) (Source, error) {
	return m.Local.Open(ctx, m.real(name))
}

func (m moved) Stat(ctx context.Context, name string) (Info, error) {
	info, err := m.Local.Stat(ctx, m.real(name))
	info.Name = name
	return info, err
}

func (m moved) List(ctx context.Context, dir string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for info, err := range m.Local.List(ctx, m.real(dir)) {
			if rest, ok := strings.CutPrefix(info.Name, m.to); ok {
				info.Name = m.from + rest
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// ResolveDotDot does not consult the file system, as names below from do not exist yet.
func (m moved) ResolveDotDot(name string) string { return name }

// Peek returns the objects created so far.
func (s *memSink) Peek() (Tree, string) {
	if len(s.objs) == 0 {
		return nil, ""
	}
	t := NewMemory(nil)
	for n, o := range s.objs {
		t.Put(n, o.Bytes())
	}
	return t, s.name
}

// Peek returns that of the underlying sink.
func (s strict) Peek() (Tree, string) {
	if p, ok := s.Sink.(Peeker); ok {
		return p.Peek()
	}
	return nil, ""
}
