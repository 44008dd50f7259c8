package columnfile

import (
	"bytes"
	"context"
	"math/bits"

	"stoa/fault"
	"stoa/format/cfile/internal/block"
	"stoa/vec"
	"stoa/wire"
)

// CheckRows compares the footer's number of values with the last block, where no checksum is over the footer: what
// is counted by it, and listed, is never more or less than what the blocks have without a word. If that block is
// damaged nothing bears the number out, and nobody knows it.
func (f *File) CheckRows(ctx context.Context) error {
	if f.Footer.Checksums() && !f.NoVerify || f.Kind() == block.KindBloom || f.Footer.NumValues == 0 {
		return nil
	}
	e, err := f.EndByBlocks(ctx)
	if err == nil && e.First+e.Rows != f.Footer.NumValues {
		err = f.otherEnd(e)
	}
	if ctx.Err() != nil || !IsDamage(err) { // what cannot be read for another reason who reads it says
		return ctx.Err()
	}
	return err
}

// otherEnd says that the last block ends elsewhere than the footer says.
func (f *File) otherEnd(e DataBlock) error {
	return fault.Corruptf(f.FootSpan(), "footer.num_values", "%d, but the last block [%d+%d] ends at row %d",
		f.Footer.NumValues, e.Ptr.Offset, e.Ptr.Size, e.First+e.Rows)
}

// EndByBlocks is the last block, with the rows that it says itself it has; or why nobody knows: it is not whole, or not
// the one that the index means.
func (f *File) EndByBlocks(ctx context.Context) (b DataBlock, err error) {
	var w *Walker
	switch {
	case f.Footer.PosIdx != nil:
		w = f.Positions()
	case f.Footer.ValIdx != nil:
		w = f.Values()
	default:
		return b, fault.Corruptf(f.FootSpan(), "footer.num_values", "%d, and no index", f.Footer.NumValues)
	}
	e, err := w.last(ctx)
	if err == nil {
		err = w.Block(e)
	}
	if err != nil {
		return b, err
	}
	stored, err := f.readBlock(ctx, e.Ptr, w.Path())
	if err != nil {
		return b, err
	}
	c := stored.Cursor("")
	lay := block.ParseDataBlock(c, &f.Footer)
	first := int64(lay.Values.Ordinal)
	switch n := block.DataExtent(stored.Data, &f.Footer); {
	case c.Err() != nil:
		return b, fault.Locate(c.Err(), f.Span(e.Ptr), true, w.Path())
	case n != len(stored.Data):
		return b, fault.Corruptf(f.Span(e.Ptr), w.Path(), "the last block, of %d bytes, has values of %d",
			len(stored.Data), n)
	case f.Footer.PosIdx != nil && !bytes.Equal(e.Key, block.PositionKey(first)):
		return b, fault.Corruptf(f.Span(e.Ptr), w.Path(), "the last block says it begins at row %d, the index has %x",
			first, e.Key)
	}
	if f.Footer.Nullable && !f.Footer.Array() { // the values of lists are others than those that the bitmap counts
		if n, err := lay.Nulls.Ones(0, lay.Nulls.N); err != nil || n != lay.Values.Count {
			return b, fault.Corruptf(f.Span(e.Ptr), w.Path(), "the last block has %d values, and its bitmap others",
				lay.Values.Count)
		}
	}
	return DataBlock{Ptr: e.Ptr, First: first, Rows: int64(lay.Rows)}, nil
}

// last goes to the last leaf entry.
func (w *Walker) last(ctx context.Context) (e block.IndexEntry, err error) {
	p := w.Root
	for {
		if err := w.Push(ctx, p); err != nil {
			return e, err
		}
		if w.Top().Node.N == 0 {
			return e, fault.Corruptf(w.f.Span(p), w.Name, "it is empty, and the footer says %d rows",
				w.f.Footer.NumValues)
		}
		w.Top().I = w.Top().Node.N - 1
		e, err := w.Current()
		if err != nil || w.Top().Node.Leaf {
			return e, err
		}
		p = e.Ptr
	}
}

// MendRows takes the number of values from the last block where the footer, which may be damaged, says another, and
// says what was wrong, and about which rows: none if a checksum says that the block is whole (checked). Without one,
// a block whose number of rows alone may be damaged, because as many bytes would hold the other number, proves
// nothing: the less is taken. Where the last block is damaged, too, and the footer's checksum does not prove what it
// says, nobody knows the number: see Endless.
func (f *File) MendRows(ctx context.Context, checked bool) (doubt vec.Range, err error) {
	b, err := f.EndByBlocks(ctx)
	end, n := b.First+b.Rows, f.Footer.NumValues
	switch {
	case IsDamage(err) && !f.footProven():
		f.Endless = true
		return doubt, err
	case err != nil || end == n:
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

// footProven reports whether the footer has a checksum that fits, whatever opening the file made of it; or one that is
// a single bit off: then that bit is what is damaged. Two footers that differ in up to two bits have CRC-32C that
// differ in two at least.
func (f *File) footProven() bool {
	if !f.Footer.Checksums() || len(f.Foot) == 0 {
		return false
	}
	_, fr := block.ParseFooter(wire.NewCursor(f.Foot, f.FootSpan(), "footer"), true)
	return bits.OnesCount32(fr.Crc^fr.Want) <= 1
}
