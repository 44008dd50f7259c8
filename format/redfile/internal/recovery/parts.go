package recovery

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/table"
)

// gather makes a reader of the parts that lie beside the metadata of a split table, where that is lost: each is
// a whole file with one row group, or with all, and their names are in order. nil if there are none.
func (r *recoverer) gather(o format.OpenOptions, opts layout.ReadOptions) (*table.File, error) {
	names, err := r.parts(o)
	if err != nil {
		return nil, err
	}
	out := table.New(r.f.Tree, r.f.Src, r.f.At, o, opts)
	out.Stamp, out.Gathered, out.Recovering = r.f.Stamp, true, true
	marker, sure := r.tableMarker(names)
	begun := map[string]string{} // parts by what their sync block says
	for _, name := range names {
		tg := r.sibling(name)
		p, err := table.OpenTarget(r.ctx, tg, o)
		if err != nil {
			if !errors.Is(err, fault.Corrupt) {
				return nil, err
			}
			if name == layout.MetadataFile { // it is damaged, too
				continue
			}
			if p = r.recoverPart(tg.Name, o); p == nil {
				size, _ := r.f.Tree.Stat(r.ctx, tg.Name)
				r.Rows("redfile.rows.lost", fault.Span{Object: tg.Name, Len: size.Size}, [2]int64{-1, -1}, -1,
					"nothing whole was found in the part %s: it is left out", name)
				continue
			}
		}
		s, at := p.FirstBlock(r.ctx)
		p.Close()
		if namesOthers(p, name) {
			r.Rows("redfile.rows.lost", p.At, [2]int64{-1, -1}, -1,
				"%s is no part, but names others as a table's metadata does: it is left out", name)
			continue
		}
		if own := p.Footer.Marker(); marker != nil && own != nil && !bytes.Equal(own, marker) {
			r.leaveOut(p, name, sure)
			continue
		}
		if s != nil {
			key := string(s.Marker) + layout.PartName(int(s.Groups))
			if other := begun[key]; other != "" {
				r.Rows("redfile.part.repeated", at, [2]int64{-1, -1}, 0,
					"%s begins with row group %d of its table, as %s does: it is left out", name, s.Groups, other)
				continue
			}
			begun[key] = name
		}
		r.add(out, p, name)
	}
	if len(out.Footer.Groups) == 0 {
		return nil, nil
	}
	out.MetaAt = r.f.At.Sub(r.f.At.Len, 0)
	out.Footer.HasCRC = false
	if err := out.Learn(r.ctx); err != nil {
		return nil, err
	}
	return out, r.count(out)
}

// tableMarker is the marker of the table that the parts are to be put together to: the one that still stands in what
// is left of the metadata, else the one that most parts have. sure: these do not have several as often. nil: none has
// any. What stands in the place of the metadata is asked only where there is nothing else.
func (r *recoverer) tableMarker(names []string) (marker []byte, sure bool) {
	var rest []byte
	if !r.astray && r.f.At.Len <= r.f.Limits.Metadata {
		rest = make([]byte, r.f.At.Len)
		if format.ReadFull(r.ctx, r.f.Src, r.f.At, "", rest) != nil {
			rest = nil
		}
	}
	votes, most := map[string]int{}, 0
	for _, name := range names {
		m := r.f.MarkerOf(r.ctx, r.sibling(name).Name)
		if m == nil || name == layout.MetadataFile {
			continue
		}
		if bytes.Contains(rest, fmt.Appendf(nil, "%x", m)) {
			return m, true
		}
		votes[string(m)]++
		switch n := votes[string(m)]; {
		case n > most:
			marker, most, sure = m, n, true
		case n == most:
			sure = false
		}
	}
	return marker, sure
}

// leaveOut reports a part that is of another table; or, if that is not sure, may be the one that is of this.
func (r *recoverer) leaveOut(p *table.File, name string, sure bool) {
	if !sure {
		r.Report("redfile.part.other", p.At, "", "%s is of another table than the parts beside it, and nothing says "+
			"which of them are of this: it is left out", name)
		return
	}
	r.Rows("redfile.rows.lost", p.At, [2]int64{-1, -1}, -1, "%s is of another table: it is left out", name)
}

