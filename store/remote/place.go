package remote

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"stoa/fault"
	"stoa/store"
)

// Place is a directory at an address whose objects are written one by one, for changes of what is there. Sink writes
// new things.
type Place struct {
	root      *root
	w         Writer
	name, key string
}

// Locker is a Writer of a store that has locks instead of conditions with a stamp.
type Locker interface {
	// Lock opens a file, which it creates if there is none, so that nobody else can open it for writing until unlock is
	// called, or this process has ended. fs.ErrExist: somebody else has opened it.
	Lock(ctx context.Context, key string) (unlock func() error, err error)
	// Prune removes the directories at and below a key that have no files in them.
	Prune(ctx context.Context, key string) error
}

// UncertainError reports a write that failed, but that the store may have done or may still do.
type UncertainError struct{ Err error }

func (e *UncertainError) Error() string {
	return e.Err.Error() + "; whether the store has done it is not known"
}

// Unwrap returns why the write failed.
func (e *UncertainError) Unwrap() error { return e.Err }

// Place returns the directory with a name in t, whose address was entered. It need not exist.
func (t *Tree) Place(name string) (*Place, error) {
	r, key, err := t.find("change", name)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, fault.Invalidf("%s is not an address", name)
	}
	w, err := r.writer()
	if err != nil {
		return nil, pathError("change", name, err)
	}
	return &Place{r, w, Shown(name), key}, nil
}

// Name returns the place's name in its tree.
func (p *Place) Name() string { return p.name }

// List requests what is there, whatever was known before; keys are relative to the place. The tree then has the same
// view of the place.
func (p *Place) List(ctx context.Context) (map[string]Object, error) {
	all, whole, err := p.root.listBelow(ctx, p.key, maxDirKeys)
	switch {
	case isMissing(err):
		all = nil
	case err != nil:
		return nil, pathError("list", p.name, err)
	case !whole:
		return nil, pathError("list", p.name, errTooManyKeys)
	}
	out := map[string]Object{}
	for _, o := range all {
		rel := strings.TrimPrefix(o.Key, prefixOf(p.key))
		if path.Base(rel) == Unfinished {
			return nil, pathError("change", p.name, errUnfinished)
		}
		if o.Dir || rel == "" || strings.HasSuffix(rel, "/") {
			continue
		}
		if clean(rel) != rel {
			return nil, pathError("list", p.name+"/"+rel, &Error{Reason: "no file can have that name"})
		}
		out[rel] = o
	}
	p.root.forgetBelow(p.key)
	return out, nil
}

// forgetBelow forgets everything that is known about the keys in a directory.
func (r *root) forgetBelow(dir string) {
	r.lookupMu.Lock()
	defer r.lookupMu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	in := func(key string) bool { return key == dir || within(key, dir) }
	for key := range r.objects {
		if in(key) {
			delete(r.objects, key)
		}
	}
	for _, known := range []map[string]bool{r.absent, r.empty, r.isDir} {
		for key := range known {
			if in(key) {
				delete(known, key)
			}
		}
	}
	for key := range r.dirs {
		if in(key) {
			delete(r.dirs, key)
		}
	}
	r.deep = slices.DeleteFunc(r.deep, in)
	r.forgetAround(dir)
	r.entered[dir] = true // it is listed recursively when it is looked up
}

// Read reads an object whole. One that has changed since it was listed is store.ErrChanged.
func (p *Place) Read(ctx context.Context, o Object) ([]byte, error) {
	b := make([]byte, o.Size)
	err := p.root.requests.get(ctx, p.root.client, o, "", b, 0, nil)
	return b, pathError("read", p.root.addr+"/"+o.Key, err)
}

// Put writes n bytes as the object with a relative name, which appears as a whole, provided that c holds. If an answer
// was lost and the object then is what was to be written, it was written. If whether it was is not known, the error is
// an UncertainError; after any other error it was not.
func (p *Place) Put(ctx context.Context, rel string, body io.ReaderAt, n int64, c Condition) (o Object, err error) {
	key := path.Join(p.key, rel)
	if _, locks := p.w.(Locker); locks && c != (Condition{}) {
		if err := p.check(ctx, key, c); err != nil {
			return o, pathError("write", p.name+"/"+rel, err)
		}
		c = Condition{}
	}
	if n <= partSize || p.w.Traits().Whole {
		o, err = p.root.put(ctx, key, body, n, c)
	} else {
		o, err = p.inParts(ctx, key, body, n, c)
	}
	if err != nil && !errors.Is(err, store.ErrChanged) {
		err = pathError("write", p.name+"/"+rel, err)
	}
	return o, err
}

// Check returns an error if a condition for an object does not hold.
func (p *Place) Check(ctx context.Context, rel string, c Condition) error {
	return p.check(ctx, path.Join(p.key, rel), c)
}

