package stoa

import (
	"context"
	"path"
	"sync"

	"stoa/format"
	"stoa/region"
	"stoa/store"
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

// odd tells what of a directory is no file. What has the name of a file of a table's is one that is lost.
func (v *dirVerifier) odd(dir string, claims format.Claimer) error {
	for odd := range store.OddOf(v.ctx, v.o.tree(), dir) {
		f := oddFinding(odd, v.o)
		mine, err := v.whose(claims, odd.Name, false)
		if err != nil {
			return err
		}
		if mine == format.OfTable && f.Severity < region.Error {
			f.Code, f.Severity, f.Lost, f.Message = "file.unreadable", region.Error, -1,
				"by its name it is a file of the table, but: "+odd.What
		}
		if v.files++; !v.stopped {
			v.give(*f)
		}
	}
	return nil
}

// whose is what claims say; nil: nothing. That the store does not answer is told, and the object verified by itself.
func (v *dirVerifier) whose(claims format.Claimer, name string, dir bool) (format.Claim, error) {
	if claims == nil {
		return format.Foreign, nil
	}
	c, err := claims(path.Clean(name), dir)
	if err != nil {
		c = format.Told
	}
	return c, v.refused(name, err)
}
