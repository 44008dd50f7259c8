package remote

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"strings"
	"sync"
	"syscall"

	"stoa/fault"
	"stoa/store"
)

// Tree is a store.Tree of the stores whose addresses were entered. It lists each store once, so new objects are seen
// only by a new Tree. Reading an object that has changed since is an error, store.ErrChanged.
type Tree struct {
	below    store.Tree // for names that are not addresses; nil: such names do not exist
	requests *requester

	mu    sync.Mutex
	roots map[string]*root

	failures failures
}

// Failure returns the first failure of a store that a reader was told of. After it, nothing that readers say of damage
// can be relied on. Objects that are missing, or denied, are no failures.
func (t *Tree) Failure() error { return t.failures.get() }

// Failures returns how many there were, and the last one.
func (t *Tree) Failures() (n int, last error) {
	t.failures.mu.Lock()
	defer t.failures.mu.Unlock()
	return t.failures.n, t.failures.last
}

// Forget forgets the failures after the first n, because what had failed was done again.
func (t *Tree) Forget(n int) { t.failures.forget(n) }

// New returns a tree. Names that are not addresses are looked up in below, if it is not nil.
func New(below store.Tree, o Options) *Tree {
	return &Tree{below: below, requests: newRequester(o), roots: map[string]*root{}}
}

// Usage returns the requests so far.
func (t *Tree) Usage() Usage { return t.requests.usage() }

// Keep sets the cache. It must be called before anything is read.
func (t *Tree) Keep(c *Cache) { t.requests.Cache = c }

// Budget keeps objects in a quarter of a budget of memory, within limits; 0: what the options say. It must be called
// before anything is entered.
func (t *Tree) Budget(memory int64) {
	const least = 16 << 20
	if memory > 0 {
		t.requests.Options.Keep = min(t.requests.Options.Keep, max(memory/4, least))
	}
}

// CloseCache closes the cache, if there is one. Reading goes on without filling it.
func (t *Tree) CloseCache() { t.requests.Cache.Close() }

// Limit sets the maximum number of requests, including those made before.
func (t *Tree) Limit(requests int64) {
	t.requests.mu.Lock()
	defer t.requests.mu.Unlock()
	t.requests.MaxRequests = requests
}

// Enter makes the names in the bucket or host of an address accessible; everything below the address is listed
// recursively at the first lookup. It returns the address's name in the tree, without secrets but with a #TABLE at its
// end.
func (t *Tree) Enter(ctx context.Context, address string) (name string, err error) {
	place, table := address, ""
	if i := strings.LastIndexByte(address, '#'); i >= 0 {
		place, table = address[:i], address[i:]
	}
	a, err := Parse(place)
	if err != nil {
		return "", fault.Invalidf("%v", err)
	}
	slash := strings.HasSuffix(a.Key, "/")
	if a.Scheme == "http" || a.Scheme == "https" {
		if a.Key, err = url.PathUnescape(a.Key); err != nil {
			return "", fault.Invalidf("%s: %v", a.Name(), err)
		}
	}
	a.Key = clean(a.Key)
	r, err := t.open(ctx, a)
	if err != nil {
		return "", err
	}
	if err := r.enter(a, slash); err != nil {
		return "", err
	}
	return a.Name() + table, nil
}

// Knows reports whether a name is in a bucket or host that was entered.
func (t *Tree) Knows(name string) bool {
	r, _, err := t.find("stat", name)
	return r != nil && err == nil
}

// Outside reports whether a name is an address in a bucket, or on a host, that was not entered.
func (t *Tree) Outside(name string) bool { return Is(name) && !t.Knows(name) }

// open returns the root for an address's bucket or host. For the first address there it creates the client.
func (t *Tree) open(ctx context.Context, a Address) (*root, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r := t.roots[a.Root()]; r != nil {
		if r.user != a.User && a.User != "" {
			return nil, fault.Invalidf("%s is named with two different users", a.Root())
		}
		return r, nil
	}
	open := openerOf(a.Scheme)
	if open == nil {
		return nil, fault.Unsupportedf(fault.Span{Object: a.Name()}, "", "this program has no client for %s: addresses",
			a.Scheme)
	}
	c, err := open(ctx, a)
	if err != nil {
		return nil, pathError("open", a.Name(), err)
	}
	r := newRoot(a, c, t.requests)
	t.roots[a.Root()] = r
	return r, nil
}

