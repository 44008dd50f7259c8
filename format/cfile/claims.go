package cfile

import (
	"context"
	"path"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// claims implements format.Format.Claims: in a table's directory, setFile lists every file. verify reports files that
// are not listed, unless there is no setFile at all.
func claims(ctx context.Context, tg format.Target, o format.OpenOptions) format.Claimer {
	dir := path.Clean(tg.Name)
	known := map[string]bool{path.Join(dir, setFile): true}
	set, err := readSet(ctx, tg, o.Limits)
	for _, c := range set.Columns {
		known[path.Join(dir, c.File)] = true
	}
	return func(name string, isDir bool) (format.Claim, error) {
		switch {
		case store.Failing(err) || fault.OverBudget(err):
			return format.Foreign, err
		case name == dir, known[name], err != nil && !isDir && strings.HasSuffix(name, ".cfile"):
			return format.OfTable, nil
		case err == nil && path.Dir(name) == dir:
			return format.Reported, nil
		}
		return format.Foreign, nil
	}
}
