package container

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/layout"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// File is an open Trevni file: its header, and access to its blocks.
type File struct {
	Src      store.Source
	At       fault.Span // the whole file; column starts are counted from its beginning
	Header   layout.Header
	Limits   format.Limits
	NoVerify bool

	form atomic.Pointer[sumForm] // of the first checksum that matched; nil: none has yet

	mu         sync.Mutex
	columns    []descriptorsOf // read when needed
	starts     map[int64]int   // how many columns begin at an offset; nil: not counted yet
	ownerReads int             // starts tried by CheckOwner
	sums       map[string]int  // how many columns have a checksum of descriptors; nil: not counted yet
	stated     []int64         // where the header says that columns begin; nil: as in Header
	Budget     int64           // bytes of descriptors that may still be read
	Lenient    bool            // recovery: descriptors with a wrong checksum are trusted if the blocks have checksums
}

// firstRead is the number of bytes that are read first of a structure of unknown length.
const firstRead = 64 << 10

// OpenFile reads the header. If that fails, f contains the part that could be parsed.
func OpenFile(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*File, error) {
	f := &File{Src: src, At: at, Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify}
	var head []byte
	err := f.readGrowing(ctx, at, firstRead, "header", func(c *layout.Cursor) {
		head = c.Rest()
		f.Header = layout.ParseHeader(c)
	})
	if o.Tracer != nil && head != nil {
		traceHeader(head, at, o.Tracer)
	}
	if err != nil {
		return f, err
	}
	f.columns = make([]descriptorsOf, len(f.Header.Columns))
	f.Budget = at.Len
	if err := f.Header.CheckSeal(head, at); err != nil && !o.NoVerify {
		return f, err
	}
	if n := f.Header.Size; len(f.Header.Columns) == 0 && n < at.Len && !o.NoVerify {
		return f, fault.Corruptf(at.Sub(n, at.Len-n), "header.column-count", "0, and %d bytes are after the header",
			at.Len-n)
	}
	return f, f.Header.Resolve(at.Sub(0, f.Header.Size))
}

// readGrowing calls parse for a structure at at with more and more bytes, guess at first, until it is complete.
func (f *File) readGrowing(ctx context.Context, at fault.Span, guess int64, path string,
	parse func(c *layout.Cursor)) error {
	for n := guess; ; n *= 4 {
		n = min(n, at.Len, f.Limits.Metadata)
		buf := make([]byte, n)
		if err := format.ReadFull(ctx, f.Src, at.Sub(0, n), path, buf); err != nil {
			return err
		}
		c := &layout.Cursor{Cursor: wire.NewCursor(buf, at.Sub(0, n), path).Within(f.Limits.Memory()), More: at.Len - n,
			Limits: &f.Limits}
		parse(c)
		if c.Err() == nil || !c.Short || n == at.Len {
			return c.Err()
		}
		if n == f.Limits.Metadata {
			return fault.Limitf(at, path, "it is longer than %d bytes (metadata limit)", n)
		}
	}
}

// traceHeader emits the parts of the header that could be parsed.
func traceHeader(head []byte, at fault.Span, trace func(region.Node)) {
	c := func() *layout.Cursor {
		return &layout.Cursor{Cursor: wire.NewCursor(head, at.Sub(0, int64(len(head))), "header")}
	}
	first := c()
	h := layout.ParseHeader(first)
	trace(region.Node{Kind: region.Struct, Name: "header", At: at.Sub(0, int64(first.Pos())), Inner: -1,
		Value: fmt.Sprintf("version %d, %s, %s", h.Version, fault.Count(h.Rows, "row"),
			fault.Count(len(h.Columns), "column"))})
	second := c()
	second.Trace(trace, 1)
	layout.ParseHeader(second)
}

// OpenIgnoringSeal opens the file at tg although the checksum of its header is wrong. broken is that error; it is
// returned if the file cannot be opened.
func OpenIgnoringSeal(ctx context.Context, tg format.Target, o format.OpenOptions, broken error) (*File, error) {
	o.NoVerify = true
	f, err := OpenTarget(ctx, tg, o)
	if err != nil {
		return f, broken
	}
	f.NoVerify = false
	return f, nil
}

// OpenFlippedBack opens the file at tg, whose header is damaged, after flipping the one bit that makes the checksum of
// the header correct. at is the byte with that bit; f is nil if there is no such bit.
func OpenFlippedBack(ctx context.Context, tg format.Target, o format.OpenOptions) (f *File, at fault.Span) {
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, at
	}
	whole := fault.Span{Object: tg.Name, Off: base, Len: size}
	head := make([]byte, min(size, layout.MaxHeaderRepair))
	o.Tracer, o.NoVerify = nil, false
	if format.ReadFull(ctx, src, whole.Sub(0, int64(len(head))), "header", head) == nil {
		for bit, end := range layout.FlippedBits(head) {
			at = whole.Sub(int64(bit/8), 1)
			f, err := OpenFile(ctx, Patched{src, at.Off, []byte{head[bit/8] ^ 1<<(bit%8)}}, whole, o)
			if _, sealed := layout.Get(f.Header.Meta, layout.SealKey); err == nil && sealed && f.Header.Size == end {
				f.Src = src
				return f, at
			}
		}
	}
	src.Close()
	return nil, fault.Span{}
}

// Patched is a source with some bytes replaced at an offset.
type Patched struct {
	store.Source
	Off  int64
	With []byte
}

// ReadAt implements store.Source.
func (s Patched) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(ctx, p, off)
	for i, b := range s.With {
		if k := s.Off + int64(i) - off; k >= 0 && k < int64(n) {
			p[k] = b
		}
	}
	return n, err
}

// OpenTarget opens the file at tg.
func OpenTarget(ctx context.Context, tg format.Target, o format.OpenOptions) (*File, error) {
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, err
	}
	f, err := OpenFile(ctx, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o)
	if err != nil {
		src.Close()
	}
	return f, err
}

// CheckRows checks the header's number of rows, which no checksum covers and which determines how long a scan takes: at
// least one column must have that number. Usually the first column suffices. Repeated columns are used only if there
// are no others: they have at least as many entries as rows, and their rows are known only after reading them.
func (f *File) CheckRows(ctx context.Context) (odd error) {
	for _, repeated := range [2]bool{false, true} {
		for i := range f.Header.Columns {
			c := &f.Header.Columns[i]
			if repeated != (c.MaxRep > 0) {
				continue
			}
			cb, err := f.Blocks(ctx, i)
			switch what := "many"; {
			case err != nil && !IsFault(err):
				return err
			case err != nil:
				if odd == nil {
					odd = err
				}
			case cb.Rows == f.Header.Rows || repeated && cb.Rows > f.Header.Rows:
				return nil
			default:
				if repeated {
					what += " entries"
				}
				odd = fault.Corruptf(f.At.Sub(4, 8), "header.row-count", "%d, no column has as %s (%q has %d)",
					f.Header.Rows, what, c.Name, cb.Rows)
			}
		}
		if odd != nil {
			break
		}
	}
	return odd
}

// PathOf returns the path of a column in errors.
func (f *File) PathOf(column int) string { return "column[" + strconv.Itoa(column) + "]" }
