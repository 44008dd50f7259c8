package table

import (
	"context"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
)

// secondNames returns an error, Corrupt, if a column has another path in the second row group than in the first, where
// nothing but the chunks says how columns are called: one of the two is damaged, and if that is the first, rows of it
// would come out under that name. Later row groups are compared when they are read.
func (f *File) secondNames(ctx context.Context, leaves []schema.Leaf) error {
	if len(f.Footer.Groups) < 2 {
		return nil
	}
	for col := range min(len(leaves), len(f.Footer.Groups[1].Columns)) {
		m, err := f.ColumnMeta(ctx, 1, col)
		if err != nil || slices.Equal(m.Path, leaves[col].Path) {
			continue // reading the chunk says what is wrong there
		}
		return fault.Corruptf(f.ChunkSpan(1, col), layout.ChunkPath(1, col)+".column_metadata.path_in_schema",
			"expected %q, as in the first row group, found %q", leaves[col].Path, m.Path)
	}
	return ctx.Err()
}

// agreeOnNames gives the chunks of each column the path that most of them have; of equally many, the first. A path is a
// damaged one only if its names are as long, since bytes that are others do not change that, and no other column has
// it; any other stays, and the chunk cannot be read.
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

// usualPath is the path that most chunks of a column have, of those whose metadata can be read; nil: none has.
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
