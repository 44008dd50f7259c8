package columnfile

import (
	"bytes"
	"context"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/vec"
)

// CheckRows holds the footer's number of values against the last block, where no checksum is over the footer: what
// is counted by it, and listed, is never more or less than what the blocks have without a word. A last block that
// cannot be read is told by who reads it.
func (f *File) CheckRows(ctx context.Context) error {
	if f.Footer.Checksums() && !f.NoVerify || f.Kind() == block.KindBloom {
		return nil
	}
	e, ok := f.EndByBlocks(ctx)
	if !ok || e.First+e.Rows == f.Footer.NumValues {
		return ctx.Err()
	}
	return f.otherEnd(e)
}

// otherEnd says that the last block ends elsewhere than the footer says.
func (f *File) otherEnd(e DataBlock) error {
	return fault.Corruptf(f.FootSpan(), "footer.num_values", "%d, but the last block [%d+%d] ends at row %d",
		f.Footer.NumValues, e.Ptr.Offset, e.Ptr.Size, e.First+e.Rows)
}

// EndByBlocks is the last block, with the rows that it says itself it has. ok is false if there is none, or it is
// not whole, or not the one that the index means.
func (f *File) EndByBlocks(ctx context.Context) (b DataBlock, ok bool) {
	var w *Walker
	switch {
	case f.Footer.PosIdx != nil:
		w = f.Positions()
	case f.Footer.ValIdx != nil:
		w = f.Values()
	default:
		return b, false
	}
	e, ok := w.last(ctx)
	if !ok || w.Block(e) != nil {
		return b, false
	}
	stored, err := f.readBlock(ctx, e.Ptr, w.Path())
	if err != nil {
		return b, false
	}
	c := stored.Cursor("")
	lay := block.ParseDataBlock(c, &f.Footer)
	first := int64(lay.Values.Ordinal)
	switch {
	case c.Err() != nil, block.DataExtent(stored.Data, &f.Footer) != len(stored.Data),
		f.Footer.PosIdx != nil && !bytes.Equal(e.Key, block.PositionKey(first)):
		return b, false
	}
	if f.Footer.Nullable {
		if n, err := lay.Nulls.Ones(0, lay.Nulls.N); err != nil || n != lay.Values.Count {
			return b, false
		}
	}
	return DataBlock{Ptr: e.Ptr, First: first, Rows: int64(lay.Rows)}, true
}

// last goes to the last leaf entry. ok is false if there is none, or the way cannot be read.
func (w *Walker) last(ctx context.Context) (e block.IndexEntry, ok bool) {
	p := w.Root
	for {
		if err := w.Push(ctx, p); err != nil || w.Top().Node.N == 0 {
			return e, false
		}
		w.Top().I = w.Top().Node.N - 1
		e, err := w.Current()
		if err != nil || w.Top().Node.Leaf {
			return e, err == nil
		}
		p = e.Ptr
	}
}

// MendRows takes the number of values from the last block where the footer, which may be damaged, says another, and
// says what was wrong, and about which rows: none if a checksum says that the block is whole (checked). Without one,
// a block whose number of rows alone may be damaged, because as many bytes would hold the other number, proves
// nothing: the less is taken.
func (f *File) MendRows(ctx context.Context, checked bool) (doubt vec.Range, err error) {
	b, ok := f.EndByBlocks(ctx)
	end, n := b.First+b.Rows, f.Footer.NumValues
	if !ok || end == n {
		return doubt, nil
	}
	if err = f.otherEnd(b); !checked {
		doubt = vec.Range{From: min(n, end), To: max(n, end)}
	}
	if checked || end < n || (b.Rows+7)/8 != (n-b.First+7)/8 {
		f.Footer.NumValues = end
	}
	return doubt, err
}
