package source

import (
	"context"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
	"stoa/store"
)

// Together replaces the paths of places that are parts of one place, or copies of each other, such as the disks of a
// Kudu cluster, by one path in the tree of the returned options. Paths of tables are kept. Standard error says what the
// new path stands for.
func Together(a *cli.App, ctx context.Context, paths []string, o stoa.OpenOptions) ([]string, stoa.OpenOptions, error) {
	a.Reads(paths...)
	var out, places []string
	at := -1
	for _, p := range paths {
		f, err := stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: p}, o)
		if err != nil || !f.Together {
			out = append(out, p)
			continue
		}
		if at < 0 {
			at, out = len(out), append(out, p)
		}
		places = append(places, p)
	}
	if len(places) < 2 {
		return paths, o, nil
	}
	tree, name, err := store.Joined(o.Tree, places)
	if err != nil {
		return nil, o, cli.WrongUse("these places are read as one: %v", err)
	}
	a.Note("%s stands for %s, read as one place", name, strings.Join(places, ", "))
	o.Tree, out[at] = tree, name
	return out, o, nil
}