// find returns the root of a name, and its key there; nil means that the name is one of the tree below.
func (t *Tree) find(op, name string) (r *root, key string, err error) {
	if !Is(name) {
		if t.below == nil {
			return nil, "", &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
		}
		return nil, "", nil
	}
	scheme, rest, _ := strings.Cut(name, ":/")
	host, key, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	t.mu.Lock()
	defer t.mu.Unlock()
	if r = t.roots[scheme+"://"+host]; r == nil {
		return nil, "", &fs.PathError{Op: op, Path: Shown(name), Err: errOutside}
	}
	return r, clean(key), nil
}

// errOutside is the error for names in other buckets and hosts: the content of a file must not determine where requests
// go. Readers, which also look above the named place, treat it like a missing file.
var errOutside = &Error{Kind: fs.ErrNotExist, Reason: "it is outside of the buckets and hosts that were named"}

// clean returns a key without empty parts, . and .. .
func clean(key string) string {
	if key == "" || key == "." {
		return ""
	}
	var out []string
	for part := range strings.SplitSeq(key, "/") {
		switch part {
		case "", ".":
		case "..":
			out = out[:max(len(out)-1, 0)]
		default:
			out = append(out, part)
		}
	}
	return strings.Join(out, "/")
}

// Open opens an object. Its data are requested when they are read.
func (t *Tree) Open(ctx context.Context, name string) (store.Source, error) {
	r, key, err := t.find("open", name)
	if err != nil || r == nil {
		return openBelow(ctx, t.below, name, err)
	}
	o, dir, err := r.lookup(ctx, key)
	switch {
	case err != nil:
		return nil, t.failures.note(ctx, pathError("open", name, err))
	case dir:
		return nil, &fs.PathError{Op: "open", Path: Shown(name), Err: store.ErrDirectory}
	}
	return &source{failures: &t.failures, o: o, name: name}, nil
}

func openBelow(ctx context.Context, below store.Tree, name string, err error) (store.Source, error) {
	if err != nil {
		return nil, err
	}
	return below.Open(ctx, name)
}

// Stat describes an object or a directory.
func (t *Tree) Stat(ctx context.Context, name string) (store.Info, error) {
	r, key, err := t.find("stat", name)
	if err != nil {
		return store.Info{}, err
	}
	if r == nil {
		return t.below.Stat(ctx, name)
	}
	o, dir, err := r.lookup(ctx, key)
	if err != nil {
		return store.Info{}, t.failures.note(ctx, pathError("stat", name, err))
	}
	if dir && r.unfinished(key) {
		return store.Info{}, pathError("stat", name, errUnfinished)
	}
	if dir {
		return store.Info{Name: name, Dir: true}, nil
	}
	return o.info(name), nil
}

// List lists the objects and prefixes in a directory.
func (t *Tree) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		r, key, err := t.find("list", dir)
		if err != nil {
			yield(store.Info{}, err)
			return
		}
		if r == nil {
			t.below.List(ctx, dir)(yield)
			return
		}
		all, err := r.children(ctx, key)
		if err != nil {
			op := "list"
			if err == syscall.ENOTDIR || isMissing(err) {
				op = "open" // as on a disk
			}
			yield(store.Info{}, t.failures.note(ctx, pathError(op, dir, err)))
			return
		}
		if r.unfinished(key) {
			yield(store.Info{}, pathError("list", dir, errUnfinished))
			return
		}
		prefix := strings.TrimSuffix(dir, "/") + "/"
		for _, c := range all {
			info := store.Info{Name: prefix + c.base, Dir: c.o == nil}
			if c.o != nil {
				info = c.o.info(info.Name)
			}
			var bad error
			if c.why != "" {
				bad = &fs.PathError{Op: "list", Path: Shown(info.Name), Err: fmt.Errorf("%s", c.why)}
			}
			if !yield(info, bad) {
				return
			}
		}
	}
}

// Irregular yields that of the tree below, as stores contain only objects.
func (t *Tree) Irregular(ctx context.Context, dir string) iter.Seq[store.Irregular] {
	if Is(dir) || t.below == nil {
		return func(func(store.Irregular) bool) {}
	}
	return store.IrregularIn(ctx, t.below, dir)
}
