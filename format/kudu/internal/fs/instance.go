package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/pb"
	"stoa/store"
	"stoa/wire"
)

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

// findMeta is where the metadata is if nobody said: in the first data root if there is some, else in the WAL root.
func (f *FS) findMeta(ctx context.Context) string {
	for _, d := range append(slices.Clone(f.Layout.DataDirs[:min(len(f.Layout.DataDirs), 1)]), f.WALDir) {
		if d == "" {
			continue
		}
		if info, err := f.Tree.Stat(ctx, path.Join(d, TabletMetaDir)); err == nil && info.Dir {
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
		name := path.Join(dir, InstanceFile)
		in, notes, err := readInstance(ctx, f.Tree, name, f.Options.Pbc())
		for _, n := range notes {
			f.fault("kudu.instance.damaged", n, "")
		}
		switch {
		case Gone(err):
			if _, err := f.Tree.Stat(ctx, path.Join(dir, DirInstanceFile)); err != nil {
				f.Note("kudu.instance.missing", fault.Span{Object: name}, "",
					"the directory does not say to which server it belongs")
			}
			continue
		case errors.Is(err, fault.Unsupported):
			f.Encrypted = true
			return err
		case fault.OverBudget(err):
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
			f.Note("kudu.instance.other", in.At, "",
				fmt.Sprintf("the directory belongs to server %s, others to %s", in.UUID, f.UUID))
		}
		f.Instances = append(f.Instances, in)
	}
	return nil
}

// readInstance reads an instance file. notes mentions damage that did not keep it from being read.
func readInstance(ctx context.Context, tree store.Tree, name string, o pbc.Options) (in Instance, notes []error,
	err error) {
	in.Object = name
	notes, err = pbc.Read(ctx, tree, name, o, "instance", in.Parse)
	return in, notes, err
}

// Parse reads an InstanceMetadataPB.
func (in *Instance) Parse(c *wire.Cursor) {
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
func readDirInstance(ctx context.Context, tree store.Tree, d *DataDir, o pbc.Options) ([]error, error) {
	return pbc.Read(ctx, tree, d.Instance, o, "block manager instance", d.Parse)
}

// Parse reads a DirInstanceMetadataPB.
func (d *DataDir) Parse(c *wire.Cursor) {
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

// ReadDataDirs reads the data directories' instances and puts them in order.
func (f *FS) ReadDataDirs(ctx context.Context) error {
	for _, dir := range f.Layout.DataDirs {
		d, err := f.readDataDir(ctx, dir)
		if err != nil {
			return err
		}
		f.DataDirs = append(f.DataDirs, d)
		f.BlockManager = cmp.Or(f.BlockManager, d.Type)
	}
	f.orderDataDirs()
	if f.BlockManager == "" {
		var err error
		f.BlockManager, err = f.guessManager(ctx)
		return err
	}
	return nil
}

// readDataDir reads the instance of a data directory. What is damaged is a finding.
func (f *FS) readDataDir(ctx context.Context, root string) (DataDir, error) {
	d := DataDir{Root: root, Index: -1, BlockSize: 4096}
	var err error
	if d.Dir, err = f.blocksOf(ctx, root); err != nil {
		return d, err
	}
	d.Instance = path.Join(d.Dir, DirInstanceFile)
	notes, err := readDirInstance(ctx, f.Tree, &d, f.Options.Pbc())
	switch {
	case Gone(err):
		err = fault.Corruptf(fault.Span{Object: d.Instance}, "", "the file is missing")
		d.Instance = ""
	case err != nil && fault.NotOfFile(err):
		return d, err
	case errors.Is(err, fault.Unsupported):
		f.Encrypted = f.Encrypted || pbc.SpanOf(err).Len == int64(len(pbc.EncMagic))
		return d, err
	}
	for _, n := range notes {
		f.fault("kudu.datadir.damaged", n, root)
	}
	if err != nil {
		d.Err = err
		d.UUID, d.All, d.Type = "", nil, ""
		f.fault("kudu.datadir.damaged", err, root)
	}
	d.BlockSize = cmp.Or(d.BlockSize, 4096)
	return d, nil
}

// blocksOf is where in a data root the blocks are: in data/, or in the root itself if that is a data/ that was named
// for its own sake. A file block_manager_instance beside a data/ with blocks is none of this.
func (f *FS) blocksOf(ctx context.Context, root string) (string, error) {
	inner := path.Join(root, DataSubdir)
	instance := path.Join(root, DirInstanceFile)
	if _, err := f.Tree.Stat(ctx, instance); Gone(err) || err != nil && ctx.Err() != nil {
		return inner, nil
	} else if err != nil {
		return "", err
	}
	s := search{tree: f.Tree, o: f.Options}
	if info, err := f.Tree.Stat(ctx, inner); err == nil && info.Dir && s.hasBlocks(ctx, inner) {
		f.stray(instance)
		return inner, s.failed
	}
	return root, s.failed
}

// stray notes a file block_manager_instance that belongs to no data directory.
func (f *FS) stray(name string) {
	f.Note("kudu.datadir.stray", fault.Span{Object: name}, path.Dir(name), "no blocks lie beside it, and servers' "+
		"directories, or the data directory itself, below: it belongs to nothing, and is not used")
}

// orderDataDirs puts the data directories in the order of the longest list that one of them has: directories may be
// added to a server, and those that were away then do not know.
func (f *FS) orderDataDirs() {
	var all []string
	for i := range f.DataDirs {
		if len(f.DataDirs[i].All) > len(all) {
			all = f.DataDirs[i].All
		}
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
			f.Note("kudu.instance.other", fault.Span{Object: d.Instance}, d.Dir,
				"two data directories have the same UUID "+d.UUID)
		}
		given[d.UUID] = true
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
		f.Note("kudu.datadir.missing", fault.Span{Object: f.DataDirs[0].Instance}, all[i],
			fmt.Sprintf("data directory %s, number %d of %d, was not given", all[i], i+1, len(all)))
	}
	slices.SortStableFunc(f.DataDirs, func(a, b DataDir) int { return cmp.Compare(uint(a.Index), uint(b.Index)) })
}

// guessManager reports the block manager by what is in the data directories.
func (f *FS) guessManager(ctx context.Context) (string, error) {
	for _, d := range f.DataDirs {
		if info, err := f.Tree.Stat(ctx, path.Join(d.Dir, "rdb")); err == nil && info.Dir {
			return "logr", nil
		}
		for info, err := range f.Tree.List(ctx, d.Dir) {
			if Gone(err) {
				break
			}
			if err != nil {
				return "", err
			}
			name := path.Base(info.Name)
			if !info.Dir && (strings.HasSuffix(name, MetadataSuffix) || strings.HasSuffix(name, DataSuffix)) {
				return "log", nil
			}
			if info.Dir && isHexByte(name) {
				return "file", nil
			}
		}
	}
	return "", nil
}
