package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// Local is the machine's file system. Names are paths, relative ones from the working directory. Objects are opened
// read-only and read with pread, unless their pages are mapped: see Map.
type Local struct{}

// Open returns an error for anything but a regular file, without opening it: opening a pipe waits for its other end,
// and opening a device may have any effect.
func (Local) Open(_ context.Context, name string) (Source, error) {
	st, err := os.Stat(filepath.FromSlash(name))
	if err == nil {
		err = regular(name, st)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.FromSlash(name), os.O_RDONLY|nonblock, 0) // it may have become a pipe meanwhile
	if err != nil {
		return nil, err
	}
	st, err = f.Stat()
	if err == nil {
		err = regular(name, st)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &localSource{f, st.Size()}, nil
}

// regular returns an error if name is not a regular file.
func regular(name string, st fs.FileInfo) error {
	if st.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: noFile(kindOf(st.Mode()))}
}

// noFile is the reason for not opening something that is known not to be a file.
type noFile string

func (what noFile) Error() string { return "is " + string(what) + ", and no file" }

// ErrDirectory is the reason for not opening a directory.
var ErrDirectory error = noFile("a directory")

// NoFile reports whether err, returned by Open, means that the name exists and is not a file: a directory, a pipe, a
// device, a link that leads back to itself.
func NoFile(err error) bool { return errors.As(err, new(noFile)) || errors.Is(err, syscall.ELOOP) }

// kindOf names the kind of something that is not a regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case m&fs.ModeSocket != 0:
		return "a socket"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}

type localSource struct {
	f    *os.File
	size int64
}

func (s *localSource) Size() int64  { return s.size }
func (s *localSource) Close() error { return s.f.Close() }
func (s *localSource) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	return s.f.ReadAt(p, off)
}

func (Local) Stat(_ context.Context, name string) (Info, error) {
	st, err := os.Stat(filepath.FromSlash(name))
	if errors.Is(err, syscall.ENAMETOOLONG) { // so there is no such file: it may be a place with the name of a table
		return Info{}, errors.Join(err, fs.ErrNotExist)
	}
	if err != nil {
		return Info{}, err
	}
	return localInfo(name, st), nil
}

func localInfo(name string, st fs.FileInfo) Info {
	if st.IsDir() {
		return Info{Name: name, Dir: true}
	}
	return Info{Name: name, Size: st.Size(), Stamp: fmt.Sprintf("%d-%d", st.Size(), st.ModTime().UnixNano())}
}

// TempPrefix begins the names of all uncommitted objects of a Local sink, and of its scratch files.
const TempPrefix = ".stoa-tmp-"

// Sink writes to the path name: one file, or a directory that does not exist, is empty, or for which replace returns
// true (it is called with the directory's path before anything in it is removed; nil: never replace). A link is
// followed, so it remains a link. Anything that is neither a file nor a directory (a device, a pipe) is refused,
// because it would be replaced instead of being written to.
func (Local) Sink(name string, replace func(dir string) bool) Sink {
	return &localSink{path: placeOf(filepath.FromSlash(name)), replace: replace}
}

// placeOf returns the path that name leads to, following links. If it does not exist yet, its directory is resolved: ..
// after a link is the parent of the link's target, not of the link.
func placeOf(name string) string {
	if to, err := filepath.EvalSymlinks(name); err == nil {
		return to
	}
	dir, base := filepath.Split(strings.TrimRight(name, string(filepath.Separator)))
	if strings.Contains(dir, "..") {
		if to, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(to, base)
		}
	}
	return filepath.Clean(name)
}

type localSink struct {
	path    string
	replace func(dir string) bool
	tmp     string   // temporary path of the single file or of the directory; "" before the first Create
	lock    *os.File // held on tmp, so that other processes see that it is in use; nil if locking is not possible
	dir     bool

	mu   sync.Mutex // held while names change, acquired after naming
	done bool
}

