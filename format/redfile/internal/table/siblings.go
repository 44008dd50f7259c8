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
	"stoa/region"
)

// maxGap is how many parts in a row are looked for; a longer gap is reported as if there were nothing before it.
const maxGap = 64

// Findings reports what is missing: the rest of an unfinished file, and the parts of a split table around this one.
func (f *File) Findings() []region.Finding { return f.Missing }

// LookAround notes that there should be more of the table than the file has.
func (f *File) LookAround(ctx context.Context) {
	if f.Footer.More() >= 0 {
		f.miss("redfile.unfinished", f.MetaAt, "", "the writer did not finish: this metadata, of %d row groups, is "+
			"one of those between row groups; whatever was after it is missing", len(f.Footer.Groups))
	}
	f.standsIn()
	f.unnamed(ctx)
	f.checkSiblings(ctx)
}

// unnamed reports a part that lies beside the metadata of a split table and is not named by it, where one is missing
// that is: then it is of an older state than the parts, or another table's.
func (f *File) unnamed(ctx context.Context) {
	dir, called, missing := path.Dir(f.At.Object), map[string]bool{"": true}, ""
	if f.NoVerify || path.Base(f.At.Object) != layout.MetadataFile {
		return
	}
	here := func(name string) bool {
		info, err := f.Tree.Stat(ctx, path.Join(dir, name))
		return err == nil && !info.Dir
	}
	for _, g := range f.Footer.Groups {
		for _, c := range g.Columns {
			if !called[c.File] && !here(c.File) {
				missing = c.File
			}
			called[c.File] = true
		}
	}
	for i := 0; i < maxGap && missing != ""; i++ {
		if name := layout.PartName(i); !called[name] && here(name) {
			f.miss("redfile.part.other", f.MetaAt, "file_metadata.row_groups", "%s, which it names, is missing, and "+
				"%s lies there, which it does not: it is older than the parts, or another table's", missing, name)
			return
		}
	}
}

// Contradicts reports a column whose chunks are not, by the metadata of the file, what its schema says: one of the
// two is damaged, and such chunks cannot be read.
func (f *File) Contradicts() {
	for g := range f.Footer.Groups {
		for col, c := range f.Footer.Groups[g].Columns {
			if c.Meta == nil || col >= len(f.Leaves) {
				continue
			}
			var e *fault.Error
			if errors.As(f.CheckMeta(c.Meta, &f.Leaves[col], g, col), &e) {
				f.miss("redfile.column.damaged", e.At, e.Path, "%s", e.Reason)
				return
			}
		}
	}
}

// PartsBelong reports the parts that the metadata names and that are not there, or are others: what it says of
// them, their rows first, is not what can be read. Which chunks are lost shows when they are read.
func (f *File) PartsBelong(ctx context.Context) {
	seen := map[string]bool{"": true}
	for g := range f.Footer.Groups {
		for col := range f.Footer.Groups[g].Columns {
			called := f.Footer.Groups[g].Columns[col].File
			if seen[called] || f.Gathered {
				continue
			}
			seen[called] = true
			_, _, err := f.Place(ctx, g, col)
			var e *fault.Error
			if !errors.Is(err, fault.Corrupt) || !errors.As(err, &e) {
				continue
			}
			code := "redfile.part.other"
			if name, err := f.Inside(called); err == nil {
				if _, err := f.Tree.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
					code = "redfile.part.missing"
				}
			}
			f.miss(code, e.At, e.Path, "%s", e.Reason)
		}
	}
}

// standsIn reports a _metadata.red that has pages of its own.
func (f *File) standsIn() {
	if at := f.OwnGroups(); at != "" {
		f.miss("redfile.metadata.other", f.MetaAt, at, "%s has the row groups in itself that it should name: a part "+
			"of the table, or another file, stands in the place of the table's metadata, and other parts are not read",
			layout.MetadataFile)
	}
}

