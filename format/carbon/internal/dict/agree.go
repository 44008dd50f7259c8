package dict

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/store"
)

// Agree returns nil if all codes of a column in the data files of dir mean the same in the table in tableDir. For that
// dir must be a segment of another table, and that table's dictionary the beginning of this one's: dictionaries only
// grow. Anything else is Invalid: files that were moved away from their dictionary do not tell which one it was.
func Agree(ctx context.Context, tree store.Tree, dir, tableDir string, col *schema.Column) error {
	refused := func(why string, args ...any) error {
		return fault.Invalidf("%s: column %s has codes of a dictionary, which may be other values in the table's: "+
			why, append([]any{dir, col.Name}, args...)...)
	}
	part := path.Dir(dir)
	above := path.Dir(path.Dir(part))
	if !strings.HasPrefix(path.Base(dir), "Segment_") || !strings.HasPrefix(path.Base(part), "Part") ||
		path.Base(path.Dir(part)) != "Fact" {
		return refused("expected a segment of a table with the same dictionary, found files without a table")
	}
	name := path.Join(above, "Metadata", col.ID+DictExt)
	theirs, err := written(ctx, tree, name, col)
	if errors.Is(err, fs.ErrNotExist) {
		return refused("expected the dictionary of these files, %s, found none", name)
	}
	if err != nil {
		return err
	}
	own := path.Join(tableDir, "Metadata", col.ID+DictExt)
	ours, err := written(ctx, tree, own, col)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for i, v := range theirs {
		switch {
		case i >= len(ours):
			return refused("code %d is %q in %s, and %s has only %d codes", i+1, v, name, own, len(ours))
		case string(ours[i]) != string(v):
			return refused("code %d is %q in %s, and %q in %s", i+1, v, name, ours[i], own)
		}
	}
	return nil
}

// written returns the values of a dictionary that finished loads wrote, in the order of their codes.
func written(ctx context.Context, tree store.Tree, name string, col *schema.Column) ([][]byte, error) {
	g, err := openGlobal(ctx, tree, name, col, format.OpenOptions{})
	if err != nil {
		return nil, err
	}
	obj, err := layout.OpenObject(ctx, tree, name, g.Limits)
	if err != nil {
		return nil, err
	}
	b, err := obj.Read(ctx, 0, g.Dict.Len, "")
	if err != nil {
		return nil, err
	}
	return g.values(b)
}
