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

	"stoa/fault"
	"stoa/store"
)

const (
	mostDeep    = 50_000    // keys below an address that are listed at once
	mostShallow = 10_000    // keys beside an object that are listed to know whether it is there
	mostInOne   = 1_000_000 // keys of one directory
)

// root is a bucket or host, and what is known of it.
type root struct {
	addr   string // "s3://bucket"
	user   string
	client Client
	ask    *asker
	keep   *keeper

	asking sync.Mutex // held while something is asked for that lookups wait for

	mu       sync.Mutex
	entered  map[string]bool     // addresses that were entered and not looked at yet
	named    map[string]bool     // all that were entered
	slashed  map[string]bool     // of these, those that ended with a slash
	versions map[string]string   // of objects, as their addresses said
	objects  map[string]*object  // that are known
	absent   map[string]bool     // keys that are known not to be there
	empty    map[string]bool     // keys below which there is nothing
	dirs     map[string][]child  // directories whose children are known, sorted
	isDir    map[string]bool     // that are known to be there
	deep     []string            // directories below which everything is known
	unlisted map[string]struct{} // directories that cannot be listed, or have too many keys to be

	conditions Trial // whether the store heeds them
}

// child is what lies in a directory.
type child struct {
	base string
	o    *object // nil: a directory
	why  string  // it cannot be read
}

func newRoot(a Address, c Client, ask *asker) *root {
	return &root{addr: a.Root(), user: a.User, client: c, ask: ask, keep: newKeeper(ask.Keep),
		entered: map[string]bool{}, named: map[string]bool{}, slashed: map[string]bool{},
		versions: map[string]string{}, objects: map[string]*object{}, absent: map[string]bool{},
		empty: map[string]bool{},
		dirs:  map[string][]child{}, isDir: map[string]bool{}, unlisted: map[string]struct{}{}}
}

