package fs

import (
	"cmp"
	"context"
	"slices"

	"stoa/fault"
	"stoa/store"
)

// FindServers looks for servers' directories in dir and below it. There may be several servers: a master and a tablet
// server, or copies from several machines. They are sorted by directory. A nil tree is the machine's file system.
func FindServers(ctx context.Context, tree store.Tree, dir string, o FSOptions) ([]Layout, error) {
	s := search{tree: OrLocal(tree), o: o, shallow: o.Shallow}
	if set, err := store.RootsOf(ctx, s.tree, dir); err != nil {
		return nil, err
	} else if len(set) > 0 {
		s.shallow = false // a list of places contains everything below them
	}
	if err := s.look(ctx, dir, 0); err != nil {
		return nil, err
	}
	s.withoutCopies()
	out := group(s.roots)
	for i := range s.stray {
		if k := nearest(out, s.stray[i]); k >= 0 {
			out[k].Stray = append(out[k].Stray, s.stray[i])
		}
	}
	return out, nil
}

// Layouts returns the servers' directories in dir and below it. Directories that given names replace those that would
// be found, and the rest is searched for; if given names all of them, nothing is searched. If it names some and there
// are several servers, it selects the server that has one of these directories; if none or several have, the error is
// Invalid.
func Layouts(ctx context.Context, tree store.Tree, dir string, given Layout, o FSOptions) ([]Layout, error) {
	if given.WALDir != "" && given.MetaDir != "" && len(given.DataDirs) > 0 {
		return []Layout{given}, nil
	}
	named := append([]string{given.WALDir, given.MetaDir}, given.DataDirs...)
	any := slices.ContainsFunc(named, func(d string) bool { return d != "" })
	found, err := FindServers(ctx, tree, dir, o)
	switch {
	case !any:
		return found, err
	case err != nil && !Gone(err):
		return nil, err
	}
	if len(found) > 1 {
		all := len(found)
		found = slices.DeleteFunc(found, func(l Layout) bool {
			return !slices.ContainsFunc(named, func(d string) bool { return d != "" && l.has(d) })
		})
		if len(found) != 1 {
			return nil, fault.New(fault.Invalid, fault.Span{Object: dir}, "", "the directories of %d servers "+
				"are here: give all of the options wal-dir, meta-dir and data-dirs, or one that names a directory "+
				"of the server you want", all)
		}
	}
	if len(found) == 1 {
		given.WALDir = cmp.Or(given.WALDir, found[0].WALDir)
		given.MetaDir = cmp.Or(given.MetaDir, found[0].MetaDir)
		if len(given.DataDirs) == 0 {
			given.DataDirs = found[0].DataDirs
		}
	}
	return []Layout{given}, nil
}
