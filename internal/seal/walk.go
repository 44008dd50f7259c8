package seal

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zeebo/xxh3"
)

// look sets the kind, size and target of the file called name, without opening it.
func (f *File) look(name string) error {
	st, err := os.Lstat(name)
	if err != nil {
		return err
	}
	switch {
	case st.Mode().IsRegular():
		f.Kind, f.Size = Regular, st.Size()
	case st.Mode()&fs.ModeSymlink != 0:
		f.Kind = Link
		if f.Link, err = os.Readlink(name); err != nil {
			return err
		}
		f.Link = filepath.ToSlash(f.Link)
	default:
		f.Kind = Special
	}
	return nil
}

// path returns the path of the file; roots are the present places of the sealed roots.
func (f *File) path(roots []string) (string, error) {
	real, err := filepath.EvalSymlinks(roots[f.Root])
	if err != nil {
		return "", err
	}
	if f.Name == "." {
		return real, nil
	}
	return filepath.Join(real, filepath.FromSlash(f.Name)), nil
}

// label returns the name of the file for messages.
func (f *File) label(roots []string) string {
	if f.Name == "." {
		return roots[f.Root]
	}
	return strings.TrimSuffix(roots[f.Root], "/") + "/" + f.Name
}

// Label returns the root as given, joined with the file's name below it.
func (f *File) Label(roots []string) string { return f.label(roots) }

// Digest reads a regular file and returns its digest as a seal records it: over its blocks' checksums and its size.
func (p Places) Digest(ctx context.Context, f *File) (string, error) {
	in, err := p.open(ctx, f)
	if err != nil {
		return "", err
	}
	defer in.Close()
	all := xxh3.New()
	err = eachBlock(ctx, in, f.Size, func(b []byte) error {
		sum := sumOf(b)
		_, err := all.Write(sum[:])
		return err
	})
	if err != nil {
		return "", fmt.Errorf("%s: %w", f.label(p.Roots), err)
	}
	return digest(all, f.Size), nil
}

// check returns an error if a seal's record of a file is impossible.
func (f *File) check(roots int) error {
	switch {
	case f.Root < 0 || f.Root >= roots:
		return fmt.Errorf("file %d is of place %d of %d", f.Index, f.Root, roots)
	case f.Name == "" || !filepath.IsLocal(filepath.FromSlash(f.Name)) ||
		filepath.ToSlash(filepath.Clean(filepath.FromSlash(f.Name))) != f.Name || strings.ContainsRune(f.Name, 0):
		return fmt.Errorf("the name %q leads elsewhere", f.Name)
	case f.Kind != Regular && f.Kind != Link && f.Kind != Special:
		return fmt.Errorf("%s is a %q", f.Name, f.Kind)
	case f.Size < 0 || f.Kind != Regular && f.Size != 0:
		return fmt.Errorf("%s has %d bytes", f.Name, f.Size)
	}
	return nil
}
