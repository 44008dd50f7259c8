// Package glob finds the names in a tree that match a pattern.
package glob

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/store"
)

// Names returns the names that match a pattern, at least one. Names that begin with a dot match only patterns that do,
// as in a shell. ** is any number of directories, or none; at the end, every file below them. Directories are followed
// to a depth of most. resolve resolves the directories before the first part with a wildcard.
func Names(ctx context.Context, tree store.Tree, pattern string, most int, resolve func(dir string) string) (
	[]string, error) {

	first := strings.IndexAny(pattern, "*?[")
	k := strings.LastIndexByte(pattern[:first], '/') + 1
	dir, rest := pattern[:k], pattern[k:]
	// the parent directory differs from match to match
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return nil, fault.Invalidf("%s: .. cannot follow a pattern", pattern)
	}
	if dir != "" {
		dir = strings.TrimSuffix(resolve(dir), "/") + "/"
	}
	if dir != "/" {
		dir = strings.TrimSuffix(dir, "/")
	}
	g := globber{ctx: ctx, tree: tree, pattern: pattern, parts: strings.Split(path.Clean(rest), "/"), most: most}
	if err := g.walk(dir, []int{0}, 0); err != nil {
		return nil, err
	}
	if len(g.names) == 0 {
		return nil, &fs.PathError{Op: "open", Path: pattern, Err: errors.New("no file matches")}
	}
	return g.names, nil
}

// globber finds the names that match a pattern.
type globber struct {
	ctx     context.Context
	tree    store.Tree
	pattern string
	parts   []string // of the pattern
	most    int
	names   []string
}

// anyDepth is the part of a pattern that matches any number of directories.
const anyDepth = "**"

// walk lists dir once. Its entries may match each of the parts in at.
func (g *globber) walk(dir string, at []int, depth int) error {
	for i := 0; i < len(at); i++ { // ** may be no directory at all
		if k := at[i]; g.parts[k] == anyDepth && k+1 < len(g.parts) && !slices.Contains(at, k+1) {
			at = append(at, k+1)
		}
	}
	for info, err := range g.tree.List(g.ctx, dir) {
		if err != nil {
			return err
		}
		matched, below, err := g.match(info, at)
		if err != nil {
			return fault.Invalidf("%s: %v", g.pattern, err)
		}
		if matched {
			g.names = append(g.names, info.Name)
		}
		if len(below) == 0 {
			continue
		}
		if depth >= g.most+len(g.parts) {
			return fault.Invalidf("%s: %s is more than %d directories deep", g.pattern, info.Name, g.most)
		}
		if err := g.walk(info.Name, below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// match reports whether an entry matches the whole pattern, and which parts the entries below it may match.
func (g *globber) match(info store.Info, at []int) (matched bool, below []int, err error) {
	base, end := path.Base(info.Name), len(g.parts)-1
	for _, k := range at {
		part := g.parts[k]
		if base[0] == '.' && part[0] != '.' {
			continue
		}
		if part == anyDepth {
			if info.Dir && !slices.Contains(below, k) {
				below = append(below, k)
			}
			matched = matched || k == end && !info.Dir
			continue
		}
		switch ok, err := path.Match(part, base); {
		case err != nil:
			return false, nil, err
		case ok && k == end:
			matched = true
		case ok && info.Dir && !slices.Contains(below, k+1):
			below = append(below, k+1)
		}
	}
	return matched, below, nil
}
