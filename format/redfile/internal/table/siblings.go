package table

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/check"
	"stoa/internal/parts"
	"stoa/region"
	"stoa/store"
)

// maxGap is the maximum number of successive missing parts that are searched for an existing one.
const maxGap = 64

// Findings returns the findings made while opening: an unfinished file, and missing or wrong parts of a split table.
func (f *File) Findings() []region.Finding { return f.Reported }

// CheckTable reports signs that the table is more than this file: the writer did not finish, the metadata of a split
// table is not its own, or parts are missing.
func (f *File) CheckTable(ctx context.Context) {
	if f.Footer.More() >= 0 {
		f.report("redfile.unfinished", f.MetaAt, "", "the writer did not finish: this is metadata so far, of %d row "+
			"groups; what was after it is missing", len(f.Footer.Groups))
	}
	f.reportOwnGroups()
	f.reportUnread(ctx, f.reportUnnamedPart(ctx))
	f.checkSiblings(ctx)
}

// reportUnnamedPart reports a part beside the metadata of a split table that the metadata does not name. It does so if
// the part belongs to the same table, or to the table of a part that is named, or if a named part is missing. In these
// cases the metadata is older than the parts, or that of another table, and the rows of the part are not read. It
// returns the name of the part, "" if there is none. A part of another table is left to reportUnread.
func (f *File) reportUnnamedPart(ctx context.Context) string {
	if f.NoVerify || path.Base(f.At.Object) != layout.MetadataFile {
		return ""
	}
	dir, called, missing := path.Dir(f.At.Object), map[string]bool{"": true}, ""
	exists := func(name string) bool {
		info, err := f.Tree.Stat(ctx, path.Join(dir, name))
		return err == nil && !info.Dir
	}
	for _, g := range f.Footer.Groups {
		for _, c := range g.Columns {
			if !called[c.File] && !exists(c.File) {
				missing = c.File
			}
			called[c.File] = true
		}
	}
	const where = "file_metadata.row_groups"
	for i := 0; i < maxGap && missing != ""; i++ {
		if name := layout.PartName(i); !called[name] && exists(name) {
			f.report("redfile.part.other", f.MetaAt, where, "%s, which it names, is missing, and "+
				"%s is there, which it does not name: it is older than the parts, or another table's", missing, name)
			return name
		}
	}
	next := layout.PartName(len(f.Footer.Groups)) // parts are named after their first row group
	if missing != "" || called[next] || len(called) == 1 || !exists(next) {
		return ""
	}
	marker := f.MarkerOfObject(format.Glance(ctx), path.Join(dir, next))
	if marker == nil {
		return ""
	}
	if bytes.Equal(marker, f.Footer.Marker()) {
		f.report("redfile.part.other", f.MetaAt, where, "%s is of this table, and it does not name it: it is older "+
			"than the part, whose rows are not read", next)
		return next
	}
	for i := range f.Footer.Groups {
		name := layout.PartName(i)
		if called[name] && bytes.Equal(marker, f.MarkerOfObject(ctx, path.Join(dir, name))) {
			f.report("redfile.part.other", f.MetaAt, where, "it names %s and not %s, and the two are of one table: it "+
				"is older than these parts, or another table's, and the rows of %[2]s are not read", name, next)
			return next
		}
	}
	return ""
}

// reportUnread reports the RedFiles beside the metadata of a split table that it does not name, except told, which is
// reported. If the metadata is not that of a split table, that is reported instead.
func (f *File) reportUnread(ctx context.Context, told string) {
	if path.Base(f.At.Object) != layout.MetadataFile || f.At.Off != 0 || f.OwnGroupPath() != "" {
		return
	}
	called := map[string]bool{layout.MetadataFile: true, told: true}
	for _, g := range f.Footer.Groups {
		for _, c := range g.Columns {
			called[path.Clean(c.File)] = true
		}
	}
	f.Reported = append(f.Reported, parts.Unread(ctx, f.Tree, path.Dir(f.At.Object),
		func(base string) bool { return called[base] },
		func(ctx context.Context, info store.Info) string {
			m, err := container.Probe(ctx, format.Target{Tree: f.Tree, Name: info.Name})
			if err == nil && m == format.No {
				return ""
			}
			return "a RedFile"
		})...)
}

// CheckChunks reports the first chunk whose metadata, as far as it has been read, contradicts the schema: one of the
// two is damaged, and such chunks cannot be read.
func (f *File) CheckChunks() {
	for g := range f.Footer.Groups {
		for col := range f.Footer.Groups[g].Columns {
			m := f.KnownMeta(g, col)
			if m == nil || col >= len(f.Leaves) {
				continue
			}
			var e *fault.Error
			if errors.As(f.Contradiction(m, g, col), &e) {
				f.report("redfile.column.damaged", e.At, e.Path, "%s", e.Reason)
				return
			}
		}
	}
}

