package fs

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/store"
)

// Layout says where a server's directories are.
type Layout struct {
	WALDir   string   // root with wals/; "" if there is none
	MetaDir  string   // root with tablet-meta/; "" if there is none
	DataDirs []string // roots with data/, or directories that have block_manager_instance themselves
}

// FindServers looks for servers' directories in dir and below it. There may be several: a master and a tablet
// server, or copies of several machines. A nil tree is the machine's file system.
func FindServers(ctx context.Context, tree store.Tree, dir string, o FSOptions) ([]Layout, error) {
	s := search{tree: OrLocal(tree), o: o}
	if err := s.look(ctx, dir, 0); err != nil {
		return nil, err
	}
	return s.group(), nil
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

// root is a directory that looks like one of Kudu's.
type root struct {
	dir              string
	uuid             string // of the server
	wals, meta, data bool
	dataUUID         string
	all              []string
}

type search struct {
	tree   store.Tree
	o      FSOptions
	roots  []root
	seen   int
	failed error // that was met on the way: see there
}

// look looks at dir and what is below.
func (s *search) look(ctx context.Context, dir string, depth int) error {
	if s.seen++; s.seen > maxDirs {
		return nil
	}
	r := root{dir: dir}
	var below []string
	isRoot, blocks, consensus, children := false, false, false, 0
	for info, err := range s.tree.List(ctx, dir) {
		if err != nil {
			if depth == 0 || !Gone(err) && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			return nil // not ours to read
		}
		name := path.Base(info.Name)
		switch {
		case !info.Dir && name == InstanceFile:
			isRoot = true
			if in, _, err := readInstance(ctx, s.tree, info.Name, s.o.Pbc()); s.there(err) {
				r.uuid = in.UUID
			} else if errors.Is(err, fault.Corrupt) && depth > 0 && !looksLikePBC(err) {
				isRoot = false // another program's file of the same name
			}
		case !info.Dir && name == DirInstanceFile:
			blocks = true
		case info.Dir && name == WalsDir:
			r.wals = true
		case info.Dir && name == TabletMetaDir:
			r.meta = true
		case info.Dir && name == ConsensusDir:
			consensus = true
		case info.Dir && name == DataSubdir:
			if r.data = !s.isRoot(ctx, info.Name) && s.hasBlocks(ctx, info.Name); !r.data {
				below = append(below, info.Name)
			}
		case info.Dir:
			below = append(below, info.Name)
		}
		if children++; children > 1<<20 {
			break
		}
	}
	switch {
	case blocks && !isRoot:
		// The inner directory of a data root, given by itself.
		s.roots = append(s.roots, s.dataRoot(ctx, root{dir: dir, data: true}, path.Join(dir, DirInstanceFile)))
		return nil
	case isRoot || r.wals || r.meta || r.data:
		if r.data {
			r = s.dataRoot(ctx, r, path.Join(dir, DataSubdir, DirInstanceFile))
		}
		r.meta = r.meta || consensus
		s.roots = append(s.roots, r)
	}
	if s.failed != nil {
		return s.failed
	}
	if depth < maxDepth {
		for _, b := range below {
			if err := s.look(ctx, b, depth+1); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// looksLikePBC reports whether the file that err is about is a damaged protobuf container rather than something else.
func looksLikePBC(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Path != "header.magic" && !pbc.IsTorn(err)
}

// dataRoot reads what a data root's instance says.
func (s *search) dataRoot(ctx context.Context, r root, instance string) root {
	d := DataDir{Instance: instance}
	if _, err := readDirInstance(ctx, s.tree, &d, s.o.Pbc()); s.there(err) {
		r.dataUUID, r.all = d.UUID, d.All
	}
	return r
}

func (s *search) isRoot(ctx context.Context, dir string) bool {
	_, err := s.tree.Stat(ctx, path.Join(dir, InstanceFile))
	return s.there(err)
}

// there reports whether something is there: err is nil. What is not damage, and not that nothing is there, ends
// the search: a disk that fails must not make a directory look empty.
func (s *search) there(err error) bool {
	if err != nil && s.failed == nil && !Gone(err) && fault.NotOfFile(err) {
		s.failed = err
	}
	return err == nil
}

// hasBlocks reports whether a directory is one of blocks: by its instance, or by what is in it.
func (s *search) hasBlocks(ctx context.Context, dir string) bool {
	if _, err := s.tree.Stat(ctx, path.Join(dir, DirInstanceFile)); s.there(err) {
		return true
	}
	n := 0
	for info, err := range s.tree.List(ctx, dir) {
		name := path.Base(info.Name)
		switch {
		case !s.there(err):
			return false
		case !info.Dir && (strings.HasSuffix(name, MetadataSuffix) || strings.HasSuffix(name, DataSuffix)) &&
			IsUUID(strings.TrimSuffix(strings.TrimSuffix(name, MetadataSuffix), DataSuffix)):
			return true
		case info.Dir && isHexByte(name):
			return true
		}
		if n++; n > 1000 {
			return false
		}
	}
	return false
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

// group makes servers of roots: by the server's UUID; those without one by the data directories that name each
// other, or, if there is just one server that lacks what they have, by that.
func (s *search) group() []Layout {
	type server struct {
		uuid  string
		roots []root
	}
	var servers []*server
	var orphans []root
	for _, r := range s.roots {
		if r.uuid == "" {
			orphans = append(orphans, r)
			continue
		}
		i := slices.IndexFunc(servers, func(x *server) bool { return x.uuid == r.uuid })
		if i < 0 {
			servers, i = append(servers, &server{uuid: r.uuid}), len(servers)
		}
		servers[i].roots = append(servers[i].roots, r)
	}
	// An orphan belongs to the server whose data directories name it; else to one that lacks what it has: one
	// beside it, or the only one.
	named := func(x *server, r root) bool {
		return r.dataUUID != "" && slices.ContainsFunc(x.roots,
			func(y root) bool { return slices.Contains(y.all, r.dataUUID) })
	}
	lacks := func(x *server, r root) bool {
		return !slices.ContainsFunc(x.roots,
			func(y root) bool { return r.wals && y.wals || r.meta && y.meta || r.dataUUID != "" && y.data })
	}
	for _, r := range orphans {
		owner := slices.IndexFunc(servers, func(x *server) bool { return named(x, r) })
		if owner < 0 {
			owner = slices.IndexFunc(servers, func(x *server) bool {
				return lacks(x, r) && slices.ContainsFunc(x.roots, func(y root) bool { return siblings(r.dir, y.dir) })
			})
		}
		if owner < 0 && len(servers) == 1 && lacks(servers[0], r) {
			owner = 0
		}
		if owner < 0 {
			servers, owner = append(servers, &server{}), len(servers)
		}
		servers[owner].roots = append(servers[owner].roots, r)
	}
	var out []Layout
	for _, x := range servers {
		// A copy of a directory beside the original has the same UUID, and is another replica's worth of files:
		// roots that have what an earlier one has already begin a new layout.
		var ls []*Layout
		seen := []map[string]bool{}
		for _, r := range x.roots {
			place := -1
			for i, l := range ls {
				clash := r.wals && l.WALDir != "" || r.meta && l.MetaDir != "" || r.dataUUID != "" &&
					seen[i][r.dataUUID]
				if !clash {
					place = i
					if siblings(r.dir, cmp.Or(l.WALDir, l.MetaDir, FirstOf(l.DataDirs))) {
						break
					}
				}
			}
			if place < 0 {
				ls, place = append(ls, &Layout{}), len(ls)
				seen = append(seen, map[string]bool{})
			}
			l := ls[place]
			if r.wals {
				l.WALDir = r.dir
			}
			if r.meta {
				l.MetaDir = r.dir
			}
			if r.data {
				l.DataDirs = append(l.DataDirs, r.dir)
				seen[place][r.dataUUID] = true
			}
		}
		for _, l := range ls {
			if l.WALDir != "" || l.MetaDir != "" || len(l.DataDirs) > 0 {
				out = append(out, *l)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Layout) int {
		return cmp.Compare(cmp.Or(a.MetaDir, a.WALDir, FirstOf(a.DataDirs)),
			cmp.Or(b.MetaDir, b.WALDir, FirstOf(b.DataDirs)))
	})
	return out
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
