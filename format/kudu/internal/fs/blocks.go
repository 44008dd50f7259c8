package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"strconv"

	"stoa/fault"
	"stoa/format/kudu/internal/meta"
	"stoa/internal/sorted"
	"stoa/store"
)

// Place is the location of a block.
type Place struct {
	ID  uint64
	At  fault.Span // the file, and the range in it
	Dir int        // data directory: index into FS.DataDirs; -1 if the block was found in none
}

// placed returns the place of a block of the log block manager. If the block is not (completely) there, the error is
// Corrupt, and the Place holds what is known about it.
func (f *FS) placed(id uint64, x Placed) (Place, error) {
	c := f.Containers[x.Container]
	p := Place{id, fault.Span{Object: cmp.Or(c.Data, path.Join(f.DataDirs[c.Dir].Dir, c.Name+DataSuffix)),
		Off: x.Off, Len: x.Len}, c.Dir}
	switch {
	case x.lost && c.Data == "":
		return p, fault.Corruptf(p.At, "", "block %d: the container's data file is missing", id)
	case x.lost:
		return p, fault.Corruptf(p.At, "", "block %d reaches past the end of the container (%d)", id, c.Size)
	}
	return p, nil
}

func (f *FS) anyDataDir() string {
	if len(f.DataDirs) == 0 {
		return ""
	}
	return f.DataDirs[0].Dir
}

// PlaceOf finds a block that a superblock names. An error has the block's span, or that of the reference in the
// superblock if nothing is known of the block.
func (f *FS) PlaceOf(ctx context.Context, t *meta.Tablet, b meta.BlockRef) (Place, error) {
	p, err := f.blockOf(ctx, t, b.ID)
	if e, ok := err.(*fault.Error); ok && p.At.Object == "" {
		e.At = fault.Span{Object: t.Object, Off: b.Off, Len: int64(b.Len)}
	}
	return p, err
}

// BlockPath returns the path of a block of the file block manager, relative to its data directory.
func BlockPath(id uint64) string {
	return fmt.Sprintf("%02x/%02x/%02x/%016d", byte(id>>40), byte(id>>32), byte(id>>24), id)
}

// fileOf finds a tablet's block of the file block manager: first in the data directory that its id names, then in the
// others, whose indexes may be unknown or wrong.
func (f *FS) fileOf(ctx context.Context, t *meta.Tablet, id uint64) (Place, error) {
	name := BlockPath(id)
	var tried string
	var err error
	for pass := range 2 {
		for i := range f.DataDirs {
			d := &f.DataDirs[i]
			if (uint64(d.Index) == id>>48 && d.Index >= 0) != (pass == 0) {
				continue
			}
			at := path.Join(d.Dir, name)
			info, gone := f.Tree.Stat(ctx, at)
			switch own := f.owns(t, i); {
			case Gone(gone) && own:
				tried = cmp.Or(tried, at)
			case Gone(gone):
			case gone != nil:
				return Place{ID: id, Dir: i}, gone
			case !own:
				_, err = elsewhere(id)
			case info.Dir:
				return Place{ID: id, Dir: -1}, fault.Corruptf(fault.Span{Object: at}, "",
					"a directory stands where the file of block %d must be", id)
			default:
				return Place{id, fault.Span{Object: at, Len: info.Size}, i}, nil
			}
		}
	}
	if err == nil {
		err = fault.Corruptf(fault.Span{Object: tried}, "", "the file of block %d is missing", id)
	}
	return Place{ID: id, Dir: -1}, err
}

// AllBlocks iterates over all live blocks, including those that no superblock names. With the file block manager it
// walks the data directories; a directory that cannot be listed yields an error, and the walk continues.
func (f *FS) AllBlocks(ctx context.Context) iter.Seq2[Place, error] {
	return func(yield func(Place, error) bool) {
		if f.BlockManager == FileManager {
			for i := range f.DataDirs {
				if !f.walk(ctx, i, f.DataDirs[i].Dir, 0, yield) {
					return
				}
			}
			return
		}
		for n, c := range f.Containers {
			for _, x := range c.Live {
				if first := f.Blocks[x.ID].Container; first != int32(n) && !f.DataDirs[c.Dir].foreign &&
					!f.DataDirs[f.Containers[first].Dir].foreign {
					continue // it is counted with the first container that has the id
				}
				if !yield(Place{x.ID, fault.Span{Object: c.Data, Off: x.Off, Len: x.Len}, c.Dir}, nil) {
					return
				}
			}
		}
	}
}

