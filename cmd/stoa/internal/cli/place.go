package cli

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stoa"
	"stoa/store"
	"stoa/store/remote"
)

// Place is one file (or standard output) being written, under a temporary name until the commit.
type Place struct {
	io.Writer
	obj  store.Object
	Sink store.Sink
}

// Create begins the file at path.
func (a *App) Create(ctx context.Context, path string) (*Place, error) {
	sink, _, err := a.Sink(ctx, path)
	if err != nil {
		return nil, err
	}
	if sink == nil {
		sink = store.Strict(store.Local{}.Sink(path, nil))
	}
	obj, err := sink.Create(ctx, "")
	if err != nil {
		return nil, err
	}
	return &Place{obj, obj, sink}, nil
}

func (p *Place) Commit(ctx context.Context) error {
	obj := p.obj
	p.obj = nil
	if err := obj.Close(); err != nil {
		return err
	}
	return p.Sink.Commit(ctx)
}

// Abort removes what was written; after the commit it does nothing.
func (p *Place) Abort(ctx context.Context) error {
	var err error
	if p.obj != nil {
		err = p.obj.Close()
		p.obj = nil
	}
	return errors.Join(err, p.Sink.Abort(context.WithoutCancel(ctx)))
}

// Reads records places that are read, which must not be written to. A list of roots, @FILE, is itself a file that is
// read.
func (a *App) Reads(paths ...string) {
	a.shared.Lock()
	defer a.shared.Unlock()
	a.reads(paths)
}

func (a *App) reads(paths []string) {
	for _, p := range paths {
		if list, ok := strings.CutPrefix(p, store.RootsMark); ok && list != "" {
			a.reads([]string{list})
		}
		if place := WithoutTable(p); !a.places[place] {
			if a.places == nil {
				a.places = map[string]bool{}
			}
			a.places[place] = true
			a.read = append(a.read, p)
		}
	}
}

// reading reports whether the user named this path as one that is read.
func (a *App) reading(path string) bool {
	a.shared.Lock()
	defer a.shared.Unlock()
	return slices.Contains(a.read, path)
}

// sources returns the places that are read.
func (a *App) sources() []stoa.SourceInfo {
	a.shared.Lock()
	read := slices.Clone(a.read)
	a.shared.Unlock()
	return PlacesOf(read)
}

// PlacesOf returns the sources as far as their paths show, before they are opened or because they cannot be. A pattern
// is expanded as by a shell.
func PlacesOf(paths []string) (out []stoa.SourceInfo) {
	for _, p := range paths {
		out = append(out, stoa.SourceInfo{Name: p})
		roots, _ := store.RootsOf(context.Background(), store.Local{}, WithoutTable(p)) // on an error no roots are read
		for _, r := range roots {
			out = append(out, stoa.SourceInfo{Name: r})
		}
		matches, _ := filepath.Glob(WithoutTable(p)) // an invalid pattern matches nothing
		for _, m := range matches {
			if m != p {
				out = append(out, stoa.SourceInfo{Name: m})
			}
		}
	}
	return out
}

