package redfile

import (
	"bytes"
	"errors"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
)

// gather makes a reader of the parts that lie beside the metadata of a split table, where that is lost: each is a whole file
// with one row group, or with all, and their names are in order. nil if there are none.
func (r *rescue) gather(o format.OpenOptions, opts readOptions) (*file, error) {
	dir := path.Dir(r.f.at.Object)
	out := newFile(r.f.tree, r.f.src, r.f.at, o, opts)
	out.stamp, out.gathered = r.f.stamp, true
	begun := map[string]string{} // parts by what their sync block says
	for info, err := range r.f.tree.List(r.ctx, dir) {
		if err != nil {
			return nil, err
		}
		name := path.Base(info.Name)
		if info.Dir || name != dataFile && (!strings.HasPrefix(name, "part-") || !strings.HasSuffix(name, ".red")) {
			continue
		}
		p, err := openTarget(r.ctx, format.Target{Tree: r.f.tree, Name: info.Name}, o)
		if err != nil {
			if !errors.Is(err, fault.Corrupt) {
				return nil, err
			}
			if p = r.recoverPart(info.Name, o); p == nil {
				r.tell("redfile.rows.lost", fault.Span{Object: info.Name, Len: info.Size}, [2]int64{-1, -1}, -1, "nothing whole was found in the part %s: it is left out", name)
				continue
			}
		}
		s, at := p.firstBlock(r.ctx)
		p.Close()
		if s != nil {
			key := string(s.marker) + partName(int(s.groups))
			if other := begun[key]; other != "" {
				r.tell("redfile.part.repeated", at, [2]int64{-1, -1}, 0, "%s begins with row group %d of its table, as %s does: it is left out", name, s.groups, other)
				continue
			}
			begun[key] = name
		}
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

// recoverPart recovers a part whose own metadata is damaged; nil if it has no row group that is whole.
func (r *rescue) recoverPart(name string, o format.OpenOptions) *file {
	back, found, err := recoverFile(r.ctx, format.Target{Tree: r.f.tree, Name: name}, o)
	r.findings = append(r.findings, found...)
	if err != nil {
		return nil
	}
	p := back.(*file)
	if len(p.meta.groups) == 0 {
		p.Close()
		return nil
	}
	return p
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
	for k, err := range p.lost {
		if out.lost == nil {
			out.lost = map[chunkKey]error{}
		}
		out.lost[chunkKey{k.group + len(groups), k.col}] = err
	}
	for _, g := range p.meta.groups {
		for i := range g.columns {
			g.columns[i].file = name
		}
		groups = append(groups, g)
	}
	out.meta.groups = groups
}

// strange is an error if none of the parts that the metadata of a split table names is what it takes it for, and some are others': it is that of another table.
func (r *rescue) strange(o format.OpenOptions) error {
	var other error
	seen := map[string]bool{}
	for _, g := range r.f.meta.groups {
		for _, c := range g.columns {
			if c.file == "" || seen[c.file] {
				continue
			}
			seen[c.file] = true
			p, err := openTarget(r.ctx, format.Target{Tree: r.f.tree, Name: path.Join(path.Dir(r.f.at.Object), c.file)}, o)
			if err != nil {
				continue
			}
			known, err := r.takenFor(p, c.file)
			p.Close()
			if known && err == nil {
				return nil
			}
			if err != nil {
				other = err
			}
		}
	}
	if other == nil {
		return r.ctx.Err()
	}
	return fault.Corruptf(r.f.metaAt, "file_metadata.row_groups", "this is the metadata of another table than the parts: %v", other)
}

// takenFor holds a part, called so, against the metadata of the table: by its marker, or, without any, by its own metadata. known: it says what it is.
func (r *rescue) takenFor(p *file, called string) (known bool, err error) {
	marker := r.f.meta.marker()
	if marker == nil {
		r.f.mu.Lock()
		defer r.f.mu.Unlock()
		return true, r.f.sameChunks(r.ctx, p, called, "file_metadata")
	}
	s, at := p.firstBlock(r.ctx)
	if s != nil && !bytes.Equal(s.marker, marker) {
		return true, fault.Corruptf(at, "sync.marker", "%q begins with the marker %x", called, s.marker)
	}
	return s != nil, nil
}