// sibling is what is called name in the directory of the table.
func (r *recoverer) sibling(name string) format.Target {
	return format.Target{Tree: r.f.Tree, Name: path.Join(path.Dir(r.f.At.Object), name)}
}

// parts are the names of the parts, in order. A part that stands in the place of the metadata is where that
// stands as a part, or where a part is missing; after the last only its sync block can say that it is one. It
// is none of them if it is a copy of one.
func (r *recoverer) parts(o format.OpenOptions) (names []string, err error) {
	for info, err := range r.f.Tree.List(r.ctx, path.Dir(r.f.At.Object)) {
		if err != nil {
			return nil, err
		}
		name := path.Base(info.Name)
		if !info.Dir && (name == layout.DataFile || strings.HasPrefix(name, "part-") &&
			strings.HasSuffix(name, ".red")) {
			names = append(names, name)
		}
	}
	if !r.astray {
		return names, nil
	}
	gap := len(names)
	for i, name := range slices.Backward(names) {
		if p, err := table.OpenTarget(r.ctx, r.sibling(name), o); err == nil {
			others := namesOthers(p, name)
			p.Close()
			if others {
				names[i] = layout.MetadataFile
				return names, nil
			}
		}
		if copied, err := r.isCopy(name); copied || err != nil {
			return names, err
		}
		if name != layout.PartName(i) {
			gap = i
		}
	}
	if gap == len(names) {
		if s, _ := r.f.FirstBlock(r.ctx); s == nil {
			return names, nil // a part that none of the others is missing: it may be a copy that has changed
		}
	}
	return slices.Insert(names, gap, layout.MetadataFile), nil
}

