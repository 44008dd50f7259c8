package table

import (
	"path"
	"path/filepath"
	"strings"

	"stoa/fault"
)

// within is the name of a location that a file of the table gives by its whole address, as CarbonData does for added
// segments and for partitions outside of the table. One that lies outside of the place that was named is Unsupported,
// unless the option external is set: who made the table decides what is in it, and not what else is read.
// field of the object at is where it stands.
func (t *Managed) within(location, at, field string) (string, error) {
	dir := nameOf(location)
	root := t.O.Root
	if root == "" {
		root = t.Path
	}
	if t.O.external || inside(dir, root) {
		return dir, nil
	}
	return "", fault.Unsupportedf(fault.Span{Object: at}, field,
		"the location %q is outside of %s, and is followed only with external=true", location, root)
}

// nameOf is the name in a store.Tree of an address of Hadoop's.
func nameOf(location string) string {
	if rest, ok := strings.CutPrefix(location, "file:"); ok && strings.HasPrefix(rest, "/") {
		return path.Clean(rest)
	}
	for _, scheme := range []string{"s3a:", "s3n:"} {
		if rest, ok := strings.CutPrefix(location, scheme); ok {
			return path.Clean("s3:" + rest)
		}
	}
	return path.Clean(location)
}

// address reports whether a name begins with a scheme, as those of files in other stores do.
func address(name string) bool {
	scheme, _, ok := strings.Cut(name, ":/")
	return ok && !strings.Contains(scheme, "/")
}

// inside reports whether dir is root, or lies below it.
func inside(dir, root string) bool {
	if path.IsAbs(dir) && !path.IsAbs(root) && !address(root) {
		abs, err := filepath.Abs(filepath.FromSlash(root))
		if err != nil {
			return false
		}
		root = filepath.ToSlash(abs)
	}
	root = path.Clean(root)
	return dir == root || strings.HasPrefix(dir, strings.TrimSuffix(root, "/")+"/") || root == "." &&
		!path.IsAbs(dir) && !address(dir) && !strings.HasPrefix(dir, "../") && dir != ".."
}
