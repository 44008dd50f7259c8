package file

import (
	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/internal/claims"
)

// Overlapping returns the chunks that are not read because another chunk claims some of their bytes, each with its
// error; see claims.Twice.
func (r *File) Overlapping() map[ChunkKey]error {
	var all []claims.Chunk
	for g, rg := range r.Footer.RowGroups {
		for k, c := range rg.Columns {
			if at := r.ChunkSpan(g, k); at.Len > 0 && c.FilePath == "" {
				all = append(all, claims.Chunk{Group: g, Column: k, At: at})
			}
		}
	}
	out := map[ChunkKey]error{}
	for i, with := range claims.Overlaps(all) {
		x, other := all[i], all[with]
		out[ChunkKey{x.Group, x.Column}] = fault.Corruptf(x.At, meta.IndexPath(x.Group, x.Column, "data_page_offset"),
			"the bytes also belong to row_groups[%d].columns[%d]", other.Group, other.Column)
	}
	return out
}
