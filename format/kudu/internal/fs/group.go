package fs

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

	"stoa/internal/sorted"
)

// server holds the roots of one server and of copies of it.
type server struct {
	uuid  string
	roots []root
}

// group groups roots by server: by the server's UUID, wherever they are; roots without one are assigned by ownerOf.
func group(roots []root) (out []Layout) {
	var servers []*server
	var orphans []root
	for _, r := range roots {
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
	for _, r := range orphans {
		if owner := ownerOf(servers, r); owner >= 0 {
			servers[owner].roots = append(servers[owner].roots, r)
		} else {
			servers = append(servers, &server{roots: []root{r}})
		}
	}
	for _, x := range servers {
		for _, l := range x.layouts() {
			if l.WALDir != "" || l.MetaDir != "" || len(l.DataDirs) > 0 {
				out = append(out, *l)
			}
		}
	}
	sorted.StablyBy(out, func(a, b Layout) int { return cmp.Compare(a.first(), b.first()) })
	return out
}

// ownerOf returns the index of the server that owns a root without a server UUID: the server whose data directories
// list it; else a server that lacks what the root has and has a root beside it, or is the only server; -1 if there is
// none.
func ownerOf(servers []*server, r root) int {
	if i := slices.IndexFunc(servers, func(x *server) bool { return x.names(r) }); i >= 0 {
		return i
	}
	i := slices.IndexFunc(servers, func(x *server) bool {
		return x.lacks(r) && slices.ContainsFunc(x.roots, func(y root) bool { return siblings(r.dir, y.dir) })
	})
	if i < 0 && len(servers) == 1 && servers[0].lacks(r) {
		i = 0
	}
	return i
}

// names reports whether all_uuids of one of the server's data directories lists the UUID of r.
func (x *server) names(r root) bool {
	return r.dataUUID != "" &&
		slices.ContainsFunc(x.roots, func(y root) bool { return slices.Contains(y.all, r.dataUUID) })
}

// lacks reports whether the server has none of the kinds of directories that r has.
func (x *server) lacks(r root) bool {
	return !slices.ContainsFunc(x.roots,
		func(y root) bool { return r.wals && y.wals || r.meta && y.meta || r.dataUUID != "" && y.data })
}

// copied is a layout under construction, with its data directories by UUID.
type copied struct {
	Layout
	super bool // MetaDir has superblocks
	data  map[string]string
}

// takes reports whether the layout has nothing yet that r has.
func (l *copied) takes(r root) bool {
	return !(r.wals && l.WALDir != "" || r.meta && l.MetaDir != "" || r.dataUUID != "" && l.data[r.dataUUID] != "")
}

func (l *copied) add(r root) {
	if r.wals {
		l.WALDir = r.dir
	}
	if r.meta {
		l.MetaDir, l.super = r.dir, r.super
	}
	if r.data {
		l.DataDirs = append(l.DataDirs, r.dir)
		l.data[r.dataUUID] = r.dir
	}
}

// layouts divides the server's roots into one layout per copy. A copy of a directory beside the original has the same
// UUID, and must not be mixed with it: each metadata root begins a layout, and every other root goes to the nearest
// layout that lacks it.
func (x *server) layouts() (out []*Layout) {
	roots := slices.Clone(x.roots)
	rank := func(r root) int {
		switch {
		case r.meta:
			return 0
		case r.wals:
			return 1
		}
		return 2
	}
	sorted.StablyBy(roots, func(a, b root) int { return cmp.Compare(rank(a), rank(b)) })
	var all []*copied
	for _, r := range roots {
		var to *copied
		far := 0
		for _, l := range all {
			if d := l.Layout.distance(r.dir); l.takes(r) && (to == nil || d < far) {
				to, far = l, d
			}
		}
		if to == nil {
			to = &copied{data: map[string]string{}}
			all = append(all, to)
		}
		to.add(r)
	}
	if x.uuid != "" {
		lend(all)
	}
	for _, l := range all {
		slices.Sort(l.DataDirs)
		out = append(out, &l.Layout)
	}
	return out
}

// lend gives each copy of a server the directories that it lacks, of the nearest copies that have them: halves of two
// copies are one whole.
func lend(all []*copied) {
	was := make([]copied, len(all))
	for i, l := range all {
		was[i] = *l
		was[i].data = maps.Clone(l.data)
	}
	for i, l := range all {
		at := was[i].first()
		if at == "" {
			continue
		}
		others := slices.Delete(slices.Clone(was), i, i+1)
		sorted.StablyBy(others, func(a, b copied) int {
			return cmp.Compare(steps(at, a.first()), steps(at, b.first()))
		})
		for _, o := range others {
			if l.WALDir = cmp.Or(l.WALDir, o.WALDir); l.MetaDir == "" || o.super && !l.super {
				l.MetaDir, l.super = o.MetaDir, o.super
			}
			for id, dir := range o.data {
				if len(l.DataDirs) == 0 || id != "" && l.data[id] == "" {
					l.data[id] = dir
					l.DataDirs = append(l.DataDirs, dir)
				}
			}
		}
	}
}

// first returns one of the directories of a layout.
func (l *Layout) first() string { return cmp.Or(l.MetaDir, l.WALDir, FirstOf(l.DataDirs)) }

// distance returns the number of steps to dir from the nearest of the layout's directories; -1 if it has none.
func (l Layout) distance(dir string) int {
	out := -1
	for _, d := range append([]string{l.WALDir, l.MetaDir}, l.DataDirs...) {
		if d == "" {
			continue
		}
		if n := steps(d, dir); out < 0 || n < out {
			out = n
		}
	}
	return out
}

// steps returns twice the number of steps up and down the tree from one directory to another; one more if one is below
// the other, because a server's directories are rather beside each other.
func steps(a, b string) int {
	x, y := strings.Split(path.Clean(a), "/"), strings.Split(path.Clean(b), "/")
	n := 0
	for n < min(len(x), len(y)) && x[n] == y[n] {
		n++
	}
	d := 2 * (len(x) + len(y) - 2*n)
	if d > 0 && n == min(len(x), len(y)) {
		d++
	}
	return d
}

// nearest returns the index of the layout with the directory nearest to a file; -1 if there are no layouts.
func nearest(all []Layout, name string) int {
	best := -1
	for i, l := range all {
		if best < 0 || l.distance(path.Dir(name)) < all[best].distance(path.Dir(name)) {
			best = i
		}
	}
	return best
}