// Sink returns where path is written, or nil if that is simply a file or directory of that name. Otherwise path is an
// address, standard output, a symbolic link, or a device or pipe, which must not be replaced by a renamed file. It also
// returns the path to write to.
func (a *App) Sink(ctx context.Context, path string) (store.Sink, string, error) {
	if err := CheckWritable(path); err != nil {
		return nil, path, err
	}
	if remote.Is(path) {
		return a.remoteSink(ctx, path)
	}
	if path == Dash {
		return &StreamSink{open: func() (io.WriteCloser, error) { return stdoutObject{a}, nil }}, path, nil
	}
	if err := CheckOutput(path, a.sources()); err != nil {
		return nil, path, err
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() && !st.IsDir() { // /dev/fd/63 has no other name
		return &StreamSink{open: func() (io.WriteCloser, error) { return os.OpenFile(path, os.O_WRONLY, 0) }}, path, nil
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, path, nil
	}
	if err != nil {
		return nil, path, err
	}
	if strings.HasSuffix(path, "/") {
		real += "/"
	}
	return nil, real, nil
}

// StreamSink writes to a stream. What was written cannot be taken back.
type StreamSink struct {
	open func() (io.WriteCloser, error)
	used bool
}

// StreamTo returns a sink for one object, which is written to w.
func StreamTo(w io.Writer) *StreamSink {
	return &StreamSink{open: func() (io.WriteCloser, error) { return unclosed{w}, nil }}
}

// unclosed is a writer that its owner closes.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// Create opens the stream. Opening a pipe blocks until somebody reads it; it gives up when ctx ends.
func (s *StreamSink) Create(ctx context.Context, name string) (store.Object, error) {
	if name != "" || s.used {
		return nil, &UseError{Message: "several files cannot be written to one stream",
			Hint: "a CFile holds one column: choose one with --columns, or give a directory with -o DIR/"}
	}
	s.used = true
	type opened struct {
		w   io.WriteCloser
		err error
	}
	done := make(chan opened, 1)
	go func() {
		w, err := s.open()
		done <- opened{w, err}
	}()
	select {
	case o := <-done:
		return o.w, o.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *StreamSink) Scratch(context.Context) (store.Scratch, error) { return store.NewScratch() }
func (s *StreamSink) Commit(context.Context) error                   { return nil }
func (s *StreamSink) Abort(context.Context) error                    { return nil }

// stdoutObject is standard output as an object.
type stdoutObject struct{ a *App }

func (o stdoutObject) Write(b []byte) (int, error) { return o.a.Stdout.Write(b) }
func (o stdoutObject) Close() error                { return o.a.Stdout.Flush() }

// CheckOutputs returns an error if an output is a place that is being read, or if two outputs are the same place. Names
// in outs may be empty.
func (a *App) CheckOutputs(sources []stoa.SourceInfo, outs ...string) error {
	sources = append(a.sources(), sources...)
	for i, out := range outs {
		if err := CheckOutput(out, sources); err != nil {
			return err
		}
		for _, other := range outs[:i] {
			if out != "" && other != "" && onePlace(out, other) {
				return &UseError{Message: "the output and the manifest would be one: " + out,
					Hint: "give one of them another name"}
			}
		}
	}
	return nil
}

// onePlace reports whether two paths lead to the same place, as far as that can be known before it is written.
func onePlace(a, b string) bool {
	if a == Dash || b == Dash || remote.Is(a) || remote.Is(b) {
		return a == b
	}
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	if err == nil && err2 == nil {
		return x.Mode().IsRegular() && os.SameFile(x, y)
	}
	a, err = filepath.Abs(a)
	b, err2 = filepath.Abs(b)
	return err == nil && err2 == nil && a == b
}

// CheckOutput returns an error if out is a place that is being read, or lies in one.
func CheckOutput(out string, sources []stoa.SourceInfo) error {
	if out == "" || out == Dash {
		return nil
	}
	if remote.Is(out) {
		return checkRemoteOutput(out, sources)
	}
	target, err := os.Stat(out)
	if err == nil && !target.Mode().IsRegular() && !target.IsDir() {
		return nil
	}
	var above []fs.FileInfo // of out, with itself; read once, however many sources there are
	seen := map[string]bool{}
	for _, s := range sources {
		name := WithoutTable(s.Name)
		if s.Name == Dash || seen[name] {
			continue
		}
		seen[name] = true
		source, serr := os.Stat(name)
		if serr != nil {
			continue
		}
		if err == nil && isIn(target, pathTo(name, target.IsDir())) {
			return &UseError{Message: "the output " + out + " is also a source: " + s.Name,
				Hint: "stoa never writes in place; choose another name"}
		}
		if source.IsDir() && above == nil {
			above = pathTo(out, true)
		}
		if source.IsDir() && isIn(source, above) {
			return &UseError{Message: "the output " + out + " lies in the source " + s.Name,
				Hint: "stoa writes nothing into what it reads; choose a place outside of it"}
		}
	}
	return nil
}

// isIn reports whether place is one of those on a path.
func isIn(place fs.FileInfo, path []fs.FileInfo) bool {
	return slices.ContainsFunc(path, func(st fs.FileInfo) bool { return os.SameFile(st, place) })
}

// pathTo returns what lies on the way to path, which need not exist yet: from itself up to the root, or only itself.
func pathTo(path string, up bool) (out []fs.FileInfo) {
	for at := nearest(path); ; at = filepath.Dir(at) {
		if st, err := os.Stat(at); err == nil {
			out = append(out, st)
		}
		if !up || at == filepath.Dir(at) {
			return out
		}
	}
}

// nearest returns the absolute path without symbolic links that path leads to or, if it does not exist, that of its
// directory; .. after a link goes up from the link's target.
func nearest(path string) string {
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			path = real
			break
		}
		up, _ := filepath.Split(strings.TrimRight(path, string(filepath.Separator)))
		if up == "" {
			up = "."
		}
		if up == path {
			break
		}
		path = up
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// isThere reports whether a name is one of a local file or directory, or of several places as one.
func isThere(name string) bool {
	if file, ok := strings.CutPrefix(name, store.RootsMark); ok && (file == "" || isThere(file)) {
		return true
	}
	_, err := os.Lstat(name)
	return err == nil
}

// WithoutTable returns the place of PATH#TABLE.
func WithoutTable(name string) string {
	if isThere(name) {
		return name
	}
	if i := store.TableAt(name, isThere); i >= 0 {
		return name[:i]
	}
	return name
}

// Size returns how many bytes a source has: those of a file, or of all files in a directory; -1 if that is not known.
func (a *App) Size(ctx context.Context, name string) int64 {
	tr := store.Roots(Tree{A: a})
	name = WithoutTable(name)
	info, err := tr.Stat(ctx, name)
	if err != nil {
		return -1
	}
	if !info.Dir {
		return info.Size
	}
	var sum int64
	if remote.Is(name) {
		if err = walk(ctx, tr, name, func(f store.Info) error { sum += f.Size; return nil }); err != nil {
			return -1
		}
		return sum
	}
	err = filepath.WalkDir(filepath.FromSlash(name), func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		st, err := d.Info()
		if err == nil {
			sum += st.Size()
		}
		return err
	})
	if err != nil {
		return -1
	}
	return sum
}
