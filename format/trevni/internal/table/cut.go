package table

import (
	"context"

	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/check"
)

// CheckCut sets t.Cut if the file ends before its columns do: by the header, which says where columns begin, and by the
// descriptors of the one that begins last. All that is needed to read the others is there, so they are read.
func (t *Table) CheckCut(ctx context.Context) error {
	f := t.File
	last, after := -1, 0
	for i := range f.Header.Columns {
		switch start := f.Header.Columns[i].Start; {
		case start > f.At.Len-4:
			after++
		case last < 0 || start > f.Header.Columns[last].Start:
			last = i
		}
	}
	r := check.Collect(ctx, t.name, layout.Codes, &t.Cut)
	if after > 0 {
		r.Report("trevni.column.damaged", f.At.Sub(f.At.Len, 0), "header.column-start",
			"the file is cut: it ends before the beginning of %d of %d columns", after, len(f.Header.Columns))
		return nil
	}
	if last < 0 {
		return nil
	}
	r.Column = f.Header.Columns[last].Name
	cb, err := f.Blocks(ctx, last)
	switch {
	case container.IsFault(err):
		r.Blame("trevni.column.damaged", err, -1, -1)
	case err != nil:
		return err
	case cb.End > f.At.Len:
		r.Report("trevni.block.cut", cb.Desc, f.PathOf(last), "the blocks of the last column end at %d, and the file "+
			"at %d: it is cut", cb.End, f.At.Len)
	}
	return nil
}
