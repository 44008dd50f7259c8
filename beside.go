package stoa

import (
	"context"
	"path"
	"strings"
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

// beside verifies what lies in a directory that a format took for its own, and is not the format's: it looks
// for its tables some directories deep, and what else is there must not pass for healthy. What the format
// opened, and what it claims (see format.Format.Claims), is its own. All else is verified as it would be
// elsewhere, and told if it lies within a table. Without claims a directory in which the format opened a file
// is the format's with all that is in it.
func (v *dirVerifier) beside(o *opened, claims func(string, bool) format.Claim, name string, within bool,
	depth int) error {
	dir := path.Clean(name)
	if within = within || o.direct[dir]; within && claims == nil || depth > deepest {
		return nil
	}
	if v.odd(name, claims); v.stopped {
		return nil
	}
	for info, err := range v.o.tree().List(v.ctx, name) {
		if err != nil {
			if err = v.refused(info.Name, err); err != nil || v.stopped {
				return err
			}
			continue
		}
		child := path.Clean(info.Name)
		mine := format.Foreign
		if claims != nil {
			mine = claims(child, info.Dir)
		}
		switch {
		case mine == format.Told && !o.files[child]:
			err = v.entry(info, depth)
		case info.Dir && (mine != format.Foreign || o.below[child]):
			err = v.beside(o, claims, info.Name, mine == format.OfTable, depth+1)
		case mine == format.Foreign && !o.files[child]:
			err = v.foreign(info, within, depth)
		}
		if err = v.refused(info.Name, err); err != nil || v.stopped {
			return err
		}
	}
	return v.ctx.Err()
}

// foreign verifies what is no part of a table. within: it lies in one, and that is told of what otherwise would
// pass in silence.
func (v *dirVerifier) foreign(info store.Info, within bool, depth int) error {
	known := info.Dir
	if _, err := Probe(v.ctx, format.Target{Tree: v.o.tree(), Name: info.Name}, v.o); err == nil {
		known = true
	}
	if within && known && !strings.HasPrefix(path.Base(info.Name), store.TempPrefix) {
		v.tell("dir.foreign", region.Note, info.Name, "it lies within a table, and is no part of it")
	}
	return v.entry(info, depth)
}
