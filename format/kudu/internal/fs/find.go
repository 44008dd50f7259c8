package fs

import (
	"cmp"
	"context"
	"slices"

	"stoa/fault"
	"stoa/store"
)

// FindServers looks for servers' directories in dir and below it. There may be several: a master and a tablet
// server, or copies of several machines. A nil tree is the machine's file system.
func FindServers(ctx context.Context, tree store.Tree, dir string, o FSOptions) ([]Layout, error) {
	s := search{tree: OrLocal(tree), o: o, shallow: o.Shallow}
	if set, err := store.RootsOf(ctx, s.tree, dir); err != nil {
		return nil, err
	} else if len(set) > 0 {
		s.shallow = false // whoever lists places means all that is in them
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

// Layouts are the servers' directories in dir and below it, of which given says where some are: each directory
// that it names stands for the one that would be found, the others are looked for. If all are given, nothing
// is. If there are several servers, the one is meant that has one of the directories that are given; if that is
// none, or several, the error is Invalid.
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
				"are here: options wal-dir, meta-dir and data-dirs must all be given, or one of them name a "+
				"directory of the server that is meant", all)
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
