package fs

import (
	"bytes"
	"context"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/store"
)

// Carved is a CFile that was found in a container by its magics, not by a record.
type Carved struct {
	At    fault.Span // if the end cannot be found: up to the next CFile or live block
	Type  cfile.Type
	Kind  cfile.Kind
	Rows  int64 // -1 if the footer cannot be read
	Array bool
	Err   error // why it cannot be read
}

// The magics of CFiles of versions 2 and 1. They are at the beginning, and again at the end, where a u32 with the
// footer's length follows.
var cfileMagics = [2][]byte{[]byte("kuducfl2"), []byte("kuducfil")}

// IsMagic reports whether b begins with the magic of a CFile.
func IsMagic(b []byte) bool {
	return bytes.HasPrefix(b, cfileMagics[0]) || bytes.HasPrefix(b, cfileMagics[1])
}

// Carve searches the parts of a container that no live block claims, which is the whole data file if the metadata is
// missing, for CFiles. It looks at multiples of the file system's block size, where all blocks begin. It also finds
// deleted blocks whose bytes still exist, as on a file system without hole punching.
func (f *FS) Carve(ctx context.Context, c *Container) ([]Carved, error) {
	if c.Data == "" {
		return nil, nil
	}
	src, err := f.Tree.Open(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	align := max(f.DataDirs[c.Dir].BlockSize, 512)
	var out []Carved
	free := func(from, to int64) error {
		from = (from + align - 1) / align * align
		found, err := CarveRange(ctx, src, c.Data, from, to, align)
		for _, at := range found {
			out = append(out, f.carved(ctx, at))
		}
		return err
	}
	var pos int64
	for _, x := range c.Live {
		if x.Len == 0 {
			continue
		}
		if x.Off > pos {
			if err := free(pos, x.Off); err != nil {
				return out, err
			}
		}
		pos = max(pos, x.Off+x.Len)
	}
	return out, free(pos, src.Size())
}

// CarveRange finds the CFiles that begin at from plus a multiple of align and before to. Each extends to its last magic
// and the u32 after it or, if there is no such magic, to the next CFile or to the offset to.
func CarveRange(ctx context.Context, src store.Source, name string, from, to, align int64) (found []fault.Span,
	err error) {
	var starts []int64
	window := make([]byte, max(align, 1<<20/align*align))
	for at := from; at < to; at += int64(len(window)) {
		b := window[:min(int64(len(window)), to-at)]
		if err := format.ReadFull(ctx, src, fault.Span{Object: name, Off: at, Len: int64(len(b))}, "carve",
			b); err != nil {
			return nil, err
		}
		for i := int64(0); i+8 <= int64(len(b)); i += align {
			if IsMagic(b[i:]) {
				starts = append(starts, at+i)
			}
		}
	}
	for i, s := range starts {
		next := to
		if i+1 < len(starts) {
			next = starts[i+1]
		}
		end, err := lastMagic(ctx, src, name, s+8, next)
		if err != nil {
			return found, err
		}
		if end < 0 || end+12 > next {
			end = next - 12
		}
		found = append(found, fault.Span{Object: name, Off: s, Len: end + 12 - s})
	}
	return found, nil
}

// lastMagic returns the offset of the last CFile magic between two offsets; -1 if there is none.
func lastMagic(ctx context.Context, src store.Source, name string, from, to int64) (int64, error) {
	const window = 64 << 10
	buf := make([]byte, window+8)
	for hi := to; hi > from; {
		lo := max(hi-window, from)
		b := buf[:min(hi+7, to)-lo] // a magic may span two windows
		if err := format.ReadFull(ctx, src, fault.Span{Object: name, Off: lo, Len: int64(len(b))}, "carve",
			b); err != nil {
			return -1, err
		}
		if i := max(bytes.LastIndex(b, cfileMagics[0]), bytes.LastIndex(b, cfileMagics[1])); i >= 0 {
			return lo + int64(i), nil
		}
		hi = lo
	}
	return -1, nil
}

// carved reads the footer of a CFile that was found.
func (f *FS) carved(ctx context.Context, at fault.Span) Carved {
	x := Carved{At: at, Rows: -1}
	src, err := f.OpenBlock(ctx, Place{At: at})
	if err != nil {
		x.Err = err
		return x
	}
	defer src.Close()
	r, err := cfile.OpenReader(ctx, src, at.Object,
		format.OpenOptions{Limits: f.Options.Limits, NoVerify: f.Options.NoVerify})
	if err != nil {
		x.Err = rebase(err, at)
		return x
	}
	t := r.Footer()
	x.Type, x.Kind, x.Rows, x.Array = t.Type, r.Kind(), t.NumValues, t.Array()
	return x
}
