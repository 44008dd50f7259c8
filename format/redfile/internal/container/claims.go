package container

import (
	"stoa/fault"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/claims"
)

// claimedTwice are the chunks that are not read because another one claims bytes of theirs, and why, as far as the
// metadata of the file says where chunks are. See internal/claims.
func (f *File) claimedTwice() map[ChunkKey]error {
	var all []claims.Chunk
	for g := range f.Footer.Groups {
		for k, c := range f.Footer.Groups[g].Columns {
			m := c.Meta
			if m != nil && c.File == "" && m.Data >= 0 && m.Data < f.At.Len && m.Values > 0 && m.Stored != 0 {
				n := min(max(m.Stored, 1), f.At.Len-m.Data) // the least that it takes
				all = append(all, claims.Chunk{Group: g, Column: k, At: f.At.Sub(m.Data, n)})
			}
		}
	}
	out := map[ChunkKey]error{}
	for i, with := range claims.Twice(all) {
		x, other := all[i], all[with]
		out[ChunkKey{x.Group, x.Column}] = fault.Corruptf(x.At, layout.ChunkPath(x.Group, x.Column)+
			".column_metadata.data_page_offset", "the bytes also belong to row_groups[%d].columns[%d]", other.Group,
			other.Column)
	}
	return out
}
