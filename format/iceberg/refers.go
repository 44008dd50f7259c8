package iceberg

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/iceberg/internal/meta"
	"stoa/store"
)

// refers implements Format.Refers. The newest metadata come first, and it ends when no name is left. All older metadata
// count, too: what they name can be read by them. Only there may files be missing, as those of snapshots that expired.
func refers(ctx context.Context, tg format.Target, o format.OpenOptions, names map[string][]store.Info) error {
	op, err := openSnapshot(ctx, tg, o)
	if err != nil {
		return err
	}
	if op.table.Properties["write.metadata.path"] != "" {
		return fault.Unsupportedf(fault.Span{Object: op.file}, "write.metadata.path", "newer metadata may be elsewhere")
	}
	all := []*tableFiles{op.tableFiles}
	for info, err := range tg.Tree.List(ctx, path.Join(op.dir, metadataDir)) {
		if err != nil {
			return err
		}
		if info.Dir || !isMetadata(info.Name) || info.Name == op.file || // directories: in which a killed run built one
			strings.HasPrefix(path.Base(info.Name), store.TempPrefix) {
			continue
		}
		p, err := openPlace(ctx, format.Target{Tree: tg.Tree, Name: info.Name}, o.Limits)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	seen := map[string]bool{}
	for i, p := range all {
		for k := range p.table.Snapshots {
			if len(names) == 0 {
				return nil
			}
			if err := p.refers(ctx, &p.table.Snapshots[k], o, names, seen); err != nil && (i == 0 || !gone(err)) {
				return err
			}
		}
	}
	return ctx.Err()
}

func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// refers deletes from names what a snapshot refers to. seen are the lists and manifests that were read.
func (p *tableFiles) refers(ctx context.Context, s *meta.Snapshot, o format.OpenOptions, names map[string][]store.Info,
	seen map[string]bool) (err error) {
	var list []meta.Manifest
	most := o.Limits.WithDefaults().Metadata
	first := func(address string) (name string, err error) {
		if name, err = p.name(address); err != nil || seen[name] {
			return "", err
		}
		delete(names, path.Base(name))
		seen[name] = true
		return name, nil
	}
	if s.ManifestList != "" {
		name, err := first(s.ManifestList)
		if err != nil || name == "" {
			return err
		}
		if list, err = meta.ReadList(ctx, p.tree, name, most, s.ID); err != nil {
			return err
		}
	}
	for _, m := range s.Manifests {
		list = append(list, meta.Manifest{Path: m})
	}
	for _, m := range list {
		name, one := first(m.Path)
		if one == nil && name != "" {
			one = dropNamed(ctx, p.tree, name, most, m, names)
		}
		if one != nil && !gone(one) {
			return one
		}
		err = errors.Join(err, one)
	}
	return err
}

// dropNamed deletes from names those of the files of a manifest, also of those that it marks as deleted.
func dropNamed(ctx context.Context, tree store.Tree, name string, most int64, m meta.Manifest,
	names map[string][]store.Info) error {
	entries, err := meta.ReadManifest(ctx, tree, name, most, m)
	for _, e := range entries {
		delete(names, path.Base(e.File.Path))
	}
	return err
}
