package redfile

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
)

// told takes the schema that option schema names, if the file has lost its own, and holds the chunks that were
// found against it.
func (r *rescue) told(o format.OpenOptions, opts readOptions) error {
	if opts.schema == "" || r.known != nil {
		return nil
	}
	m, err := r.f.schemaFrom(r.ctx, opts.schema, o)
	if err != nil {
		return err
	}
	tree, err := treeOfElements(m.schema, m.gen, fault.Span{Object: opts.schema})
	if err != nil {
		return err
	}
	leaves := leavesOf(tree)
	for _, c := range r.chunks {
		path := strings.Join(c.meta.path, ".")
		i := slices.IndexFunc(leaves, func(l leaf) bool { return slices.Equal(l.path, c.meta.path) })
		switch {
		case i < 0:
			return fault.Invalidf("schema=%s: the file has a column %q, which is not in that schema", opts.schema, path)
		case leaves[i].typ != c.meta.typ:
			return fault.Invalidf("schema=%s: column %q is stored as %s, and by that schema it would be %s",
				opts.schema, path, c.meta.typ, leaves[i].typ)
		case c.meta.hasLevels && (c.meta.maxDef != int32(leaves[i].maxDef) || c.meta.maxRep != int32(leaves[i].maxRep)):
			return fault.Invalidf("schema=%s: column %q has greatest levels %d and %d, and by that schema %d "+
				"and %d: what may be null or repeat is another there", opts.schema, path,
				c.meta.maxDef, c.meta.maxRep, leaves[i].maxDef, leaves[i].maxRep)
		}
	}
	r.known = m
	return nil
}

// bare is why nothing can be recovered of a file that has pages; nil if there are none.
func (r *rescue) bare() error {
	if r.walked == 0 {
		return nil
	}
	return fault.Corruptf(r.f.at.Sub(r.f.at.Len, 0), "file_metadata", "%d pages were found, but no metadata of "+
		"a column behind them, as some programs of 2013 kept it in the metadata at the end only: pages do not "+
		"say which column they are of, and with that lost nothing can be recovered, whatever the schema", r.walked)
}

// renamed takes columns for what all their chunks are called where the schema has another name, which no chunk
// has: it is the schema that is damaged, and what lies in the chunks is as good as ever. The column keeps the
// name of the schema.
func (r *rescue) renamed() {
	f := r.f
	if f.meta.gen < GenC {
		return // the schema is what the chunks say
	}
	for col := range f.leaves {
		l := &f.leaves[col]
		path, ok := calledByChunks(r.ctx, f, col)
		if !ok || len(l.path) == 0 || slices.Equal(path, l.path) ||
			slices.ContainsFunc(f.leaves, func(o leaf) bool { return slices.Equal(o.path, path) }) {
			continue
		}
		r.Rows("redfile.footer.damaged", f.metaAt, [2]int64{-1, -1}, -1,
			"the schema calls a column %q, and all its chunks are called %q: they are read", l.path, path)
		l.path = path
	}
}

// calledByChunks is the path that all chunks of a column have of which the metadata can be read.
func calledByChunks(ctx context.Context, f *file, col int) (path []string, ok bool) {
	for g := range f.meta.groups {
		m, err := f.columnMeta(ctx, g, col)
		if err != nil {
			continue
		}
		if path != nil && !slices.Equal(path, m.path) {
			return nil, false
		}
		path = m.path
	}
	return path, path != nil
}

// schema tells that the Arrow schema of a file that was opened is damaged.
func (r *rescue) schema(f *file) {
	told := func(g region.Finding) bool { return g.Code == "redfile.schema.damaged" }
	if f.damaged != nil && !slices.ContainsFunc(r.findings, told) {
		r.Blame("redfile.schema.damaged", f.damaged, -1, -1)
	}
}

// untyped tells that nothing of the file's schema was found: columns are shown as what they are stored as, and
// every row counts as changed.
func (r *rescue) untyped(f *file) {
	var cols []string
	for _, l := range f.leaves {
		cols = append(cols, fmt.Sprintf("%s as %s", strings.Join(l.path, "."), l.typ))
	}
	r.Rows("redfile.schema.lost", f.metaAt, [2]int64{0, f.meta.rows}, -1, "what says the types of the columns is "+
		"lost: they are shown as they are stored, and all rows may be others: %s", strings.Join(cols, ", "))
}

// pathList is the paths of columns in order. Several may have the same one.
type pathList struct {
	n  int
	at map[string][]int // places of each path, ascending
}

func pathKey(p []string) string { return strings.Join(p, "\x00") }

func (l *pathList) add(p []string) {
	if l.at == nil {
		l.at = map[string][]int{}
	}
	l.at[pathKey(p)] = append(l.at[pathKey(p)], l.n)
	l.n++
}

// foundPaths are the paths of the chunks that were found, in their order. A chunk of the first row group may be
// missing, so the order is that of a row group of which all were found, if there is one.
func (r *rescue) foundPaths() (out pathList) {
	for _, c := range r.chunks {
		if out.find(c.meta.path, 0) < 0 {
			out.add(c.meta.path)
		}
	}
	for i := 0; i+out.n <= len(r.chunks); i++ {
		var l pathList
		for _, c := range r.chunks[i : i+out.n] {
			if out.find(c.meta.path, 0) == 0 != (l.n == 0) || l.find(c.meta.path, 0) >= 0 {
				break
			}
			l.add(c.meta.path)
		}
		if l.n == out.n {
			return l
		}
	}
	return out
}

// find is the first place of p from there on, -1 if there is none.
func (l *pathList) find(p []string, from int) int {
	places := l.at[pathKey(p)]
	if i, _ := slices.BinarySearch(places, from); i < len(places) {
		return places[i]
	}
	return -1
}
