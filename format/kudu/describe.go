package kudu

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/format/kudu/internal/cluster"
	"stoa/format/kudu/internal/fs"
	"stoa/format/kudu/internal/pbc"
	"stoa/format/kudu/internal/table"
	"stoa/format/kudu/internal/wal"
	"stoa/internal/describe"
	"stoa/region"
	"stoa/store"
)

// anatomy streams the structure of all files in the servers' directories; the nodes of a file cover all its bytes. With
// a table (DIR#TABLE), only the table's superblocks, consensus metadata, logs and blocks are included.
func anatomy(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return describe.Stream(ctx, o.Pages, func(out *describe.Outline) error {
		return (&describer{Outline: out, tree: tg.Tree, o: o.OpenOptions}).all(tg)
	})
}

// describer describes directories.
type describer struct {
	*describe.Outline
	tree   store.Tree
	o      format.OpenOptions
	owners map[uint64]string // role of each block of the current server
}

// met saves damage until the end, and returns other errors.
func (d *describer) met(err error) error {
	if err == nil {
		return d.Ctx.Err()
	}
	if !errors.As(err, new(*fault.Error)) {
		return err
	}
	d.Keep(err)
	return nil
}

// all describes everything that the target names.
func (d *describer) all(tg format.Target) error {
	ro, err := table.ParseOptions(d.o.Opts)
	if err != nil {
		return err
	}
	d.o.Opts, d.o.Tracer = nil, nil
	s, err := cluster.Open(d.Ctx, tg, d.o, ro)
	if err != nil {
		return err
	}
	var only []*table.Tablet
	if tg.Table != "" {
		if only, err = s.Pick(d.Ctx, tg, ro.Tablet); err != nil {
			return err
		}
	}
	for _, f := range s.All {
		d.name(f, s)
		if only != nil {
			err = d.table(f, only)
		} else {
			err = d.server(f, s)
		}
		if err != nil || d.Left() {
			return err
		}
	}
	return d.First()
}

// name sets d.owners for a server.
func (d *describer) name(f *fs.FS, s *cluster.Servers) {
	d.owners = map[uint64]string{}
	for _, tb := range s.Tablets {
		for _, r := range tb.Replicas() {
			if r.FS != f {
				continue
			}
			for i := range r.RowSets {
				for _, b := range r.RowSets[i].Blocks() {
					what := b.Kind
					if b.Column >= 0 {
						what = "column " + r.Schema.NameOf(b.Column)
					}
					d.owners[b.ID] = fmt.Sprintf("%s, tablet %s, rowset %d, %s", r.Table, r.ID, r.RowSets[i].ID, what)
				}
			}
		}
	}
}

