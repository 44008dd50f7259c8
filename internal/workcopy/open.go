package workcopy

import (
	"context"
	"errors"
	"io/fs"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
	"stoa/store/remote"
)

// For returns how the table at p, in a tree, is changed: its format's functions, and the tree to read it with. These
// are its own if the tree is the local file system, and those of a working copy for a table in a remote store. Other
// trees cannot be changed.
func For(t store.Tree, p format.TablePlace, f *format.Format, o Options) (*format.Format, store.Tree, error) {
	if store.IsLocal(t) {
		return f, t, nil
	}
	for below := t; ; {
		if stores, ok := below.(*remote.Tree); ok && !remote.Is(p.Dir) {
			return f, t, nil // its local files
		} else if ok && f.Change.Stored != nil {
			c, err := New(stores, p.Dir, *f.Change, o)
			if err != nil {
				return nil, nil, err
			}
			out := *f
			out.Change = c.Changer()
			return &out, c.Tree(), nil
		}
		w, ok := below.(interface{ Unwrap() store.Tree })
		if !ok {
			return nil, nil, fault.Unsupportedf(fault.Span{Object: p.Dir}, "", "tables are changed in the local file "+
				"system and in stores at addresses, and the tree is a %T", below)
		}
		below = w.Unwrap()
	}
}

// Again reports whether opening a table for a change can be tried again: it failed because somebody else changed the
// table meanwhile, and what is known of the table was forgotten.
func Again(ctx context.Context, t store.Tree, err error, try int) bool {
	x, ok := t.(tree)
	if !ok || try >= tries || !errors.Is(err, store.ErrChanged) && !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	x.c.mu.Lock()
	defer x.c.mu.Unlock()
	if x.c.held > 0 { // the copy does not change
		return false
	}
	if _, err = x.c.place.List(ctx); err != nil {
		return false
	}
	x.c.stores.Forget(x.c.begun)
	x.c.begun, _ = x.c.stores.Failures()
	return true
}
