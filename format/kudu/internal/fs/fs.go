package fs

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"

	"stoa/fault"
	"stoa/format/kudu/internal/meta"
	"stoa/format/kudu/internal/pbc"
	"stoa/internal/budget"
	"stoa/region"
	"stoa/store"
)

// FS is one server's directories. Block, PlaceOf, OpenBlock and AllBlocks may be called concurrently; methods that add
// to Findings may not.
type FS struct {
	Layout
	UUID         string // of the server; "" if no instance file states it
	Encrypted    bool
	BlockManager string // "log", "file", "logr"; "" if unknown
	Instances    []Instance
	DataDirs     []DataDir // in the order of all_uuids, as far as it is known
	Containers   []*Container
	Users        []User // servers running on these directories
	Findings     []region.Finding
	Stamps       map[string]string // modification stamps of the superblocks that Tablets read, by tablet id

	Strange *sync.Map // see odd
	Copies  []*FS     // of the same server

	Tree     store.Tree
	Options  FSOptions
	Blocks   map[uint64]Placed // of the log block manager, by id
	taken    *budget.Memory    // charged for what is read from the directories and kept
	reported map[region.Finding]bool
	again    map[uint64][]Placed // other blocks with the ids of Blocks
	found    *sync.Map           // decisions by tablet and id: blocks in again or, if Bound, with files of their own
}

// Placed is the location of a block of the log block manager.
type Placed struct {
	Off, Len  int64
	Container int32
	lost      bool
}

// Bound returns a copy of f that reads through another tree. Later findings of one are not added to the other.
func (f *FS) Bound(tree store.Tree) *FS {
	out := *f
	out.Tree = OrLocal(tree)
	out.Findings = slices.Clip(f.Findings)
	out.reported = maps.Clone(f.reported)
	if f.again == nil {
		out.found = new(sync.Map)
	}
	out.Copies = slices.Clone(f.Copies)
	for i, c := range f.Copies {
		again := *c
		again.Tree, again.Copies = out.Tree, nil
		out.Copies[i] = &again
	}
	return &out
}

// kept returns the options for containers whose records are kept in memory and charged to f.
func (f *FS) kept() pbc.Options {
	o := f.Options.Pbc()
	o.Memory = f.taken
	return o
}

func newFS(tree store.Tree, l Layout, o FSOptions) *FS {
	l.DataDirs = distinct(l.DataDirs)
	return &FS{Layout: l, Tree: tree, Options: o, Blocks: map[uint64]Placed{}, Strange: new(sync.Map),
		taken: o.Limits.Memory()}
}

// OpenFS reads the instances of a server's directories and finds its blocks. Damage is not an error: it is in Findings,
// and the rest can be read. The error is Unsupported if the directories are encrypted or their block manager is not
// supported; f then has what was read before. A nil tree is the machine's file system.
func OpenFS(ctx context.Context, tree store.Tree, l Layout, o FSOptions) (f *FS, err error) {
	f = newFS(OrLocal(tree), l, o)
	tree = f.Tree
	if len(f.Layout.DataDirs) == 0 && f.WALDir != "" {
		if info, err := tree.Stat(ctx, path.Join(f.WALDir, DataSubdir)); err == nil && info.Dir {
			f.Layout.DataDirs = []string{f.WALDir} // Kudu's default
		}
	}
	if f.MetaDir == "" {
		f.MetaDir = f.findMeta(ctx)
	}
	if err := f.readInstances(ctx); err != nil {
		return f, err
	}
	if err := f.ReadDataDirs(ctx); err != nil {
		return f, err
	}
	f.FindUsers()
	for _, name := range l.Stray {
		f.stray(name)
	}
	for _, in := range f.Instances {
		if in.Encrypted {
			f.Encrypted = true
			if decrypts(tree) {
				break
			}
			return f, fault.Unsupportedf(in.Key, "instance.server_key",
				"the server's data is encrypted at rest, and no key is given: option encryption-key=FILE; "+
					"as FILE, default stands for the keys of Kudu's default provider")
		}
	}
	switch f.BlockManager {
	case RocksManager:
		return f, fault.Unsupportedf(f.typeSpan(), "dir_type",
			"block manager logr (the places of blocks are in RocksDB)")
	case LogManager:
		for i := range f.DataDirs {
			if err := f.openContainers(ctx, i); err != nil {
				return f, err
			}
		}
	case FileManager:
	case "":
		if len(f.DataDirs) > 0 {
			f.Note("kudu.layout.missing", fault.Span{Object: f.DataDirs[0].Dir}, "",
				"there are no blocks in the data directories")
		}
	default:
		return f, fault.Unsupportedf(f.typeSpan(), "dir_type", "block manager %q", f.BlockManager)
	}
	if f.MetaDir == "" {
		f.Note("kudu.layout.missing", f.somewhere(), "", "no directory of superblocks ("+TabletMetaDir+") was found")
	}
	if len(f.DataDirs) == 0 {
		f.Note("kudu.layout.missing", f.somewhere(), "", "no data directory was found")
	}
	return f, nil
}