// server describes all files of a server.
func (d *describer) server(f *fs.FS, s *cluster.Servers) error {
	var names []string
	for _, in := range f.Instances {
		names = append(names, in.Object)
	}
	for _, dd := range f.DataDirs {
		if dd.Instance != "" {
			names = append(names, dd.Instance)
		}
	}
	for _, dir := range []string{fs.TabletMetaDir, fs.ConsensusDir} {
		for info, err := range f.Tree.List(d.Ctx, path.Join(f.MetaDir, dir)) {
			if err != nil {
				break // it was reported when the directories were opened
			}
			if !info.Dir && fs.IsUUID(path.Base(info.Name)) {
				names = append(names, info.Name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := d.container(name); err != nil || d.Left() {
			return err
		}
	}
	if err := d.logs(f, nil); err != nil || d.Left() {
		return err
	}
	for _, c := range f.Containers {
		if c.Metadata != "" {
			if err := d.container(c.Metadata); err != nil || d.Left() {
				return err
			}
		}
		if err := d.sections(f, c); err != nil || d.Left() {
			return err
		}
	}
	if f.BlockManager != fs.FileManager {
		return nil
	}
	for p, err := range f.AllBlocks(d.Ctx) {
		if err == nil {
			err = d.block(p, 0)
		}
		if err = d.met(err); err != nil || d.Left() {
			return err
		}
	}
	return nil
}

// table describes a server's files of the given tablets.
func (d *describer) table(f *fs.FS, only []*table.Tablet) error {
	for _, tb := range only {
		for _, r := range tb.Replicas() {
			if r.FS != f {
				continue
			}
			if err := d.container(r.Object); err != nil || d.Left() {
				return err
			}
			if r.Consensus != nil {
				if err := d.container(r.Consensus.Object); err != nil || d.Left() {
					return err
				}
			}
			if err := d.logs(f, func(id string) bool { return id == r.ID }); err != nil || d.Left() {
				return err
			}
			for i := range r.RowSets {
				for _, b := range r.RowSets[i].Blocks() {
					p, err := f.PlaceOf(d.Ctx, r.Tablet, b.BlockRef)
					if err == nil {
						err = d.block(p, 0)
					}
					if err = d.met(err); err != nil || d.Left() {
						return err
					}
				}
			}
		}
	}
	return nil
}

// object begins a file.
func (d *describer) object(name, kind, value string) {
	var size int64
	if info, err := d.tree.Stat(d.Ctx, name); err == nil {
		size = info.Size
	}
	d.Node(0, region.Struct, kind, value, fault.Span{Object: name, Len: size})
}

func (d *describer) pbc() pbc.Options {
	return pbc.Options{Limits: d.o.Limits, NoVerify: true, Trace: d.Emit, Depth: 1}
}

// container describes a protobuf container.
func (d *describer) container(name string) error {
	kind := "metadata"
	switch {
	case strings.HasSuffix(path.Dir(name), fs.TabletMetaDir):
		kind = "superblock"
	case strings.HasSuffix(path.Dir(name), fs.ConsensusDir):
		kind = "consensus metadata"
	case strings.HasSuffix(name, fs.MetadataSuffix):
		kind = "container metadata"
	case path.Base(name) == fs.InstanceFile, path.Base(name) == fs.DirInstanceFile:
		kind = "instance"
	}
	d.object(name, kind, "")
	return d.met(fs.DescribeMetadata(d.Ctx, d.tree, name, d.pbc()))
}

// logs describes the log segments of the tablets that want selects; nil selects all tablets.
func (d *describer) logs(f *fs.FS, want func(id string) bool) error {
	if f.WALDir == "" {
		return nil
	}
	var ids []string
	for info, err := range f.Tree.List(d.Ctx, path.Join(f.WALDir, fs.WalsDir)) {
		if err != nil {
			break
		}
		if id := path.Base(info.Name); info.Dir && (want == nil || want(strings.TrimSuffix(id, fs.RecoverySuffix))) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		segments, err := f.WALSegments(d.Ctx, id)
		if err != nil {
			return err
		}
		for _, s := range segments {
			d.object(s.Name, "log segment", "tablet "+id)
			if err := d.met(wal.Describe(d.Ctx, d.tree, s.Name, d.pbc())); err != nil || d.Left() {
				return err
			}
		}
	}
	return nil
}

// sections describes the data file of a log container.
func (d *describer) sections(f *fs.FS, c *fs.Container) error {
	all, err := f.Sections(d.Ctx, c)
	if err != nil {
		return err
	}
	if c.Data == "" {
		return nil
	}
	d.object(c.Data, "container", fmt.Sprintf("%s, %d deleted", fault.Count(len(c.Live), "block"), len(c.Dead)))
	for _, s := range all {
		switch s.Kind {
		case region.Struct:
			err = d.met(d.block(fs.Place{ID: s.Block, At: s.At, Dir: c.Dir}, 1))
		case region.Dead:
			d.Node(1, region.Dead, fmt.Sprintf("block %d", s.Block), "deleted", s.At)
		case region.Pad:
			d.Node(1, region.Pad, "padding", "", s.At)
		default:
			d.Node(1, region.Gap, "gap", "no record claims these bytes", s.At)
		}
		if err != nil || d.Left() {
			return err
		}
	}
	return nil
}

// block describes the CFile in a block.
func (d *describer) block(p fs.Place, depth int) error {
	owner, named := d.owners[p.ID]
	if !named {
		owner = "no superblock names it"
	}
	d.Node(depth, region.Struct, fmt.Sprintf("block %d", p.ID), owner, p.At)
	if p.At.Len == 0 {
		return nil
	}
	tg := format.Target{Tree: d.tree, Name: p.At.Object}
	tg.At.From, tg.At.To = p.At.Off, p.At.End()
	var bad error
	for n, err := range cfile.Format.Describe(d.Ctx, tg,
		format.DescribeOptions{OpenOptions: d.o, Pages: d.Pages}) {
		if err != nil {
			bad = err
			continue
		}
		n.Depth += depth + 1
		if d.Emit(n); d.Left() {
			return nil
		}
	}
	return bad
}
