package recovery

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/schema"
	"stoa/format/redfile/internal/table"
	"stoa/region"
)

// useSchemaOption loads the schema named by option schema if the file has lost its own. If a chunk contradicts it, the
// error is Invalid.
func (r *recoverer) useSchemaOption(o format.OpenOptions, opts layout.ReadOptions) error {
	if opts.Schema == "" || r.known != nil {
		return nil
	}
	m, err := r.f.LoadSchema(r.ctx, opts.Schema, o)
	if err != nil {
		return err
	}
	tree, err := schema.TreeOfElements(m.Schema, m.Gen, r.f.Limits, fault.Span{Object: opts.Schema})
	if err != nil {
		return err
	}
	leaves := schema.LeavesOf(tree)
	for _, c := range r.chunks {
		path := strings.Join(c.meta.Path, ".")
		i := slices.IndexFunc(leaves, func(l schema.Leaf) bool { return slices.Equal(l.Path, c.meta.Path) })
		switch {
		case i < 0:
			return fault.Invalidf("schema=%s: the file has a column %q, which is not in that schema", opts.Schema, path)
		case leaves[i].Type != c.meta.Type:
			return fault.Invalidf("schema=%s: column %q is stored as %s, and by that schema it would be %s",
				opts.Schema, path, c.meta.Type, leaves[i].Type)
		case c.meta.HasLevels && (c.meta.MaxDef != int32(leaves[i].MaxDef) || c.meta.MaxRep != int32(leaves[i].MaxRep)):
			return fault.Invalidf("schema=%s: column %q has maximum levels %d and %d, and by that schema %d "+
				"and %d: what may be null or repeat is another there", opts.Schema, path,
				c.meta.MaxDef, c.meta.MaxRep, leaves[i].MaxDef, leaves[i].MaxRep)
		}
	}
	r.known = m
	return nil
}

// schemaLost returns the error for a file of which only pages are left; nil if there are no pages either.
func (r *recoverer) schemaLost() error {
	if r.walked == 0 {
		return nil
	}
	return fault.Corruptf(r.f.At.Sub(r.f.At.Len, 0), "file_metadata", "%d pages were found, but no column metadata "+
		"after them, which some programs of 2013 put in the metadata at the end only: pages do not "+
		"say which column they are of, so nothing can be recovered, whatever the schema", r.walked)
}

// renameColumns changes the path of a leaf to the one that all its chunks have, unless another leaf has that path: in
// this case the name in the schema is damaged, and the chunks can be read. The column keeps the name in the schema.
func (r *recoverer) renameColumns() {
	f := r.f
	if f.Footer.Gen < layout.GenC {
		return // the schema was derived from the chunks
	}
	for col := range f.Leaves {
		l := &f.Leaves[col]
		path, ok := pathOfChunks(r.ctx, f, col)
		if !ok || len(l.Path) == 0 || slices.Equal(path, l.Path) ||
			slices.ContainsFunc(f.Leaves, func(o schema.Leaf) bool { return slices.Equal(o.Path, path) }) {
			continue
		}
		r.Rows("redfile.footer.damaged", f.MetaAt, [2]int64{-1, -1}, -1,
			"a column is %q in the schema and %q in all its chunks, which are read", l.Path, path)
		l.Path = path
	}
}

// pathOfChunks returns the path on which all chunks of a column agree, ignoring chunks whose metadata cannot be read.
func pathOfChunks(ctx context.Context, f *table.File, col int) (path []string, ok bool) {
	for g := range f.Footer.Groups {
		m, err := f.ColumnMeta(ctx, g, col)
		if err != nil {
			continue
		}
		if path != nil && !slices.Equal(path, m.Path) {
			return nil, false
		}
		path = m.Path
	}
	return path, path != nil
}

// reportSchema reports, once, that the Arrow schema of f is damaged.
func (r *recoverer) reportSchema(f *table.File) {
	isSchemaDamage := func(g region.Finding) bool { return g.Code == "redfile.schema.damaged" }
	if f.SchemaDamage != nil && !slices.ContainsFunc(r.findings, isSchemaDamage) {
		r.Blame("redfile.schema.damaged", f.SchemaDamage, -1, -1)
	}
}

// reportUntyped reports that no schema was found: columns have the stored types, and every value may differ from the
// original.
func (r *recoverer) reportUntyped(f *table.File) {
	var cols []string
	for _, l := range f.Leaves {
		cols = append(cols, fmt.Sprintf("%s as %s", strings.Join(l.Path, "."), l.Type))
	}
	r.Rows("redfile.schema.lost", f.MetaAt, [2]int64{0, f.Footer.Rows}, -1, "the types of the columns are lost: "+
		"they are shown as they are stored, and the values of all rows may differ: %s", strings.Join(cols, ", "))
}

// pathList is a list of the paths of columns in order. Several columns may have the same path.
type pathList struct {
	n  int
	at map[string][]int // positions of each path, ascending
}

// pathKey returns a path in the form of a map key.
func pathKey(p []string) string { return strings.Join(p, "\x00") }

func (l *pathList) add(p []string) {
	if l.at == nil {
		l.at = map[string][]int{}
	}
	l.at[pathKey(p)] = append(l.at[pathKey(p)], l.n)
	l.n++
}

// foundPaths returns the paths of the chunks found, in order. If there is a row group with all its chunks, it returns
// the paths of that one, since chunks of the first row group may be missing.
func (r *recoverer) foundPaths() (out pathList) {
	for _, c := range r.chunks {
		if out.find(c.meta.Path, 0) < 0 {
			out.add(c.meta.Path)
		}
	}
	for i := 0; i+out.n <= len(r.chunks); i++ {
		var l pathList
		for _, c := range r.chunks[i : i+out.n] {
			if out.find(c.meta.Path, 0) == 0 != (l.n == 0) || l.find(c.meta.Path, 0) >= 0 {
				break
			}
			l.add(c.meta.Path)
		}
		if l.n == out.n {
			return l
		}
	}
	return out
}

// from returns the paths rotated so that the one at index i comes first.
func (l *pathList) from(i int) (out pathList) {
	keys := make([]string, l.n)
	for key, places := range l.at {
		for _, k := range places {
			keys[(k-i+l.n)%l.n] = key
		}
	}
	for _, key := range keys {
		out.add(strings.Split(key, "\x00"))
	}
	return out
}

// find returns the first index of p at or after from; -1 if there is none.
func (l *pathList) find(p []string, from int) int {
	places := l.at[pathKey(p)]
	if i, _ := slices.BinarySearch(places, from); i < len(places) {
		return places[i]
	}
	return -1
}
