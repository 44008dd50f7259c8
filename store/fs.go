package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"sync"
)

// FS returns the Tree of an fs.FS: an embed.FS, a zip archive, os.DirFS, or any other. Names are those of fs.FS:
// unrooted, with slashes; "" and "." are the root. If the fs.File of a file is an io.ReaderAt, only the requested bytes
// are read; if it is an io.Seeker, one reader at a time uses it; any other file (in a zip archive, for example) is read
// completely into memory when it is opened, up to MaxFSFile bytes.
func FS(fsys fs.FS) Tree { return fsTree{fsys} }

// MaxFSFile is the maximum size in bytes of a file of an fs.FS that can only be read sequentially.
const MaxFSFile = 1 << 30

type fsTree struct{ fsys fs.FS }

func fsName(name string) string {
	if name == "" {
		return "."
	}
	return path.Clean(name)
}

func (t fsTree) Open(_ context.Context, name string) (Source, error) {
	f, err := t.fsys.Open(fsName(name))
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	if err := regular(name, st); err != nil {
		f.Close()
		return nil, err
	}
	switch f := f.(type) {
	case interface {
		fs.File
		io.ReaderAt
	}:
		return &fsSource{at: f, size: st.Size(), close: f.Close}, nil
	case interface {
		fs.File
		io.Seeker
	}:
		return &fsSource{at: &seekReader{f: f}, size: st.Size(), close: f.Close}, nil
	}
	defer f.Close()
	if st.Size() > MaxFSFile {
		return nil, &fs.PathError{Op: "open", Path: name,
			Err: fmt.Errorf("%d bytes can only be read from the beginning; at most %d are", st.Size(), MaxFSFile)}
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxFSFile+1))
	if err != nil {
		return nil, err
	}
	return memSource(b), nil
}

func (t fsTree) Stat(_ context.Context, name string) (Info, error) {
	st, err := fs.Stat(t.fsys, fsName(name))
	if err != nil {
		return Info{}, err
	}
	return localInfo(name, st), nil
}

// List leaves out entries that are not objects: dangling links, pipes, devices. Irregular reports them.
func (t fsTree) List(ctx context.Context, dir string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		for info, err := range t.children(ctx, dir) {
			if irregular := new(Irregular); errors.As(err, &irregular) {
				continue
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Irregular yields the direct children of a directory that List leaves out.
func (t fsTree) Irregular(ctx context.Context, dir string) iter.Seq[Irregular] {
	return func(yield func(Irregular) bool) {
		for _, err := range t.children(ctx, dir) {
			if irregular := new(Irregular); errors.As(err, &irregular) && !yield(*irregular) {
				return
			}
		}
	}
}

// children yields the entries of a directory; one that is not an object comes as an error, an *Irregular.
func (t fsTree) children(ctx context.Context, dir string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		entries, err := fs.ReadDir(t.fsys, fsName(dir))
		if err != nil {
			yield(Info{}, err)
			return
		}
		for _, e := range entries {
			if !yield(t.child(path.Join(dir, e.Name()), e)) || ctx.Err() != nil {
				return
			}
		}
	}
}

func (t fsTree) child(name string, e fs.DirEntry) (Info, error) {
	st, err := fs.Stat(t.fsys, fsName(name)) // follows links
	switch {
	case err != nil && e.Type()&fs.ModeSymlink != 0:
		return Info{}, &Irregular{Name: name, What: "a link that leads nowhere", Link: true}
	case err != nil:
		return Info{Name: name}, err
	case !st.IsDir() && !st.Mode().IsRegular():
		return Info{}, &Irregular{Name: name, What: kindOf(st.Mode())}
	}
	return localInfo(name, st), nil
}

// fsSource is an open file, or an io.ReaderAt of known size.
type fsSource struct {
	at    io.ReaderAt
	size  int64
	close func() error // nil: nothing to close
}

func (s *fsSource) Size() int64 { return s.size }

func (s *fsSource) Close() error {
	if s.close == nil {
		return nil
	}
	return s.close()
}

func (s *fsSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.at.ReadAt(p, off)
}

// seekReader implements io.ReaderAt on a file with a single position.
type seekReader struct {
	mu sync.Mutex
	f  interface {
		io.Reader
		io.Seeker
	}
}

func (s *seekReader) ReadAt(p []byte, off int64) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.f.Seek(off, io.SeekStart); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(s.f, p)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

// One returns a Tree of one object, the size bytes that r reads. r remains the caller's, and must be safe for
// concurrent use.
func One(name string, r io.ReaderAt, size int64) Tree { return oneTree{name, r, size} }

type oneTree struct {
	name string
	r    io.ReaderAt
	size int64
}

func (t oneTree) is(op, name string) error {
	if name == t.name {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
}

func (t oneTree) Open(_ context.Context, name string) (Source, error) {
	if err := t.is("open", name); err != nil {
		return nil, err
	}
	return &fsSource{at: t.r, size: t.size}, nil
}

func (t oneTree) Stat(_ context.Context, name string) (Info, error) {
	if err := t.is("stat", name); err != nil {
		return Info{}, err
	}
	return Info{Name: t.name, Size: t.size, Stamp: fmt.Sprint(t.size)}, nil
}

func (t oneTree) List(_ context.Context, dir string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := t.is("list", dir); err == nil {
			yield(Info{}, &fs.PathError{Op: "list", Path: dir, Err: fs.ErrInvalid})
		} else if dir == "" || dir == "." || dir == path.Dir(t.name) {
			yield(Info{Name: t.name, Size: t.size, Stamp: fmt.Sprint(t.size)}, nil)
		} else {
			yield(Info{}, err)
		}
	}
}
