package kudu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/pb"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// The directories of a server. A root is a directory that the server was given; each has a file instance, a protobuf container
// that names the server. One directory may be several roots.
//
//	WAL root        wals/TABLET/wal-000000001 …
//	metadata root   tablet-meta/TABLET (superblock), consensus-meta/TABLET; it is the WAL root or a data root, or apart
//	data root       data/block_manager_instance, and in data/ the blocks:
//	                file block manager   AA/BB/CC/ID, the hexadecimal bytes being bits 47–24 of the block's number
//	                log block manager    pairs of files, see Container
//	                logr block manager   the same without .metadata: the records are in a RocksDB, rdb/. It cannot be read
//
// A server has one data directory or more. Their order is the list all_uuids in every block_manager_instance; the upper
// 16 bits of a block's number in the file block manager are its data directory's place in that list.
const (
	instanceFile    = "instance"
	dirInstanceFile = "block_manager_instance"
	walsDir         = "wals"
	tabletMetaDir   = "tablet-meta"
	consensusDir    = "consensus-meta"
	dataDir         = "data"
)

// Layout says where a server's directories are.
type Layout struct {
	WALDir   string   // root with wals/; "" if there is none
	MetaDir  string   // root with tablet-meta/; "" if there is none
	DataDirs []string // roots with data/, or directories that have block_manager_instance themselves
}

// FSOptions are how to read directories.
type FSOptions struct {
	Limits   format.Limits
	NoVerify bool
	// Locked says whether a server holds the lock on a file; nil: LockHolder if the tree is the machine's file system.
	Locked func(name string) (pid int, held bool, err error)
}

// FS is a server's directories. Methods that find blocks may be called concurrently; those that add to Findings may not.
type FS struct {
	Layout
	UUID         string // of the server; "" if no instance file tells
	Encrypted    bool
	BlockManager string // "log", "file", "logr"; "" if nothing tells
	Instances    []Instance
	DataDirs     []DataDir // in the order of all_uuids, as far as it is known
	Containers   []*Container
	Users        []User // servers that run on these directories
	Findings     []region.Finding

	tree   store.Tree
	o      FSOptions
	blocks map[uint64]placed // of the log block manager
	told   map[region.Finding]bool
}

// Instance is an InstanceMetadataPB.
type Instance struct {
	Object    string
	At        fault.Span // the message
	UUID      string
	Stamp     string // when and where the server was made
	Key       fault.Span
	Encrypted bool // it has the (encrypted) key of its data
}

// DataDir is a data directory: a DirInstanceMetadataPB.
type DataDir struct {
	Root      string
	Dir       string // where the blocks are
	Instance  string // the file block_manager_instance; "" if there is none
	UUID      string
	Index     int // place in all_uuids; -1 if it is not known
	All       []string
	Type      string
	BlockSize int64 // of the file system
	Err       error // why the instance could not be read

	typeAt fault.Span // of Type, in the instance
}

// User is a server that runs on a directory.
type User struct {
	Object string
	PID    int // 0: not known
}

// placed is where a block of the log block manager lies.
type placed struct {
	off, len  int64
	container int32
	lost      bool
}

// maxDirs is how many directories the search for roots looks into, maxDepth how deep.
const (
	maxDirs  = 4096
	maxDepth = 4
)

// FindServers looks for servers' directories in dir and below it. There may be several: a master and a tablet server, or copies
// of several machines. A nil tree is the machine's file system.
func FindServers(ctx context.Context, tree store.Tree, dir string, o FSOptions) ([]Layout, error) {
	s := search{tree: orLocal(tree), o: o}
	if err := s.look(ctx, dir, 0); err != nil {
		return nil, err
	}
	return s.group(), nil
}

// orLocal is tree, or the machine's file system.
func orLocal(tree store.Tree) store.Tree {
	if tree == nil {
		return store.Local{}
	}
	return tree
}

