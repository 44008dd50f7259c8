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
	"stoa/region"
	"stoa/store"
)

// describe streams the anatomy of all objects of the servers' directories: every byte of each has an owner. With a table (DIR#TABLE) it
// tells the table's superblocks, consensus metadata and logs, and its blocks, wherever they lie.
func describe(ctx context.Context, tg format.Target, o format.DescribeOptions) iter.Seq2[region.Node, error] {
	return func(yield func(region.Node, error) bool) {
		d := &describer{ctx: ctx, tree: tg.Tree, o: o, yield: yield}
		if err := d.all(tg); err != nil && !d.stopped {
			yield(region.Node{}, err)
		}
	}
}

// describer describes directories.
type describer struct {
	ctx     context.Context
	tree    store.Tree
	o       format.DescribeOptions
	yield   func(region.Node, error) bool
	stopped bool
	bad     error // the first damage met; what follows is described nevertheless
	owners  map[uint64]string
}

func (d *describer) emit(n region.Node) {
	if !d.stopped {
		d.stopped = !d.yield(n, nil)
	}
}

// met keeps damage for the end, and gives other errors back.
func (d *describer) met(err error) error {
	if err == nil {
		return d.ctx.Err()
	}
	if !errors.As(err, new(*fault.Error)) {
		return err
	}
	if d.bad == nil {
		d.bad = err
	}
	return nil
}

func (d *describer) all(tg format.Target) error {
	ro, err := parseOptions(d.o.Opts)
	if err != nil {
		return err
	}
	d.o.Opts, d.o.Tracer = nil, nil
	s, err := openServers(d.ctx, tg, d.o.OpenOptions, ro)
	if err != nil {
		return err
	}
	var only []*tablet
	if tg.Table != "" {
		if only, err = s.pick(d.ctx, tg, ro.tablet); err != nil {
			return err
		}
	}
	for _, f := range s.all {
		d.name(f, s)
		if only != nil {
			err = d.table(f, only)
		} else {
			err = d.server(f, s)
		}
		if err != nil || d.stopped {
			return err
		}
	}
	return d.bad
}