// walk yields the blocks below a directory at a depth of 0 to 3 in data directory dir. It returns false if yield did.
func (f *FS) walk(ctx context.Context, dir int, at string, depth int, yield func(Place, error) bool) bool {
	for info, err := range f.Tree.List(ctx, at) {
		name := path.Base(info.Name)
		switch {
		case err != nil:
			if !yield(Place{Dir: dir, At: fault.Span{Object: at}}, err) {
				return false
			}
		case depth < 3:
			if info.Dir && isHexByte(name) && !f.walk(ctx, dir, info.Name, depth+1, yield) {
				return false
			}
		case !info.Dir:
			id, err := strconv.ParseUint(name, 10, 64)
			if err != nil || id == 0 || path.Join(f.DataDirs[dir].Dir, BlockPath(id)) != info.Name {
				continue // a temporary file
			}
			if !yield(Place{id, fault.Span{Object: info.Name, Len: info.Size}, dir}, nil) {
				return false
			}
		}
	}
	return true
}

// Unnamed returns the blocks that none of the tablets names or lists as orphaned, sorted by id: they are left over from
// a crash, or from tablets whose superblock is lost. The error is the first one; with an error the list is incomplete.
func (f *FS) Unnamed(ctx context.Context, tablets []*meta.Tablet) ([]Place, error) {
	named := map[uint64]*meta.Tablet{}
	for _, t := range tablets {
		for i := range t.RowSets {
			for _, b := range t.RowSets[i].Blocks() {
				named[b.ID] = t
			}
		}
		for _, b := range t.Orphaned {
			named[b.ID] = t
		}
	}
	var out []Place
	var first error
	for p, err := range f.AllBlocks(ctx) {
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		if t := named[p.ID]; t == nil || !f.owns(t, p.Dir) {
			out = append(out, p)
		}
	}
	sorted.By(out, func(a, b Place) int { return cmp.Compare(a.ID, b.ID) })
	return out, first
}

// OpenBlock opens a block as a source whose offset 0 is the block's first byte and whose size is the block's.
func (f *FS) OpenBlock(ctx context.Context, p Place) (store.Source, error) {
	src, err := f.Tree.Open(ctx, p.At.Object)
	if err != nil {
		return nil, err
	}
	if p.At.Off < 0 || p.At.Len < 0 || p.At.End() > src.Size() {
		src.Close()
		return nil, fault.Corruptf(p.At, "", "block %d reaches past the end of the object (%d)", p.ID, src.Size())
	}
	return &section{src, p.At}, nil
}

// section is a store.Source over part of another.
type section struct {
	src store.Source
	at  fault.Span
}

func (s *section) Size() int64  { return s.at.Len }
func (s *section) Close() error { return s.src.Close() }
func (s *section) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off >= s.at.Len {
		return 0, io.EOF
	}
	if int64(len(p)) <= s.at.Len-off {
		return s.src.ReadAt(ctx, p, s.at.Off+off)
	}
	n, err := s.src.ReadAt(ctx, p[:s.at.Len-off], s.at.Off+off)
	if err == nil {
		err = io.EOF
	}
	return n, err
}

// LostCode returns the code of the finding about a block that cannot be found; it depends on what is known of its
// place.
func LostCode(p Place) string {
	if p.At.Object != "" {
		return "kudu.block.truncated"
	}
	return "kudu.block.missing"
}

// rebase converts the offset in an error, which is relative to a block, to an offset in the file that has the block at
// the span at.
func rebase(err error, at fault.Span) error {
	var e *fault.Error
	if !errors.As(err, &e) || e.At.Object != at.Object {
		return err
	}
	out := *e
	out.At.Off += at.Off
	return &out
}

// BlockBytes returns the total size of a tablet's blocks; -1 if it is unknown without asking the file system, as with
// the file block manager.
func (f *FS) BlockBytes(t *meta.Tablet) (n int64) {
	if f.BlockManager == FileManager {
		return -1
	}
	for i := range t.RowSets {
		for _, b := range t.RowSets[i].Blocks() {
			n += f.Blocks[b.ID].Len
		}
	}
	return n
}
