package stoa

import (
	"context"
	"path"
	"strings"
	"sync"

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

// carbonLocks is where CarbonData's writers leave empty files beside a table; they say nothing of it.
const carbonLocks = "LockFiles"

// beside verifies what lies in a directory that a format took for its own, and is not the format's: it looks for its tables some
// directories deep, and what else is there must not pass for healthy. A directory in which the format opened a file is the format's
// with all that is in it, which it judges itself (CarbonData's are looked at for files of other names than its own); of one that holds
// such a directory the files are looked at, and the directories in which nothing was opened.
func (v *dirVerifier) beside(o *opened, owner, name string, depth int) error {
	dir := path.Clean(name)
	theirs := o.direct[dir]
	if theirs && owner != carbonName || depth > deepest {
		return nil
	}
	for info, err := range v.o.tree().List(v.ctx, name) {
		if err != nil {
			if err = v.refused(info.Name, err); err != nil || v.stopped {
				return err
			}
			continue
		}
		switch child := path.Clean(info.Name); {
		case info.Dir && path.Base(child) == carbonLocks, !info.Dir && theirs && carbonFile(path.Base(child)):
		case info.Dir && o.below[child]:
			err = v.beside(o, owner, info.Name, depth+1)
		case !o.files[child]:
			err = v.entry(info, depth)
		}
		if err = v.refused(info.Name, err); err != nil || v.stopped {
			return err
		}
	}
	return v.ctx.Err()
}

const carbonName = "carbon"

// carbonFile reports whether a name is one that CarbonData, or Hadoop beside it, gives to a table's files; whether the table refers to
// it, the format itself tells.
func carbonFile(name string) bool {
	for _, part := range []string{".carbondata", ".carbonindex", ".deletedelta", ".segment", ".dict", ".sortindex", ".dictmeta", ".lock", ".crc", ".mdt", "tablestatus", "tableupdatestatus"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return name == "schema" || strings.HasPrefix(name, ".") && !strings.HasPrefix(name, store.TempPrefix) || strings.HasPrefix(name, "_")
}
