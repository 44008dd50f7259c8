package redfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// belongs holds a part against the metadata: another part in its place would often be read without a word. The
// sync block at its beginning has the marker of the table, and says how many row groups come before it; without
// that the part's own metadata tells of other chunks.
func (f *file) belongs(ctx context.Context, src store.Source, name string, group, col int) error {
	if f.noVerify || f.gathered {
		return nil
	}
	part := newFile(f.tree, src, fault.Span{Object: name, Len: src.Size()}, format.OpenOptions{Limits: f.limits},
		f.opts)
	path := chunkPath(group, col) + ".file_path"
	called := f.meta.groups[group].columns[col].file
	marker := f.meta.marker()
	s, at := part.firstBlock(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if marker == nil || s == nil {
		return f.sameChunks(ctx, part, called, path)
	}
	if !bytes.Equal(s.marker, marker) {
		return fault.Corruptf(at, path, "%q is a part of another table: its marker is %x, this one's is %x", called,
			s.marker, marker)
	}
	first := f.groupsIn(called)[0]
	if int(s.groups) != first {
		return fault.Corruptf(at, path, "%q is another part of the table: it begins with row group %d, and not %d",
			called, s.groups, first)
	}
	return nil
}

// sameChunks is an error if the row groups that the metadata has in a part, called so, are none of those that
// the part has by its own metadata. One structure that differs may be damage of the part's metadata, which
// nobody needs here, unless a checksum says that it is sound.
func (f *file) sameChunks(ctx context.Context, part *file, called, path string) error {
	if err := part.readMeta(ctx, nil); err != nil {
		if errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Limit) {
			return ctx.Err()
		}
		return err
	}
	own := part.meta.groups
	if !part.meta.told() || slices.ContainsFunc(own, func(g rowGroup) bool { return g.rows < 0 }) {
		return nil // it contradicts itself
	}
	begin := map[int64]*rowGroup{} // by where the metadata of the first column is
	for i := range own {
		if len(own[i].columns) > 0 {
			begin[own[i].columns[0].offset] = &own[i]
		}
	}
	for n, i := range f.groupsIn(called) {
		g := &f.meta.groups[i]
		if slices.ContainsFunc(g.columns, func(c columnChunk) bool { return c.file != called }) {
			return nil // other programs may lay columns out in files as they like
		}
		o := begin[g.columns[0].offset]
		if o == nil && n < len(own) {
			o = &own[n]
		}
		if o == nil {
			return fault.Corruptf(part.metaAt, path, "%q is another part, or of another table: by its own "+
				"metadata it has %d row groups, and none of %d rows", called, len(own), g.rows)
		}
		if odd, what := g.differs(o); odd > 1 || odd > 0 && part.meta.hasCRC {
			return fault.Corruptf(part.metaAt, path,
				"%q is another part, or of another table: by its own metadata it has %s", called, what)
		}
	}
	return nil
}

// groupsIn are the row groups that have chunks in a file, called so. The caller holds mu.
func (f *file) groupsIn(called string) []int {
	if f.inFile == nil {
		f.inFile = map[string][]int{}
		for i := range f.meta.groups {
			for _, c := range f.meta.groups[i].columns {
				if l := f.inFile[c.file]; len(l) == 0 || l[len(l)-1] != i {
					f.inFile[c.file] = append(l, i)
				}
			}
		}
	}
	return f.inFile[called]
}

// differs counts the structures of which another description of a row group says something else, and gives the
// first of it in words. One wrong bit is in one of them, whatever it makes of that. Files that chunks lie in
// are not looked at: a part does not name itself.
func (g *rowGroup) differs(o *rowGroup) (n int, first string) {
	hold := func(what string, a, b int64) bool {
		if a != b && first == "" {
			first = fmt.Sprintf("%s %d, and not %d", what, b, a)
		}
		return a != b
	}
	count := func(differs bool) {
		if differs {
			n++
		}
	}
	count(hold("num_rows", g.rows, o.rows))
	count(hold("total_byte_size", g.bytes, o.bytes))
	count(hold("a number of columns of", int64(len(g.columns)), int64(len(o.columns))))
	for i := range min(len(g.columns), len(o.columns)) {
		c, d := &g.columns[i], &o.columns[i]
		at := "columns[" + strconv.Itoa(i) + "]."
		odd := hold(at+"file_offset", c.offset, d.offset)
		if a, b := c.meta, d.meta; a != nil && b != nil {
			odd = hold(at+"type", int64(a.typ), int64(b.typ)) || hold(at+"codec", int64(a.codec), int64(b.codec)) ||
				hold(at+"num_values", a.values, b.values) ||
				hold(at+"total_uncompressed_size", a.raw, b.raw) ||
				hold(at+"total_compressed_size", a.stored, b.stored) ||
				hold(at+"data_page_offset", a.data, b.data) || hold(at+"index_page_offset", a.index, b.index) || odd
		}
		count(odd)
	}
	return n, first
}
