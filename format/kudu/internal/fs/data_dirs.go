package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/sorted"
)

// findMeta returns Kudu's default metadata root if that has metadata: the first data root, else the WAL root; "" if
// neither has metadata.
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
					"the directory does not say which server it belongs to")
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

// ReadDataDirs reads the instances of the data directories, orders the directories by all_uuids, and determines the
// block manager.
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

// readDataDir reads the instance of a data directory. Damage is a finding and not an error.
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

// blocksOf returns the directory with the blocks of a data root: its data/ or, if the inner directory was given, the
// root itself. A file block_manager_instance beside a data/ with blocks is stray.
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

// stray records a file block_manager_instance that belongs to no data directory.
func (f *FS) stray(name string) {
	f.Note("kudu.datadir.stray", fault.Span{Object: name}, path.Dir(name), "there are no blocks beside it, but "+
		"directories of servers, or the data directory itself, below it: it belongs to none, and is ignored")
}

// orderDataDirs sorts the data directories by the longest all_uuids that any of them has. A directory that was offline
// when others were added to the server has a shorter list.
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
	var missing []int // indexes into all
	for i, uuid := range all {
		if !given[uuid] {
			missing = append(missing, i)
		}
	}
	// The only directory without a known UUID must be the only missing one.
	if unknown == 1 && len(missing) == 1 {
		for i := range f.DataDirs {
			if f.DataDirs[i].Index < 0 {
				f.DataDirs[i].Index, f.DataDirs[i].UUID, missing = missing[0], all[missing[0]], nil
			}
		}
	}
	for _, i := range missing {
		f.Note("kudu.datadir.missing", fault.Span{Object: f.DataDirs[0].Instance}, all[i],
			fmt.Sprintf("data directory %s, number %d of %d, was not given", all[i], i+1, len(all)))
	}
	sorted.StablyBy(f.DataDirs, func(a, b DataDir) int { return cmp.Compare(uint(a.Index), uint(b.Index)) })
}

// guessManager infers the block manager from the content of the data directories; "" if they have no blocks.
func (f *FS) guessManager(ctx context.Context) (string, error) {
	for _, d := range f.DataDirs {
		if info, err := f.Tree.Stat(ctx, path.Join(d.Dir, "rdb")); err == nil && info.Dir {
			return RocksManager, nil
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
				return LogManager, nil
			}
			if info.Dir && isHexByte(name) {
				return FileManager, nil
			}
		}
	}
	return "", nil
}
