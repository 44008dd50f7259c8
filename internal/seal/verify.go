package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/zeebo/xxh3"

	"stoa/store"
)

// The kinds of Difference.
const (
	Changed = "changed" // some blocks have different bytes
	Missing = "missing"
	Added   = "added"   // it is not in the seal
	Cut     = "cut"     // it is shorter
	Grown   = "grown"   // it is longer
	Other   = "other"   // at most half of its blocks are unchanged: it is another file, or another version
	Swapped = "swapped" // it has the contents of another sealed file
	Kind    = "kind"    // a link, pipe or file is now something else
	Unknown = "unknown" // its checksums are lost with a part of the seal
	Unread  = "unread"
)

// Difference is a difference between the present state and the sealed one.
type Difference struct {
	What    string
	File    string // the root as given to Verify, and the name below it
	Off     int64  // first byte that differs
	Len     int64  // number of bytes
	Size    int64  // of the file, as sealed
	Message string // details, as part of a sentence
}

// Verify compares the files of places, as many and in the same order as when they were sealed, with the seal, and
// reports each difference. Each file is read once; a file that cannot be read is a Difference, not an error. A store
// that fails is an error.
func (s *Seal) Verify(ctx context.Context, p Places, report func(Difference)) error {
	roots := p.Roots
	if len(roots) != len(s.head.Roots) {
		return fmt.Errorf("%d places were sealed, %d are given", len(s.head.Roots), len(roots))
	}
	there, err := p.Walk(ctx)
	if err != nil {
		return err
	}
	known := map[fileKey]*File{}
	for i := range there {
		known[fileKey{there[i].Root, there[i].Name}] = &there[i]
	}
	v := &verifier{s: s, places: p, roots: roots, report: report, named: map[string]string{}}
	for _, f := range s.files {
		if d := s.digests[f.Index]; d != "" && f.Size > 0 {
			v.named[d] = f.label(roots)
		}
	}
	for _, f := range s.files {
		now := known[fileKey{f.Root, f.Name}]
		delete(known, fileKey{f.Root, f.Name})
		if err := v.file(ctx, f, now); err != nil {
			return err
		}
	}
	if !s.whole {
		return nil // added files cannot be distinguished from files that the seal has lost
	}
	for i := range there {
		if f := &there[i]; known[fileKey{f.Root, f.Name}] != nil {
			if err := v.added(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}

type verifier struct {
	s      *Seal
	places Places
	roots  []string // of places
	report func(Difference)
	named  map[string]string // files by digest
}

func (v *verifier) file(ctx context.Context, f, now *File) error {
	d := Difference{File: f.label(v.roots), Size: f.Size, Len: f.Size}
	switch {
	case now == nil:
		d.What = Missing
	case now.Kind != f.Kind:
		d.What, d.Message = Kind, fmt.Sprintf("a %s was sealed, a %s is there", f.Kind, now.Kind)
	case f.Kind == Link && now.Link != f.Link:
		d.What, d.Message = Kind, fmt.Sprintf("it led to %q, and now leads to %q", f.Link, now.Link)
	case f.Kind != Regular:
		return nil
	default:
		return v.content(ctx, f, now)
	}
	v.report(d)
	return nil
}

// damage describes the differences in a file: runs of blocks, and the number of unchanged blocks.
type damage struct {
	runs    [][2]int64 // blocks, half-open
	unknown int64
	good    int64
	digest  string // of the present contents
}

func (d *damage) bad(block int64) {
	if n := len(d.runs); n > 0 && d.runs[n-1][1] == block {
		d.runs[n-1][1]++
		return
	}
	d.runs = append(d.runs, [2]int64{block, block + 1})
}

// compare reads a file whose present size is size, and compares the part that it has in common with f.
func (s *Seal) compare(ctx context.Context, f *File, in io.Reader, size int64) (damage, error) {
	var d damage
	known := &sums{seal: s, file: f}
	all, block := xxh3.New(), int64(0)
	err := eachBlock(ctx, in, size, func(b []byte) error {
		sum := sumOf(b)
		all.Write(sum[:])
		if block < f.blocks() {
			if rest := f.Size - block*Block; rest < int64(len(b)) { // the file has grown
				sum = sumOf(b[:rest])
			}
			want, ok, err := known.of(block)
			switch {
			case err != nil:
				return err
			case !ok:
				d.unknown++
			case want != sum:
				d.bad(block)
			default:
				d.good++
			}
		}
		block++
		return nil
	})
	d.digest = digest(all, size)
	return d, err
}

func (v *verifier) content(ctx context.Context, f, now *File) error {
	out := Difference{File: f.label(v.roots), Size: f.Size, Len: f.Size}
	in, err := v.places.open(ctx, f)
	if err == nil {
		defer in.Close()
		var d damage
		if d, err = v.s.compare(ctx, f, in, now.Size); err == nil {
			v.classify(f, now, d)
			return nil
		}
	}
	var p *fs.PathError
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it became shorter while it was read")
	} else if !errors.As(err, &p) || errors.Is(err, store.ErrChanged) || v.places.far(f) &&
		!errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	out.What, out.Message = Unread, err.Error()
	v.report(out)
	return nil
}

// classify reports what happened to a file.
func (v *verifier) classify(f, now *File, d damage) {
	base := Difference{File: f.label(v.roots), Size: f.Size, Len: f.Size}
	if d.unknown > 0 {
		e := base
		e.What, e.Message = Unknown, fmt.Sprintf("the seal has lost the checksums of %d of its blocks", d.unknown)
		v.report(e)
	}
	if len(d.runs) == 0 && now.Size == f.Size {
		return
	}
	bad := f.blocks() - d.unknown - d.good
	if name := v.named[d.digest]; name != "" && name != base.File {
		base.What, base.Message = Swapped, "it holds what the seal has as "+name
		v.report(base)
		return
	}
	if bad > 0 && bad >= d.good && f.blocks() > 1 && now.Size > Block {
		base.What, base.Message = Other, fmt.Sprintf("%d of its %d blocks are unchanged", d.good, f.blocks())
		v.report(base)
		return
	}
	for _, r := range d.runs {
		e := base
		e.What, e.Off = Changed, r[0]*Block
		e.Len = min(r[1]*Block, f.Size, now.Size) - e.Off
		if now.Size < f.Size && r[0]*Block <= now.Size && r[1]*Block > now.Size && r[1]-r[0] == 1 {
			continue // the block in which it was truncated
		}
		v.report(e)
	}
	switch {
	case now.Size < f.Size:
		base.What, base.Off, base.Len = Cut, now.Size, f.Size-now.Size
		base.Message = fmt.Sprintf("%d bytes were sealed, %d are there", f.Size, now.Size)
		v.report(base)
	case now.Size > f.Size:
		base.What, base.Off, base.Len = Grown, f.Size, now.Size-f.Size
		base.Message = fmt.Sprintf("%d bytes were sealed, %d are there", f.Size, now.Size)
		v.report(base)
	}
}

// added reports a file that was not sealed, and whether it has the contents of another sealed file.
func (v *verifier) added(ctx context.Context, f *File) error {
	d := Difference{What: Added, File: f.label(v.roots), Len: f.Size, Size: f.Size}
	if f.Kind == Regular && f.Size > 0 {
		if in, err := v.places.open(ctx, f); err == nil {
			got, err := v.s.compare(ctx, &File{Index: -1}, in, f.Size)
			in.Close()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if was := v.named[got.digest]; err == nil && was != "" {
				d.Message = "it holds what the seal has as " + was
			}
		}
	}
	v.report(d)
	return nil
}
