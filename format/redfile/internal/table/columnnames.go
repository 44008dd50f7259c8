package table

import (
	"context"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
)

// secondNames returns an error of class Corrupt if a column has different paths in the first and the second row group
// of a file in which only the chunks name the columns. One of the two paths is damaged, and if that is the first, rows
// would be returned under a wrong name. Later row groups are compared when they are read.
func (f *File) secondNames(ctx context.Context, leaves []schema.Leaf) error {
	if len(f.Footer.Groups) < 2 {
		return nil
	}
	for col := range min(len(leaves), len(f.Footer.Groups[1].Columns)) {
		m, err := f.ColumnMeta(ctx, 1, col)
		if err != nil || slices.Equal(m.Path, leaves[col].Path) {
			continue // reading the chunk reports the error
		}
		return fault.Corruptf(f.ChunkSpan(1, col), layout.ChunkPath(1, col)+".column_metadata.path_in_schema",
			"expected %q, as in the first row group, found %q", leaves[col].Path, m.Path)
	}
	return ctx.Err()
}

// agreeOnNames gives the chunks of each column the path that most of them have; in a tie, the first. Another path is
// treated as a damaged copy only if its names have the same lengths, which changed bytes do not alter, and if no other
// column has that path. Any other path is kept, and the chunk cannot be read.
func (f *File) agreeOnNames(ctx context.Context) {
	groups := f.Footer.Groups
	paths := make([][]string, len(groups[0].Columns))
	for col := range paths {
		paths[col] = f.usualPath(ctx, col)
	}
	for g := range groups {
		for col := range min(len(paths), len(groups[g].Columns)) {
			m, err := f.ColumnMeta(ctx, g, col)
			if err != nil || slices.Equal(m.Path, paths[col]) || !slices.EqualFunc(m.Path, paths[col],
				func(a, b string) bool { return len(a) == len(b) }) ||
				slices.ContainsFunc(paths, func(p []string) bool { return slices.Equal(p, m.Path) }) {
				continue
			}
			f.report("redfile.column.damaged", f.ChunkSpan(g, col),
				layout.ChunkPath(g, col)+".column_metadata.path_in_schema", "%q, in other row groups the column is "+
					"%q: it is read as that, and either may be the right name", m.Path, paths[col])
			m.Path = paths[col]
		}
	}
}

// usualPath returns the path that most chunks of a column have, ignoring chunks whose metadata cannot be read; nil if
// all were ignored.
func (f *File) usualPath(ctx context.Context, col int) (usual []string) {
	votes, most := map[string]int{}, 0
	var all [][]string
	for g := range f.Footer.Groups {
		if col >= len(f.Footer.Groups[g].Columns) {
			continue
		}
		if m, err := f.ColumnMeta(ctx, g, col); err == nil {
			votes[strings.Join(m.Path, "\x00")]++
			all = append(all, m.Path)
		}
	}
	for _, p := range all {
		if n := votes[strings.Join(p, "\x00")]; n > most {
			most, usual = n, p
		}
	}
	return usual
}
