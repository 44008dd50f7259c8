package source

import (
	"context"
	"errors"
	"slices"
	"strings"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/fault"
	"stoa/format"
	"stoa/store"
)

// Together replaces the paths of places that are parts of one place, or copies of each other, such as the disks of a
// Kudu cluster, by one path in the tree of the returned options, and paths of
// the same table in several of them by one of it. Standard error says what the new path stands for.
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
	if len(places) == 0 {
		return tablesTogether(a, ctx, paths, o)
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

// tablesTogether is Together for paths of tables, PLACE#TABLE. Tables that only have the same name stay two.
func tablesTogether(a *cli.App, ctx context.Context, paths []string, o stoa.OpenOptions) ([]string, stoa.OpenOptions,
	error) {
	in := map[string][]string{} // the places of each table
	table := func(p string) string {
		i := len(cli.WithoutTable(p))
		if i == 0 || i == len(p) {
			return ""
		}
		f, err := stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: p[:i]}, o)
		if err != nil || !f.Together {
			return ""
		}
		return p[i+1:]
	}
	names := make([]string, len(paths))
	for i, p := range paths {
		if names[i] = table(p); names[i] != "" {
			in[names[i]] = append(in[names[i]], strings.TrimSuffix(p, "#"+names[i]))
		}
	}
	var places []string // of the first table that is in several; a tree joins one set of places
	var out []string
	joined, whole := o, ""
	done := map[string]bool{}
	for i, p := range paths {
		name := names[i]
		if here := in[name]; name == "" || len(here) < 2 || len(places) > 0 && !slices.Equal(places, here) {
			out = append(out, p)
			continue
		} else if done[name] {
			continue
		} else if len(places) == 0 {
			tree, at, err := store.Joined(o.Tree, here)
			if err != nil {
				return nil, o, cli.WrongUse("these places are read as one: %v", err)
			}
			joined.Tree, whole, places = tree, at, here
		}
		for _, err := range stoa.List(ctx, whole+"#"+name, joined) {
			if errors.Is(err, fault.Invalid) {
				return paths, o, nil
			}
		}
		done[name] = true
		out = append(out, whole+"#"+name)
	}
	if len(places) > 0 {
		a.Note("%s stands for %s, read as one place", whole, strings.Join(places, ", "))
	}
	return out, joined, nil
}
