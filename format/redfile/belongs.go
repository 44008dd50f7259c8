package redfile

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/store"
	"stoa/wire"
)

// header reads the header of the page at pos.
func (f *content) header(ctx context.Context, pos int64) (pageHeader, int64, error) {
	b := make([]byte, max(0, min(mostFound, f.at.Len-pos)))
	if err := format.ReadFull(ctx, f.src, f.at.Sub(pos, int64(len(b))), "", b); err != nil {
		return pageHeader{}, 0, err
	}
	return headerIn(b, f.at.Sub(pos, f.at.Len-pos))
}

// firstBlock is the sync block at the beginning of the file; nil if there is none that is whole.
func (f *content) firstBlock(ctx context.Context) (*syncBlock, fault.Span) {
	h, head, err := f.header(ctx, magicLen)
	if err != nil || h.kind != syncPage || int64(h.stored) > f.limits.Metadata {
		return nil, fault.Span{}
	}
	s, at, err := f.readSync(ctx, magicLen, &h, head)
	if err != nil {
		return nil, at
	}
	return s, at
}

// readSync reads the sync block at pos; nil if it is damaged, or was copied from elsewhere.
func (f *content) readSync(ctx context.Context, pos int64, h *pageHeader, head int64) (*syncBlock, fault.Span, error) {
	at := f.at.Sub(pos+head, int64(h.stored))
	b := make([]byte, h.stored)
	if err := format.ReadFull(ctx, f.src, at, "", b); err != nil {
		return nil, at, err
	}
	c := wire.NewCursor(b, at, "sync")
	s := parseSync(thrift.NewReader(c, protocolOfSync(b)), "")
	if c.Err() != nil || crcOf(b) != h.crc || s.offset != pos {
		return nil, at, nil
	}
	return &s, at, nil
}

// otherFile looks whether the metadata at the end is that of another file: one that lies in a page, behind
// which this file was cut. The marker of the sync block at the beginning tells, where there is one; b are the
// first bytes behind the magic.
func (f *content) otherFile(ctx context.Context, b []byte) error {
	c := wire.NewCursor(b, f.at.Sub(magicLen, int64(len(b))), "")
	h := parsePageHeader(thrift.NewReader(c, protocolOf(b)), "")
	if field, _ := h.bad(); c.Err() != nil || h.kind != syncPage || field != "" {
		return nil
	}
	head := int64(c.Pos())
	// which may end behind b, but begins with the marker
	s := parseSync(thrift.NewReader(c, protocolOfSync(c.Rest())), "")
	if bytes.Equal(s.marker, f.meta.marker()) || int64(h.stored) > f.limits.Metadata {
		return nil
	}
	whole, _, err := f.readSync(ctx, magicLen, &h, head)
	if err != nil || whole == nil { // the marker may be what is damaged
		return ctx.Err()
	}
	return fault.Corruptf(f.metaAt, "file_metadata.key_value_metadata."+syncKey,
		"the file began with the marker %x: this is the metadata of a file within it, behind which it is cut",
		whole.marker)
}

// belongs holds a part against the metadata: another part in its place would often be read without a word. The
// sync block at its beginning has the marker of the table, and says how many row groups come before it; without
// that the part's own metadata tells of other chunks.
func (f *content) belongs(ctx context.Context, src store.Source, name string, group, col int) error {
	if f.noVerify || f.gathered {
		return nil
	}
	part := newContent(f.tree, src, fault.Span{Object: name, Len: src.Size()}, format.OpenOptions{Limits: f.limits},
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
func (f *content) sameChunks(ctx context.Context, part *content, called, path string) error {
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

// agrees is sameChunks.
func (f *content) agrees(ctx context.Context, part *content, called, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sameChunks(ctx, part, called, path)
}

// groupsIn are the row groups that have chunks in a file, called so. The caller holds mu.
func (f *content) groupsIn(called string) []int {
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
