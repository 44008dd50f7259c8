package rerun

import (
	"context"
	"path"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/pieces"
	"stoa/internal/seal"
)

// DigestOf returns what identifies the bytes of a table's output: a checksum of the digests of its files.
func (d *Table) DigestOf(ctx context.Context, a *cli.App, dir string) (string, error) {
	places := a.Sealed([]string{d.Place(dir)})
	files, err := places.Walk(ctx)
	if err != nil {
		return "", err
	}
	var all strings.Builder
	for i := range files {
		f := &files[i]
		other := len(d.Pieces) > 0 &&
			!slices.ContainsFunc(d.Pieces, func(p pieces.File) bool { return path.Clean(p.Name) == f.Name })
		if other || f.Kind != seal.Regular {
			continue
		}
		sum, err := places.Digest(ctx, f)
		if err != nil {
			return "", err
		}
		all.WriteString(f.Name + " " + sum + "\n")
	}
	return sumOfState([]byte(all.String())), nil
}
