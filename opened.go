package stoa

import (
	"context"
	"path"
	"stoa/store"
	"sync"
)

// opened is a tree that remembers in which directories something was opened.
type opened struct {
	store.Tree
	mu     sync.Mutex
	files  map[string]bool // that were opened
	direct map[string]bool // something in it
	below  map[string]bool // something in it or in directories below
}

func newOpened(t store.Tree) *opened {
	return &opened{Tree: t, files: map[string]bool{}, direct: map[string]bool{}, below: map[string]bool{}}
}

// Unwrap is the tree below.
func (o *opened) Unwrap() store.Tree { return o.Tree }

func (o *opened) Open(ctx context.Context, name string) (store.Source, error) {
	s, err := o.Tree.Open(ctx, name)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.files[path.Clean(name)] = true
		dir := path.Dir(path.Clean(name))
		o.direct[dir] = true
		for ; !o.below[dir]; dir = path.Dir(dir) {
			o.below[dir] = true
		}
	}
	return s, err
}
