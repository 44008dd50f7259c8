package remote

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"stoa/fault"
	"stoa/internal/sorted"
	"stoa/store"
)

const (
	maxDeepKeys    = 50_000    // keys below an address, in a recursive listing
	pageOfKeys     = 1000      // keys of a directory above an address that is listed to look beside it
	maxSiblingKeys = 10_000    // keys of a directory that is listed to look up one of them
	maxDirKeys     = 1_000_000 // keys of one directory
)

// root is a bucket or host, with what is known about its keys.
type root struct {
	addr     string // "s3://bucket"
	user     string
	client   Client
	requests *requester
	cache    *runCache

	lookupMu sync.Mutex // held during requests that lookups wait for

	mu       sync.Mutex
	entered  map[string]bool     // addresses that were entered but not looked up yet
	named    map[string]bool     // all addresses that were entered
	slashed  map[string]bool     // those of named that end with a slash
	versions map[string]string   // of objects, from their addresses
	objects  map[string]*object  // known objects
	absent   map[string]bool     // keys known not to exist
	empty    map[string]bool     // keys known to have nothing below them
	dirs     map[string][]child  // directories whose children are known, sorted
	isDir    map[string]bool     // directories known to exist
	deep     []string            // directories that were listed recursively
	unlisted map[string]struct{} // directories that cannot be listed, or have too many keys
	begun    map[string]bool     // those of deep in which an object was read
	guesses  map[string]*guess   // by directory and kind
	above    map[string]bool     // directories that were listed, or could not be, to look beside an address

	conditions conditionSupport
}

// child is an entry of a directory.
type child struct {
	base string
	o    *object // nil: a directory
	why  string  // why it cannot be read; "" if it can
}

func newRoot(a Address, c Client, ask *requester) *root {
	return &root{addr: a.Root(), user: a.User, client: c, requests: ask, cache: newRunCache(ask.Keep),
		entered: map[string]bool{}, named: map[string]bool{}, slashed: map[string]bool{},
		versions: map[string]string{}, objects: map[string]*object{}, absent: map[string]bool{},
		empty: map[string]bool{}, begun: map[string]bool{}, above: map[string]bool{},
		guesses: map[string]*guess{},
		dirs:    map[string][]child{}, isDir: map[string]bool{}, unlisted: map[string]struct{}{}}
}

// enter records an address. A pattern is not listed recursively, as it may match very little.
func (r *root) enter(a Address, slash bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.versions[a.Key]; ok && was != a.Query || !ok && a.Query != "" && r.objects[a.Key] != nil {
		return fault.Invalidf("%s is named twice, with different queries", a.Name())
	}
	if a.Query != "" {
		r.versions[a.Key] = a.Query
	}
	if !r.named[a.Key] && !strings.ContainsAny(a.Key, "*?[") {
		r.entered[a.Key] = true
	}
	r.named[a.Key], r.slashed[a.Key] = true, slash
	return nil
}

// lookup returns the object of a key, or reports that it is a directory; otherwise the error is fs.ErrNotExist,
// or syscall.ENOTDIR for an object that was entered with a slash at its end.
func (r *root) lookup(ctx context.Context, key string) (o *object, dir bool, err error) {
	if o, dir, err = r.recall(key); err != errNotKnown {
		return o, dir, err
	}
	r.lookupMu.Lock()
	defer r.lookupMu.Unlock()
	if err := r.exploreEntered(ctx, key); err != nil {
		return nil, false, err
	}
	if o, dir, err = r.recall(key); err != errNotKnown {
		return o, dir, err
	}
	if err := r.lookUp(ctx, key); err != nil {
		return nil, false, err
	}
	return r.recall(key)
}

var errNotKnown = errors.New("unknown")

