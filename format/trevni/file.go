package trevni

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
	"stoa/wire"
)

// file is an open Trevni file: its header, and how to get at its blocks.
type file struct {
	src      store.Source
	at       fault.Span // the whole file; column starts are counted from its beginning
	header   Header
	limits   format.Limits
	noVerify bool

	mu      sync.Mutex
	columns []descriptorsOf // as they were needed
	budget  int64           // bytes of descriptors that may still be read
	lenient bool            // recovery: descriptors whose checksum is wrong are believed if blocks have checksums
}

// firstRead is how much of a structure is read at once when its length is not known.
const firstRead = 64 << 10

// openFile reads the header. What it understood is in f also when it fails.
func openFile(ctx context.Context, src store.Source, at fault.Span, o format.OpenOptions) (*file, error) {
	f := &file{src: src, at: at, limits: o.Limits.WithDefaults(), noVerify: o.NoVerify}
	var head []byte
	err := f.grow(ctx, at, firstRead, "header", func(c *cursor) {
		head = c.Rest()
		f.header = parseHeader(c)
	})
	if o.Tracer != nil && head != nil {
		traceHeader(head, at, o.Tracer)
	}
	if err != nil {
		return f, err
	}
	f.columns = make([]descriptorsOf, len(f.header.Columns))
	f.budget = at.Len
	if err := f.header.checkSeal(head, at); err != nil && !o.NoVerify {
		return f, err
	}
	return f, f.header.settle(at.Sub(0, f.header.size))
}

// grow has parse read a structure that begins at at, with more and more bytes until it is whole.
func (f *file) grow(ctx context.Context, at fault.Span, guess int64, path string, parse func(c *cursor)) error {
	for n := guess; ; n *= 4 {
		n = min(n, at.Len, f.limits.Metadata)
		buf := make([]byte, n)
		if err := format.ReadFull(ctx, f.src, at.Sub(0, n), path, buf); err != nil {
			return err
		}
		c := &cursor{Cursor: wire.NewCursor(buf, at.Sub(0, n), path).Within(f.limits.Memory()), more: at.Len - n,
			limits: &f.limits}
		parse(c)
		if c.Err() == nil || !c.short || n == at.Len {
			return c.Err()
		}
		if n == f.limits.Metadata {
			return fault.Limitf(at, path, "longer than metadata may be (%d)", n)
		}
	}
}

// traceHeader tells the parts of the header, as far as it could be understood.
func traceHeader(head []byte, at fault.Span, trace func(region.Node)) {
	c := func() *cursor { return &cursor{Cursor: wire.NewCursor(head, at.Sub(0, int64(len(head))), "header")} }
	first := c()
	h := parseHeader(first)
	trace(region.Node{Kind: region.Struct, Name: "header", At: at.Sub(0, int64(first.Pos())), Inner: -1,
		Value: fmt.Sprintf("version %d, %d rows, %d columns", h.Version, h.Rows, len(h.Columns))})
	second := c()
	second.Trace(trace, 1)
	parseHeader(second)
}

// openBroken opens the file at tg whose header has a checksum that is wrong, which broken says.
func openBroken(ctx context.Context, tg format.Target, o format.OpenOptions, broken error) (*file, error) {
	o.NoVerify = true
	f, err := openTarget(ctx, tg, o)
	if err != nil {
		return f, broken
	}
	f.noVerify = false
	return f, nil
}

// openTarget opens the file at tg.
func openTarget(ctx context.Context, tg format.Target, o format.OpenOptions) (*file, error) {
	src, base, size, err := tg.Open(ctx)
	if err != nil {
		return nil, err
	}
	f, err := openFile(ctx, src, fault.Span{Object: tg.Name, Off: base, Len: size}, o)
	if err != nil {
		src.Close()
	}
	return f, err
}

// checkRows believes the header's number of rows if one column has as many: nothing else guards it, and it says
// how long a scan takes. Usually the first column is looked at. Of repeated columns, which are asked if there are no
// others, only reading tells how many rows they have; it is not more than they have entries.
func (f *file) checkRows(ctx context.Context) (odd error) {
	for _, repeated := range [2]bool{false, true} {
		for i := range f.header.Columns {
			c := &f.header.Columns[i]
			if repeated != (c.MaxRep > 0) {
				continue
			}
			cb, err := f.blocks(ctx, i)
			switch what := "many"; {
			case err != nil && !isFault(err):
				return err
			case err != nil:
				if odd == nil {
					odd = err
				}
			case cb.rows == f.header.Rows || repeated && cb.rows > f.header.Rows:
				return nil
			default:
				if repeated {
					what += " entries"
				}
				odd = fault.Corruptf(f.at.Sub(4, 8), "header.row-count", "%d, no column has as %s (%q has %d)",
					f.header.Rows, what, c.Name, cb.rows)
			}
		}
		if odd != nil {
			break
		}
	}
	return odd
}

// pathOf names a column in errors.
func (f *file) pathOf(column int) string { return "column[" + strconv.Itoa(column) + "]" }
