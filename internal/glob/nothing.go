package glob

import (
	"context"
	"fmt"
	"path"
	"strings"

	"stoa/store"
)

// Nothing says what is in a directory without a table.
func Nothing(ctx context.Context, tree store.Tree, name string) string {
	var entries, ours, ignored int
	var first, old, dir string
	search := backupSearch{ctx, tree, maxSearched}
	if tree != nil && search.in(name, 2) {
		return "the directory holds backups of Kudu's tables, and these are read only if asked for: --from kudu-backup"
	}
	from := tree
	for entries == 0 && tree != nil { // a tree above may hide what runs of stoa have left
		for info, err := range tree.List(ctx, name) {
			if err != nil {
				break
			}
			entries++
			switch base := path.Base(info.Name); {
			case store.Replaced(base):
				ours, old = ours+1, base
			case strings.HasPrefix(base, store.TempPrefix):
				ours, first = ours+1, base
			case Ignored(base):
				ignored++
			case info.Dir && dir == "" && HoldsFile(ctx, from, info.Name, 0):
				dir = info.Name
			}
		}
		inner, wraps := tree.(interface{ Unwrap() store.Tree })
		if tree = nil; wraps {
			tree = inner.Unwrap()
		}
	}
	switch {
	case entries == 0:
		return "the directory is empty"
	case old != "" && ours == entries:
		return "the directory holds only what an interrupted run of stoa has left: " + old +
			" is what it was replacing, whole"
	case ours == entries:
		return "the directory holds only unfinished output of an interrupted run of stoa (" + first + ")"
	case ours+ignored == entries:
		return "the directory holds only files whose names begin with . or _, which are not read"
	}
	searched := ""
	if search.left == 0 {
		searched = fmt.Sprintf("; only %d directories were searched for backups of Kudu's tables (--from kudu-backup)",
			maxSearched)
	}
	if dir != "" {
		return "the directory is no table; what it holds lies in directories, such as " + dir + searched
	}
	return "the directory holds no files that stoa knows" + searched
}

// maxSearched is how many directories are searched for backups.
const maxSearched = 1000

// backupSearch looks for backups of Kudu's own job, in as many directories as are left.
type backupSearch struct {
	ctx  context.Context
	tree store.Tree
	left int
}

// in reports whether a directory is a backup, or has one at most so many levels below it.
func (s *backupSearch) in(name string, levels int) bool {
	if s.left == 0 {
		return false
	}
	s.left--
	if _, err := s.tree.Stat(s.ctx, path.Join(name, ".kudu-metadata.json")); err == nil {
		return true
	}
	if levels == 0 {
		return false
	}
	for info, err := range s.tree.List(s.ctx, name) {
		if s.left == 0 {
			return false
		}
		if err == nil && info.Dir && !Ignored(info.Name) && s.in(info.Name, levels-1) {
			return true
		}
	}
	return false
}
