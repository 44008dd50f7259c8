package fs

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/store"
)

// Limits of the search for roots: the number of directories visited, and the depth.
const (
	maxDirs, maxDepth         = 1 << 20, 40
	shallowDirs, shallowDepth = 4096, 4
)

// root is a directory that looks like one of Kudu's roots.
type root struct {
	dir              string
	uuid             string   // of the server; "" if no instance file states it
	wals, meta, data bool     // directories that it has
	super            bool     // meta has superblocks
	dataUUID         string   // of the data directory
	all              []string // all_uuids of the data directory
	empty            bool     // nothing but a file block_manager_instance, see lone
}

// search is a search for roots.
type search struct {
	tree    store.Tree
	o       FSOptions
	shallow bool
	roots   []root
	stray   []string // files block_manager_instance without blocks
	seen    int      // number of directories visited
	failed  error    // the first I/O error, see the method there
}

// entries are the names that a search looks for in a directory.
type entries struct {
	isRoot, blocks, consensus bool // files instance and block_manager_instance, directory consensus-meta
	below                     []string
}

// look searches dir and everything below it.
func (s *search) look(ctx context.Context, dir string, depth int) error {
	if s.seen++; s.shallow && s.seen > shallowDirs {
		return nil
	} else if s.seen > maxDirs {
		return fault.New(fault.Limit, fault.Span{Object: dir}, "", "there are more than %d directories to search for "+
			"those of Kudu's servers; name a directory with fewer below it", maxDirs)
	}
	r := root{dir: dir}
	e, err := s.read(ctx, &r, depth)
	switch {
	case err != nil && (depth == 0 || !Gone(err) && !errors.Is(err, fs.ErrPermission)):
		return err
	case err != nil:
		return nil // deleted in the meantime, or not readable by us
	}
	switch {
	case e.blocks && !e.isRoot && !r.wals && !r.meta && !r.data && s.holdsBlocks(ctx, dir):
		// The inner directory of a data root was given.
		s.roots = append(s.roots, s.dataRoot(ctx, root{dir: dir, data: true}, path.Join(dir, DirInstanceFile)))
		e.blocks, e.below = false, s.strange(ctx, dir)
	case e.isRoot || r.wals || r.meta || r.data:
		if r.data {
			r = s.dataRoot(ctx, r, path.Join(dir, DataSubdir, DirInstanceFile))
		}
		r.meta = r.meta || e.consensus
		s.roots = append(s.roots, r)
	}
	if s.failed != nil {
		return s.failed
	}
	found := len(s.roots)
	if depth < maxDepth && !(s.shallow && depth >= shallowDepth) {
		for _, b := range e.below {
			if err := s.look(ctx, b, depth+1); err != nil {
				return err
			}
		}
	}
	if e.blocks && !r.data {
		s.lone(ctx, r, e.isRoot || r.wals || r.meta || len(s.roots) > found)
	}
	if s.failed != nil {
		return s.failed
	}
	return ctx.Err()
}

// lone handles a file block_manager_instance in a directory without blocks. It is the data directory of a server that
// never wrote a block. But if the file cannot be read, or other directories of servers are here or below, it is stray.
func (s *search) lone(ctx context.Context, r root, others bool) {
	instance := path.Join(r.dir, DirInstanceFile)
	if d := s.dataRoot(ctx, root{dir: r.dir, data: true, empty: true}, instance); !others && d.dataUUID != "" {
		s.roots = append(s.roots, d)
		return
	}
	s.stray = append(s.stray, instance)
}

// withoutCopies removes roots that consist of nothing but a copy of another data directory's instance file.
func (s *search) withoutCopies() {
	s.roots = slices.DeleteFunc(s.roots, func(r root) bool {
		again := r.empty && slices.ContainsFunc(s.roots,
			func(o root) bool { return !o.empty && o.dataUUID == r.dataUUID })
		if again {
			s.stray = append(s.stray, path.Join(r.dir, DirInstanceFile))
		}
		return again
	})
}

