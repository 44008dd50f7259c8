package redfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// maxGap is how many parts in a row are looked for; a longer gap is told as if there were nothing before it.
const maxGap = 64

// Findings tells of what is missing: the rest of an unfinished file, and the parts of a split table around this one.
func (f *file) Findings() []region.Finding { return f.missing }

// lookAround notes that there should be more of the table than the file has.
func (f *file) lookAround(ctx context.Context) {
	if f.meta.more() >= 0 {
		f.miss("redfile.unfinished", f.metaAt, "the writer did not finish: this metadata, of %d row groups, is "+
			"one of those between row groups; whatever was behind it is missing", len(f.meta.groups))
	}
	f.standsIn()
	f.beside(ctx)
}

// contradicts reports a column whose chunks are not, by the metadata of the file, what its schema says: one of the
// two is damaged, and such chunks cannot be read.
func (f *file) contradicts() {
	for g := range f.meta.groups {
		for col, c := range f.meta.groups[g].columns {
			if c.meta == nil || col >= len(f.leaves) {
				continue
			}
			var e *fault.Error
			if errors.As(f.fits(c.meta, &f.leaves[col], g, col), &e) {
				f.miss("redfile.column.damaged", e.At, "%s", e.Reason)
				f.missing[len(f.missing)-1].Path = e.Path
				return
			}
		}
	}
}

// partsBelong tells of the parts that the metadata names and that are not there, or are others: what it says of
// them, their rows first, is not what can be read. Which chunks are lost shows when they are read.
func (f *file) partsBelong(ctx context.Context) {
	seen := map[string]bool{"": true}
	for g := range f.meta.groups {
		for col := range f.meta.groups[g].columns {
			called := f.meta.groups[g].columns[col].file
			if seen[called] || f.gathered {
				continue
			}
			seen[called] = true
			_, _, err := f.place(ctx, g, col)
			var e *fault.Error
			if !errors.Is(err, fault.Corrupt) || !errors.As(err, &e) {
				continue
			}
			code := "redfile.part.other"
			if name, err := f.inside(called); err == nil {
				if _, err := f.tree.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
					code = "redfile.part.missing"
				}
			}
			f.miss(code, e.At, "%s", e.Reason)
			f.missing[len(f.missing)-1].Path = e.Path
		}
	}
}

// standsIn tells of a _metadata.red that has pages of its own.
func (f *file) standsIn() {
	if at := f.ownGroups(); at != "" {
		f.miss("redfile.metadata.other", f.metaAt, "%s has the row groups in itself that it should name: a part "+
			"of the table, or another file, stands in the place of the table's metadata, and other parts are not "+
			"read", metadataFile)
		f.missing[len(f.missing)-1].Path = at
	}
}

// ownGroups is where a _metadata.red says that it has pages of its own; "" if it does not. That of a split
// table has none: its row groups all lie in other files.
func (f *file) ownGroups() string {
	if path.Base(f.at.Object) != metadataFile || f.at.Off != 0 {
		return ""
	}
	for g, group := range f.meta.groups {
		for col, c := range group.columns {
			if c.file == "" {
				return chunkPath(g, col) + ".file_path"
			}
		}
	}
	return ""
}

// beside looks whether the parts before and behind this one are there. _metadata.red would tell, so it is asked
// only where that is gone: each part is a whole file then, and only its sync block says that there is more of
// the table. A part that lies alone is somebody's copy, of which nothing is missing.
func (f *file) beside(ctx context.Context) {
	dir, name := path.Split(f.at.Object)
	here := func(name string) bool {
		info, err := f.tree.Stat(ctx, path.Join(dir, name))
		return err == nil && !info.Dir
	}
	if f.noVerify || f.at.Off != 0 || len(f.meta.groups) == 0 || len(name) < len("part-0.red") ||
		name[:5] != "part-" || here(metadataFile) {
		return
	}
	s, at := f.firstBlock(ctx)
	if s == nil || s.groups < 0 {
		return
	}
	if own := partName(int(s.groups)); name != own {
		if here(own) && f.sameTable(ctx, path.Join(dir, own), s) {
			f.miss("redfile.part.repeated", at, "the part begins with row group %d of its table, as %s beside "+
				"it does, and %s is missing: its rows come twice, and those of a part in whose place it stands do "+
				"not", s.groups, own, metadataFile)
		}
		return
	}
	if s.groups == 0 {
		return
	}
	first, before := int(s.groups), int(s.groups)-1
	for before >= 0 && first-before <= maxGap && !here(partName(before)) {
		before--
	}
	found := before >= 0 && first-before <= maxGap
	next := first + len(f.meta.groups)
	behind := here(partName(next))
	if !found && !behind {
		return
	}
	if found && !f.sameMarker(ctx, path.Join(dir, partName(before)), s) {
		f.miss("redfile.part.other", at, "the marker of the part is not that of %s: one of them is another "+
			"table's, and %s, which would say which, is missing", partName(before), metadataFile)
	}
	if before < first-1 {
		f.miss("redfile.part.missing", at,
			"the part begins with row group %d of its table: %s, before it, is missing, and so is %s", first,
			partName(first-1), metadataFile)
	}
	if !behind {
		f.miss("redfile.parts.unlisted", at, "%s is missing: nothing says whether the table has parts behind %s",
			metadataFile, name)
	}
}

// sameTable reports whether another part is of the table of which s is, and begins with the same row group.
func (f *file) sameTable(ctx context.Context, name string, s *syncBlock) bool {
	o := f.blockOf(ctx, name)
	return o != nil && bytes.Equal(o.marker, s.marker) && o.groups == s.groups
}

// sameMarker reports whether another part may be of the table of which s is: it has its marker, or none that
// can be read.
func (f *file) sameMarker(ctx context.Context, name string, s *syncBlock) bool {
	o := f.blockOf(ctx, name)
	return o == nil || bytes.Equal(o.marker, s.marker)
}

// blockOf is the first sync block of another part; nil if there is none that is whole.
func (f *file) blockOf(ctx context.Context, name string) *syncBlock {
	src, err := f.tree.Open(ctx, name)
	if err != nil {
		return nil
	}
	defer src.Close()
	other := newContent(f.tree, src, fault.Span{Object: name, Len: src.Size()}, format.OpenOptions{Limits: f.limits},
		f.opts)
	s, _ := other.firstBlock(ctx)
	return s
}

func (f *file) miss(code string, at fault.Span, format string, args ...any) {
	lost := int64(0)
	if Codes.Severity(code) == region.Error {
		lost = -1
	}
	f.missing = append(f.missing, region.Finding{Code: code, Severity: Codes.Severity(code), Part: f.at.Object, At: at,
		Rows: [2]int64{-1, -1}, Lost: lost,
		Message: fmt.Sprintf(format, args...)})
}

// rowsIn is how many rows the row groups have that lie in an object, -1 if that is not known.
func (f *file) rowsIn(ctx context.Context, object string) int64 {
	total := int64(0)
	for g := range f.meta.groups {
		cols := f.meta.groups[g].columns
		if len(cols) == 0 {
			continue
		}
		if name, err := f.inside(cols[0].file); err != nil || name != object {
			continue
		}
		rows, err := f.rowsOf(ctx, g)
		if err != nil || rows < 0 {
			return -1
		}
		total += rows
	}
	return total
}
