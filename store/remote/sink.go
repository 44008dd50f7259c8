package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"stoa/store"
)

// SinkOptions are the options of Sink.
type SinkOptions struct {
	// SingleWriter: nobody else writes there. A directory can then be written even to a store without conditional
	// writes.
	SingleWriter bool
}

// Sink writes to an address: one object, or a directory that is empty. Data go to local temporary files, and from there
// to the store as soon as a part is full. Parts are invisible before Commit, so an object exists either completely or
// not at all. The objects of a directory become visible at the commit, the one created last at the end. Until all of
// them are visible, even if the process dies, an object named Unfinished marks the directory, and readers of this
// package refuse it.
//
// The sink is a store.Peeker: before the commit the temporary files are read. The store verifies a checksum of each
// part.
func (t *Tree) Sink(ctx context.Context, address string, o SinkOptions) (store.Sink, error) {
	name, err := t.Enter(ctx, address)
	if err != nil {
		return nil, err
	}
	r, key, err := t.find("create", name)
	if err != nil {
		return nil, err
	}
	w, err := r.writer()
	if err == nil && (key == "" || strings.ContainsAny(address, "?#")) {
		err = &Error{Reason: "an object cannot have that name"}
	}
	if err != nil {
		return nil, pathError("create", name, err)
	}
	return &sink{root: r, w: w, name: name, key: key, o: o}, nil
}

// partSize is the size in bytes of the first parts of an object. It is deliberately not round: as uploads have no
// metadata, it marks them as stoa's, so that Clean leaves those of other programs alone.
const (
	partSize    = 8<<20 + 0x570a
	smallParts  = 1000 // number of parts of partSize, after which they are larger: a store allows 10,000 parts
	largePart   = 64 << 20
	maxParts    = 10_000
	maxInFlight = 4 // concurrent parts per sink
)

// sink is an object or a directory that is being written.
type sink struct {
	root      *root
	w         Writer
	name, key string
	o         SinkOptions

	mu         sync.Mutex
	spool      string // directory of the temporary files; "": not created yet
	objects    []*outgoing
	dir        bool
	done       bool
	unregister func() // cancels store.AtAbort
	inFlight   chan struct{}
	ctx        context.Context // for requests for parts, which outlive the calls that start them
	cancel     context.CancelFunc
}

// outgoing is an object that is being written.
type outgoing struct {
	s     *sink
	key   string
	name  string // name in the sink
	file  *os.File
	size  int64
	begun int64 // bytes in parts that were started
	parts int   // parts that were started

	mu     sync.Mutex
	upload Upload
	tags   []string
	err    error // the first error
	work   sync.WaitGroup
	put    Object // the visible object

	uncertain bool // the request that makes it visible was cut off, and the store may still carry it out
}

func (s *sink) Scratch(context.Context) (store.Scratch, error) { return store.NewScratch() }

// Create begins an object.
func (s *sink) Create(ctx context.Context, name string) (store.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, shown := s.key, s.name
	switch {
	case s.done:
		return nil, &fs.PathError{Op: "create", Path: Shown(s.name), Err: fs.ErrClosed}
	case len(s.objects) > 0 && (name == "" || !s.dir):
		return nil, fmt.Errorf("%s cannot be both an object and a directory", Shown(s.name))
	case name != "" && (clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name))):
		return nil, fmt.Errorf("%s: %q would be outside of it", Shown(s.name), name)
	case name != "":
		key, shown, s.dir = path.Join(s.key, name), s.name+"/"+name, true
	}
	if len(s.objects) == 0 {
		if err := s.begin(ctx); err != nil {
			return nil, pathError("create", s.name, err)
		}
	}
	file := filepath.Join(s.spool, path.Base(s.name), filepath.FromSlash(name))
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	o := &outgoing{s: s, key: key, name: shown, file: f}
	s.objects = append(s.objects, o)
	return o, nil
}

// begin creates the directory for temporary files, and checks that a target directory is empty. The caller holds mu.
func (s *sink) begin(ctx context.Context) (err error) {
	if s.dir {
		if err := s.checkAbsent(ctx); err != nil {
			return err
		}
	}
	if s.spool, err = os.MkdirTemp("", store.TempPrefix+"*"); err != nil {
		return err
	}
	s.inFlight = make(chan struct{}, maxInFlight)
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.unregister, err = store.AtAbort(s.abandon)
	return err
}

// checkAbsent returns an error if the directory is not empty, according to a new listing.
func (s *sink) checkAbsent(ctx context.Context) error {
	all, _, err := s.root.requests.list(ctx, s.w, prefixOf(s.key), true, 1)
	if err != nil && !isMissing(err) {
		return err
	}
	for _, o := range all {
		if path.Base(o.Key) == Unfinished {
			return errUnfinished
		}
	}
	if len(all) > 0 {
		return &Error{Kind: fs.ErrExist, Reason: "there are objects in it, and directories in a store are never " +
			"replaced: choose another name"}
	}
	return nil
}

func (o *outgoing) Write(p []byte) (int, error) {
	if err := o.failed(); err != nil {
		return 0, err
	}
	n, err := o.file.Write(p)
	o.size += int64(n)
	for err == nil && o.size-o.begun >= o.next() {
		err = o.send(o.next())
	}
	return n, err
}

