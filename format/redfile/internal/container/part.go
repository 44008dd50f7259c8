package container

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/redfile/internal/layout"
	"stoa/internal/thrift"
	"stoa/store"
	"stoa/wire"
)

// header reads the header of the page at pos.
func (f *File) header(ctx context.Context, pos int64) (layout.PageHeader, int64, error) {
	b := make([]byte, max(0, min(layout.MaxFoundHeader, f.At.Len-pos)))
	if err := format.ReadFull(ctx, f.Src, f.At.Sub(pos, int64(len(b))), "", b); err != nil {
		return layout.PageHeader{}, 0, err
	}
	return layout.HeaderIn(b, f.At.Sub(pos, f.At.Len-pos))
}

// FirstBlock returns the sync block at the beginning of the file and the span of its body; nil if there is none or it
// is damaged.
func (f *File) FirstBlock(ctx context.Context) (*layout.SyncBlock, fault.Span) {
	h, head, err := f.header(ctx, layout.MagicLen)
	if err != nil || h.Kind != layout.SyncPage || int64(h.Stored) > f.Limits.Metadata {
		return nil, fault.Span{}
	}
	s, at, err := f.ReadSync(ctx, layout.MagicLen, &h, head)
	if err != nil {
		return nil, at
	}
	return s, at
}

// ReadSync reads the sync block whose header h, of head bytes, is at pos, and returns the span of its body. The block
// is nil without an error if its checksum fails or it was written for another offset. Only the store causes errors.
func (f *File) ReadSync(ctx context.Context, pos int64, h *layout.PageHeader,
	head int64) (*layout.SyncBlock, fault.Span, error) {
	at := f.At.Sub(pos+head, int64(h.Stored))
	b := make([]byte, h.Stored)
	if err := format.ReadFull(ctx, f.Src, at, "", b); err != nil {
		return nil, at, err
	}
	c := wire.NewCursor(b, at, "sync")
	s := layout.ParseSync(thrift.NewReader(c, layout.ProtocolOfSync(b)), "")
	if c.Err() != nil || layout.CRC(b) != h.CRC || s.Offset != pos {
		return nil, at, nil
	}
	return &s, at, nil
}

// checkMarker returns an error if the marker in the metadata at the end differs from that of the sync block at the
// beginning: then the metadata belongs to a file within a page, after which this file was truncated. b has the first
// bytes after the magic.
func (f *File) checkMarker(ctx context.Context, b []byte) error {
	c := wire.NewCursor(b, f.At.Sub(layout.MagicLen, int64(len(b))), "")
	h := layout.ParsePageHeader(thrift.NewReader(c, layout.ProtocolOf(b)), "")
	if field, _ := h.Problem(); c.Err() != nil || h.Kind != layout.SyncPage || field != "" {
		return nil
	}
	head := int64(c.Pos())
	// The block may extend beyond b, but its first field is the marker.
	s := layout.ParseSync(thrift.NewReader(c, layout.ProtocolOfSync(c.Rest())), "")
	if bytes.Equal(s.Marker, f.Footer.Marker()) || int64(h.Stored) > f.Limits.Metadata {
		return nil
	}
	whole, _, err := f.ReadSync(ctx, layout.MagicLen, &h, head)
	if err != nil || whole == nil { // the marker itself may be damaged
		return ctx.Err()
	}
	return fault.Corruptf(f.MetaAt, "file_metadata.key_value_metadata."+layout.SyncKey,
		"the file began with the marker %x: this is the metadata of a file within it, after which it is cut",
		whole.Marker)
}

