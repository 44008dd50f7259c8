package page

import (
	"context"
	"slices"

	"stoa/fault"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
)

// checkPlace gives up a chunk whose pages may be those of another one. Pages do not name their column, and a checksum
// covers them wherever they lie: if bytes were inserted or removed, whole pages of another column may be where the
// metadata has this one's. The copy of the chunk's metadata after its pages decides. Without it, the pages must
// extend from one structure to the next.
func (t *Table) checkPlace(ctx context.Context, begin, end int64) error {
	f := t.File
	if f.NoVerify || f.FromParts || f.Lost != nil || t.Meta.Values == 0 {
		return nil
	}
	whose, err := t.ownerAfter(ctx)
	if err != nil || whose == ownChunk {
		return err
	}
	reason := "the metadata after them is that of another chunk"
	if whose == unknownChunk {
		follows, err := t.followsStructure(ctx, begin)
		if err != nil {
			return err
		}
		reaches := t.Indexed
		if !reaches {
			if reaches, err = t.reaches(ctx, end); err != nil {
				return err
			}
		}
		if follows && reaches {
			return nil
		}
		if reaches && f.Footer.Groups[t.Group].Columns[t.Col].Offset <= t.Meta.Data { // no copy was written
			begins := end == t.At.Len
			if !begins {
				begins, err = t.structureAt(ctx, end)
			}
			if err != nil || begins {
				return err
			}
		}
		reason = "no structure ends where they begin, and the metadata of the chunk is not after them"
	}
	t.Pages, t.Indexed, t.err = nil, false, fault.Corruptf(t.At.Sub(begin, 0), layout.ChunkPath(t.Group, t.Col),
		"its pages may be those of another column: %s", reason)
	return nil
}

type owner int

const (
	unknownChunk owner = iota
	ownChunk
	otherChunk
)

// ownerAfter reports to which chunk the column metadata belongs that lies where this chunk's should be.
func (t *Table) ownerAfter(ctx context.Context) (owner, error) {
	c := &t.File.Footer.Groups[t.Group].Columns[t.Col]
	if c.Meta == nil {
		return ownChunk, nil // t.Meta was read there
	}
	if c.Offset <= c.Meta.Data || c.Offset >= t.At.Len {
		return unknownChunk, nil
	}
	m, _, err := container.ReadColumnMeta(ctx, t.Src, t.At.Sub(c.Offset, t.At.Len-c.Offset), t.File.Limits.Metadata, "")
	switch {
	case err != nil && !isDamage(err):
		return unknownChunk, err
	case err != nil:
		return unknownChunk, nil
	case m.Data == c.Meta.Data && slices.Equal(m.Path, c.Meta.Path):
		return ownChunk, nil
	case t.File.Describes(m, c.File):
		return otherChunk, nil
	}
	return unknownChunk, nil
}