// CheckParts reports parts named by the metadata that are missing, belong to another table, or end before their chunks
// do. Those chunks are lost.
func (f *File) CheckParts(ctx context.Context) {
	sizes := map[string]int64{} // negative if reported
	for g := range f.Footer.Groups {
		for col := range f.Footer.Groups[g].Columns {
			c := &f.Footer.Groups[g].Columns[col]
			if c.File == "" || f.FromParts {
				continue
			}
			size, seen := sizes[c.File]
			if !seen {
				size = f.partSize(ctx, g, col)
			}
			var e *fault.Error
			if size >= 0 && errors.As(f.EndsEarly(g, col, size), &e) {
				f.report("redfile.column.damaged", e.At, e.Path, "%s", e.Reason)
				size = -1
			}
			sizes[c.File] = size
		}
	}
}

// EndsEarly returns an error if the file of a chunk, of size bytes, ends before the metadata after its pages begins.
func (f *File) EndsEarly(group, col int, size int64) error {
	c := &f.Footer.Groups[group].Columns[col]
	if size > c.Offset || c.Meta != nil && c.Meta.Values == 0 { // without values, nothing of it need be there
		return nil
	}
	return fault.Corruptf(f.MetaAt, layout.ChunkPath(group, col)+".file_offset",
		"expected a file of %d bytes or more, %s has %d", c.Offset+1, c.File, size)
}

// partSize returns the size of the file of a chunk. It returns -1 if that is unknown, or, after a report, if the file
// is missing or belongs to another table.
func (f *File) partSize(ctx context.Context, group, col int) int64 {
	_, at, err := f.Place(ctx, group, col)
	if err == nil {
		return at.Len
	}
	var e *fault.Error
	if !errors.Is(err, fault.Corrupt) || !errors.As(err, &e) {
		return -1
	}
	code := "redfile.part.other"
	if name, err := f.ObjectOf(f.Footer.Groups[group].Columns[col].File); err == nil {
		if _, err := f.Tree.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
			code = "redfile.part.missing"
		}
	}
	f.report(code, e.At, e.Path, "%s", e.Reason)
	return -1
}

// reportOwnGroups reports a _metadata.red that has pages of its own.
func (f *File) reportOwnGroups() {
	if at := f.OwnGroupPath(); at != "" {
		f.report("redfile.metadata.other", f.MetaAt, at, "%s has row groups of its own instead of naming the parts: a "+
			"part of the table, or another file, is in the place of the table's metadata, and other parts are not read",
			layout.MetadataFile)
	}
}

// checkStandIn returns an error if the file has replaced a split table's metadata, and the markers of all parts beside
// it are those of another table: it has no rows of that table.
func (f *File) checkStandIn(ctx context.Context) error {
	at, own := f.OwnGroupPath(), f.Footer.Marker()
	if at == "" || own == nil || f.NoVerify {
		return nil
	}
	dir, other := path.Dir(f.At.Object), ""
	for i := range maxGap {
		m := f.MarkerOfObject(ctx, path.Join(dir, layout.PartName(i)))
		switch {
		case bytes.Equal(m, own):
			return nil
		case m != nil && other == "":
			other = layout.PartName(i)
		}
	}
	if other == "" {
		return ctx.Err()
	}
	return fault.Corruptf(f.MetaAt, at, "%s has row groups of its own instead of naming the parts, and is of another "+
		"table than %s and all other parts", layout.MetadataFile, other)
}

// MarkerOfObject returns the marker of another file from its first sync block or, if that is damaged, from metadata
// with a checksum; nil if it has neither.
func (f *File) MarkerOfObject(ctx context.Context, name string) []byte {
	if info, err := f.Tree.Stat(ctx, name); err != nil || info.Dir {
		return nil
	}
	src, err := f.Tree.Open(ctx, name)
	if err != nil {
		return nil
	}
	defer src.Close()
	other := container.New(f.Tree, src, fault.Span{Object: name, Len: src.Size()}, format.OpenOptions{Limits: f.Limits},
		f.Opts)
	if s, _ := other.FirstBlock(ctx); s != nil {
		return s.Marker
	}
	if err := other.Open(ctx, nil); err != nil || !other.Footer.HasCRC {
		return nil
	}
	return other.Footer.Marker()
}

