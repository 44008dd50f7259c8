package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ResolveDotDot resolves any .. after a symbolic link in name. Names below it are joined as text, where .. would mean
// the link's directory and not the parent of the link's target.
func (Local) ResolveDotDot(name string) string {
	if !slices.Contains(strings.Split(filepath.ToSlash(name), "/"), "..") {
		return name
	}
	words := filepath.FromSlash(name)
	real, err := filepath.EvalSymlinks(words)
	if err != nil {
		return name
	}
	x, err := os.Stat(real)
	y, err2 := os.Stat(filepath.Clean(words))
	if err == nil && (err2 != nil || !os.SameFile(x, y)) {
		return filepath.ToSlash(real)
	}
	return name
}

// IsLocal reports whether a tree is, or wraps, the local file system.
func IsLocal(t Tree) bool {
	for {
		inner, ok := t.(interface{ Unwrap() Tree })
		if !ok {
			_, local := t.(Local)
			return local
		}
		t = inner.Unwrap()
	}
}
