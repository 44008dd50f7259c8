package glob

import (
	"context"
	"path"

	"stoa/fault"
	"stoa/store"
)

// MaxDepth is how many levels of directories are followed.
const MaxDepth = 40

// DotDot resolves name as the operating system does, where .. after a symbolic link leads to the parent of the
// link's target.
func DotDot(tree store.Tree, name string) string {
	if local, ok := tree.(interface{ ResolveDotDot(string) string }); ok {
		return local.ResolveDotDot(name)
	}
	return name
}

// Ignored reports whether an entry with this name is never part of a directory of files.
func Ignored(name string) bool {
	base := path.Base(name)
	return base[0] == '.' || base[0] == '_'
}

// Unfinished returns an error for a directory in which a table is being written.
func Unfinished(ctx context.Context, tree store.Tree, dir string) error {
	if info, err := tree.Stat(ctx, path.Join(dir, store.RecordsDir)); err != nil || !info.Dir {
		return nil
	}
	return fault.Unsupportedf(fault.Span{Object: dir}, "", "a table is being written there, or its writing was "+
		"interrupted: the same command goes on with it, given --resume")
}

// HoldsFile reports whether there is a file in or below a directory, except those that begin with . or _. A directory
// that cannot be listed counts as a file.
func HoldsFile(ctx context.Context, tree store.Tree, name string, depth int) bool {
	for info, err := range tree.List(ctx, name) {
		if err != nil {
			return true
		}
		if Ignored(info.Name) {
			continue
		}
		if !info.Dir || depth > MaxDepth || HoldsFile(ctx, tree, info.Name, depth+1) {
			return true
		}
	}
	return false
}

// Zeros reports whether a file begins with Zeros.
func Zeros(ctx context.Context, tree store.Tree, name string) bool {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return false
	}
	defer src.Close()
	var head [512]byte
	n, _ := src.ReadAt(ctx, head[:], 0)
	return n > 0 && head == [512]byte{}
}
