package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ResolveDotDot is name without .. after a symbolic link, if it has any. Names below it are joined as text, which would
// take .. to lead to the directory of the link, and not to that above what the link leads to.
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

// IsLocal reports whether a tree is the local file system, or wraps it.
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
