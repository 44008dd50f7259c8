package kudu

import (
	"fmt"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format/kudu/internal/fs"
	"stoa/region"
)

// isContainer reports whether a name is that of the data file of a log container. Its first block, like all others, is
// a CFile, but the file as a whole is not.
func isContainer(name string) bool {
	base, ok := strings.CutSuffix(path.Base(name), fs.DataSuffix)
	return ok && fs.IsUUID(base)
}

// oneContainer describes a data file by the metadata beside it: the blocks in it, live and deleted. Without the
// metadata, the CFiles that are found by their magics are listed.
func (d *describer) oneContainer(name string) error {
	f, c, err := fs.OpenContainer(d.Ctx, d.tree, name, fs.FSOptions{Limits: d.o.Limits, NoVerify: d.o.NoVerify})
	if err != nil {
		return err
	}
	if c.Err != nil {
		d.Keep(c.Err)
	}
	if c.Metadata == "" {
		return d.found(f, c)
	}
	d.owners = map[uint64]string{}
	for _, x := range c.Live {
		d.owners[x.ID] = "live"
	}
	for _, x := range c.Lost {
		d.Keep(fault.Corruptf(fault.Span{Object: name, Off: x.Off, Len: x.Len}, "",
			"block %d reaches past the end of the container (%d)", x.ID, c.Size))
	}
	if err := d.sections(f, c); err != nil {
		return err
	}
	return d.First()
}

// found describes the CFiles in a container without metadata.
func (d *describer) found(f *fs.FS, c *fs.Container) error {
	all, err := f.Carve(d.Ctx, c)
	if err != nil {
		return err
	}
	d.object(c.Data, "container", fmt.Sprintf("%d CFiles found; which are live is not known", len(all)))
	pos := int64(0)
	gap := func(to int64) {
		if to > pos {
			d.Node(1, region.Gap, "gap", "no CFile was found here", fault.Span{Object: c.Data, Off: pos, Len: to - pos})
		}
	}
	for i, x := range all {
		gap(x.At.Off)
		d.Node(1, region.Struct, fmt.Sprintf("CFile %d", i), "", x.At)
		pos = max(pos, x.At.End())
	}
	gap(c.Size)
	return d.First()
}
