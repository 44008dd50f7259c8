package workcopy

import (
	"context"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"stoa/store"
	"stoa/store/remote"
)

// Tree returns the tree in which the table, under its name in the store, is as changes that are not visible yet leave
// it. Other names are those of the stores.
func (c *Copy) Tree() store.Tree { return tree{c} }

// tree has the files of the copy under two names: the local one and that in the store.
type tree struct{ c *Copy }

// name returns the name within the table; in is false for names outside of it, and before the copy is made.
func (t tree) name(full string) (rel string, in bool) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.c.dir == "" || t.c.stale {
		return "", false
	}
	full = path.Clean(filepath.ToSlash(full))
	for _, dir := range []string{path.Clean(t.c.place.Name()), filepath.ToSlash(t.c.dir)} {
		if full == dir {
			return "", true
		}
		if rel, ok := strings.CutPrefix(full, dir+"/"); ok {
			return rel, true
		}
	}
	return "", false
}

// outside is the tree for a name that is not in the table.
func (t tree) outside(name string) store.Tree {
	if remote.Is(name) {
		return t.c.stores
	}
	return store.Local{}
}

// Open opens a file: in the store, if it has not changed and is not read whole.
func (t tree) Open(ctx context.Context, name string) (store.Source, error) {
	rel, in := t.name(name)
	if !in {
		return t.outside(name).Open(ctx, name)
	}
	info, err := os.Stat(t.c.path(rel))
	t.c.mu.Lock()
	m := t.c.was[rel]
	t.c.mu.Unlock()
	if err == nil && !m.whole && m.same(info) {
		return t.c.stores.Open(ctx, t.c.place.Name()+"/"+rel)
	}
	src, err := store.Local{}.Open(ctx, filepath.ToSlash(t.c.path(rel)))
	return src, t.c.shown(err)
}

// Stat describes a file.
func (t tree) Stat(ctx context.Context, name string) (store.Info, error) {
	rel, in := t.name(name)
	if !in {
		return t.outside(name).Stat(ctx, name)
	}
	info, err := store.Local{}.Stat(ctx, filepath.ToSlash(t.c.path(rel)))
	info.Name = name
	return info, t.c.shown(err)
}

// List lists a directory.
func (t tree) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	rel, in := t.name(dir)
	if !in {
		return t.outside(dir).List(ctx, dir)
	}
	return func(yield func(store.Info, error) bool) {
		for info, err := range (store.Local{}).List(ctx, filepath.ToSlash(t.c.path(rel))) {
			if info.Name != "" {
				info.Name = strings.TrimSuffix(dir, "/") + "/" + path.Base(info.Name)
			}
			if !yield(info, t.c.shown(err)) {
				return
			}
		}
	}
}