// atWork are the sinks that have temporary files. Whoever creates, renames or removes a name holds naming for reading,
// so that AbortAll, which holds it for writing, finds no such operation half done.
var atWork struct {
	naming  sync.RWMutex
	stopped bool // guarded by naming

	mu    sync.Mutex
	sinks map[*localSink]bool
}

var errStopped = errors.New("the process is ending: nothing is written any more")

// AbortAll removes everything that the process's Local sinks have not committed. It is for a process that ends without
// waiting for its writers: from now on their sinks create no file and commit nothing. It waits for commits and removals
// that are in progress.
func AbortAll() {
	abortElsewhere()
	atWork.naming.Lock()
	defer atWork.naming.Unlock()
	atWork.stopped = true
	for s := range atWork.sinks {
		_ = os.RemoveAll(s.tmp)
		s.done = true
	}
	atWork.sinks = nil
}

// names allows s to change names until free is called. It returns an error if AbortAll came first.
func (s *localSink) names() (free func(), err error) {
	atWork.naming.RLock()
	if atWork.stopped {
		atWork.naming.RUnlock()
		return nil, &fs.PathError{Op: "write", Path: s.path, Err: errStopped}
	}
	s.mu.Lock()
	return func() { s.mu.Unlock(); atWork.naming.RUnlock() }, nil
}

func (s *localSink) begin(tmp string) {
	atWork.mu.Lock()
	defer atWork.mu.Unlock()
	if atWork.sinks == nil {
		atWork.sinks = map[*localSink]bool{}
	}
	s.tmp = tmp
	atWork.sinks[s] = true
	s.acquire()
}

// end records that the temporary files have been committed or removed.
func (s *localSink) end() {
	s.done = true
	atWork.mu.Lock()
	defer atWork.mu.Unlock()
	delete(atWork.sinks, s)
}

// oldSuffix ends the name of a directory that is moved aside for its replacement.
const oldSuffix = ".stoa-old"

// Replaced reports whether a base name is that of a directory that was moved aside for its replacement.
func Replaced(base string) bool {
	return strings.HasPrefix(base, TempPrefix) && strings.HasSuffix(base, oldSuffix)
}

// scratchFor returns the end of the name of a scratch file for a place with this base name.
func scratchFor(base string) string {
	const most = 200 // keeps the name within the limit of file systems
	return base[:min(len(base), most)] + ".stoa-scratch"
}

// acquire locks tmp while this sink is in use.
func (s *localSink) acquire() {
	if f, err := os.Open(s.tmp); err == nil {
		if s.lock = f; !tryLock(f) {
			s.release()
		}
	}
}

func (s *localSink) release() {
	if s.lock != nil {
		s.lock.Close()
		s.lock = nil
	}
}

// sweep removes what killed processes have left behind for the same place. If a directory was moved aside and its
// replacement never arrived, sweep renames it back. Files that a running process still uses are locked, and remain.
func (s *localSink) sweep() {
	parent, base := filepath.Dir(s.path), filepath.Base(s.path)
	for _, name := range leftovers.in(parent) {
		_, of, _ := strings.Cut(strings.TrimPrefix(name, TempPrefix), "-")
		left := filepath.Join(parent, name)
		if (of != base && of != base+oldSuffix && of != scratchFor(base)) || !abandoned(left) {
			continue
		}
		if _, err := os.Lstat(s.path); of == base+oldSuffix && errors.Is(err, fs.ErrNotExist) {
			_ = os.Rename(left, s.path)
			continue
		}
		_ = os.RemoveAll(left)
	}
}

// TempDir makes a directory beside the place name, in which what will be renamed to it is made. Until remove is called
// it is in use; if the process is killed, the next one that writes there, or sweeps, removes it.
func (Local) TempDir(name string) (dir string, remove func() error, err error) {
	s := &localSink{path: placeOf(filepath.FromSlash(name))}
	free, err := s.names()
	if err != nil {
		return "", nil, err
	}
	defer free()
	s.sweep()
	if err := s.makeDir(); err != nil {
		return "", nil, err
	}
	return s.tmp, func() error { return s.Abort(context.Background()) }, nil
}