// next returns the size of the next part.
func (o *outgoing) next() int64 {
	if o.s.w.Traits().Whole {
		return math.MaxInt64
	}
	if o.parts < smallParts {
		return partSize
	}
	return largePart
}

func (o *outgoing) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (o *outgoing) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// send starts the request for a part of the next n bytes, as soon as fewer than maxInFlight are running.
func (o *outgoing) send(n int64) error {
	if o.parts == maxParts {
		return &fs.PathError{Op: "write", Path: Shown(o.name),
			Err: fmt.Errorf("it is too large: a store takes at most %d parts", maxParts)}
	}
	ctx := o.s.ctx
	if o.parts == 0 {
		id, err := "", error(nil)
		err = o.s.root.once(ctx, Put, func(ctx context.Context) error {
			id, err = o.s.w.Begin(ctx, o.key)
			return err
		})
		if err != nil {
			return pathError("write", o.name, err)
		}
		o.mu.Lock()
		o.upload = Upload{Key: o.key, ID: id, Begun: now()}
		o.mu.Unlock()
	}
	off := o.begun
	o.parts++
	o.begun += n
	no := o.parts
	o.s.inFlight <- struct{}{}
	o.work.Go(func() {
		defer func() { <-o.s.inFlight }()
		if o.failed() != nil {
			return
		}
		tag, err := o.s.root.part(ctx, o.s.w, o.upload, no, o.file, off, n)
		if err != nil {
			o.fail(pathError("write", o.name, err))
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		for len(o.tags) < no {
			o.tags = append(o.tags, "")
		}
		o.tags[no-1] = tag
	})
	return nil
}

// Close sends the last part of a multipart object, and waits for all parts.
func (o *outgoing) Close() error {
	if o.parts > 0 && o.begun < o.size && o.failed() == nil {
		if err := o.send(o.size - o.begun); err != nil {
			o.fail(err)
		}
	}
	o.work.Wait()
	return o.failed()
}

// appear makes the object visible.
func (o *outgoing) appear(ctx context.Context, c Condition) (err error) {
	if o.parts == 0 {
		o.put, err = o.s.root.put(ctx, o.key, o.file, o.size, c)
	} else {
		o.put, err = o.s.root.complete(ctx, o.s.w, o.upload, o.tags, o.size, c)
		if err == nil {
			o.mu.Lock()
			o.upload.ID = ""
			o.mu.Unlock()
		}
	}
	o.uncertain = errors.As(err, new(*UncertainError))
	return pathError("write", o.name, err)
}

// Peek returns the temporary files.
func (s *sink) Peek() (store.Tree, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.spool == "" || s.done {
		return nil, ""
	}
	return store.Local{}, filepath.ToSlash(filepath.Join(s.spool, path.Base(s.name)))
}

// Commit makes everything visible.
func (s *sink) Commit(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done || len(s.objects) == 0 {
		return nil
	}
	for _, o := range s.objects {
		if err := o.Close(); err != nil {
			return err
		}
	}
	var err error
	if s.dir {
		err = s.commitDir(ctx)
	} else {
		err = s.objects[0].appear(ctx, Condition{})
	}
	if err != nil {
		return err
	}
	s.end()
	store.Committed.Add(1)
	return nil
}

// end removes the temporary files. The caller holds mu.
func (s *sink) end() {
	s.done = true
	if s.unregister != nil {
		s.unregister()
	}
	if s.cancel != nil {
		s.cancel()
	}
	for _, o := range s.objects {
		o.file.Close()
	}
	if s.spool != "" {
		_ = os.RemoveAll(s.spool)
	}
}

// Abort discards everything.
func (s *sink) Abort(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done {
		return nil
	}
	for _, o := range s.objects {
		o.fail(fs.ErrClosed)
	}
	if s.cancel != nil {
		s.cancel()
	}
	for _, o := range s.objects {
		o.work.Wait()
	}
	err := s.discard(ctx)
	s.end()
	return err
}

// discard removes incomplete uploads.
func (s *sink) discard(ctx context.Context) (err error) {
	ctx = context.WithoutCancel(ctx)
	for _, o := range s.objects {
		o.mu.Lock()
		u := o.upload
		o.mu.Unlock()
		if u.ID != "" {
			if e := s.root.discard(ctx, s.w, u); e != nil {
				err = errors.Join(err, fmt.Errorf("%w; its parts are invisible, and stoa clean removes them",
					pathError("remove", o.name, e)))
			}
		}
	}
	return err
}

// abandon removes what it can in the short time before the process ends, see store.AtAbort.
func (s *sink) abandon(ctx context.Context) {
	s.mu.Lock() // waits for a commit in progress
	defer s.mu.Unlock()
	if s.done {
		return
	}
	for _, o := range s.objects {
		o.fail(fs.ErrClosed)
	}
	for _, o := range s.objects {
		o.mu.Lock()
		u := o.upload
		o.mu.Unlock()
		if u.ID != "" {
			_ = s.w.Discard(ctx, u)
		}
	}
	if s.spool != "" {
		_ = os.RemoveAll(s.spool)
	}
	s.done = true
}

var _ io.Writer = (*outgoing)(nil)

// newID returns a random name.
func newID() string { return rand.Text()[:16] }