// Layouts are the servers' directories in dir and below it, of which given says where some are: each directory that it names stands for the
// one that would be found, the others are looked for. If all are given, nothing is. If there are several servers, the one is meant that has
// one of the directories that are given; if that is none, or several, the error is Invalid.
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
	case err != nil && !gone(err):
		return nil, err
	}
	if len(found) > 1 {
		all := len(found)
		found = slices.DeleteFunc(found, func(l Layout) bool {
			return !slices.ContainsFunc(named, func(d string) bool { return d != "" && l.has(d) })
		})
		if len(found) != 1 {
			return nil, fault.New(fault.Invalid, fault.Span{Object: dir}, "", "the directories of %d servers are here: options wal-dir, meta-dir and data-dirs must all be given, or one of them name a directory of the server that is meant", all)
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
		return d != "" && (path.Clean(d) == path.Clean(dir) || path.Join(d, dataDir) == path.Clean(dir))
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
			if depth == 0 || !gone(err) && !errors.Is(err, fs.ErrPermission) {
				return err
			}
			return nil // not ours to read
		}
		name := path.Base(info.Name)
		switch {
		case !info.Dir && name == instanceFile:
			isRoot = true
			if in, _, err := readInstance(ctx, s.tree, info.Name, s.o.pbc()); s.there(err) {
				r.uuid = in.UUID
			} else if errors.Is(err, fault.Corrupt) && depth > 0 && !looksLikePBC(err) {
				isRoot = false // another program's file of the same name
			}
		case !info.Dir && name == dirInstanceFile:
			blocks = true
		case info.Dir && name == walsDir:
			r.wals = true
		case info.Dir && name == tabletMetaDir:
			r.meta = true
		case info.Dir && name == consensusDir:
			consensus = true
		case info.Dir && name == dataDir:
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
		s.roots = append(s.roots, s.dataRoot(ctx, root{dir: dir, data: true}, path.Join(dir, dirInstanceFile)))
		return nil
	case isRoot || r.wals || r.meta || r.data:
		if r.data {
			r = s.dataRoot(ctx, r, path.Join(dir, dataDir, dirInstanceFile))
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
	return errors.As(err, &e) && e.Path != "header.magic" && !isTorn(err)
}

// dataRoot reads what a data root's instance says.
func (s *search) dataRoot(ctx context.Context, r root, instance string) root {
	d := DataDir{Instance: instance}
	if _, err := readDirInstance(ctx, s.tree, &d, s.o.pbc()); s.there(err) {
		r.dataUUID, r.all = d.UUID, d.All
	}
	return r
}

func (s *search) isRoot(ctx context.Context, dir string) bool {
	_, err := s.tree.Stat(ctx, path.Join(dir, instanceFile))
	return s.there(err)
}

// there reports whether something is there: err is nil. What is not damage, and not that nothing is there, ends the search: a disk that
// fails must not make a directory look empty.
func (s *search) there(err error) bool {
	if err != nil && s.failed == nil && !gone(err) && !errors.As(err, new(*fault.Error)) {
		s.failed = err
	}
	return err == nil
}

// hasBlocks reports whether a directory is one of blocks: by its instance, or by what is in it.
func (s *search) hasBlocks(ctx context.Context, dir string) bool {
	if _, err := s.tree.Stat(ctx, path.Join(dir, dirInstanceFile)); s.there(err) {
		return true
	}
	n := 0
	for info, err := range s.tree.List(ctx, dir) {
		name := path.Base(info.Name)
		switch {
		case !s.there(err):
			return false
		case !info.Dir && (strings.HasSuffix(name, metadataSuffix) || strings.HasSuffix(name, dataSuffix)) && isUUID(strings.TrimSuffix(strings.TrimSuffix(name, metadataSuffix), dataSuffix)):
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

// isUUID reports whether s is a UUID as Kudu writes them: 32 hexadecimal digits.
func isUUID(s string) bool {
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

// group makes servers of roots: by the server's UUID; those without one by the data directories that name each other, or, if
// there is just one server that lacks what they have, by that.
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
	// An orphan belongs to the server whose data directories name it; else to one that lacks what it has: one beside it, or the only one.
	named := func(x *server, r root) bool {
		return r.dataUUID != "" && slices.ContainsFunc(x.roots, func(y root) bool { return slices.Contains(y.all, r.dataUUID) })
	}
	lacks := func(x *server, r root) bool {
		return !slices.ContainsFunc(x.roots, func(y root) bool { return r.wals && y.wals || r.meta && y.meta || r.dataUUID != "" && y.data })
	}
	for _, r := range orphans {
		fits := slices.IndexFunc(servers, func(x *server) bool { return named(x, r) })
		if fits < 0 {
			fits = slices.IndexFunc(servers, func(x *server) bool {
				return lacks(x, r) && slices.ContainsFunc(x.roots, func(y root) bool { return siblings(r.dir, y.dir) })
			})
		}
		if fits < 0 && len(servers) == 1 && lacks(servers[0], r) {
			fits = 0
		}
		if fits < 0 {
			servers, fits = append(servers, &server{}), len(servers)
		}
		servers[fits].roots = append(servers[fits].roots, r)
	}
	var out []Layout
	for _, x := range servers {
		// A copy of a directory beside the original has the same UUID, and is another replica's worth of files: roots that have what
		// an earlier one has already begin a new layout.
		var ls []*Layout
		seen := []map[string]bool{}
		for _, r := range x.roots {
			place := -1
			for i, l := range ls {
				clash := r.wals && l.WALDir != "" || r.meta && l.MetaDir != "" || r.dataUUID != "" && seen[i][r.dataUUID]
				if !clash {
					place = i
					if siblings(r.dir, cmp.Or(l.WALDir, l.MetaDir, firstOf(l.DataDirs))) {
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
		return cmp.Compare(cmp.Or(a.MetaDir, a.WALDir, firstOf(a.DataDirs)), cmp.Or(b.MetaDir, b.WALDir, firstOf(b.DataDirs)))
	})
	return out
}

func firstOf(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// siblings reports whether two directories lie in the same one, or one in the other.
func siblings(a, b string) bool {
	return path.Dir(a) == path.Dir(b) || strings.HasPrefix(a+"/", b+"/") || strings.HasPrefix(b+"/", a+"/")
}

func (o FSOptions) pbc() pbcOptions { return pbcOptions{limits: o.Limits, noVerify: o.NoVerify} }

// OpenFS reads the instances of a server's directories and finds its blocks. Damage does not make it fail: it is in Findings, and
// what is not damaged can be read. It fails with class Unsupported if the directories are encrypted, or their block manager is one
// that cannot be read; f says what it is then, too. A nil tree is the machine's file system.
func OpenFS(ctx context.Context, tree store.Tree, l Layout, o FSOptions) (f *FS, err error) {
	tree = orLocal(tree)
	l.DataDirs = once(l.DataDirs)
	f = &FS{Layout: l, tree: tree, o: o, blocks: map[uint64]placed{}}
	if len(f.Layout.DataDirs) == 0 && f.WALDir != "" {
		if info, err := tree.Stat(ctx, path.Join(f.WALDir, dataDir)); err == nil && info.Dir {
			f.Layout.DataDirs = []string{f.WALDir} // Kudu's default
		}
	}
	if f.MetaDir == "" {
		f.MetaDir = f.findMeta(ctx)
	}
	if err := f.readInstances(ctx); err != nil {
		return f, err
	}
	if err := f.readDataDirs(ctx); err != nil {
		return f, err
	}
	f.findUsers()
	for _, in := range f.Instances {
		if in.Encrypted {
			f.Encrypted = true
			return f, fault.Unsupportedf(in.Key, "instance.server_key", "the server's data is encrypted at rest, and the key to its key is not in the directory")
		}
	}
	switch f.BlockManager {
	case "logr":
		return f, fault.Unsupportedf(f.typeSpan(), "dir_type", "block manager logr (the places of blocks are in RocksDB)")
	case "log":
		for i := range f.DataDirs {
			if err := f.openContainers(ctx, i); err != nil {
				return f, err
			}
		}
	case "file":
	case "":
		if len(f.DataDirs) > 0 {
			f.note("kudu.layout.missing", fault.Span{Object: f.DataDirs[0].Dir}, "", "there are no blocks in the data directories")
		}
	default:
		return f, fault.Unsupportedf(f.typeSpan(), "dir_type", "block manager %q", f.BlockManager)
	}
	if f.MetaDir == "" {
		f.note("kudu.layout.missing", f.somewhere(), "", "no directory of superblocks ("+tabletMetaDir+") was found")
	}
	if len(f.DataDirs) == 0 {
		f.note("kudu.layout.missing", f.somewhere(), "", "no data directory was found")
	}
	return f, nil
}

// somewhere is a directory of the server's, the first that there is.
func (f *FS) somewhere() fault.Span {
	return fault.Span{Object: cmp.Or(f.WALDir, f.MetaDir, firstOf(f.Layout.DataDirs))}
}

// typeSpan is where the block manager's type is told.
func (f *FS) typeSpan() fault.Span {
	for _, d := range f.DataDirs {
		if d.Type != "" {
			return d.typeAt
		}
	}
	return fault.Span{Object: f.DataDirs[0].Dir}
}

// findMeta is where the metadata is if nobody said: in the first data root if there is some, else in the WAL root.
func (f *FS) findMeta(ctx context.Context) string {
	for _, d := range append(slices.Clone(f.Layout.DataDirs[:min(len(f.Layout.DataDirs), 1)]), f.WALDir) {
		if d == "" {
			continue
		}
		if info, err := f.tree.Stat(ctx, path.Join(d, tabletMetaDir)); err == nil && info.Dir {
			return d
		}
	}
	return ""
}

// readInstances reads the instance file of each root.
func (f *FS) readInstances(ctx context.Context) error {
	var done []string
	for _, dir := range append([]string{f.WALDir, f.MetaDir}, f.Layout.DataDirs...) {
		if dir == "" || slices.Contains(done, dir) {
			continue
		}
		done = append(done, dir)
		name := path.Join(dir, instanceFile)
		in, notes, err := readInstance(ctx, f.tree, name, f.o.pbc())
		for _, n := range notes {
			f.fault("kudu.instance.damaged", n, "")
		}
		switch {
		case gone(err):
			if _, err := f.tree.Stat(ctx, path.Join(dir, dirInstanceFile)); err != nil {
				f.note("kudu.instance.missing", fault.Span{Object: name}, "", "the directory does not say to which server it belongs")
			}
			continue
		case errors.Is(err, fault.Unsupported):
			f.Encrypted = true
			return err
		case errors.As(err, new(*fault.Error)):
			f.fault("kudu.instance.damaged", err, "")
			continue
		case err != nil:
			return err
		}
		switch {
		case f.UUID == "":
			f.UUID = in.UUID
		case f.UUID != in.UUID:
			f.note("kudu.instance.other", in.At, "", fmt.Sprintf("the directory belongs to server %s, others to %s", in.UUID, f.UUID))
		}
		f.Instances = append(f.Instances, in)
	}
	return nil
}

// readInstance reads an instance file. notes tells of damage that did not keep it from being read.
func readInstance(ctx context.Context, tree store.Tree, name string, o pbcOptions) (in Instance, notes []error, err error) {
	in.Object = name
	notes, err = readPBC(ctx, tree, name, o, "instance", in.parse)
	return in, notes, err
}

// parse reads an InstanceMetadataPB.
func (in *Instance) parse(c *wire.Cursor) {
	in.At = c.SpanOf(c.Pos(), c.Left())
	for r := pb.NewReader(c); r.Next(); {
		off := c.Pos()
		switch r.Field() {
		case 1:
			in.UUID = r.String("uuid")
		case 2:
			in.Stamp = r.String("format_stamp")
		case 3:
			in.Encrypted = r.String("server_key") != "" || in.Encrypted
			in.Key = c.SpanOf(off, c.Pos()-off)
		case 4:
			r.Bytes("server_key_iv")
		case 5:
			r.Bytes("server_key_version")
		case 6:
			m := r.Message("tenants")
			for r := pb.NewReader(m); r.Next(); {
				if r.Field() == 3 {
					in.Encrypted = r.String("tenant_key") != "" || in.Encrypted
				} else {
					r.Unknown()
				}
			}
			r.Join(m)
			if in.Key.Object == "" {
				in.Key = c.SpanOf(off, c.Pos()-off)
			}
		default:
			r.Unknown()
		}
	}
	if c.Err() == nil && in.UUID == "" {
		c.Fail(0, c.Pos(), "uuid", "the field is required, and not there")
	}
}

// readDirInstance reads a block_manager_instance into d.
func readDirInstance(ctx context.Context, tree store.Tree, d *DataDir, o pbcOptions) ([]error, error) {
	return readPBC(ctx, tree, d.Instance, o, "block manager instance", d.parse)
}

// parse reads a DirInstanceMetadataPB.
func (d *DataDir) parse(c *wire.Cursor) {
	for r := pb.NewReader(c); r.Next(); {
		off := c.Pos()
		switch r.Field() {
		case 1:
			m := r.Message("dir_set")
			for r := pb.NewReader(m); r.Next(); {
				switch r.Field() {
				case 1:
					d.UUID = r.String("uuid")
				case 2:
					d.All = append(d.All, r.String("all_uuids["+strconv.Itoa(len(d.All))+"]"))
				default:
					r.Unknown()
				}
			}
			r.Join(m)
		case 2:
			d.Type = r.String("dir_type")
			d.typeAt = c.SpanOf(off, c.Pos()-off)
		case 3:
			n := r.Uint("filesystem_block_size_bytes")
			if n > 1<<30 {
				c.Fail(off, c.Pos()-off, "filesystem_block_size_bytes", "%d", n)
				return
			}
			d.BlockSize = int64(n)
		default:
			r.Unknown()
		}
	}
	if c.Err() == nil && (d.UUID == "" || d.Type == "") {
		c.Fail(0, c.Pos(), "dir_set", "uuid or dir_type is required, and not there")
	}
}

// readDataDirs reads the data directories' instances and puts them in order.
func (f *FS) readDataDirs(ctx context.Context) error {
	for _, dir := range f.Layout.DataDirs {
		d := DataDir{Root: dir, Dir: path.Join(dir, dataDir), Index: -1}
		if _, err := f.tree.Stat(ctx, path.Join(dir, dirInstanceFile)); err == nil {
			d.Dir = dir
		} else if !gone(err) && ctx.Err() == nil {
			return err
		}
		d.Instance = path.Join(d.Dir, dirInstanceFile)
		notes, err := readDirInstance(ctx, f.tree, &d, f.o.pbc())
		switch {
		case gone(err):
			err = fault.Corruptf(fault.Span{Object: d.Instance}, "", "the file is missing")
			d.Instance = ""
		case err != nil && !errors.As(err, new(*fault.Error)):
			return err
		case errors.Is(err, fault.Unsupported):
			f.Encrypted = f.Encrypted || spanOf(err).Len == int64(len(encMagic))
			return err
		}
		for _, n := range notes {
			f.fault("kudu.datadir.damaged", n, dir)
		}
		if err != nil {
			d.Err = err
			d.UUID, d.All, d.Type = "", nil, ""
			f.fault("kudu.datadir.damaged", err, dir)
		}
		f.DataDirs = append(f.DataDirs, d)
	}
	var all []string // the longest list: directories may be added to a server, and those that were away then do not know
	for i := range f.DataDirs {
		if len(f.DataDirs[i].All) > len(all) {
			all = f.DataDirs[i].All
		}
		f.BlockManager = cmp.Or(f.BlockManager, f.DataDirs[i].Type)
	}
	given := map[string]bool{}
	unknown := 0
	for i := range f.DataDirs {
		d := &f.DataDirs[i]
		if d.Index = slices.Index(all, d.UUID); d.UUID == "" {
			d.Index = -1
		}
		if d.Index < 0 {
			unknown++
		} else if given[d.UUID] {
			f.note("kudu.instance.other", fault.Span{Object: d.Instance}, d.Dir, "two data directories have the same UUID "+d.UUID)
		}
		given[d.UUID] = true
		if d.BlockSize == 0 {
			d.BlockSize = 4096
		}
	}
	var away []int
	for i, uuid := range all {
		if !given[uuid] {
			away = append(away, i)
		}
	}
	// One that cannot say who it is must be the one that is missing.
	if unknown == 1 && len(away) == 1 {
		for i := range f.DataDirs {
			if f.DataDirs[i].Index < 0 {
				f.DataDirs[i].Index, f.DataDirs[i].UUID, away = away[0], all[away[0]], nil
			}
		}
	}
	for _, i := range away {
		f.note("kudu.datadir.missing", fault.Span{Object: f.DataDirs[0].Instance}, all[i], fmt.Sprintf("data directory %s, number %d of %d, was not given", all[i], i+1, len(all)))
	}
	slices.SortStableFunc(f.DataDirs, func(a, b DataDir) int { return cmp.Compare(uint(a.Index), uint(b.Index)) })
	if f.BlockManager == "" {
		var err error
		f.BlockManager, err = f.guessManager(ctx)
		return err
	}
	return nil
}

// guessManager tells the block manager by what is in the data directories.
func (f *FS) guessManager(ctx context.Context) (string, error) {
	for _, d := range f.DataDirs {
		if info, err := f.tree.Stat(ctx, path.Join(d.Dir, "rdb")); err == nil && info.Dir {
			return "logr", nil
		}
		for info, err := range f.tree.List(ctx, d.Dir) {
			if gone(err) {
				break
			}
			if err != nil {
				return "", err
			}
			name := path.Base(info.Name)
			if !info.Dir && (strings.HasSuffix(name, metadataSuffix) || strings.HasSuffix(name, dataSuffix)) {
				return "log", nil
			}
			if info.Dir && isHexByte(name) {
				return "file", nil
			}
		}
	}
	return "", nil
}

// findUsers looks for servers that hold the lock of a data directory.
func (f *FS) findUsers() {
	locked := f.o.Locked
	if locked == nil {
		t := f.tree
		for {
			inner, ok := t.(interface{ Unwrap() store.Tree })
			if !ok {
				break
			}
			t = inner.Unwrap()
		}
		if _, ok := t.(store.Local); !ok {
			return
		}
		locked = LockHolder
	}
	for _, d := range f.DataDirs {
		if d.Instance == "" {
			continue
		}
		if pid, held, err := locked(d.Instance); err == nil && held {
			f.Users = append(f.Users, User{d.Instance, pid})
		}
	}
}

// Tablets reads all superblocks, sorted by table, partition and id. A superblock that cannot be read is a finding.
func (f *FS) Tablets(ctx context.Context) ([]*Tablet, error) {
	if f.MetaDir == "" {
		return nil, nil
	}
	var out []*Tablet
	for info, err := range f.tree.List(ctx, path.Join(f.MetaDir, tabletMetaDir)) {
		if gone(err) {
			f.note("kudu.layout.missing", fault.Span{Object: path.Join(f.MetaDir, tabletMetaDir)}, "", "there is no such directory")
			break
		}
		if err != nil {
			return out, err
		}
		id := path.Base(info.Name)
		if info.Dir || !isUUID(id) {
			continue // a temporary file
		}
		t, err := f.Tablet(ctx, id)
		if err != nil {
			if !errors.As(err, new(*fault.Error)) || errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Limit) {
				return out, err
			}
			f.fault("kudu.superblock.damaged", err, id)
			continue
		}
		out = append(out, t)
	}
	slices.SortStableFunc(out, func(a, b *Tablet) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.TableID, b.TableID), slices.Compare(a.Partition.Buckets, b.Partition.Buckets),
			cmp.Compare(string(a.Partition.Start), string(b.Partition.Start)), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Tablet reads a tablet's superblock and consensus metadata. With an error it holds what could be understood.
func (f *FS) Tablet(ctx context.Context, id string) (*Tablet, error) {
	t, err := readSuperblock(ctx, f.tree, path.Join(f.MetaDir, tabletMetaDir, id), f.o.pbc())
	if err != nil {
		return t, err
	}
	for _, n := range t.Notes {
		f.fault("kudu.superblock.odd", n, id)
	}
	if t.ID != id {
		err := fault.Corruptf(t.At, "superblock.tablet_id", "%q, in the file of %q", t.ID, id)
		f.fault("kudu.superblock.odd", err, id)
		t.Notes = append(t.Notes, err)
	}
	if t.State == TabletCopying || t.State == TabletDeleted {
		f.note("kudu.tablet.unfinished", t.At, id, "the tablet's state is "+t.State.String())
	}
	m, notes, err := readConsensus(ctx, f.tree, path.Join(f.MetaDir, consensusDir, id), f.o.pbc())
	for _, n := range notes {
		f.fault("kudu.cmeta.damaged", n, id)
		t.Notes = append(t.Notes, n)
	}
	switch {
	case err == nil:
		t.Consensus = m
	case gone(err):
	case errors.As(err, new(*fault.Error)):
		f.fault("kudu.cmeta.damaged", err, id)
		t.Notes = append(t.Notes, err)
	default:
		return t, err
	}
	return t, nil
}

// WALSegments are the files of a tablet's log, in the order of writing; none if the log is missing.
func (f *FS) WALSegments(ctx context.Context, tablet string) ([]store.Info, error) {
	if f.WALDir == "" {
		return nil, nil
	}
	var out []store.Info
	for info, err := range f.tree.List(ctx, path.Join(f.WALDir, walsDir, tablet)) {
		if gone(err) {
			return nil, nil
		}
		if err != nil {
			return out, err
		}
		if n, ok := strings.CutPrefix(path.Base(info.Name), "wal-"); ok && !info.Dir {
			if _, err := strconv.ParseUint(n, 10, 64); err == nil {
				out = append(out, info)
			}
		}
	}
	slices.SortFunc(out, func(a, b store.Info) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
