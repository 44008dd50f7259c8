package fs

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/store"
)

// Layout says where a server's directories are.
type Layout struct {
	WALDir   string   // root with wals/; "" if there is none
	MetaDir  string   // root with tablet-meta/; "" if there is none
	DataDirs []string // roots with data/, or directories that have block_manager_instance themselves

	Stray []string // files block_manager_instance that belong to no data directory
}

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

// OrLocal is tree, or the machine's file system.
func OrLocal(tree store.Tree) store.Tree {
	if tree == nil {
		return store.Local{}
	}
	return tree
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

// has reports whether dir is one of l's directories, or the data/ in one.
func (l Layout) has(dir string) bool {
	return slices.ContainsFunc(append([]string{l.WALDir, l.MetaDir}, l.DataDirs...), func(d string) bool {
		return d != "" && (path.Clean(d) == path.Clean(dir) || path.Join(d, DataSubdir) == path.Clean(dir))
	})
}

// once is dirs without those that are named a second time.
func once(dirs []string) (out []string) {
	for _, d := range dirs {
		if !slices.ContainsFunc(out, func(x string) bool { return path.Clean(x) == path.Clean(d) }) {
			out = append(out, d)
		}
	}
	return out
}

// IsUUID reports whether s is a UUID as Kudu writes them: 32 hexadecimal digits.
func IsUUID(s string) bool {
	if len(s) != 32 {
		return false
	}
	for i := range len(s) {
		if !(s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f') {
			return false
		}
	}
	return true
}

func isHexByte(s string) bool {
	_, err := strconv.ParseUint(s, 16, 8)
	return len(s) == 2 && err == nil && strings.ToLower(s) == s
}

func FirstOf(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// siblings reports whether two directories lie in the same one, or one in the other.
func siblings(a, b string) bool {
	return path.Dir(a) == path.Dir(b) || strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}
