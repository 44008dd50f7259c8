package seal

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"stoa/internal/sorted"
	"stoa/store"
)

// Places are where the files are: as many, and in the same order, when they are sealed and later.
type Places struct {
	Roots   []string
	Address func(root string) bool // whether Tree reads a root; nil: it reads none
	Tree    store.Tree
}

// far reports whether a file is not on a disk.
func (p Places) far(f *File) bool { return p.Address != nil && p.Address(p.Roots[f.Root]) }

// Walk lists the files of each place separately, sorted by name. A place that is a symbolic link is followed; links
// below it are not.
func (p Places) Walk(ctx context.Context) (files []File, err error) {
	for i, root := range p.Roots {
		from := len(files)
		add := func(f File) {
			f.Root = i
			files = append(files, f)
		}
		if p.Address != nil && p.Address(root) {
			err = p.walkAddress(ctx, root, add)
		} else {
			err = walkDisk(root, add)
		}
		if err != nil {
			return nil, err
		}
		sorted.By(files[from:], func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	}
	for i := range files {
		files[i].Index = i
	}
	return files, nil
}

func walkDisk(root string, add func(File)) error {
	real, err := filepath.EvalSymlinks(root)
	if err != nil { // about a directory above, or without any name
		var p *fs.PathError
		if errors.As(err, &p) {
			err = p.Err
		}
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	return filepath.WalkDir(real, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(real, name)
		if err != nil {
			return err
		}
		f := File{Name: filepath.ToSlash(rel)}
		if err := f.look(name); err != nil {
			return err
		}
		add(f)
		return nil
	})
}

// walkAddress lists the objects at and below an address.
func (p Places) walkAddress(ctx context.Context, root string, add func(File)) error {
	info, err := p.Tree.Stat(ctx, root)
	if err != nil {
		return err
	}
	if !info.Dir {
		add(File{Name: ".", Kind: Regular, Size: info.Size})
		return nil
	}
	top := strings.TrimSuffix(root, "/") + "/"
	var below func(dir string) error
	below = func(dir string) error {
		for o, err := range p.Tree.List(ctx, dir) {
			if err != nil {
				return err
			}
			name := strings.TrimSuffix(dir, "/") + "/" + o.Name[strings.LastIndexByte(o.Name, '/')+1:]
			if !o.Dir {
				add(File{Name: strings.TrimPrefix(name, top), Kind: Regular, Size: o.Size})
			} else if err := below(name); err != nil {
				return err
			}
		}
		return nil
	}
	return below(root)
}

// openFile is a file that is open for reading.
type openFile struct {
	io.Reader
	io.ReaderAt
	io.Closer
	size int64
	same func() (bool, error) // whether it is still what was opened
}

// open opens a regular file. An object at an address that changes gives store.ErrChanged when it is read.
func (p Places) open(ctx context.Context, f *File) (*openFile, error) {
	if p.far(f) {
		return p.openAddress(ctx, f.label(p.Roots))
	}
	name, err := f.path(p.Roots)
	if err != nil {
		return nil, err
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	before, err := in.Stat()
	if err != nil {
		in.Close()
		return nil, err
	}
	size := before.Size()
	if !before.Mode().IsRegular() {
		size = -1
	}
	return &openFile{in, in, in, size, func() (bool, error) {
		after, err := in.Stat()
		return err == nil && after.Size() == before.Size() && after.ModTime().Equal(before.ModTime()), err
	}}, nil
}

func (p Places) openAddress(ctx context.Context, name string) (*openFile, error) {
	in, err := p.Tree.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	all := io.NewSectionReader(store.ReaderAt(ctx, in), 0, in.Size())
	return &openFile{all, all, in, in.Size(), func() (bool, error) { return true, nil }}, nil
}
