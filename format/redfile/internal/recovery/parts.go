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

// fromParts makes a reader of the parts in the directory of a split table whose metadata is lost. Each part is a
// complete RedFile with one row group or all of them, and the order of names is the order of the parts. It returns nil
// if there are none.
func (r *recoverer) fromParts(o format.OpenOptions, opts layout.ReadOptions) (*table.File, error) {
	names, err := r.parts(o)
	if err != nil {
		return nil, err
	}
	out := table.New(r.f.Tree, r.f.Src, r.f.At, o, opts)
	out.Stamp, out.FromParts, out.Recovering = r.f.Stamp, true, true
	marker, sure := r.tableMarker(names)
	begun := map[string]string{} // names of parts by the marker and first row group of their sync blocks
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
					"no row group was found in the part %s: it is left out", name)
				continue
			}
		}
		s, at := p.FirstBlock(r.ctx)
		p.Close()
		if isTableMetadata(p, name) {
			r.Rows("redfile.rows.lost", p.At, [2]int64{-1, -1}, -1,
				"%s is not a part, but names other files as a table's metadata does: it is left out", name)
			continue
		}
		if own := p.Footer.Marker(); marker != nil && own != nil && !bytes.Equal(own, marker) {
			r.leaveOutPart(p, name, sure)
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
	if err := out.ResolveSchema(r.ctx); err != nil {
		return nil, err
	}
	return out, r.count(out)
}

// tableMarker returns the marker of the table to recover: one that remains in the damaged metadata, otherwise the one
// that most parts have; nil if no part has one. sure reports that no other marker occurs in as many parts. The file in
// the place of the metadata does not count if it may be a part itself.
func (r *recoverer) tableMarker(names []string) (marker []byte, sure bool) {
	var rest []byte
	if !r.standsIn && r.f.At.Len <= r.f.Limits.Metadata {
		rest = make([]byte, r.f.At.Len)
		if format.ReadFull(r.ctx, r.f.Src, r.f.At, "", rest) != nil {
			rest = nil
		}
	}
	votes, maxVotes := map[string]int{}, 0
	for _, name := range names {
		m := r.f.MarkerOfObject(r.ctx, r.sibling(name).Name)
		if m == nil || name == layout.MetadataFile {
			continue
		}
		if bytes.Contains(rest, fmt.Appendf(nil, "%x", m)) {
			return m, true
		}
		votes[string(m)]++
		switch n := votes[string(m)]; {
		case n > maxVotes:
			marker, maxVotes, sure = m, n, true
		case n == maxVotes:
			sure = false
		}
	}
	return marker, sure
}

// leaveOutPart reports a part whose marker differs from the table's; unless sure is set, it may be the one that
// belongs.
func (r *recoverer) leaveOutPart(p *table.File, name string, sure bool) {
	if !sure {
		r.Report("redfile.part.other", p.At, "", "%s is of another table than the parts beside it, and nothing says "+
			"which of them are of this: it is left out", name)
		return
	}
	r.Rows("redfile.rows.lost", p.At, [2]int64{-1, -1}, -1, "%s is of another table: it is left out", name)
}

// sibling returns the object with the given name in the directory of the table.
func (r *recoverer) sibling(name string) format.Target {
	return format.Target{Tree: r.f.Tree, Name: path.Join(path.Dir(r.f.At.Object), name)}
}

// parts returns the names of the parts, in order. A part that has replaced the metadata file comes where the metadata
// is stored under the name of a part, or else where a part is missing; it comes after the last part only if its sync
// block shows that it is a part. It is left out if it is a copy of a part.
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
	if !r.standsIn {
		return names, nil
	}
	gap := len(names)
	for i, name := range slices.Backward(names) {
		if p, err := table.OpenTarget(r.ctx, r.sibling(name), o); err == nil {
			others := isTableMetadata(p, name)
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
			return names, nil // no part is missing, so it may be a copy of a part that was damaged
		}
	}
	return slices.Insert(names, gap, layout.MetadataFile), nil
}

// isCopy reports whether a part has the same bytes as the file that is recovered.
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