// checkPart compares a part with the metadata, because another part in its place could often be read without an error.
// The sync block at its beginning contains the marker of the table and the number of preceding row groups; without such
// a block, the chunks in the part's own metadata are compared.
func (f *File) checkPart(ctx context.Context, src store.Source, name string, group, col int) error {
	if f.NoVerify || f.FromParts {
		return nil
	}
	part := New(f.Tree, src, fault.Span{Object: name, Len: src.Size()}, format.OpenOptions{Limits: f.Limits},
		f.Opts)
	path := layout.ChunkPath(group, col) + ".file_path"
	filePath := f.Footer.Groups[group].Columns[col].File
	marker := f.Footer.Marker()
	s, at := part.FirstBlock(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	if marker == nil || s == nil {
		return f.sameChunks(ctx, part, filePath, path)
	}
	if !bytes.Equal(s.Marker, marker) {
		return fault.Corruptf(at, path, "%q is a part of another table: its marker is %x, this one's is %x", filePath,
			s.Marker, marker)
	}
	first := f.groupsIn(filePath)[0]
	if int(s.Groups) != first {
		return fault.Corruptf(at, path, "%q is another part of the table: it begins with row group %d, and not %d",
			filePath, s.Groups, first)
	}
	return nil
}

// sameChunks returns an error if a row group that the metadata places in a part is not in the part's own metadata. A
// single different structure may be damage of the part's metadata, which reading does not need, and is an error only if
// the checksum of that metadata matches.
func (f *File) sameChunks(ctx context.Context, part *File, filePath, path string) error {
	if err := part.readMeta(ctx, nil); err != nil {
		if errors.Is(err, fault.Corrupt) || errors.Is(err, fault.Unsupported) || fault.OverBudget(err) {
			return ctx.Err()
		}
		return err
	}
	if own, table := part.Footer.Marker(), f.Footer.Marker(); own != nil && table != nil && part.Footer.HasCRC &&
		!bytes.Equal(own, table) {
		return fault.Corruptf(part.MetaAt, path, "%q is a part of another table: by its own metadata its marker is "+
			"%x, this one's is %x", filePath, own, table)
	}
	own := part.Footer.Groups
	if !part.Footer.CountsAgree() || slices.ContainsFunc(own, func(g layout.RowGroup) bool { return g.Rows < 0 }) {
		return nil // the part contradicts itself
	}
	begin := map[int64]*layout.RowGroup{} // by offset of the first column's metadata
	for i := range own {
		if len(own[i].Columns) > 0 {
			begin[own[i].Columns[0].Offset] = &own[i]
		}
	}
	for n, i := range f.groupsIn(filePath) {
		g := &f.Footer.Groups[i]
		if slices.ContainsFunc(g.Columns, func(c layout.ColumnChunk) bool { return c.File != filePath }) {
			return nil // other programs may distribute columns over files as they like
		}
		o := begin[g.Columns[0].Offset]
		if o == nil && n < len(own) {
			o = &own[n]
		}
		if o == nil {
			return fault.Corruptf(part.MetaAt, path, "%q is another part, or of another table: by its own "+
				"metadata it has %s, and none of %s", filePath, fault.Count(len(own), "row group"),
				fault.Count(g.Rows, "row"))
		}
		if odd, what := g.Differs(o); odd > 1 || odd > 0 && part.Footer.HasCRC {
			return fault.Corruptf(part.MetaAt, path,
				"%q is another part, or of another table: by its own metadata it has %s", filePath, what)
		}
	}
	return nil
}

// CheckPartChunks compares the row groups that the metadata places in a part, under filePath, with those in the part's
// own metadata. A difference is an error of class Corrupt at path.
func (f *File) CheckPartChunks(ctx context.Context, part *File, filePath, path string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sameChunks(ctx, part, filePath, path)
}

// groupsIn returns the indices of the row groups that have chunks in the file at filePath. The caller holds mu.
func (f *File) groupsIn(filePath string) []int {
	if f.groupsByFile == nil {
		f.groupsByFile = map[string][]int{}
		for i := range f.Footer.Groups {
			for _, c := range f.Footer.Groups[i].Columns {
				if l := f.groupsByFile[c.File]; len(l) == 0 || l[len(l)-1] != i {
					f.groupsByFile[c.File] = append(l, i)
				}
			}
		}
	}
	return f.groupsByFile[filePath]
}