// recall is lookup without requests; errNotKnown: requests are needed.
func (r *root) recall(key string) (o *object, dir bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch o := r.objects[key]; {
	case o != nil && !r.slashed[key]:
		return o, false, nil
	case o != nil && !r.isDir[key]:
		return nil, false, syscall.ENOTDIR // what a disk says
	}
	if r.entered[key] {
		return nil, false, errNotKnown
	}
	if key == "" || r.isDir[key] {
		return nil, true, nil
	}
	if r.missing(key) || slices.ContainsFunc(r.deep, func(d string) bool { return within(key, d) }) {
		return nil, false, fs.ErrNotExist
	}
	if i := strings.LastIndexByte(key, '#'); i >= 0 && r.named[key[:i]] && !r.entered[key[:i]] {
		if r.objects[key[:i]] != nil || r.isDir[key[:i]] {
			return nil, false, fs.ErrNotExist // the part after # is a table of the entered place
		}
	}
	return nil, false, errNotKnown
}

// missing reports whether a key, or a directory above it, is known not to exist. The caller holds mu.
func (r *root) missing(key string) bool {
	if r.absent[key] {
		return true
	}
	for d := key; d != ""; d = dirOf(d) {
		if _, known := r.dirs[dirOf(d)]; known && r.objects[d] == nil && !r.isDir[d] || d != key && r.empty[d] {
			return true
		}
	}
	return false
}

func dirOf(key string) string {
	if i := strings.LastIndexByte(key, '/'); i >= 0 {
		return key[:i]
	}
	return ""
}

// within reports whether a key lies below a directory.
func within(key, dir string) bool { return dir == "" || strings.HasPrefix(key, dir+"/") }

// exploreEntered looks up those entered addresses that are the key or are above it.
func (r *root) exploreEntered(ctx context.Context, key string) error {
	r.mu.Lock()
	var todo []string
	for k := range r.entered {
		if k == key || within(key, k) || strings.HasPrefix(key, k+"#") {
			todo = append(todo, k)
		}
	}
	r.mu.Unlock()
	slices.Sort(todo)
	for _, k := range todo {
		if err := r.exploreOne(ctx, k); err != nil {
			return err
		}
		r.mu.Lock()
		delete(r.entered, k)
		r.mu.Unlock()
	}
	return nil
}