// ReadNow reads an object as it is now.
func (p *Place) ReadNow(ctx context.Context, rel string) (Object, []byte, error) {
	key := path.Join(p.key, rel)
	o, err := p.root.requests.head(ctx, p.w, key, "")
	if err != nil {
		return o, nil, pathError("read", p.name+"/"+rel, err)
	}
	o.Key = key
	b, err := p.Read(ctx, o)
	return o, b, err
}

// check returns an error if a condition does not hold.
func (p *Place) check(ctx context.Context, key string, c Condition) error {
	now, err := p.root.requests.head(ctx, p.w, key, "")
	switch {
	case err != nil && !isMissing(err):
		return err
	case c.Absent && err == nil:
		return &Error{Kind: fs.ErrExist, Reason: "there is an object of that name"}
	case c.Stamp != "" && (err != nil || now.Stamp != c.Stamp):
		return &Error{Kind: store.ErrChanged, Reason: "the object changed"}
	}
	return nil
}

// inParts writes a large object.
func (p *Place) inParts(ctx context.Context, key string, body io.ReaderAt, n int64, c Condition) (o Object, err error) {
	u := Upload{Key: key, Begun: now()}
	err = p.root.once(ctx, Put, func(ctx context.Context) (err error) {
		u.ID, err = p.w.Begin(ctx, key)
		return err
	})
	if err != nil {
		return o, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.root.discard(context.WithoutCancel(ctx), p.w, u))
		}
	}()
	unregister, err := store.AtAbort(func(ctx context.Context) { _ = p.w.Discard(ctx, u) })
	if err != nil {
		return o, err
	}
	defer unregister()
	size := int64(partSize)
	if n > smallParts*size {
		size = max(largePart, (n+maxParts-1)/maxParts)
	}
	tags := make([]string, (n+size-1)/size)
	err = inParallel(ctx, maxInFlight, len(tags), func(ctx context.Context, i int) (err error) {
		off := int64(i) * size
		tags[i], err = p.root.part(ctx, p.w, u, i+1, body, off, min(size, n-off))
		return err
	})
	if err != nil {
		return o, err
	}
	return p.root.complete(ctx, p.w, u, tags, n, c)
}

// inParallel calls do for 0 to n-1, at most most of them at a time, until one fails.
func inParallel(ctx context.Context, most, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	places := make(chan struct{}, most)
	var work sync.WaitGroup
	for i := range n {
		places <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		work.Go(func() {
			if err := do(ctx, i); err != nil {
				cancel(err)
			}
			<-places
		})
	}
	work.Wait()
	return context.Cause(ctx)
}

// Each calls do for 0 to n-1, several of them at a time, until one fails.
func (p *Place) Each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	return inParallel(ctx, 2*maxInFlight, n, do)
}

// Remove removes an object. It is not an error if there is none.
func (p *Place) Remove(ctx context.Context, rel string) error {
	return pathError("remove", p.name+"/"+rel, p.root.remove(ctx, path.Join(p.key, rel)))
}

// Lock takes the lock of a file, in a store that has locks; in others it returns nil.
func (p *Place) Lock(ctx context.Context, rel string) (unlock func() error, err error) {
	l, ok := p.w.(Locker)
	if !ok {
		return nil, nil
	}
	key := path.Join(p.key, rel)
	err = p.root.once(ctx, Put, func(ctx context.Context) (err error) {
		unlock, err = l.Lock(ctx, key)
		return err
	})
	return unlock, pathError("lock", p.name+"/"+rel, err)
}

// Prune removes what is left of the place after all its files were removed, in a store that has directories.
func (p *Place) Prune(ctx context.Context) error {
	l, ok := p.w.(Locker)
	if !ok {
		return nil
	}
	err := p.root.once(ctx, Delete, func(ctx context.Context) error { return l.Prune(ctx, p.key) })
	return pathError("remove", p.name, err)
}

// probe is how the names of objects begin with which CheckConditions tests a store.
const probe = store.TempPrefix + "probe-"

// CheckConditions verifies, with an object of its own in the place, that the store respects conditions: one that
// ignores them cannot keep two writers apart, which is not seen otherwise.
func (p *Place) CheckConditions(ctx context.Context) (err error) {
	if _, locks := p.w.(Locker); locks {
		return nil
	}
	rel := probe + newID()
	put := func(text string, c Condition) (Object, error) {
		return p.Put(ctx, rel, bytes.NewReader([]byte(text)), int64(len(text)), c)
	}
	first, err := put("1", Condition{Absent: true})
	if err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	if err == nil {
		defer func() { err = errors.Join(err, p.Remove(context.WithoutCancel(ctx), rel)) }()
		_, err = put("2", Condition{Absent: true})
	}
	if errors.Is(err, fs.ErrExist) {
		_, err = put("2", Condition{Stamp: "00000000000000000000000000000000"})
	}
	switch {
	case err == nil || errors.Is(err, errors.ErrUnsupported):
		return pathError("change", p.name, ErrIgnoresConditions)
	case !errors.Is(err, store.ErrChanged):
		return err
	}
	_, err = put("3", Condition{Stamp: first.Stamp})
	return err
}