// name notes what each block of a server is.
func (d *describer) name(f *FS, s *servers) {
	d.owners = map[uint64]string{}
	for _, tb := range s.tablets {
		for _, r := range append([]replica{tb.replica}, tb.others...) {
			if r.fs != f {
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

// server describes all objects of a server.
func (d *describer) server(f *FS, s *servers) error {
	var names []string
	for _, in := range f.Instances {
		names = append(names, in.Object)
	}
	for _, dd := range f.DataDirs {
		if dd.Instance != "" {
			names = append(names, dd.Instance)
		}
	}
	for _, dir := range []string{tabletMetaDir, consensusDir} {
		for info, err := range f.tree.List(d.ctx, path.Join(f.MetaDir, dir)) {
			if err != nil {
				break // it was noted when the directories were opened
			}
			if !info.Dir && isUUID(path.Base(info.Name)) {
				names = append(names, info.Name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if err := d.container(name); err != nil || d.stopped {
			return err
		}
	}
	if err := d.logs(f, nil); err != nil || d.stopped {
		return err
	}
	for _, c := range f.Containers {
		if c.Metadata != "" {
			if err := d.container(c.Metadata); err != nil || d.stopped {
				return err
			}
		}
		if err := d.sections(f, c); err != nil || d.stopped {
			return err
		}
	}
	if f.BlockManager != "file" {
		return nil
	}
	for p, err := range f.AllBlocks(d.ctx) {
		if err == nil {
			err = d.block(p, 0)
		}
		if err = d.met(err); err != nil || d.stopped {
			return err
		}
	}
	return nil
}

// table describes what belongs to tablets.
func (d *describer) table(f *FS, only []*tablet) error {
	for _, tb := range only {
		for _, r := range append([]replica{tb.replica}, tb.others...) {
			if r.fs != f {
				continue
			}
			if err := d.container(r.Object); err != nil || d.stopped {
				return err
			}
			if r.Consensus != nil {
				if err := d.container(r.Consensus.Object); err != nil || d.stopped {
					return err
				}
			}
			if err := d.logs(f, func(id string) bool { return id == r.ID }); err != nil || d.stopped {
				return err
			}
			for i := range r.RowSets {
				for _, b := range r.RowSets[i].Blocks() {
					p, err := f.PlaceOf(d.ctx, r.Tablet, b.BlockRef)
					if err == nil {
						err = d.block(p, 0)
					}
					if err = d.met(err); err != nil || d.stopped {
						return err
					}
				}
			}
		}
	}
	return nil
}

// object begins an object.
func (d *describer) object(name, kind, value string) {
	var size int64
	if info, err := d.tree.Stat(d.ctx, name); err == nil {
		size = info.Size
	}
	d.emit(region.Node{Kind: region.Struct, Name: kind, Value: value, At: fault.Span{Object: name, Len: size}, Inner: -1})
}

func (d *describer) pbc() pbcOptions {
	return pbcOptions{limits: d.o.Limits, noVerify: true, trace: d.emit, depth: 1}
}

// container describes a protobuf container.
func (d *describer) container(name string) error {
	kind := "metadata"
	switch {
	case strings.HasSuffix(path.Dir(name), tabletMetaDir):
		kind = "superblock"
	case strings.HasSuffix(path.Dir(name), consensusDir):
		kind = "consensus metadata"
	case strings.HasSuffix(name, metadataSuffix):
		kind = "container metadata"
	case path.Base(name) == instanceFile, path.Base(name) == dirInstanceFile:
		kind = "instance"
	}
	d.object(name, kind, "")
	return d.met(describePBC(d.ctx, d.tree, name, d.pbc()))
}

// logs describes the segments of logs.
func (d *describer) logs(f *FS, want func(id string) bool) error {
	if f.WALDir == "" {
		return nil
	}
	var ids []string
	for info, err := range f.tree.List(d.ctx, path.Join(f.WALDir, walsDir)) {
		if err != nil {
			break
		}
		if id := path.Base(info.Name); info.Dir && (want == nil || want(strings.TrimSuffix(id, recoverySuffix))) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		segments, err := f.WALSegments(d.ctx, id)
		if err != nil {
			return err
		}
		for _, s := range segments {
			d.object(s.Name, "log segment", "tablet "+id)
			if err := d.met(describeWAL(d.ctx, d.tree, s.Name, d.pbc())); err != nil || d.stopped {
				return err
			}
		}
	}
	return nil
}

// sections describes the data file of a log container.
func (d *describer) sections(f *FS, c *Container) error {
	all, err := f.Sections(d.ctx, c)
	if err != nil {
		return err
	}
	if c.Data == "" {
		return nil
	}
	d.object(c.Data, "container", fmt.Sprintf("%d blocks, %d deleted", len(c.Live), len(c.Dead)))
	for _, s := range all {
		switch s.Kind {
		case region.Struct:
			err = d.met(d.block(Place{s.Block, s.At, c.Dir}, 1))
		case region.Dead:
			d.emit(region.Node{Depth: 1, Kind: region.Dead, Name: fmt.Sprintf("block %d", s.Block), Value: "deleted", At: s.At, Inner: -1})
		case region.Pad:
			d.emit(region.Node{Depth: 1, Kind: region.Pad, Name: "padding", At: s.At, Inner: -1})
		default:
			d.emit(region.Node{Depth: 1, Kind: region.Gap, Name: "gap", Value: "no record claims these bytes", At: s.At, Inner: -1})
		}
		if err != nil || d.stopped {
			return err
		}
	}
	return nil
}

// block describes the CFile in a block.
func (d *describer) block(p Place, depth int) error {
	owner, named := d.owners[p.ID]
	if !named {
		owner = "no superblock names it"
	}
	d.emit(region.Node{Depth: depth, Kind: region.Struct, Name: fmt.Sprintf("block %d", p.ID), Value: owner, At: p.At, Inner: -1})
	if p.At.Len == 0 {
		return nil
	}
	tg := format.Target{Tree: d.tree, Name: p.At.Object}
	tg.At.From, tg.At.To = p.At.Off, p.At.End()
	var bad error
	for n, err := range cfile.Format.Describe(d.ctx, tg, format.DescribeOptions{OpenOptions: d.o.OpenOptions, Pages: d.o.Pages}) {
		if err != nil {
			bad = err
			continue
		}
		n.Depth += depth + 1
		if d.emit(n); d.stopped {
			return nil
		}
	}
	return bad
}
