package trevni

import (
	"context"
	"errors"
	"fmt"

	"stoa/fault"
)

// block is a block as its descriptor has it.
type block struct {
	rows        int64 // of the wiki's repeated columns: entries
	raw, stored int64 // bytes; without the checksum
	first       []byte
	at          fault.Span // stored bytes and checksum
	row         int64      // rows (or entries) of the blocks before
	desc        fault.Span // its descriptor
	lost        error      // the block does not lie in the file
}

// columnBlocks are the blocks of a column.
type columnBlocks struct {
	blocks []block
	rows   int64      // of all blocks
	desc   fault.Span // count and descriptors
	end    int64      // offset behind the last block
	odd    error      // of what is believed all the same: the checksum of the descriptors is wrong
}

// columnSpan is everything from where a column starts to the file's end.
func (f *file) columnSpan(i int) (fault.Span, error) {
	start := f.header.Columns[i].Start
	if start < f.header.size || start > f.at.Len-4 {
		return fault.Span{}, fault.Corruptf(f.at.Sub(0, f.header.size), fmt.Sprintf("column-start[%d]", i),
			"%d is not between the header's end (%d) and the file's end (%d)", start, f.header.size, f.at.Len)
	}
	return f.at.Sub(start, f.at.Len-start), nil
}

// descriptorsOf is what became of reading a column's descriptors.
type descriptorsOf struct {
	cb  *columnBlocks
	err error // what is wrong in the file
}

// blocks reads the descriptors of column i, once. Columns own their bytes: those that share them, so that a
// small file stands for very many blocks, are refused when all that was read together is more than the file.
func (f *file) blocks(ctx context.Context, i int) (*columnBlocks, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := &f.columns[i]; k.cb != nil || k.err != nil {
		return k.cb, k.err
	}
	at, err := f.columnSpan(i)
	if err != nil {
		return nil, err
	}
	col := &f.header.Columns[i]
	cb, used := &columnBlocks{}, int64(0)
	var sum error
	err = f.grow(ctx, at, firstBlocks, fmt.Sprintf("column[%d]", i), func(c *cursor) {
		b := c.Rest()
		*cb = parseDescriptors(c, col, f.header.Dialect, f.budget)
		used = int64(c.Pos())
		if c.Err() == nil && !f.noVerify {
			sum = col.checkDescriptors(b[:used], cb.desc, f.pathOf(i))
		}
	})
	if err == nil && (!f.lenient || !col.summed) {
		err = sum
	}
	f.budget -= used
	if err != nil {
		if isFault(err) {
			f.columns[i].err = err
		}
		return nil, err
	}
	cb.place(f, col)
	cb.odd = sum
	f.columns[i].cb = cb
	return cb, nil
}

// restart has column i begin elsewhere.
func (f *file) restart(i int, start int64) {
	f.header.Columns[i].Start, f.columns[i] = start, descriptorsOf{}
}

// blocksAt reads the descriptors that column i has if it begins at start. If that is elsewhere than it does, nothing is
// kept of that, and read says how many bytes they took.
func (f *file) blocksAt(ctx context.Context, i int, start int64) (cb *columnBlocks, read int64, err error) {
	was, had, budget := f.header.Columns[i].Start, f.columns[i], f.budget
	f.restart(i, start)
	cb, err = f.blocks(ctx, i)
	if start != was {
		f.header.Columns[i].Start, f.columns[i] = was, had
		read, f.budget = budget-f.budget, budget
	}
	return cb, read, err
}

// giveUp has column i be one whose descriptors cannot be read.
func (f *file) giveUp(i int, why error) { f.columns[i] = descriptorsOf{err: why} }

// firstBlocks is how much of a column is read to find its descriptors: enough for 200 blocks, which are some 13 MB.
const firstBlocks = 4 << 10

// parseDescriptors reads what a column begins with:
//
//	block-count  fixed32
//	descriptors  for each block:
//	  block-row-count          fixed32
//	  block-uncompressed-size  fixed32
//	  block-compressed-size    fixed32, without the checksum; 0 in Impala's files that are not compressed
//	  first-value              of the column's type, if the column says so; a boolean takes a byte
//
// It fails if they take more than budget bytes.
func parseDescriptors(c *cursor, col *Column, d Dialect, budget int64) (cb columnBlocks) {
	n := c.count("block-count")
	if c.Err() == nil && n > (int64(c.Left())+c.more)/12 {
		c.Fail(c.Pos()-4, 4, "block-count", "%d blocks take at least %d bytes, the file has %d more", n, 12*n,
			int64(c.Left())+c.more)
	}
	if c.Err() == nil && 4+12*n > budget {
		c.Fail(c.Pos()-4, 4, "block-count",
			"%d blocks take at least %d bytes, the columns read before leave %d of the file's", n, 12*n, max(budget, 0))
	}
	for i := int64(0); i < n && c.Err() == nil; i++ {
		from := c.Pos()
		if !c.need(fmt.Sprintf("descriptor[%d]", i), 12) {
			break
		}
		s := &cursor{Cursor: c.Cursor}
		name := fmt.Sprintf("descriptor[%d]", i)
		b := block{row: cb.rows, rows: s.count(name + ".block-row-count"),
			raw: s.count(name + ".block-uncompressed-size"), stored: s.count(name + ".block-compressed-size")}
		if b.stored == 0 && d != Avro {
			b.stored = b.raw
		}
		if col.FirstValues {
			b.first = c.value(name+".first-value", col.Type)
		}
		b.desc = c.SpanOf(from, c.Pos()-from)
		cb.blocks = append(cb.blocks, b)
		cb.rows += b.rows
	}
	cb.desc = c.SpanOf(0, c.Pos())
	return cb
}

// place finds where the blocks lie: one behind the other, behind the descriptors.
func (cb *columnBlocks) place(f *file, col *Column) {
	off := cb.desc.End() - f.at.Off
	sum := int64(0)
	if col.summed {
		sum = 4
	}
	for i := range cb.blocks {
		b := &cb.blocks[i]
		b.at = f.at.Sub(off, b.stored+sum)
		off += b.at.Len
		if off > f.at.Len {
			b.lost = fault.Corruptf(b.desc, fmt.Sprintf("descriptor[%d]", i),
				"the block would lie at %d to %d, the file has %d bytes", b.at.Off, b.at.End(), f.at.Len)
		}
	}
	cb.end = off
}

// isFault reports whether err is about the file, and not about reading it.
func isFault(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Class == fault.Corrupt
}
