package page

import (
	"context"
	"slices"

	"stoa/fault"
	"stoa/format/redfile/internal/container"
	"stoa/format/redfile/internal/layout"
)

// Pages do not name their column, and a checksum covers them wherever they lie. If bytes were inserted or removed,
// whole pages of another column, or later pages of the same one, may be where the metadata has the chunk's first. What
// names a chunk is the copy of its metadata after its pages: where such a copy is found at its offset, nothing before
// it has moved.

// checkPlace gives up a chunk whose pages may be those of another one, though they add up.
func (t *Table) checkPlace(ctx context.Context, begin, end int64) error {
	f := t.File
	if f.NoVerify || f.FromParts || f.Lost != nil && !f.Placed || t.Meta.Values == 0 {
		return nil
	}
	placed, err := t.placed(ctx, begin)
	if err != nil || placed == yes {
		return err
	}
	if placed == unknown {
		spans, err := t.spansStructures(ctx, begin, end)
		if err != nil || spans {
			return err
		}
	}
	t.Pages, t.Indexed, t.err = nil, false, fault.Corruptf(t.At.Sub(begin, 0), layout.ChunkPath(t.Group, t.Col),
		"its pages may be those of another column or row group: the metadata after them is not that of this chunk")
	return nil
}

// spansStructures reports whether the chunk's pages extend from where a structure ends to where the next one begins.
func (t *Table) spansStructures(ctx context.Context, begin, end int64) (bool, error) {
	if ok, err := t.followsStructure(ctx, begin); err != nil || !ok && t.copies() {
		return false, err
	} else if t.Indexed {
		return ok, nil
	}
	ok, err := t.reaches(ctx, end)
	if !ok || t.copies() || end == t.At.Len {
		return ok, err
	}
	return t.structureAt(ctx, end)
}

type answer int

const (
	unknown answer = iota
	yes
	no
)

// placed reports whether the pages at begin are where they were written.
func (t *Table) placed(ctx context.Context, begin int64) (answer, error) {
	f := t.File
	if f.Footer.Groups[t.Group].Columns[t.Col].Meta == nil {
		return t.endsAtMeta(begin), nil
	}
	if !t.copies() {
		return unknown, nil
	}
	found, err := t.copyOf(ctx, t.Group, t.Col)
	if err != nil || found != unknown {
		return found, err
	}
	last, err := f.LastInPlace(t.Group, t.Col, func(g, k int) (bool, error) {
		found, err := t.copyOf(ctx, g, k)
		return found == yes, err
	})
	if err != nil || begin >= last {
		return unknown, err
	}
	return yes, nil
}

// endsAtMeta reports whether the chunk's own index or metadata is the next structure after its pages. Generation A has
// no other copy of the metadata, so the place of the pages is known from one that may itself have moved.
func (t *Table) endsAtMeta(begin int64) answer {
	end := begin
	if n := len(t.Pages); n > 0 {
		end = t.Pages[n-1].Off + t.Pages[n-1].Size
	}
	next := t.File.StructureAfter(t.At, end-1, t.Group, t.Col)
	if next == t.Meta.Index || next == t.File.Footer.Groups[t.Group].Columns[t.Col].Offset {
		return yes
	}
	return no
}

// copies reports whether the chunk's metadata was written after its pages as well: redelm did not.
func (t *Table) copies() bool {
	c := &t.File.Footer.Groups[t.Group].Columns[t.Col]
	return c.Meta != nil && c.Offset > c.Meta.Data && c.Offset < t.At.Len
}

// copyOf reports whether the copy of the metadata of a chunk is at its offset (yes), or that of another chunk is (no).
func (t *Table) copyOf(ctx context.Context, group, col int) (answer, error) {
	c := &t.File.Footer.Groups[group].Columns[col]
	own := &t.File.Footer.Groups[t.Group].Columns[t.Col]
	if c.Meta == nil || c.File != own.File || c.Offset <= c.Meta.Data || c.Offset >= t.At.Len {
		return unknown, nil
	}
	m, _, err := container.ReadColumnMeta(ctx, t.Src, t.At.Sub(c.Offset, t.At.Len-c.Offset), t.File.Limits.Metadata, "")
	switch {
	case err != nil && !isDamage(err):
		return unknown, err
	case err != nil:
		return unknown, nil
	case m.Data == c.Meta.Data && slices.Equal(m.Path, c.Meta.Path):
		return yes, nil
	case t.File.Describes(m, c.File):
		return no, nil
	}
	return unknown, nil
}
