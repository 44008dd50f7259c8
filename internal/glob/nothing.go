package glob

import (
	"context"
	"path"
	"strings"

	"stoa/store"
)

// Nothing says what is in a directory without a table.
func Nothing(ctx context.Context, tree store.Tree, name string) string {
	var entries, ours, ignored int
	var first, old, dir string
	if tree != nil && holdsBackup(ctx, tree, name, 2) {
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
	if dir != "" {
		return "the directory is no table; what it holds lies in directories, such as " + dir
	}
	return "the directory holds no files that stoa knows"
}

// holdsBackup reports whether a directory is one of the backups of Kudu's own job, or has some so many levels below it.
func holdsBackup(ctx context.Context, tree store.Tree, name string, levels int) bool {
	if _, err := tree.Stat(ctx, path.Join(name, ".kudu-metadata.json")); err == nil {
		return true
	}
	if levels == 0 {
		return false
	}
	for info, err := range tree.List(ctx, name) {
		if err == nil && info.Dir && !Ignored(info.Name) && holdsBackup(ctx, tree, info.Name, levels-1) {
			return true
		}
	}
	return false
}