// Sweep removes what killed processes have left behind for the place name, as a sink does when it begins to write
// there.
func (Local) Sweep(name string) { (&localSink{path: placeOf(filepath.FromSlash(name))}).sweep() }

// abandoned reports whether no process holds a temporary file or directory any more.
func abandoned(name string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	return tryLock(f)
}

func (s *localSink) Create(_ context.Context, name string) (Object, error) {
	free, err := s.names()
	if err != nil {
		return nil, err
	}
	defer free()
	if s.done {
		return nil, &fs.PathError{Op: "create", Path: s.path, Err: fs.ErrClosed}
	}
	if s.tmp != "" && (name == "" || !s.dir) {
		return nil, fmt.Errorf("%s: one place cannot be both a file and a directory", s.path)
	}
	if name == "" {
		return s.createFile()
	}
	if s.tmp == "" {
		if err := s.createDir(); err != nil {
			return nil, err
		}
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, fmt.Errorf("%s: %q would lie outside", s.path, name)
	}
	full := filepath.Join(s.tmp, filepath.FromSlash(name))
	if strings.Contains(name, "/") {
		if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	return &localObject{f, filepath.Join(s.path, filepath.FromSlash(name))}, nil
}

// createFile creates the temporary file that Commit renames to the sink's path.
func (s *localSink) createFile() (Object, error) {
	if st, err := os.Stat(s.path); err == nil && st.IsDir() {
		return nil, &fs.PathError{Op: "create", Path: s.path, Err: errors.New("is a directory")}
	} else if err == nil && !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "create", Path: s.path,
			Err: errors.New("is not a regular file and would be replaced")}
	}
	s.sweep()
	f, err := os.CreateTemp(filepath.Dir(s.path), TempPrefix+"*-"+filepath.Base(s.path))
	if err != nil {
		return nil, s.named(err)
	}
	s.begin(f.Name())
	if err := os.Chmod(s.tmp, s.mode(0o666)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &localObject{f, s.path}, nil
}

// createDir creates the temporary directory that Commit renames to the sink's path.
func (s *localSink) createDir() error {
	s.sweep()
	if err := s.mayReplace(); err != nil {
		return err
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	return os.Chmod(s.tmp, s.mode(0o777))
}

func (s *localSink) makeDir() error {
	tmp, err := os.MkdirTemp(filepath.Dir(s.path), TempPrefix+"*-"+filepath.Base(s.path))
	if err != nil {
		return s.named(err)
	}
	s.dir = true
	s.begin(tmp)
	return nil
}

// named returns err with the path that the user named in place of the temporary one.
func (s *localSink) named(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: "create", Path: s.path, Err: p.Err}
	}
	return err
}

// mode returns the mode of the file that is replaced, or else the usual mode under the process's umask.
func (s *localSink) mode(usual fs.FileMode) fs.FileMode {
	if st, err := os.Stat(s.path); err == nil {
		return st.Mode().Perm()
	}
	return usual &^ umask()
}

// mayReplace returns an error if the directory at the sink's path may not be replaced.
func (s *localSink) mayReplace() error {
	st, err := os.Stat(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return &fs.PathError{Op: "create", Path: s.path,
			Err: errors.New("a file is there, and the output is a directory")}
	}
	entries, err := os.ReadDir(s.path)
	if err != nil {
		return err
	}
	if len(entries) > 0 && (s.replace == nil || !s.replace(s.path)) {
		return &fs.PathError{Op: "create", Path: s.path,
			Err: errors.New("the directory is not empty, and no file in it says that stoa wrote it")}
	}
	return nil
}

type localObject struct {
	f    *os.File
	name string // its final name
}

func (o *localObject) Write(p []byte) (int, error) {
	n, err := o.f.Write(p)
	return n, o.named(err)
}

