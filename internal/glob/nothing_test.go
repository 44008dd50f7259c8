package glob

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"stoa/store"
)

// wide is a tree of directories, each with as many in it, and perhaps a backup. It counts what is asked.
type wide struct {
	n, asked int
	backup   string
}

func (w *wide) Open(context.Context, string) (store.Source, error) {
	return nil, fmt.Errorf("a directory")
}

func (w *wide) Stat(_ context.Context, name string) (store.Info, error) {
	w.asked++
	if strings.TrimSuffix(name, "/.kudu-metadata.json") == w.backup {
		return store.Info{Name: name}, nil
	}
	return store.Info{}, fmt.Errorf("%s: no such file", name)
}

func (w *wide) List(_ context.Context, dir string) iter.Seq2[store.Info, error] {
	return func(yield func(store.Info, error) bool) {
		w.asked++
		if strings.Count(dir, "/") > 2 {
			yield(store.Info{Name: dir + "/f", Size: 1}, nil)
			return
		}
		for i := range w.n {
			if !yield(store.Info{Name: fmt.Sprintf("%s/d%04d", dir, i), Dir: true}, nil) {
				return
			}
		}
	}
}

// TestSearchForBackups: what a directory without a table holds is said after a bounded number of requests, and whether
// backups may be among what was not searched.
func TestSearchForBackups(t *testing.T) {
	const found, bounded = "holds backups", "directories were searched"
	for _, c := range []struct {
		n      int
		backup string
		says   string
		not    string
	}{{5, "p/d0004/d0003", found, bounded}, {5, "", "no table", bounded}, {2000, "p/d0000/d0900", found, bounded},
		{2000, "p/d1999", bounded, found}, {2000, "", bounded, found}} {
		w := &wide{n: c.n, backup: c.backup}
		got := Nothing(context.Background(), w, "p")
		if !strings.Contains(got, c.says) || strings.Contains(got, c.not) {
			t.Errorf("%d directories, backup %q: %s", c.n, c.backup, got)
		}
		if w.asked > 3*maxSearched {
			t.Errorf("%d directories: %d requests", c.n, w.asked)
		}
	}
}
