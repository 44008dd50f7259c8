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

// CheckRows compares the footer's number of values with the last block, unless a checksum proves the footer. So a
// damaged number never determines silently how many rows are counted or listed. If the last block is damaged the number
// cannot be confirmed, and the error of the block is returned.
func (f *File) CheckRows(ctx context.Context) error {
	if f.Footer.Checksums() && !f.NoVerify || f.Kind() == block.KindBloom || f.Footer.NumValues == 0 {
		return nil
	}
	e, err := f.EndByBlocks(ctx)
	if err == nil && e.First+e.Rows != f.Footer.NumValues {
		err = f.otherEnd(e)
	}
	if ctx.Err() != nil || !IsDamage(err) { // other errors are returned when the block is read
		return ctx.Err()
	}
	return err
}

// otherEnd returns the error for a last block that does not end at the footer's number of values.
func (f *File) otherEnd(e DataBlock) error {
	return fault.Corruptf(f.FootSpan(), "footer.num_values", "expected %d, where the last block [%d+%d] ends, found %d",
		e.First+e.Rows, e.Ptr.Offset, e.Ptr.Size, f.Footer.NumValues)
}

// EndByBlocks returns the last block, with the number of rows that the block itself states. The error is Corrupt if the
// block is damaged or contradicts the index.
func (f *File) EndByBlocks(ctx context.Context) (b DataBlock, err error) {
	w, e, stored, err := f.lastBlock(ctx)
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
		return b, fault.Corruptf(f.Span(e.Ptr), w.Path(), "expected the last block to begin at row %x by the index, "+
			"found %d", e.Key, first)
	}
	if f.Footer.Nullable && !f.Footer.Array() { // the bitmap of arrays does not count their elements
		if n, err := lay.Nulls.Ones(0, lay.Nulls.N); err != nil || n != lay.Values.Count {
			return b, fault.Corruptf(f.Span(e.Ptr), w.Path(), "the last block has %s, but its bitmap another "+
				"number", fault.Count(lay.Values.Count, "value"))
		}
	}
	return DataBlock{Ptr: e.Ptr, First: first, Rows: int64(lay.Rows)}, nil
}

// lastBlock reads the last block that an index names; the index at its entry is returned, too.
func (f *File) lastBlock(ctx context.Context) (w *Walker, e block.IndexEntry, stored block.Block, err error) {
	switch {
	case f.Footer.PosIdx != nil:
		w = f.Positions()
	case f.Footer.ValIdx != nil:
		w = f.Values()
	default:
		return nil, e, stored, fault.Corruptf(f.FootSpan(), "footer.num_values", "%d, and no index", f.Footer.NumValues)
	}
	if e, err = w.last(ctx); err == nil {
		err = w.Block(e)
	}
	if err != nil {
		return w, e, stored, err
	}
	stored, err = f.readBlock(ctx, e.Ptr, w.Path())
	return w, e, stored, err
}

// statedEnd reports whether the header of the last block, whose values may be damaged, states the row at which the
// index has it, and so many rows that they end at the footer's number of values. One damaged place cannot make the
// others agree with it, so the number is known although the block cannot be read.
func (f *File) statedEnd(ctx context.Context) bool {
	_, e, stored, err := f.lastBlock(ctx)
	if err != nil {
		return false
	}
	lay := block.ParseDataBlock(stored.Cursor(""), &f.Footer)
	first := int64(lay.Values.Ordinal)
	return lay.Rows > 0 && first+int64(lay.Rows) == f.Footer.NumValues &&
		(f.Footer.PosIdx == nil || bytes.Equal(e.Key, block.PositionKey(first)))
}

// last moves to the last leaf entry and returns it.
func (w *Walker) last(ctx context.Context) (e block.IndexEntry, err error) {
	p := w.Root
	for {
		if err := w.Push(ctx, p); err != nil {
			return e, err
		}
		if w.Top().Node.N == 0 {
			return e, fault.Corruptf(w.f.Span(p), w.Name, "expected %s by the footer, found an empty index",
				fault.Count(w.f.Footer.NumValues, "row"))
		}
		w.Top().I = w.Top().Node.N - 1
		e, err := w.Current()
		if err != nil || w.Top().Node.Leaf {
			return e, err
		}
		p = e.Ptr
	}
}

// CorrectRows sets the number of values to what the last block states if the footer, which may be damaged, states
// another. It returns the error in the footer or in the last block, and the rows that are uncertain. No row is
// uncertain if blocks have checksums (checked) or if the block ends at declared, a number known from elsewhere (-1:
// unknown). Otherwise the number of rows in the block may itself be the damaged one if the footer's number needs a
// bitmap of the same size; the smaller of the two numbers is then used. If the last block is damaged as well, and
// neither a checksum nor the block's own header (statedEnd) proves the footer's number, the number is unknown: see
// Endless.
func (f *File) CorrectRows(ctx context.Context, checked bool, declared int64) (uncertain vec.Range, err error) {
	b, err := f.EndByBlocks(ctx)
	end, n := b.First+b.Rows, f.Footer.NumValues
	switch {
	case IsDamage(err) && !f.footProven() && f.statedEnd(ctx):
		f.Stated = true
		return uncertain, err
	case IsDamage(err) && !f.footProven():
		f.Endless = true
		return uncertain, err
	case err != nil || end == n:
		return uncertain, nil
	}
	checked = checked || end == declared
	if err = f.otherEnd(b); !checked {
		uncertain = vec.Range{From: min(n, end), To: max(n, end)}
	}
	if checked || end < n || (b.Rows+7)/8 != (n-b.First+7)/8 {
		f.Footer.NumValues = end
	}
	return uncertain, err
}

// footProven reports whether the footer's checksum proves it: it matches, or differs in a single bit. In the latter
// case the damaged bit is in the checksum, because the CRC-32C of footers that differ in one or two bits differ in at
// least two.
func (f *File) footProven() bool {
	if !f.Footer.Checksums() || len(f.Foot) == 0 {
		return false
	}
	_, fr := block.ParseFooter(wire.NewCursor(f.Foot, f.FootSpan(), "footer"), true)
	return bits.OnesCount32(fr.Stored^fr.Computed) <= 1
}
