package redfile

import (
	"errors"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
)

// gather makes a reader of the parts that lie beside the metadata of a split table, where that is lost: each is a whole file
// with one row group, and their names are in order. nil if there are none.
func (r *rescue) gather(o format.OpenOptions, opts readOptions) (*file, error) {
	dir := path.Dir(r.f.at.Object)
	out := newFile(r.f.tree, r.f.src, r.f.at, o, opts)
	out.stamp, out.gathered = r.f.stamp, true
	for info, err := range r.f.tree.List(r.ctx, dir) {
		if err != nil {
			return nil, err
		}
		name := path.Base(info.Name)
		if info.Dir || !strings.HasPrefix(name, "part-") || !strings.HasSuffix(name, ".red") {
			continue
		}
		p, err := openTarget(r.ctx, format.Target{Tree: r.f.tree, Name: info.Name}, o)
		if err != nil {
			if !errors.Is(err, fault.Corrupt) {
				return nil, err
			}
			r.blame("redfile.footer.damaged", err)
			r.tell("redfile.rows.lost", fault.Span{Object: info.Name, Len: info.Size}, [2]int64{-1, -1}, -1, "the metadata of the part %s cannot be read: it is left out", name)
			continue
		}
		p.Close()
		r.add(out, p, name)
	}
	if len(out.meta.groups) == 0 {
		return nil, nil
	}
	out.metaAt = r.f.at.Sub(r.f.at.Len, 0)
	out.meta.hasCRC = false
	if err := out.learn(r.ctx); err != nil {
		return nil, err
	}
	return out, r.count(out)
}

// add adds the row groups of a part, if it is one of the same table as the first.
func (r *rescue) add(out, p *file, name string) {
	if len(out.meta.groups) > 0 && (!p.schema.Equal(out.schema) || string(p.meta.marker()) != string(out.meta.marker())) {
		r.tell("redfile.rows.lost", p.at, [2]int64{-1, -1}, -1, "%s is of another table than the parts before it: it is left out", name)
		return
	}
	groups := out.meta.groups
	if len(groups) == 0 {
		out.meta, out.schema = p.meta, p.schema
		out.meta.groups, out.meta.rows = nil, -1
	}
	for _, g := range p.meta.groups {
		for i := range g.columns {
			g.columns[i].file = name
		}
		groups = append(groups, g)
	}
	out.meta.groups = groups
}