// withStandIn makes a reader of the parts of a table and of the part that has replaced its metadata file; nil if there
// are no other parts.
func (r *recoverer) withStandIn(o format.OpenOptions, opts layout.ReadOptions) (*table.File, error) {
	at, before := r.f.OwnGroupPath(), len(r.findings)
	r.standsIn = true
	out, err := r.fromParts(o, opts)
	r.standsIn = false
	if err != nil && !errors.Is(err, fault.Corrupt) {
		return nil, err
	}
	otherTable := err == nil && out != nil && out.Footer.Marker() != nil &&
		!bytes.Equal(out.Footer.Marker(), r.f.Footer.Marker())
	if err != nil || out == nil || len(out.Footer.Groups) <= len(r.f.Footer.Groups) && !otherTable {
		r.findings = r.findings[:before]
		return nil, nil
	}
	how := "the parts are read without it"
	for _, g := range out.Footer.Groups {
		if slices.ContainsFunc(g.Columns, func(c layout.ColumnChunk) bool { return c.File == layout.MetadataFile }) {
			how = "it is read as a part, among the others"
		}
	}
	r.Report("redfile.metadata.other", r.f.MetaAt, at, "%s has row groups of its own instead of naming the parts: %s",
		layout.MetadataFile, how)
	return out, nil
}

// isTableMetadata reports whether a file of that name has no chunk of its own but names those of other files.
func isTableMetadata(f *table.File, filePath string) bool {
	others := false
	for _, g := range f.Footer.Groups {
		for _, c := range g.Columns {
			if c.File == "" {
				return false
			}
			others = others || path.Base(c.File) != filePath
		}
	}
	return others
}

// recoverPart recovers a part whose own metadata is damaged; nil if no row group remains.
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

// add appends the row groups of a part to out if its schema and marker match those of the preceding parts.
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

// checkParts returns an error if none of the parts named by the metadata of a split table is the one it describes, and
// at least one belongs to another table: then the metadata is that of another table.
func (r *recoverer) checkParts(o format.OpenOptions) error {
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
				if r.containsMarker(c.File, marker) {
					return nil
				}
				continue
			}
			known, err := r.matchPart(p, c.File)
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
	r.undecided = marker != nil && !r.severalMarkers(seen)
	return fault.Corruptf(r.f.MetaAt, "file_metadata.row_groups",
		"this is the metadata of another table than the parts: %v", other)
}

// containsMarker reports whether the first bytes of a part that cannot be opened contain the marker of the table.
func (r *recoverer) containsMarker(name string, marker []byte) bool {
	const headLen = 256 // enough for the marker in a sync block at the beginning
	if marker == nil {
		return false
	}
	src, err := r.f.Tree.Open(r.ctx, r.sibling(name).Name)
	if err != nil {
		return false
	}
	defer src.Close()
	head := make([]byte, min(headLen, src.Size()))
	return format.ReadFull(r.ctx, src, fault.Span{Object: name, Len: int64(len(head))}, "", head) == nil &&
		bytes.Contains(head, marker)
}

// severalMarkers reports whether more than one of the parts has a marker.
func (r *recoverer) severalMarkers(names map[string]bool) bool {
	n := 0
	for name := range names {
		if r.f.MarkerOfObject(r.ctx, r.sibling(name).Name) != nil {
			n++
		}
	}
	return n > 1
}

// matchPart compares a part with the metadata of the table, which names it filePath: by the marker or, if there is
// none, by the part's own metadata. known reports that the part contained something to compare.
func (r *recoverer) matchPart(p *table.File, filePath string) (known bool, err error) {
	marker := r.f.Footer.Marker()
	if marker == nil {
		return true, r.f.CheckPartChunks(r.ctx, p.File, filePath, "file_metadata")
	}
	own := r.f.MarkerOfObject(r.ctx, p.At.Object)
	if own != nil && !bytes.Equal(own, marker) {
		return true, fault.Corruptf(p.At, "sync.marker", "%q has the marker %x", filePath, own)
	}
	return own != nil, nil
}