// exploreOne requests the object of a key and, in parallel, a listing of everything below it.
func (r *root) exploreOne(ctx context.Context, key string) error {
	var wg sync.WaitGroup
	var all []Object
	var whole bool
	listed, headed := fs.ErrNotExist, fs.ErrNotExist // until they are requested
	list := func() { all, whole, listed = r.listBelow(ctx, key, maxDeepKeys) }
	lists := r.client.Traits().Lists || key == ""
	if lists || r.slashed[key] {
		wg.Go(list)
	}
	var o Object
	if key != "" {
		wg.Go(func() { o, headed = r.requests.head(ctx, r.client, key, r.versions[key]) })
	}
	wg.Wait()
	if key != "" && isMissing(headed) && !lists && !r.slashed[key] {
		list()
	}
	unclear := func(err error) bool { return err != nil && !isMissing(err) && !isDenied(err) }
	switch {
	case unclear(headed) && isDenied(listed), unclear(listed): // an answer to HEAD contains no reason
		return listed
	case unclear(headed):
		return headed
	}
	found := key != "" && headed == nil
	switch {
	case found || len(all) > 0:
	case isDenied(headed):
		return headed
	case isDenied(listed) || listed != nil && key == "":
		return listed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if found && !(r.slashed[key] && len(all) > 0) {
		o.Key = key
		r.add(o)
	}
	switch {
	case listed != nil:
		r.unlisted[key] = struct{}{}
	case !whole:
		r.isDir[key] = true
	case len(all) > 0 || key == "":
		r.learn(key, all)
	}
	if !found && len(all) == 0 && key != "" {
		r.absent[key] = true
	}
	return nil
}

func prefixOf(key string) string {
	if key == "" {
		return ""
	}
	return key + "/"
}

// lookUp looks up a key that was not entered: if possible by listing its directory, which returns its siblings, too.
func (r *root) lookUp(ctx context.Context, key string) error {
	parent := dirOf(key)
	if known, err := r.listAbove(ctx, dirOf(parent), parent); known || err != nil {
		return err
	}
	r.mu.Lock()
	_, not := r.unlisted[parent]
	r.mu.Unlock()
	if !not {
		err := r.listOne(ctx, parent, maxSiblingKeys)
		if err != errTooManyKeys && !isMissing(err) && !isDenied(err) {
			return err
		}
		r.mu.Lock()
		r.unlisted[parent] = struct{}{}
		r.mu.Unlock()
	}
	o, err := r.requests.head(ctx, r.client, key, r.versions[key])
	if err == nil {
		o.Key = key
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(o)
		return nil
	}
	if r.besideDenied(key, err) {
		return nil
	}
	if !isMissing(err) {
		return err
	}
	var some []Object
	if r.client.Traits().Lists {
		if some, _, err = r.requests.list(ctx, r.client, prefixOf(key), true, 1); err != nil && !isMissing(err) {
			return err
		}
	} else if err = r.listOne(ctx, key, maxDirKeys); err != nil && !isMissing(err) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(some) > 0 || r.isDir[key] {
		r.isDir[key] = true
	} else {
		r.absent[key] = true
	}
	return nil
}

// besideDenied reports whether a key beside or above what was named is denied: for a reader who may read only what was
// named, as policies of buckets often say, nothing is there.
func (r *root) besideDenied(key string, err error) bool {
	var e *Error
	if !isDenied(err) || errors.As(err, &e) && e.Credentials {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.named {
		if k == key || within(key, k) {
			return false
		}
	}
	r.absent[key] = true
	return true
}

// listAbove lists a directory above an entered address, if it is not large, and reports whether another directory in it
// turns out not to exist: readers look beside a place for what a table above it would have.
func (r *root) listAbove(ctx context.Context, above, dir string) (missing bool, err error) {
	r.mu.Lock()
	_, known := r.dirs[above]
	beside := false
	for k := range r.named {
		beside = beside || k != above && within(k, above) && k != dir && !within(k, dir)
	}
	skip := known || r.above[above] || !beside || dir == "" || r.ofInterest(dir) || !r.client.Traits().Lists
	r.above[above] = true
	r.mu.Unlock()
	if skip {
		return false, nil
	}
	if err := r.listOne(ctx, above, pageOfKeys); err != nil {
		if err == errTooManyKeys || isMissing(err) || isDenied(err) {
			err = nil
		}
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.missing(dir), nil
}

var errTooManyKeys = errors.New("too many keys")

// listOne lists one directory; errTooManyKeys: it has more than limit keys.
func (r *root) listOne(ctx context.Context, dir string, limit int) error {
	all, whole, err := r.requests.list(ctx, r.client, prefixOf(dir), true, limit)
	if err != nil {
		return err
	}
	if !whole {
		return errTooManyKeys
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(all) == 0 && dir != "" {
		r.empty[dir] = true
		return nil // the directory does not exist
	}
	r.learn(dir, all)
	return nil
}

// children returns the entries of a directory.
func (r *root) children(ctx context.Context, key string) ([]child, error) {
	recall := func() ([]child, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		all, ok := r.dirs[key]
		return all, ok
	}
	if all, ok := recall(); ok {
		return all, nil
	}
	r.lookupMu.Lock()
	defer r.lookupMu.Unlock()
	if err := r.exploreEntered(ctx, key); err != nil {
		return nil, err
	}
	if all, ok := recall(); ok {
		return all, nil
	}
	if o, _, err := r.recall(key); o != nil {
		return nil, syscall.ENOTDIR
	} else if errors.Is(err, fs.ErrNotExist) || err == syscall.ENOTDIR {
		return nil, err
	}
	switch err := r.listOne(ctx, key, maxDirKeys); {
	case err == errTooManyKeys:
		return nil, fault.Limitf(fault.Span{}, "", "more than %d keys in one directory", maxDirKeys)
	case isMissing(err):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	}
	all, ok := recall()
	if !ok {
		return nil, fs.ErrNotExist
	}
	return all, nil
}

// add adds a known object. The caller holds mu.
func (r *root) add(o Object) *object {
	if was := r.objects[o.Key]; was != nil {
		if was.Stamp == o.Stamp && was.Size == o.Size {
			return was
		}
		if r.versions[o.Key] != "" {
			return was
		}
	}
	x := &object{Object: o, root: r, version: r.versions[o.Key]}
	r.objects[o.Key] = x
	delete(r.absent, o.Key)
	return x
}

// learn records the listing of a directory, recursive or with prefixes. The caller holds mu.
func (r *root) learn(dir string, all []Object) {
	found := map[string]map[string]child{}
	deep := true
	in := func(dir string) map[string]child {
		if found[dir] == nil {
			found[dir] = map[string]child{}
		}
		return found[dir]
	}
	in(dir)
	for _, o := range all {
		key := strings.TrimSuffix(o.Key, "/")
		if key == dir {
			continue // some tools write such a key for an empty directory
		}
		if deep = deep && !o.Dir; o.Dir || key != o.Key {
			r.addParents(key, dir, in)
			if in(dirOf(key)); !o.Dir {
				in(key)
			}
			r.addChild(in(dirOf(key)), child{base: path.Base(key)})
			continue
		}
		if why := whyUnnamable(o.Key, dir); why != "" {
			r.addChild(in(dir), child{base: strings.TrimPrefix(o.Key, prefixOf(dir)), why: why})
			continue
		}
		r.addParents(key, dir, in)
		r.addChild(in(dirOf(key)), child{base: path.Base(key), o: r.add(o)})
	}
	for d, children := range found {
		list := make([]child, 0, len(children))
		for _, c := range children {
			list = append(list, c)
			if k := path.Join(d, c.base); c.o == nil && c.why == "" {
				r.isDir[k] = true
			}
		}
		sorted.By(list, func(a, b child) int { return cmp.Compare(a.base, b.base) })
		r.dirs[d], r.isDir[d] = list, true
	}
	if deep {
		r.deep = append(r.deep, dir)
	}
}

// addParents adds each directory between dir and a key to the children of the one above it.
func (r *root) addParents(key, dir string, in func(dir string) map[string]child) {
	for d := dirOf(key); d != dir && within(d, dir); d = dirOf(d) {
		up := in(dirOf(d))
		if c, ok := up[path.Base(d)]; ok && c.o == nil {
			return
		}
		r.addChild(up, child{base: path.Base(d)})
	}
}

// addChild adds a child. A name that is both an object and a directory becomes unreadable, as the two cannot be told
// apart.
func (r *root) addChild(list map[string]child, c child) {
	was, ok := list[c.base]
	if ok && (was.o == nil) != (c.o == nil) {
		c.why = "this is both an object and a directory of others"
	}
	list[c.base] = c
}

// whyUnnamable returns why a key below dir cannot be a name in a tree; "" = it can.
func whyUnnamable(key, dir string) string {
	rest := strings.TrimPrefix(key, prefixOf(dir))
	if clean(rest) == rest && rest != "" {
		return ""
	}
	return "its key has parts that are empty, . or .., so no path names it"
}

// object is a known object.
type object struct {
	Object
	root    *root
	version string

	mu       sync.Mutex
	runs     map[int64]*run // by block
	streams  []*stream      // in progress, the most recently used last
	foreseen []*foreseen    // what will be read soon

	cacheRead bool         // cached is loaded
	cacheDir  string       // the object's directory in the cache on disk
	cached    []extent     // its ranges in cacheDir
	asked     bool         // it was read
	along     bool         // it was requested because a sibling was read
	whole     store.Source // the spooled object, if the store does not support ranges
}

func (o *object) info(name string) store.Info {
	return store.Info{Name: name, Size: o.Size, Stamp: o.Stamp}
}

// conditionSupport is whether a store supports conditional writes.
type conditionSupport int

const (
	conditionsUnknown conditionSupport = iota
	conditionsWork
	conditionsIgnored
)

// Unfinished is the name of an object that marks its directory as unfinished: the objects there are being written, or
// were when the process died, so some may be missing. Programs that read data ignore names that begin with _.
const Unfinished = "_stoa-unfinished.json"

var errUnfinished = &Error{Reason: "it is being written, or its writing was interrupted: " + Unfinished +
	" marks it so, and stoa clean removes what an interrupted run left, with --older-than 1s also if that was today"}

// unfinished reports whether a directory is known to have such a mark.
func (r *root) unfinished(dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[path.Join(dir, Unfinished)] != nil
}