// strayed is an error if the file stands in the place of a split table's metadata, and the parts beside it are all of
// another table, as their markers say: its rows are none of that table.
func (f *File) strayed(ctx context.Context) error {
	at, own := f.OwnGroups(), f.Footer.Marker()
	if at == "" || own == nil || f.NoVerify {
		return nil
	}
	dir, other := path.Dir(f.At.Object), ""
	for i := range maxGap {
		m := f.MarkerOf(ctx, path.Join(dir, layout.PartName(i)))
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
	return fault.Corruptf(f.MetaAt, at, "%s has the row groups in itself that it should name, and is of another table "+
		"than %s and all parts beside it", layout.MetadataFile, other)
}

// MarkerOf is the marker of another file, as its first sync block says, or its own metadata if there is none that is
// whole; nil: nobody knows.
func (f *File) MarkerOf(ctx context.Context, name string) []byte {
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

// OwnGroups is where a _metadata.red says that it has pages of its own; "" if it does not. That of a split
// table has none: its row groups all lie in other files.
func (f *File) OwnGroups() string {
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

// checkSiblings checks whether the parts before and after this one are there. _metadata.red would say, so it is asked
// only where that is gone: each part is a whole file then, and only its sync block says that there is more of
// the table. A part that lies alone is somebody's copy, of which nothing is missing.
func (f *File) checkSiblings(ctx context.Context) {
	dir, name := path.Split(f.At.Object)
	here := func(name string) bool {
		info, err := f.Tree.Stat(ctx, path.Join(dir, name))
		return err == nil && !info.Dir
	}
	if f.NoVerify || f.At.Off != 0 || len(f.Footer.Groups) == 0 || len(name) < len("part-0.red") ||
		name[:5] != "part-" || here(layout.MetadataFile) {
		return
	}
	s, at := f.FirstBlock(ctx)
	if s == nil || s.Groups < 0 {
		return
	}
	if own := layout.PartName(int(s.Groups)); name != own {
		if here(own) && f.sameTable(ctx, path.Join(dir, own), s) {
			f.miss("redfile.part.repeated", at, "", "the part begins with row group %d of its table, as %s beside "+
				"it does, and %s is missing: its rows come twice, and those of a part in whose place it stands do not",
				s.Groups, own, layout.MetadataFile)
		}
		return
	}
	if s.Groups == 0 {
		return
	}
	first, before := int(s.Groups), int(s.Groups)-1
	for before >= 0 && first-before <= maxGap && !here(layout.PartName(before)) {
		before--
	}
	found := before >= 0 && first-before <= maxGap
	next := first + len(f.Footer.Groups)
	after := here(layout.PartName(next))
	if !found && !after {
		return
	}
	if found && !f.sameMarker(ctx, path.Join(dir, layout.PartName(before)), s) {
		f.miss("redfile.part.other", at, "", "the marker of the part is not that of %s: one of them is another "+
			"table's, and %s, which would say which, is missing", layout.PartName(before), layout.MetadataFile)
	}
	if before < first-1 {
		f.miss("redfile.part.missing", at, "",
			"the part begins with row group %d of its table: %s, before it, is missing, and so is %s", first,
			layout.PartName(first-1), layout.MetadataFile)
	}
	if !after {
		f.miss("redfile.parts.unlisted", at, "", "%s is missing: nothing says whether the table has parts after %s",
			layout.MetadataFile, name)
	}
}

// sameTable reports whether another part is of the table of which s is, and begins with the same row group.
func (f *File) sameTable(ctx context.Context, name string, s *layout.SyncBlock) bool {
	o := f.blockOf(ctx, name)
	return o != nil && bytes.Equal(o.Marker, s.Marker) && o.Groups == s.Groups
}

// sameMarker reports whether another part may be of the table of which s is: it has its marker, or none that
// can be read.
func (f *File) sameMarker(ctx context.Context, name string, s *layout.SyncBlock) bool {
	o := f.blockOf(ctx, name)
	return o == nil || bytes.Equal(o.Marker, s.Marker)
}

// blockOf is the first sync block of another part; nil if there is none that is whole.
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

// miss notes a finding about the table, which path of the file's metadata is about.
func (f *File) miss(code string, at fault.Span, path, format string, args ...any) {
	check.Collect(context.Background(), f.At.Object, layout.Codes, &f.Missing).Report(code, at, path, format, args...)
}

// RowsIn is how many rows the row groups have that lie in an object, -1 if that is not known.
func (f *File) RowsIn(ctx context.Context, object string) int64 {
	total := int64(0)
	for g := range f.Footer.Groups {
		cols := f.Footer.Groups[g].Columns
		if len(cols) == 0 {
			continue
		}
		if name, err := f.Inside(cols[0].File); err != nil || name != object {
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
