package read

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
)

// checkNotMoved gives up the last chunk of a file whose pages have no checksums if none of the indexes after it is
// where the footer says. In that case bytes were inserted or removed before the indexes; if that happened within the
// last page, nothing else would reveal its wrong values. A single damaged index proves nothing; a single intact one
// proves that nothing has moved. Every other chunk is protected by the header of the next chunk.
func (t *pageTable) checkNotMoved(ctx context.Context) error {
	if !t.unchecked || t.cipher() != nil || t.r.NoVerify {
		return nil
	}
	bad := 0
	look := func(there, whole bool, err error) error {
		switch {
		case errors.Is(err, fault.Corrupt) || err == nil && there && !whole:
			bad++
			return nil
		case err == nil && there:
			return errInPlace
		}
		return err
	}
	for g, rg := range t.r.Footer.RowGroups {
		for k := range rg.Columns {
			if t.r.ChunkSpan(g, k).End() > t.at.End() {
				return nil
			}
		}
	}
	for g, rg := range t.r.Footer.RowGroups {
		for k := range rg.Columns {
			x, err := t.r.OffsetIndex(ctx, g, k)
			if err := look(x != nil, x != nil && x.Trailing.Len == 0 && len(x.Offsets) > 0, err); err != nil {
				return unless(err, errInPlace)
			}
		}
	}
	c, err := t.r.ColumnIndex(ctx, t.group, t.leaf, len(t.pages))
	if err := look(c != nil, c != nil && c.Trailing.Len == 0, err); err != nil {
		return unless(err, errInPlace)
	}
	if bad < 2 {
		return nil
	}
	t.pages = nil
	return fault.Corruptf(t.at, meta.IndexPath(t.group, t.leaf, ""),
		"none of the indexes after it is where the footer says, "+
			"and its pages have no checksums: its values cannot be trusted")
}

var errInPlace = errors.New("in place")

func unless(err, not error) error {
	if err == not {
		return nil
	}
	return err
}