// enter notes an address. What is a pattern is not listed at once: it may match very little.
func (r *root) enter(a Address, slash bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.versions[a.Key]; ok && was != a.Query || !ok && a.Query != "" && r.objects[a.Key] != nil {
		return fault.Invalidf("%s is named twice, and something else follows the question mark", a.Name())
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

// lookup says what a key is: an object, a directory, or fs.ErrNotExist.
func (r *root) lookup(ctx context.Context, key string) (o *object, dir bool, err error) {
	if o, dir, err = r.recall(key); err != errUnknown {
		return o, dir, err
	}
	r.asking.Lock()
	defer r.asking.Unlock()
	if err := r.explore(ctx, key); err != nil {
		return nil, false, err
	}
	if o, dir, err = r.recall(key); err != errUnknown {
		return o, dir, err
	}
	if err := r.askFor(ctx, key); err != nil {
		return nil, false, err
	}
	return r.recall(key)
}

var errUnknown = errors.New("unknown")

// recall is lookup from what is known.
func (r *root) recall(key string) (o *object, dir bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.objects[key]; o != nil && !(r.slashed[key] && r.isDir[key]) {
		return o, false, nil
	}
	if r.entered[key] {
		return nil, false, errUnknown
	}
	if key == "" || r.isDir[key] {
		return nil, true, nil
	}
	if r.missing(key) || slices.ContainsFunc(r.deep, func(d string) bool { return within(key, d) }) {
		return nil, false, fs.ErrNotExist
	}
	if i := strings.LastIndexByte(key, '#'); i >= 0 && r.named[key[:i]] && !r.entered[key[:i]] {
		if r.objects[key[:i]] != nil || r.isDir[key[:i]] {
			return nil, false, fs.ErrNotExist // what follows the # is a table of what was named
		}
	}
	return nil, false, errUnknown
}

// missing reports whether a key, or a directory above it, is known not to be there. The caller holds mu.
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

// explore looks at the entered addresses that a key may lie in or be.
func (r *root) explore(ctx context.Context, key string) error {
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

// exploreOne asks for the object of a key and all below it, at once.
func (r *root) exploreOne(ctx context.Context, key string) error {
	var wg sync.WaitGroup
	var all []Object
	var whole bool
	listed, headed := fs.ErrNotExist, fs.ErrNotExist // until they are asked for
	list := func() { all, whole, listed = r.ask.list(ctx, r.client, prefixOf(key), false, mostDeep) }
	lists := r.client.Traits().Lists || key == ""
	if lists || r.slashed[key] {
		wg.Go(list)
	}
	var o Object
	if key != "" {
		wg.Go(func() { o, headed = r.ask.head(ctx, r.client, key, r.versions[key]) })
	}
	wg.Wait()
	if key != "" && isMissing(headed) && !lists && !r.slashed[key] {
		list()
	}
	unclear := func(err error) bool { return err != nil && !isMissing(err) && !isDenied(err) }
	switch {
	case unclear(headed) && isDenied(listed), unclear(listed): // an answer to HEAD has no words
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

// askFor finds out about a key that was not entered: by the listing of its directory if that can be had, which answers
// for its neighbours too.
func (r *root) askFor(ctx context.Context, key string) error {
	parent := dirOf(key)
	r.mu.Lock()
	_, not := r.unlisted[parent]
	r.mu.Unlock()
	if !not {
		err := r.listOne(ctx, parent, mostShallow)
		if err != errLong && !isMissing(err) && !isDenied(err) {
			return err
		}
		r.mu.Lock()
		r.unlisted[parent] = struct{}{}
		r.mu.Unlock()
	}
	o, err := r.ask.head(ctx, r.client, key, r.versions[key])
	if err == nil {
		o.Key = key
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(o)
		return nil
	}
	if !isMissing(err) {
		return err
	}
	var some []Object
	if r.client.Traits().Lists {
		if some, _, err = r.ask.list(ctx, r.client, prefixOf(key), true, 1); err != nil && !isMissing(err) {
			return err
		}
	} else if err = r.listOne(ctx, key, mostInOne); err != nil && !isMissing(err) {
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

var errLong = errors.New("too many keys")

// listOne learns the children of one directory; errLong: it has more than most.
func (r *root) listOne(ctx context.Context, dir string, most int) error {
	all, whole, err := r.ask.list(ctx, r.client, prefixOf(dir), true, most)
	if err != nil {
		return err
	}
	if !whole {
		return errLong
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(all) == 0 && dir != "" {
		r.empty[dir] = true
		return nil // there is no such directory
	}
	r.learn(dir, all)
	return nil
}

// children are what lies in a directory.
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
	r.asking.Lock()
	defer r.asking.Unlock()
	if err := r.explore(ctx, key); err != nil {
		return nil, err
	}
	if all, ok := recall(); ok {
		return all, nil
	}
	if o, _, err := r.recall(key); o != nil {
		return nil, errNoDir
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	switch err := r.listOne(ctx, key, mostInOne); {
	case err == errLong:
		return nil, fault.Limitf(fault.Span{}, "", "more than %d keys in one directory", mostInOne)
	case err != nil:
		return nil, err
	}
	all, ok := recall()
	if !ok {
		return nil, fs.ErrNotExist
	}
	return all, nil
}

var errNoDir = errors.New("is no directory")

// add makes an object known. The caller holds mu.
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

// learn takes in the listing of a directory: all keys below it, or with prefixes for what lies deeper. The caller holds
// mu.
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
			continue // what some tools write so that an empty directory is seen
		}
		if deep = deep && !o.Dir; o.Dir || key != o.Key {
			r.above(key, dir, in)
			if in(dirOf(key)); !o.Dir {
				in(key)
			}
			r.into(in(dirOf(key)), child{base: path.Base(key)})
			continue
		}
		if why := unnamable(o.Key, dir); why != "" {
			r.into(in(dir), child{base: strings.TrimPrefix(o.Key, prefixOf(dir)), why: why})
			continue
		}
		r.above(key, dir, in)
		r.into(in(dirOf(key)), child{base: path.Base(key), o: r.add(o)})
	}
	for d, children := range found {
		list := make([]child, 0, len(children))
		for _, c := range children {
			list = append(list, c)
			if k := path.Join(d, c.base); c.o == nil && c.why == "" {
				r.isDir[k] = true
			}
		}
		slices.SortFunc(list, func(a, b child) int { return cmp.Compare(a.base, b.base) })
		r.dirs[d], r.isDir[d] = list, true
	}
	if deep {
		r.deep = append(r.deep, dir)
	}
}

// above makes the directories between a key and dir children of each other.
func (r *root) above(key, dir string, in func(dir string) map[string]child) {
	for d := dirOf(key); d != dir && within(d, dir); d = dirOf(d) {
		up := in(dirOf(d))
		if c, ok := up[path.Base(d)]; ok && c.o == nil {
			return
		}
		r.into(up, child{base: path.Base(d)})
	}
}

// into adds a child. One name may be an object and a directory: then neither is taken for the other.
func (r *root) into(list map[string]child, c child) {
	was, ok := list[c.base]
	if ok && (was.o == nil) != (c.o == nil) {
		c.why = "there is an object of this name, and there are others below it as in a directory"
	}
	list[c.base] = c
}

// unnamable is why a key below dir has no name in a tree; "" = it has.
func unnamable(key, dir string) string {
	rest := strings.TrimPrefix(key, prefixOf(dir))
	if clean(rest) == rest && rest != "" {
		return ""
	}
	return "its key has parts that are empty, or . or .., and no path names it"
}

// object is an object that is known.
type object struct {
	Object
	root    *root
	version string

	mu   sync.Mutex
	runs map[int64]*run // by block
	ways []way          // that readers take through it, the last used last

	looked bool         // for what the cache has of it
	place  string       // of that
	stored []extent     // that
	kin    bool         // those like it were asked for
	whole  store.Source // all of it, where the store knows no ranges; nil: it does, or nobody has found out
}

func (o *object) info(name string) store.Info {
	return store.Info{Name: name, Size: o.Size, Stamp: o.Stamp}
}

// Trial says whether a store heeds conditions.
type Trial int

// What a root knows of its store.
const (
	untried Trial = iota
	heeds
	ignores
)

// Unfinished is the name of an object that says that the objects beside it and below it are being written, or were when
// a process died: some may be missing. Names that begin with _ are passed over by programs that read data.
const Unfinished = "_stoa-unfinished.json"

var errUnfinished = &Error{Reason: "it is being written, or the writing of it was cut off: " + Unfinished +
	" says so, and stoa clean removes what was cut off"}

// unfinished reports whether a directory is known to have an object that says so.
func (r *root) unfinished(dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objects[path.Join(dir, Unfinished)] != nil
}
