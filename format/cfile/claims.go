package cfile

import (
	"context"
	"path"
	"strings"

	"stoa/format"
)

// claims is format.Format.Claims: of the directory of a table setFile names every file. Of what it does not
// name verify tells, unless there is no setFile.
func claims(ctx context.Context, tg format.Target, o format.OpenOptions) func(string, bool) format.Claim {
	dir := path.Clean(tg.Name)
	known := map[string]bool{path.Join(dir, setFile): true}
	set, err := readSet(ctx, tg, o.Limits)
	for _, c := range set.Columns {
		known[path.Join(dir, c.File)] = true
	}
	return func(name string, isDir bool) format.Claim {
		switch {
		case name == dir, known[name], err != nil && !isDir && strings.HasSuffix(name, ".cfile"):
			return format.OfTable
		case err == nil && path.Dir(name) == dir:
			return format.Told
		}
		return format.Foreign
	}
}
