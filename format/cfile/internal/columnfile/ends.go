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

// CheckRows compares the footer's number of values with the last block, unless a checksum proves the footer, so that
// rows are never counted or listed by a damaged number without an error. If that block is damaged the number cannot be
// confirmed, and its error is returned.
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

// otherEnd is the error that the last block does not end at the footer's number of values.
func (f *File) otherEnd(e DataBlock) error {
	return fault.Corruptf(f.FootSpan(), "footer.num_values", "expected %d, where the last block [%d+%d] ends, found %d",
		e.First+e.Rows, e.Ptr.Offset, e.Ptr.Size, f.Footer.NumValues)
}

// EndByBlocks is the last block, with the rows that it has itself. The error is Corrupt if it is damaged, or not the
// one of the index.
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
		return b, fault.Corruptf(f.Span(e.Ptr), w.Path(), "expected the last block to begin at row %x by the index, "+
			"found %d", e.Key, first)
	}
	if f.Footer.Nullable && !f.Footer.Array() { // the bitmap of arrays does not count their elements
		if n, err := lay.Nulls.Ones(0, lay.Nulls.N); err != nil || n != lay.Values.Count {
			return b, fault.Corruptf(f.Span(e.Ptr), w.Path(), "the last block has %d values, but its bitmap another "+
				"number", lay.Values.Count)
		}
	}
	return DataBlock{Ptr: e.Ptr, First: first, Rows: int64(lay.Rows)}, nil
}

// last moves to the last leaf entry and returns it.
func (w *Walker) last(ctx context.Context) (e block.IndexEntry, err error) {
	p := w.Root
	for {
		if err := w.Push(ctx, p); err != nil {
			return e, err
		}
		if w.Top().Node.N == 0 {
			return e, fault.Corruptf(w.f.Span(p), w.Name, "expected %d rows by the footer, found an empty index",
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

// MendRows sets the number of values from the last block if the footer, which may be damaged, has another. It returns
// the error in the footer, and the rows that are uncertain: none if blocks have checksums (checked), or if the block
// ends at declared, what is known from elsewhere (-1: nothing). Else only the number of rows in the block may be
// damaged, where the other number takes as many bytes of bitmap: the smaller of the two is used. If the last block is
// damaged, too, and no checksum proves the footer, the number is unknown: see Endless.
func (f *File) MendRows(ctx context.Context, checked bool, declared int64) (uncertain vec.Range, err error) {
	b, err := f.EndByBlocks(ctx)
	end, n := b.First+b.Rows, f.Footer.NumValues
	switch {
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

// footProven reports whether the footer has a checksum that matches or differs in a single bit, which then is the one
// that is damaged: the CRC-32C of footers that differ in up to two bits differ in at least two.
func (f *File) footProven() bool {
	if !f.Footer.Checksums() || len(f.Foot) == 0 {
		return false
	}
	_, fr := block.ParseFooter(wire.NewCursor(f.Foot, f.FootSpan(), "footer"), true)
	return bits.OnesCount32(fr.Crc^fr.Want) <= 1
}
