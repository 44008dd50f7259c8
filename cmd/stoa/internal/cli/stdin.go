package cli

import (
	"context"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"stoa/store"
	"stoa/store/remote"
)

// Dash names standard input as a source and standard output as a place.
const Dash = "-"

// spoolMemory is how many bytes of a piped standard input are kept in memory; the rest goes to a temporary file.
const spoolMemory = 64 << 20

// Tree is the tree that the command reads: local files, addresses that were entered, "-" for standard input, and named
// pipes, such as those of <(…) in a shell. It counts the bytes read.
type Tree struct {
	store.Local
	A   *App
	All bool // List leaves out nothing
}

// Unwrap returns the underlying tree.
func (t Tree) Unwrap() store.Tree { return t.Local }

// Outside reports whether a name is an address in a bucket, or on a host, that the user did not name.
func (t Tree) Outside(name string) bool { return t.A.Within == nil && t.A.Remote().Outside(name) }

func (t Tree) Open(ctx context.Context, name string) (store.Source, error) {
	if t.A.Within != nil {
		return t.A.Within.Open(ctx, name)
	}
	if remote.Is(name) {
		s, err := t.A.Remote().Open(ctx, name)
		if err != nil {
			return nil, err
		}
		return countedSource{s, &t.A.Tallies}, nil
	}
	if t.streams(name) {
		return t.A.stream(ctx, name)
	}
	s, err := t.Local.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return countedSource{s, &t.A.Tallies}, nil
}

func (t Tree) Stat(ctx context.Context, name string) (store.Info, error) {
	if t.A.Within != nil {
		return t.A.Within.Stat(ctx, name)
	}
	if remote.Is(name) {
		return t.A.Remote().Stat(ctx, name)
	}
	if !t.streams(name) {
		return t.Local.Stat(ctx, name)
	}
	s, err := t.A.stream(ctx, name)
	if err != nil {
		return store.Info{}, err
	}
	return store.Info{Name: name, Size: s.known}, nil
}

// streams reports whether name is a file, named by the user, that can be read only once and in order. A pipe in the
// place of a table's file is not read: nobody may ever write to it.
func (t Tree) streams(name string) bool {
	return name == Dash || t.A.reading(name) && IsPipe(name)
}

// IsPipe reports whether the file can be read only once and in order, and ends. Devices may be endless, except a
// terminal and the null device.
func IsPipe(name string) bool {
	st, err := os.Stat(filepath.FromSlash(name))
	switch {
	case err != nil:
		return false
	case st.Mode()&fs.ModeCharDevice != 0:
		f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return false
		}
		defer f.Close()
		null, err := os.Stat(os.DevNull)
		return isTerminal(f) || err == nil && os.SameFile(st, null)
	}
	return st.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// Irregular yields what List leaves out because it is no object.
func (t Tree) Irregular(ctx context.Context, dir string) iter.Seq[store.Irregular] {
	if t.A.Within != nil {
		return store.IrregularIn(ctx, t.A.Within, dir)
	}
	return t.Local.Irregular(ctx, dir)
}

// ResolveDotDot resolves any .. after a symbolic link in name.
func (t Tree) ResolveDotDot(name string) string {
	if t.A.Within != nil {
		return name // it has none
	}
	return t.Local.ResolveDotDot(name)
}

// List leaves out stoa's own temporary files in a directory.
func (t Tree) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		all := t.Local.List
		if t.A.Within != nil {
			all = t.A.Within.List
		} else if remote.Is(dir) {
			all = t.A.Remote().List
		}
		for info, err := range all(ctx, dir) {
			if err == nil && !t.All && strings.HasPrefix(path.Base(info.Name), store.TempPrefix) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// stream is standard input or a pipe as an object. It is shared by all who open it, so Close does nothing.
type stream struct {
	store.Source
	known int64          // size; -1: known only by reading
	spool *store.Spooled // nil: it is a file
	a     *App
}

func (s *stream) Close() error { return nil }

// Unsized implements the interface of store.Unsized.
func (s *stream) Unsized() bool { return s.spool != nil }

func (s *stream) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(ctx, p, off)
	s.a.Tallies.Read.Add(int64(n))
	return n, err
}

// remove discards the spooled data.
func (s *stream) remove() {
	if s.spool != nil {
		s.spool.Close()
	}
}

// stream returns the stream of that name. Standard input that is a regular file is read in place, anything else is
// spooled.
func (a *App) stream(ctx context.Context, name string) (*stream, error) {
	if s, ok := a.streams[name]; ok {
		return s, nil
	}
	s := &stream{known: -1, a: a}
	r := a.In
	if name != Dash {
		r = &lazyFile{name: name}
	} else if f, ok := a.In.(*os.File); ok {
		if a.errTTY && isTerminal(f) {
			a.EndWork()
			a.Note("stoa: reading from the terminal; Ctrl-D ends")
		}
		if whole := wholeFile(f); whole != nil {
			s.Source, s.known = whole, whole.Size()
		}
	}
	if r == nil {
		return nil, &fs.PathError{Op: "open", Path: Dash, Err: fs.ErrClosed}
	}
	if s.Source == nil {
		s.spool = store.Spool(&ctxReader{ctx: ctx, r: r}, spoolMemory, store.NewScratch)
		s.Source = s.spool
	}
	if a.streams == nil {
		a.streams = map[string]*stream{}
	}
	a.streams[name] = s
	return s, nil
}

// lazyFile opens a file only when it is first read, because opening a pipe waits for its other end.
type lazyFile struct {
	name string
	f    *os.File
}

func (l *lazyFile) Read(b []byte) (int, error) {
	if l.f == nil {
		var err error
		if l.f, err = os.Open(filepath.FromSlash(l.name)); err != nil {
			return 0, err
		}
	}
	return l.f.Read(b)
}

func isTerminal(f *os.File) bool {
	ok, _ := terminal(f)
	return ok
}

// wholeFile returns f as a source if it is a regular file at position 0, else nil.
func wholeFile(f *os.File) store.Source {
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != 0 {
		return nil
	}
	return fileSource{f, st.Size()}
}

type fileSource struct {
	f    *os.File
	size int64
}

func (s fileSource) Size() int64  { return s.size }
func (s fileSource) Close() error { return nil }
func (s fileSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.f.ReadAt(p, off)
}

// ctxReader reads a stream until ctx ends. A read that waits for a pipe cannot be interrupted, so it is abandoned.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
	buf []byte
}

func (p *ctxReader) Read(b []byte) (int, error) {
	if len(p.buf) < len(b) {
		p.buf = make([]byte, len(b))
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	buf := p.buf[:len(b)]
	go func() {
		n, err := p.r.Read(buf)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return copy(b, buf[:r.n]), r.err
	case <-p.ctx.Done():
		p.buf = nil // it belongs to the abandoned read
		return 0, p.ctx.Err()
	}
}

// countedSource counts the bytes read from a source.
type countedSource struct {
	store.Source
	tallies *tallies
}

func (s countedSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(ctx, p, off)
	s.tallies.Read.Add(int64(n))
	return n, err
}

// Foresee passes the ranges on.
func (s countedSource) Foresee(ctx context.Context, ranges []store.Range) (done func()) {
	return store.Foresee(ctx, s.Source, ranges)
}