func (o *localObject) Close() error {
	if err := o.f.Sync(); err != nil {
		o.f.Close()
		return o.named(err)
	}
	return o.named(o.f.Close())
}

func (o *localObject) named(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return &fs.PathError{Op: p.Op, Path: o.name, Err: p.Err}
	}
	return err
}

func (s *localSink) Scratch(context.Context) (Scratch, error) {
	free, err := s.names()
	if err != nil {
		return nil, err
	}
	defer free()
	f, err := os.CreateTemp(filepath.Dir(s.path), TempPrefix+"*-"+scratchFor(filepath.Base(s.path)))
	if err != nil {
		return nil, s.named(err)
	}
	// Where open files can be removed, this one is removed at once, so that it vanishes with the process, however that
	// ends. If the process is killed just before this, the next one that writes there removes it.
	err = os.Remove(f.Name())
	gone := err == nil || errors.Is(err, fs.ErrNotExist) // such a process was there first
	if !gone {
		tryLock(f)
	}
	return &localScratch{f, gone, s.path}, nil
}

type localScratch struct {
	*os.File
	gone  bool
	place string // the path that it is for, used in errors
}

func (s *localScratch) Write(p []byte) (int, error) {
	n, err := s.File.Write(p)
	var e *fs.PathError
	if errors.As(err, &e) {
		err = &fs.PathError{Op: e.Op, Path: s.place, Err: e.Err}
	}
	return n, err
}

func (s *localScratch) Close() error {
	if s.gone {
		return s.File.Close()
	}
	return errors.Join(s.File.Close(), os.Remove(s.Name()))
}

func (s *localSink) Commit(context.Context) error {
	tmp, err := s.unfinished()
	if err != nil || tmp == "" {
		return err
	}
	defer s.release()
	if s.dir {
		if err := syncDirs(tmp); err != nil {
			return err
		}
	}
	free, err := s.names()
	if err != nil {
		return err
	}
	defer free()
	if s.dir {
		if err := s.mayReplace(); err != nil {
			return err
		}
	}
	if _, missing := os.Stat(s.path); s.dir && missing == nil {
		err = s.replaceDir()
	} else if err = os.Rename(s.tmp, s.path); err == nil {
		s.end()
		err = SyncDir(filepath.Dir(s.path))
	}
	if err == nil {
		Committed.Add(1)
	}
	return err
}

// unfinished returns the path of the sink's temporary data; "" if there are none, or none any more.
func (s *localSink) unfinished() (string, error) {
	free, err := s.names()
	if err != nil {
		return "", err
	}
	defer free()
	if s.done {
		return "", nil
	}
	return s.tmp, nil
}

// replaceDir replaces the old directory by the new one, atomically where the system can exchange two names. Otherwise
// it moves the old one aside first, as a directory cannot be renamed over one that is not empty.
func (s *localSink) replaceDir() error {
	old := s.tmp
	if exchange(s.tmp, s.path) != nil {
		old = s.tmp + oldSuffix
		if err := os.Rename(s.path, old); err != nil {
			return err
		}
		if err := os.Rename(s.tmp, s.path); err != nil {
			return errors.Join(err, os.Rename(old, s.path))
		}
	}
	s.end()
	return errors.Join(SyncDir(filepath.Dir(s.path)), os.RemoveAll(old))
}

func (s *localSink) Abort(context.Context) error {
	free, err := s.names()
	if err != nil {
		return nil // AbortAll has removed the temporary data
	}
	defer free()
	if s.done {
		return nil
	}
	defer s.release()
	s.end()
	if s.tmp == "" {
		return nil
	}
	return os.RemoveAll(s.tmp)
}

func syncDirs(dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return SyncDir(p)
	})
}

// SyncDir syncs a directory, so that the names in it survive a loss of power.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) {
		err = nil // some file systems do not support it
	}
	return errors.Join(err, d.Close())
}
