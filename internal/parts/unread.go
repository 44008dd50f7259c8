package parts

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// Unread returns findings, dir.part.unread, about the files in the directory of a table that hold data of the table's
// own format and that the table's metadata does not name: their rows are not among those of the table, and nothing else
// would say so. named reports whether the table reads a file of the directory, and data says what another one holds, ""
// if it is not of the format. Files whose names begin with . or _ are no data, as everywhere. If the directory cannot
// be listed, it may hold such files, which is a finding, too: dir.unlisted.
func Unread(ctx context.Context, tree store.Tree, dir string, named func(base string) bool,
	data func(ctx context.Context, file store.Info) string) (out []region.Finding) {
	for info, err := range tree.List(ctx, dir) {
		if err != nil {
			if store.Failing(err) && ctx.Err() == nil {
				f := finding("dir.unlisted", dir, "the directory cannot be listed (%s): data files in it that the "+
					"metadata of the table does not name would not be noticed", reason(err))
				f.Severity, f.Part = region.Warning, dir
				out = append(out, f)
			}
			return out
		}
		base := path.Base(info.Name)
		if info.Dir || info.Size == 0 || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || named(base) {
			continue
		}
		if what := data(format.Glance(ctx), info); what != "" {
			f := finding("dir.part.unread", info.Name, "it is %s, and the metadata of the table beside it does not "+
				"name it: what it holds is not read", what)
			f.Part = dir
			out = append(out, f)
		}
	}
	return out
}

// reason returns the reason of a failure, without operation and name.
func reason(err error) error {
	if p := new(fs.PathError); errors.As(err, &p) {
		return p.Err
	}
	return err
}
