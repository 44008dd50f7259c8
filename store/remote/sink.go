package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"stoa/store"
)

// SinkOptions say how something is written to an address.
type SinkOptions struct {
	// SingleWriter: nobody else writes there. Then a directory is also written to a store that takes an exclusive
	// write of an object that is there.
	SingleWriter bool
}

// Sink writes to an address: one object, or a directory in which there is nothing yet. What is written goes to
// temporary files of this machine, and from there, as soon as a part is full, to the store. The parts are nobody's
// object before Commit, so an object is there whole or not at all. Of a directory, the objects appear at the commit,
// the one that was created last at the end; while they do, and after a process that dies then, an object named
// Unfinished says so, and readers of this package refuse the directory.
//
// The sink is a store.Peeker: what is read before the commit are the temporary files. The store compares a checksum of
// each part with what it received.
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
		err = &Error{Reason: "no object of that name can be written"}
	}
	if err != nil {
		return nil, at("create", name, err)
	}
	return &sink{root: r, w: w, name: name, key: key, o: o}, nil
}

// partSize is how many bytes the first parts of an object have. The odd rest is our mark: uploads have no place for
// one, and clean has to know ours from those of others.
const (
	partSize  = 8<<20 + 0x570a
	smallMany = 1000 // parts of partSize, after which parts are larger, so that large objects come in 10,000
	largePart = 64 << 20
	mostParts = 10_000
	inFlight  = 4 // parts of a sink at a time
)

// sink is a place being written.
type sink struct {
	root      *root
	w         Writer
	name, key string
	o         SinkOptions

	mu      sync.Mutex
	spool   string // the directory of the temporary files; "": there is none yet
	objects []*outgoing
	dir     bool
	done    bool
	forget  func() // takes the sink from those that end with the process
	flying  chan struct{}
	ctx     context.Context // of the parts, which outlive the calls that begin them
	cancel  context.CancelFunc
}

// outgoing is an object on its way.
type outgoing struct {
	s     *sink
	key   string
	name  string // in the sink
	file  *os.File
	size  int64
	begun int64 // bytes that are in parts
	parts int   // that were begun

	mu     sync.Mutex
	upload Upload
	tags   []string
	err    error // the first
	work   sync.WaitGroup
	put    Object // where it is complete
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
		return nil, fmt.Errorf("%s: one place cannot be both an object and a directory", Shown(s.name))
	case name != "" && (clean(name) != name || !filepath.IsLocal(filepath.FromSlash(name))):
		return nil, fmt.Errorf("%s: %q would lie outside", Shown(s.name), name)
	case name != "":
		key, shown, s.dir = path.Join(s.key, name), s.name+"/"+name, true
	}
	if len(s.objects) == 0 {
		if err := s.begin(ctx); err != nil {
			return nil, at("create", s.name, err)
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

// begin makes the directory of the temporary files, and looks at what is at the place. The caller holds mu.
func (s *sink) begin(ctx context.Context) (err error) {
	if s.dir {
		if err := s.vacant(ctx); err != nil {
			return err
		}
	}
	if s.spool, err = os.MkdirTemp("", store.TempPrefix+"*"); err != nil {
		return err
	}
	s.flying = make(chan struct{}, inFlight)
	if s.w.Traits().InOrder {
		s.flying = make(chan struct{}, 1)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.forget, err = store.AtAbort(s.give)
	return err
}

// vacant is an error if there is something at the place of a directory, as the store says now.
func (s *sink) vacant(ctx context.Context) error {
	all, _, err := s.root.ask.list(ctx, s.w, prefixOf(s.key), true, 1)
	if err != nil && !isMissing(err) {
		return err
	}
	for _, o := range all {
		if path.Base(o.Key) == Unfinished {
			return errUnfinished
		}
	}
	if len(all) > 0 {
		return &Error{Kind: fs.ErrExist, Reason: "there are objects below it, and directories in a store are never " +
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

// next is how long the next part is.
func (o *outgoing) next() int64 {
	if o.parts < smallMany {
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

// send has the next n bytes sent as a part, when fewer than inFlight parts are on their way. It does not wait for the
// answer.
func (o *outgoing) send(n int64) error {
	if o.parts == mostParts {
		return &fs.PathError{Op: "write", Path: Shown(o.name),
			Err: fmt.Errorf("it is larger than %d parts can be", mostParts)}
	}
	ctx := o.s.ctx
	if o.parts == 0 {
		id, err := "", error(nil)
		err = o.s.root.once(ctx, Put, func(ctx context.Context) error {
			id, err = o.s.w.Begin(ctx, o.key)
			return err
		})
		if err != nil {
			return at("write", o.name, err)
		}
		o.mu.Lock()
		o.upload = Upload{Key: o.key, ID: id, Begun: now()}
		o.mu.Unlock()
	}
	off := o.begun
	o.parts++
	o.begun += n
	no := o.parts
	o.s.flying <- struct{}{}
	o.work.Go(func() {
		defer func() { <-o.s.flying }()
		if o.failed() != nil {
			return
		}
		tag, err := o.s.root.part(ctx, o.s.w, o.upload, no, o.file, off, n)
		if err != nil {
			o.fail(at("write", o.name, err))
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

// Close sends what is left of an object that comes in parts.
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
	return at("write", o.name, err)
}

// Peek is what was written, as it lies on this machine.
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
	return nil
}

// end removes what is temporary. The caller holds mu.
func (s *sink) end() {
	s.done = true
	if s.forget != nil {
		s.forget()
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

// Abort removes everything.
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

// discard removes the uploads that are not complete.
func (s *sink) discard(ctx context.Context) (err error) {
	ctx = context.WithoutCancel(ctx)
	for _, o := range s.objects {
		o.mu.Lock()
		u := o.upload
		o.mu.Unlock()
		if u.ID != "" {
			if e := s.root.discard(ctx, s.w, u); e != nil {
				err = errors.Join(err, fmt.Errorf("%w; what was sent of it is invisible, and stoa clean removes it",
					at("remove", o.name, e)))
			}
		}
	}
	return err
}

// give removes, in the little time that a process has that ends, what can be removed: see store.AtAbort.
func (s *sink) give(ctx context.Context) {
	s.mu.Lock() // a commit is waited for
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

// newID is a name that nobody else has.
func newID() string { return rand.Text()[:16] }
