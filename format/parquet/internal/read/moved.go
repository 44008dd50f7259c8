package read

import (
	"context"
	"errors"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
)

// moved gives up the last chunk of a file, if its pages have no checksums, where none of the indexes behind it is where
// the footer says: bytes were put in or taken out before them, and if that was in the last page of all, nothing else
// would tell that its values are others. One index that is damaged alone proves nothing, and one that is whole, that
// nothing has moved. Behind every other chunk the next one has a header.
func (t *pageTable) moved(ctx context.Context) error {
	if !t.bare || t.sealed() != nil || t.r.NoVerify {
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
			if err := look(x != nil, x != nil && x.Behind.Len == 0 && len(x.Offsets) > 0, err); err != nil {
				return unless(err, errInPlace)
			}
		}
	}
	c, err := t.r.ColumnIndex(ctx, t.group, t.leaf, len(t.pages))
	if err := look(c != nil, c != nil && c.Behind.Len == 0, err); err != nil {
		return unless(err, errInPlace)
	}
	if bad < 2 {
		return nil
	}
	t.pages = nil
	return fault.Corruptf(t.at, meta.IndexPath(t.group, t.leaf, ""), "no index behind it is where the footer says, "+
		"and its pages have no checksums: nobody knows which of its values are right")
}

var errInPlace = errors.New("in place")

func unless(err, not error) error {
	if err == not {
		return nil
	}
	return err
}