// somewhere returns the span of one of the server's directories, for findings about missing files.
func (f *FS) somewhere() fault.Span {
	return fault.Span{Object: cmp.Or(f.WALDir, f.MetaDir, FirstOf(f.Layout.DataDirs))}
}

// typeSpan returns the span of the field that names the block manager, or of the first data directory if no field does.
func (f *FS) typeSpan() fault.Span {
	for _, d := range f.DataDirs {
		if d.Type != "" {
			return d.typeAt
		}
	}
	return fault.Span{Object: f.DataDirs[0].Dir}
}

// Tablets reads all superblocks, and sorts them by table, partition and id. A superblock that is damaged is a finding.
func (f *FS) Tablets(ctx context.Context) ([]*meta.Tablet, error) {
	if f.MetaDir == "" {
		return nil, nil
	}
	var out []*meta.Tablet
	f.Stamps = map[string]string{}
	for info, err := range f.Tree.List(ctx, path.Join(f.MetaDir, TabletMetaDir)) {
		if Gone(err) {
			f.Note("kudu.layout.missing", fault.Span{Object: path.Join(f.MetaDir, TabletMetaDir)}, "",
				"the directory does not exist")
			break
		}
		if err != nil {
			return out, err
		}
		id := path.Base(info.Name)
		if !IsUUID(id) {
			continue // a temporary file
		}
		t, err := f.Tablet(ctx, id)
		if err != nil {
			if !errors.As(err, new(*fault.Error)) || errors.Is(err, fault.Unsupported) || fault.OverBudget(err) {
				return out, err
			}
			f.fault("kudu.superblock.damaged", err, id)
			continue
		}
		f.Stamps[id] = info.Stamp
		out = append(out, t)
	}
	f.findForeign(out)
	slices.SortStableFunc(out, func(a, b *meta.Tablet) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.TableID, b.TableID),
			slices.Compare(a.Partition.Buckets, b.Partition.Buckets),
			cmp.Compare(string(a.Partition.Start), string(b.Partition.Start)), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}

// Tablet reads a tablet's superblock and consensus metadata. With an error it holds what could be parsed.
func (f *FS) Tablet(ctx context.Context, id string) (*meta.Tablet, error) {
	t, err := meta.ReadSuperblock(ctx, f.Tree, path.Join(f.MetaDir, TabletMetaDir, id), f.kept())
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
	if t.State != meta.TabletReady && t.State != meta.TabletTombstoned {
		f.Note("kudu.tablet.unfinished", t.At, id, "the tablet's state is "+t.State.String())
	}
	m, notes, err := meta.ReadConsensus(ctx, f.Tree, path.Join(f.MetaDir, ConsensusDir, id), f.kept())
	for _, n := range notes {
		f.fault("kudu.cmeta.damaged", n, id)
		t.Notes = append(t.Notes, n)
	}
	switch {
	case err == nil:
		t.Consensus = m
	case Gone(err):
		f.withoutConsensus(ctx, t)
	case fault.OverBudget(err):
		return t, err
	case errors.As(err, new(*fault.Error)):
		f.fault("kudu.cmeta.damaged", err, id)
		t.Notes = append(t.Notes, err)
	default:
		return t, err
	}
	return t, nil
}

// withoutConsensus notes that a tablet has no consensus metadata, although it has a log: directories may be copied
// without either.
func (f *FS) withoutConsensus(ctx context.Context, t *meta.Tablet) {
	if f.WALDir == "" || !t.HasData() {
		return
	}
	if _, err := f.Tree.Stat(ctx, path.Join(f.WALDir, WalsDir, t.ID)); err == nil {
		f.Note("kudu.cmeta.damaged", fault.Span{Object: path.Join(f.MetaDir, ConsensusDir, t.ID)}, t.ID,
			"the tablet has no consensus metadata: no server starts it, and nothing here says which its peers are")
	}
}
