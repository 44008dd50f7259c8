package stoa

import (
	"context"
	"path"
	"sync"

	"stoa/store"
)

// opened is a tree that remembers in which directories something was opened.
type opened struct {
	store.Tree
	mu     sync.Mutex
	direct map[string]bool // something in it
	below  map[string]bool // something in it or in directories below
}

func newOpened(t store.Tree) *opened {
	return &opened{Tree: t, direct: map[string]bool{}, below: map[string]bool{}}
}

func (o *opened) Open(ctx context.Context, name string) (store.Source, error) {
	s, err := o.Tree.Open(ctx, name)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		dir := path.Dir(path.Clean(name))
		o.direct[dir] = true
		for ; !o.below[dir]; dir = path.Dir(dir) {
			o.below[dir] = true
		}
	}
	return s, err
}

// carbonLocks is where CarbonData's writers leave empty files beside a table; they say nothing of it.
const carbonLocks = "LockFiles"

// beside verifies what lies in a directory that a format took for its own, and is not the format's: it looks for its tables some
// directories deep, and what else is there must not pass for healthy. A directory in which the format opened a file is the format's
// with all that is in it, which it judges itself; of one that holds such a directory the files are looked at, and the directories in
// which nothing was opened.
func (v *dirVerifier) beside(o *opened, name string, depth int) error {
	dir := path.Clean(name)
	if o.direct[dir] || depth > deepest {
		return nil
	}
	children, theirs := []store.Info{}, false
	for info, err := range v.o.tree().List(v.ctx, name) {
		if err != nil {
			return err
		}
		children = append(children, info)
		theirs = theirs || info.Dir && o.direct[path.Clean(info.Name)]
	}
	for _, info := range children {
		var err error
		switch child := path.Clean(info.Name); {
		case info.Dir && path.Base(child) == carbonLocks:
		case !info.Dir || !o.below[child]:
			err = v.entry(info, depth)
		case !theirs:
			err = v.beside(o, info.Name, depth+1)
		}
		if err != nil || v.stopped {
			return err
		}
	}
	return v.ctx.Err()
}