// isCopy reports whether the file called name has the bytes of the one that is recovered.
func (r *recoverer) isCopy(name string) (bool, error) {
	src, err := r.f.Tree.Open(r.ctx, r.sibling(name).Name)
	if err != nil {
		return false, err
	}
	defer src.Close()
	if src.Size() != r.f.At.Len {
		return false, nil
	}
	var a, b [64 << 10]byte
	at := fault.Span{Object: r.sibling(name).Name, Len: src.Size()}
	for off := int64(0); off < at.Len; off += int64(len(a)) {
		n := min(int64(len(a)), at.Len-off)
		if err := format.ReadFull(r.ctx, r.f.Src, r.f.At.Sub(off, n), "", a[:n]); err != nil {
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
func (r *recoverer) among(o format.OpenOptions, opts layout.ReadOptions) (*table.File, error) {
	at, before := r.f.OwnGroups(), len(r.findings)
	r.astray = true
	out, err := r.gather(o, opts)
	r.astray = false
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return nil, err
	}
	strange := err == nil && out != nil && out.Footer.Marker() != nil &&
		!bytes.Equal(out.Footer.Marker(), r.f.Footer.Marker())
	if err != nil || out == nil || len(out.Footer.Groups) <= len(r.f.Footer.Groups) && !strange {
		r.findings = r.findings[:before]
		return nil, nil
	}
	how := "the parts are read without it"
	for _, g := range out.Footer.Groups {
		if slices.ContainsFunc(g.Columns, func(c layout.ColumnChunk) bool { return c.File == layout.MetadataFile }) {
			how = "it is read as a part, among the others"
		}
	}
	r.Report("redfile.metadata.other", r.f.MetaAt, at, "%s has the row groups in itself that it should name: %s",
		layout.MetadataFile, how)
	return out, nil
}

// namesOthers reports whether a file called so has no row group of its own, but names those of other files.
func namesOthers(f *table.File, called string) bool {
	others := false
	for _, g := range f.Footer.Groups {
		for _, c := range g.Columns {
			if c.File == "" {
				return false
			}
			others = others || path.Base(c.File) != called
		}
	}
	return others
}

// recoverPart recovers a part whose own metadata is damaged; nil if it has no row group that is whole.
func (r *recoverer) recoverPart(name string, o format.OpenOptions) *table.File {
	back, found, err := Recover(r.ctx, format.Target{Tree: r.f.Tree, Name: name}, o)
	r.findings = append(r.findings, found...)
	if err != nil {
		return nil
	}
	p := back.(*table.File)
	if len(p.Footer.Groups) == 0 {
		p.Close()
		return nil
	}
	return p
}

// add adds the row groups of a part, if it is one of the same table as the first.
func (r *recoverer) add(out, p *table.File, name string) {
	if len(out.Footer.Groups) > 0 && (!p.Shown.Equal(out.Shown) ||
		string(p.Footer.Marker()) != string(out.Footer.Marker())) {
		r.Rows("redfile.rows.lost", p.At, [2]int64{-1, -1}, -1,
			"%s is of another table than the parts before it: it is left out", name)
		return
	}
	groups := out.Footer.Groups
	if len(groups) == 0 {
		out.Footer, out.Shown = p.Footer, p.Shown
		out.Footer.Groups, out.Footer.Rows = nil, -1
	}
	for k, err := range p.Lost {
		if out.Lost == nil {
			out.Lost = map[container.ChunkKey]error{}
		}
		out.Lost[container.ChunkKey{Group: k.Group + len(groups), Col: k.Col}] = err
	}
	for _, g := range p.Footer.Groups {
		for i := range g.Columns {
			g.Columns[i].File = name
		}
		groups = append(groups, g)
	}
	out.Footer.Groups = groups
}

// strange is an error if none of the parts that the metadata of a split table names is what it takes it for,
// and some are others': it is that of another table.
func (r *recoverer) strange(o format.OpenOptions) error {
	var other error
	seen, marker := map[string]bool{}, r.f.Footer.Marker()
	for _, g := range r.f.Footer.Groups {
		for _, c := range g.Columns {
			if c.File == "" || seen[c.File] {
				continue
			}
			seen[c.File] = true
			p, err := table.OpenTarget(r.ctx, r.sibling(c.File), o)
			if err != nil {
				if r.mentions(c.File, marker) {
					return nil
				}
				continue
			}
			known, err := r.takenFor(p, c.File)
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
	r.undecided = marker != nil && !r.several(seen)
	return fault.Corruptf(r.f.MetaAt, "file_metadata.row_groups",
		"this is the metadata of another table than the parts: %v", other)
}

// mentions reports whether what is left of a part begins with the marker, though nothing proves that it is one.
func (r *recoverer) mentions(name string, marker []byte) bool {
	const most = 256
	if marker == nil {
		return false
	}
	src, err := r.f.Tree.Open(r.ctx, r.sibling(name).Name)
	if err != nil {
		return false
	}
	defer src.Close()
	head := make([]byte, min(most, src.Size()))
	return format.ReadFull(r.ctx, src, fault.Span{Object: name, Len: int64(len(head))}, "", head) == nil &&
		bytes.Contains(head, marker)
}

// several reports whether more than one of the parts says of which table it is.
func (r *recoverer) several(names map[string]bool) bool {
	n := 0
	for name := range names {
		if r.f.MarkerOf(r.ctx, r.sibling(name).Name) != nil {
			n++
		}
	}
	return n > 1
}

// takenFor compares a part, called so, with the metadata of the table: by its marker, or, without any, by its
// own metadata. known: it says what it is.
func (r *recoverer) takenFor(p *table.File, called string) (known bool, err error) {
	marker := r.f.Footer.Marker()
	if marker == nil {
		return true, r.f.Agrees(r.ctx, p.File, called, "file_metadata")
	}
	own := r.f.MarkerOf(r.ctx, p.At.Object)
	if own != nil && !bytes.Equal(own, marker) {
		return true, fault.Corruptf(p.At, "sync.marker", "%q has the marker %x", called, own)
	}
	return own != nil, nil
}