// OwnGroupPath returns the path of the first chunk that a _metadata.red contains itself; "" if it contains none, as the
// metadata of a split table should.
func (f *File) OwnGroupPath() string {
	if path.Base(f.At.Object) != layout.MetadataFile || f.At.Off != 0 {
		return ""
	}
	for g, group := range f.Footer.Groups {
		for col, c := range group.Columns {
			if c.File == "" {
				return layout.ChunkPath(g, col) + ".file_path"
			}
		}
	}
	return ""
}

// checkSiblings checks whether the parts before and after this one exist. It applies if _metadata.red, which lists
// them, is missing: each part is a complete RedFile, and only its sync block states its position in the table. If there
// are no other parts, this one was copied, and nothing is reported.
func (f *File) checkSiblings(ctx context.Context) {
	dir, name := path.Split(f.At.Object)
	exists := func(name string) bool {
		info, err := f.Tree.Stat(ctx, path.Join(dir, name))
		return err == nil && !info.Dir
	}
	if f.NoVerify || f.At.Off != 0 || len(f.Footer.Groups) == 0 || len(name) < len("part-0.red") ||
		name[:5] != "part-" || exists(layout.MetadataFile) {
		return
	}
	s, at := f.FirstBlock(ctx)
	if s == nil || s.Groups < 0 {
		return
	}
	if own := layout.PartName(int(s.Groups)); name != own {
		if exists(own) && f.sameTable(ctx, path.Join(dir, own), s) {
			f.report("redfile.part.repeated", at, "", "the part begins with row group %d of its table, as %s does, "+
				"and %s is missing: its rows are there twice, and those of a part that it replaces are not", s.Groups,
				own, layout.MetadataFile)
		}
		return
	}
	if s.Groups == 0 {
		return
	}
	first, before := int(s.Groups), int(s.Groups)-1
	for before >= 0 && first-before <= maxGap && !exists(layout.PartName(before)) {
		before--
	}
	found := before >= 0 && first-before <= maxGap
	next := first + len(f.Footer.Groups)
	after := exists(layout.PartName(next))
	if !found && !after {
		return
	}
	if found && !f.sameMarker(ctx, path.Join(dir, layout.PartName(before)), s) {
		f.report("redfile.part.other", at, "", "the marker of the part is not that of %s: one of them is another "+
			"table's, and %s, which would tell which, is missing", layout.PartName(before), layout.MetadataFile)
	}
	if before < first-1 {
		f.report("redfile.part.missing", at, "",
			"the part begins with row group %d of its table: %s, before it, is missing, and so is %s", first,
			layout.PartName(first-1), layout.MetadataFile)
	}
	if !after {
		f.report("redfile.parts.unlisted", at, "", "%s is missing: the table may have had parts after %s",
			layout.MetadataFile, name)
	}
}

// sameTable reports whether another part has the same marker as s and begins with the same row group.
func (f *File) sameTable(ctx context.Context, name string, s *layout.SyncBlock) bool {
	o := f.blockOf(ctx, name)
	return o != nil && bytes.Equal(o.Marker, s.Marker) && o.Groups == s.Groups
}

// sameMarker reports whether another part has the same marker as s, or none that can be read.
func (f *File) sameMarker(ctx context.Context, name string, s *layout.SyncBlock) bool {
	o := f.blockOf(ctx, name)
	return o == nil || bytes.Equal(o.Marker, s.Marker)
}

// blockOf returns the first sync block of another part; nil if there is none or it is damaged.
func (f *File) blockOf(ctx context.Context, name string) *layout.SyncBlock {
	src, err := f.Tree.Open(ctx, name)
	if err != nil {
		return nil
	}
	defer src.Close()
	other := container.New(f.Tree, src, fault.Span{Object: name, Len: src.Size()}, format.OpenOptions{Limits: f.Limits},
		f.Opts)
	s, _ := other.FirstBlock(ctx)
	return s
}

// report adds a finding about the table; path is in the file's metadata.
func (f *File) report(code string, at fault.Span, path, format string, args ...any) {
	check.Collect(context.Background(), f.At.Object, layout.Codes, &f.Reported).Report(code, at, path, format, args...)
}

// RowsIn returns the total number of rows of the row groups in an object; -1 if unknown.
func (f *File) RowsIn(ctx context.Context, object string) int64 {
	total := int64(0)
	for g := range f.Footer.Groups {
		cols := f.Footer.Groups[g].Columns
		if len(cols) == 0 {
			continue
		}
		if name, err := f.ObjectOf(cols[0].File); err != nil || name != object {
			continue
		}
		rows, err := f.RowsOf(ctx, g)
		if err != nil || rows < 0 {
			return -1
		}
		total += rows
	}
	return total
}
