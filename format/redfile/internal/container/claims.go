package container

import (
	"stoa/fault"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/claims"
)

// overlapping returns the chunks that are not read because another chunk claims some of their bytes, each with its
// error, as far as the metadata of the file locates chunks. See internal/claims.
func (f *File) overlapping() map[ChunkKey]error {
	var all []claims.Chunk
	for g := range f.Footer.Groups {
		for k, c := range f.Footer.Groups[g].Columns {
			m := c.Meta
			if m != nil && c.File == "" && m.Data >= 0 && m.Data < f.At.Len && m.Values > 0 && m.Stored != 0 {
				n := min(max(m.Stored, 1), f.At.Len-m.Data) // the smallest size that it can have
				all = append(all, claims.Chunk{Group: g, Column: k, At: f.At.Sub(m.Data, n)})
			}
		}
	}
	out := map[ChunkKey]error{}
	for i, with := range claims.Overlaps(all) {
		x, other := all[i], all[with]
		out[ChunkKey{x.Group, x.Column}] = fault.Corruptf(x.At, layout.ChunkPath(x.Group, x.Column)+
			".column_metadata.data_page_offset", "the bytes also belong to row_groups[%d].columns[%d]", other.Group,
			other.Column)
	}
	return out
}

// place is an offset in an object.
type place struct {
	file string
	off  int64
}

// endsAt returns an error for a chunk of which the metadata is only after its pages, if that of another chunk lies
// between its first page and its own: the offset of the page is damaged, and another chunk's pages may be there.
func (f *File) endsAt(group, col int, m *layout.ColumnMeta, at fault.Span) error {
	own := f.Footer.Groups[group].Columns[col].Offset
	if m.Data < 0 || m.Values <= 0 || m.Stored == 0 || f.NoVerify || f.StructureAfter(at, m.Data, group, col) == own {
		return nil
	}
	return fault.Corruptf(f.ChunkSpan(group, col), layout.ChunkPath(group, col)+".column_metadata.data_page_offset",
		"expected an offset after which this metadata, at %d, comes next, found %d", own, m.Data)
}

// begins returns an error for a chunk that begins where another does, as far as their metadata was read: it has that of
// the other one, or its own is damaged. The lock is held.
func (f *File) begins(key ChunkKey, file string, m *layout.ColumnMeta) error {
	if m.Data < 0 || m.Values <= 0 || m.Stored == 0 || f.NoVerify {
		return nil
	}
	if f.begun == nil {
		f.begun = map[place]ChunkKey{}
	}
	at := place{file, m.Data}
	if other, taken := f.begun[at]; taken && other != key {
		return fault.Corruptf(f.ChunkSpan(key.Group, key.Col), layout.ChunkPath(key.Group, key.Col)+
			".column_metadata.data_page_offset", "row_groups[%d].columns[%d] begins at %d, too", other.Group, other.Col,
			m.Data)
	}
	f.begun[at] = key
	return nil
}