// read reads the entries of r's directory.
func (s *search) read(ctx context.Context, r *root, depth int) (e entries, err error) {
	children := 0
	for info, err := range s.tree.List(ctx, r.dir) {
		if err != nil {
			return e, err
		}
		name := path.Base(info.Name)
		if path.Dir(info.Name) != path.Clean(r.dir) {
			name = "" // an entry of a list of places, whose own name means nothing
		}
		switch {
		case !info.Dir && name == InstanceFile:
			e.isRoot = s.instance(ctx, r, info.Name, depth)
		case !info.Dir && name == DirInstanceFile:
			e.blocks = true
		case info.Dir && name == WalsDir:
			r.wals = true
			e.below = append(e.below, s.strange(ctx, info.Name)...)
		case info.Dir && name == TabletMetaDir:
			r.meta, r.super = true, true
			e.below = append(e.below, s.strange(ctx, info.Name)...)
		case info.Dir && name == ConsensusDir:
			e.consensus = true
			e.below = append(e.below, s.strange(ctx, info.Name)...)
		case info.Dir && name == DataSubdir:
			if r.data = !s.isRoot(ctx, info.Name) && s.hasBlocks(ctx, info.Name); !r.data {
				e.below = append(e.below, info.Name)
			} else {
				e.below = append(e.below, s.strange(ctx, info.Name)...)
			}
		case info.Dir:
			e.below = append(e.below, info.Name)
		}
		if children++; children > 1<<20 {
			break
		}
	}
	return e, nil
}

// strange returns the directories in one of a server's directories that the server has not made: others' may be below
// them. Logs are named by tablets; in the directories of block files AllBlocks looks.
func (s *search) strange(ctx context.Context, dir string) (out []string) {
	if s.shallow {
		return nil
	}
	containers := false
	var blocks []string
	for info, err := range s.tree.List(ctx, dir) {
		if !s.there(err) {
			return out
		}
		name := path.Base(info.Name)
		switch {
		case !info.Dir:
			containers = containers || strings.HasSuffix(name, MetadataSuffix)
		case isHexByte(name):
			blocks = append(blocks, info.Name)
		case !IsUUID(strings.TrimSuffix(name, RecoverySuffix)):
			out = append(out, info.Name)
		}
	}
	if containers {
		out = append(out, blocks...)
	}
	return out
}

// instance reads a file instance into r. It returns false if it is another program's file with the same name.
func (s *search) instance(ctx context.Context, r *root, name string, depth int) bool {
	in, _, err := readInstance(ctx, s.tree, name, s.o.Pbc())
	if s.there(err) {
		r.uuid = in.UUID
	}
	return !(errors.Is(err, fault.Corrupt) && depth > 0 && !looksLikePBC(err))
}

// looksLikePBC reports whether the file that caused err is a damaged protobuf container and not something else.
func looksLikePBC(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Path != "header.magic" && !pbc.IsTorn(err)
}

// dataRoot reads a data root's instance.
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

// there reports whether err is nil. Any error other than damage and fs.ErrNotExist ends the search, because a failing
// disk must not make a directory look empty.
func (s *search) there(err error) bool {
	if err != nil && s.failed == nil && !Gone(err) && fault.NotOfFile(err) {
		s.failed = err
	}
	return err == nil
}

// hasBlocks reports whether a directory is a data directory, judged by its instance or by its content.
func (s *search) hasBlocks(ctx context.Context, dir string) bool {
	if _, err := s.tree.Stat(ctx, path.Join(dir, DirInstanceFile)); s.there(err) {
		return true
	}
	return s.holdsBlocks(ctx, dir)
}

// holdsBlocks reports whether a directory holds blocks, judged by the first 1,000 names in it.
func (s *search) holdsBlocks(ctx context.Context, dir string) bool {
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
