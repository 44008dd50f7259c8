package redfile

import (
	"bytes"
	"errors"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// gather makes a reader of the parts that lie beside the metadata of a split table, where that is lost: each is
// a whole file with one row group, or with all, and their names are in order. nil if there are none.
func (r *rescue) gather(o format.OpenOptions, opts readOptions) (*file, error) {
	names, err := r.parts(o)
	if err != nil {
		return nil, err
	}
	out := newFile(r.f.tree, r.f.src, r.f.at, o, opts)
	out.stamp, out.gathered, out.recovering = r.f.stamp, true, true
	begun := map[string]string{} // parts by what their sync block says
	for _, name := range names {
		tg := r.beside(name)
		p, err := openTarget(r.ctx, tg, o)
		if err != nil {
			if !errors.Is(err, fault.Corrupt) {
				return nil, err
			}
			if name == metadataFile { // it is damaged, too
				continue
			}
			if p = r.recoverPart(tg.Name, o); p == nil {
				size, _ := r.f.tree.Stat(r.ctx, tg.Name)
				r.Rows("redfile.rows.lost", fault.Span{Object: tg.Name, Len: size.Size}, [2]int64{-1, -1}, -1,
					"nothing whole was found in the part %s: it is left out", name)
				continue
			}
		}
		s, at := p.firstBlock(r.ctx)
		p.Close()
		if namesOthers(p, name) {
			r.Rows("redfile.rows.lost", p.at, [2]int64{-1, -1}, -1,
				"%s is no part, but names others as a table's metadata does: it is left out", name)
			continue
		}
		if s != nil {
			key := string(s.marker) + partName(int(s.groups))
			if other := begun[key]; other != "" {
				r.Rows("redfile.part.repeated", at, [2]int64{-1, -1}, 0,
					"%s begins with row group %d of its table, as %s does: it is left out", name, s.groups, other)
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

// beside is what is called name in the directory of the table.
func (r *rescue) beside(name string) format.Target {
	return format.Target{Tree: r.f.tree, Name: path.Join(path.Dir(r.f.at.Object), name)}
}

// parts are the names of the parts, in order. A part that stands in the place of the metadata is where that
// stands as a part, or where a part is missing; behind the last only its sync block can say that it is one. It
// is none of them if it is a copy of one.
func (r *rescue) parts(o format.OpenOptions) (names []string, err error) {
	for info, err := range r.f.tree.List(r.ctx, path.Dir(r.f.at.Object)) {
		if err != nil {
			return nil, err
		}
		name := path.Base(info.Name)
		if !info.Dir && (name == dataFile || strings.HasPrefix(name, "part-") && strings.HasSuffix(name, ".red")) {
			names = append(names, name)
		}
	}
	if !r.astray {
		return names, nil
	}
	gap := len(names)
	for i, name := range slices.Backward(names) {
		if p, err := openTarget(r.ctx, r.beside(name), o); err == nil {
			others := namesOthers(p, name)
			p.Close()
			if others {
				names[i] = metadataFile
				return names, nil
			}
		}
		if copied, err := r.isCopy(name); copied || err != nil {
			return names, err
		}
		if name != partName(i) {
			gap = i
		}
	}
	if gap == len(names) {
		if s, _ := r.f.firstBlock(r.ctx); s == nil {
			return names, nil // a part that none of the others is missing: it may be a copy that has changed
		}
	}
	return slices.Insert(names, gap, metadataFile), nil
}

// isCopy reports whether the file called name has the bytes of the one that is recovered.
func (r *rescue) isCopy(name string) (bool, error) {
	src, err := r.f.tree.Open(r.ctx, r.beside(name).Name)
	if err != nil {
		return false, err
	}
	defer src.Close()
	if src.Size() != r.f.at.Len {
		return false, nil
	}
	var a, b [64 << 10]byte
	at := fault.Span{Object: r.beside(name).Name, Len: src.Size()}
	for off := int64(0); off < at.Len; off += int64(len(a)) {
		n := min(int64(len(a)), at.Len-off)
		if err := format.ReadFull(r.ctx, r.f.src, r.f.at.Sub(off, n), "", a[:n]); err != nil {
			return false, err
		}
		if err := format.ReadFull(r.ctx, src, at.Sub(off, n), "", b[:n]); err != nil {
			return false, err
		}
		if !bytes.Equal(a[:n], b[:n]) {
			return false, nil
		}
	}
	return true, nil
}

// among makes a reader of the parts of a table and of the one that stands in the place of its metadata; nil if
// there are no others.
func (r *rescue) among(o format.OpenOptions, opts readOptions) (*file, error) {
	at, before := r.f.ownGroups(), len(r.findings)
	r.astray = true
	out, err := r.gather(o, opts)
	r.astray = false
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return nil, err
	}
	if err != nil || out == nil || len(out.meta.groups) <= len(r.f.meta.groups) {
		r.findings = r.findings[:before]
		return nil, nil
	}
	how := "the parts are read without it"
	for _, g := range out.meta.groups {
		if slices.ContainsFunc(g.columns, func(c columnChunk) bool { return c.file == metadataFile }) {
			how = "it is read as a part, among the others"
		}
	}
	f := region.Finding{Code: "redfile.metadata.other", Severity: region.Error, Part: r.Part, At: r.f.metaAt,
		Path: at, Rows: [2]int64{-1, -1}, Lost: -1,
		Message: metadataFile + " has the row groups in itself that it should name: " + how}
	r.findings = append(r.findings, f)
	return out, nil
}

// namesOthers reports whether a file called so has no row group of its own, but names those of other files.
func namesOthers(f *file, called string) bool {
	others := false
	for _, g := range f.meta.groups {
		for _, c := range g.columns {
			if c.file == "" {
				return false
			}
			others = others || path.Base(c.file) != called
		}
	}
	return others
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
	if len(out.meta.groups) > 0 && (!p.schema.Equal(out.schema) ||
		string(p.meta.marker()) != string(out.meta.marker())) {
		r.Rows("redfile.rows.lost", p.at, [2]int64{-1, -1}, -1,
			"%s is of another table than the parts before it: it is left out", name)
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

// strange is an error if none of the parts that the metadata of a split table names is what it takes it for,
// and some are others': it is that of another table.
func (r *rescue) strange(o format.OpenOptions) error {
	var other error
	seen := map[string]bool{}
	for _, g := range r.f.meta.groups {
		for _, c := range g.columns {
			if c.file == "" || seen[c.file] {
				continue
			}
			seen[c.file] = true
			p, err := openTarget(r.ctx, format.Target{Tree: r.f.tree,
				Name: path.Join(path.Dir(r.f.at.Object), c.file)}, o)
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
	return fault.Corruptf(r.f.metaAt, "file_metadata.row_groups",
		"this is the metadata of another table than the parts: %v", other)
}

// takenFor holds a part, called so, against the metadata of the table: by its marker, or, without any, by its
// own metadata. known: it says what it is.
func (r *rescue) takenFor(p *file, called string) (known bool, err error) {
	marker := r.f.meta.marker()
	if marker == nil {
		return true, r.f.agrees(r.ctx, p.content, called, "file_metadata")
	}
	s, at := p.firstBlock(r.ctx)
	if s != nil && !bytes.Equal(s.marker, marker) {
		return true, fault.Corruptf(at, "sync.marker", "%q begins with the marker %x", called, s.marker)
	}
	return s != nil, nil
}
