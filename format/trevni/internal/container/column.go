package container

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/format/trevni/internal/layout"
)

// Block is a block as its descriptor declares it.
type Block struct {
	Rows        int64 // in the wiki's repeated columns: entries
	Raw, Stored int64 // bytes; without the checksum
	First       []byte
	At          fault.Span // stored bytes and checksum
	Row         int64      // rows (or entries) of the blocks before
	Desc        fault.Span // its descriptor
	Lost        error      // the block does not lie in the file
}

// ColumnBlocks are the blocks of a column.
type ColumnBlocks struct {
	Blocks []Block
	Rows   int64      // of all blocks
	Desc   fault.Span // count and descriptors
	End    int64      // offset after the last block
	Odd    error      // the checksum of the descriptors does not match, but they are trusted
}

// columnSpan is the span from where a column starts to the end of the file.
func (f *File) columnSpan(i int) (fault.Span, error) {
	start := f.Header.Columns[i].Start
	if start < f.Header.Size || start > f.At.Len-4 {
		return fault.Span{}, fault.Corruptf(f.At.Sub(0, f.Header.Size), fmt.Sprintf("column-start[%d]", i),
			"%d is not between the header's end (%d) and the file's end (%d)", start, f.Header.Size, f.At.Len)
	}
	return f.At.Sub(start, f.At.Len-start), nil
}

// descriptorsOf is the result of reading a column's descriptors.
type descriptorsOf struct {
	cb         *ColumnBlocks
	err        error // damage of the file
	shifted    error // bytes were inserted into the column or removed from it, see checkEnd
	endChecked bool  // shifted is known
}

// Blocks reads the descriptors of column i, once, and compares the end of its blocks with the start of the next column.
func (f *File) Blocks(ctx context.Context, i int) (*ColumnBlocks, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cb, err := f.descriptors(ctx, i)
	if err != nil || f.Lenient || f.NoVerify {
		return cb, err
	}
	if f.columns[i].shifted != nil {
		return nil, f.columns[i].shifted
	}
	if f.columns[i].endChecked {
		return cb, nil
	}
	if err := f.checkEnd(ctx, i, cb); err != nil && !IsFault(err) {
		return nil, err
	} else if f.columns[i].endChecked = true; err != nil {
		f.columns[i].shifted = err
		return nil, err
	}
	return cb, nil
}

// checkEnd returns an error if another column begins where this one does, if the blocks are those of another column
// (CheckOwner), or if a column without checksums has certainly changed: its blocks do not end where the next column or
// the end of the file is, or no column after it begins where the header states. Then bytes were inserted or removed,
// perhaps in this column, and nothing else would reveal that its values have changed.
func (f *File) checkEnd(ctx context.Context, i int, cb *ColumnBlocks) error {
	col := &f.Header.Columns[i]
	if err := f.CheckStart(i, cb); err != nil {
		return err
	}
	if col.Summed {
		return f.CheckOwner(ctx, i, cb)
	}
	if len(cb.Blocks) == 0 || cb.End > f.At.Len { // in a truncated file, what is there is intact
		return nil
	}
	var after []int
	next := f.At.Len
	for k := range f.Header.Columns {
		if start := f.Header.Columns[k].Start; start > col.Start {
			after, next = append(after, k), min(next, start)
		}
	}
	padded := false
	if cb.End < next && next == f.At.Len {
		var err error
		if padded, err = f.Zeros(ctx, f.At.Sub(cb.End, next-cb.End)); err != nil {
			return err
		}
	}
	if cb.End != next && !padded {
		return fault.Corruptf(cb.Desc, f.PathOf(i), "its blocks end at %d, and what follows begins at %d: without "+
			"checksums all its values are in doubt", cb.End, next)
	}
	for _, k := range after {
		found, err := f.descriptors(ctx, k)
		switch rows := f.Header.Rows; {
		case err != nil && !IsFault(err):
			return err
		case err == nil && (found.Rows == rows || f.Header.Columns[k].MaxRep > 0 && found.Rows > rows):
			return nil
		}
	}
	if len(after) == 0 {
		return nil
	}
	return fault.Corruptf(cb.Desc, f.PathOf(i), "no column after it begins where the header says: without checksums "+
		"all its values are in doubt")
}

// CheckStart returns an error if another column begins where column i does, unless i is the first column right after
// the header.
func (f *File) CheckStart(i int, cb *ColumnBlocks) error {
	if f.starts == nil {
		f.starts = map[int64]int{}
		for k := range f.Header.Columns {
			f.starts[f.Header.Columns[k].Start]++
		}
	}
	start := f.Header.Columns[i].Start
	if f.starts[start] < 2 || i == 0 && start == f.Header.Size {
		return nil
	}
	return fault.Corruptf(cb.Desc, f.PathOf(i), "another column begins here, too: nothing says whose the values are")
}

// Zeros reports whether a span contains only zeros, and at most FirstBlocks of them: programs that write whole sectors
// leave some after the end of a file.
func (f *File) Zeros(ctx context.Context, at fault.Span) (bool, error) {
	if at.Len > FirstBlocks {
		return false, nil
	}
	b := make([]byte, at.Len)
	if err := format.ReadFull(ctx, f.Src, at, "padding", b); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(b, func(x byte) bool { return x != 0 }), nil
}

// descriptors reads the descriptors of column i, once. Columns that overlap, with which a small file could have very
// many blocks, are refused when more bytes were read for all of them than the file has.
func (f *File) descriptors(ctx context.Context, i int) (*ColumnBlocks, error) {
	if k := &f.columns[i]; k.cb != nil || k.err != nil {
		return k.cb, k.err
	}
	at, err := f.columnSpan(i)
	if err != nil {
		return nil, err
	}
	col := &f.Header.Columns[i]
	cb, used := &ColumnBlocks{}, int64(0)
	var sum error
	err = f.readGrowing(ctx, at, FirstBlocks, fmt.Sprintf("column[%d]", i), func(c *layout.Cursor) {
		b := c.Rest()
		*cb = ParseDescriptors(c, col, f.Header.Dialect, f.Budget)
		used = int64(c.Pos())
		if c.Err() == nil && !f.NoVerify {
			sum = col.CheckDescriptors(b[:used], cb.Desc, f.PathOf(i))
		}
	})
	if err == nil && (!f.Lenient || !col.Summed) {
		err = sum
	}
	f.Budget -= used
	if err != nil {
		if IsFault(err) {
			f.columns[i].err = err
		}
		return nil, err
	}
	cb.locate(f, col)
	cb.Odd = sum
	f.columns[i].cb = cb
	return cb, nil
}

// Restart makes column i begin at another offset.
func (f *File) Restart(i int, start int64) {
	if f.stated == nil {
		for k := range f.Header.Columns {
			f.stated = append(f.stated, f.Header.Columns[k].Start)
		}
	}
	f.Header.Columns[i].Start, f.columns[i], f.starts = start, descriptorsOf{}, nil
}

// BlocksAt reads the descriptors that column i would have if it began at start. If it begins elsewhere, the result is
// not kept; read is the size of the descriptors in bytes.
func (f *File) BlocksAt(ctx context.Context, i int, start int64) (cb *ColumnBlocks, read int64, err error) {
	was, had, budget := f.Header.Columns[i].Start, f.columns[i], f.Budget
	f.Restart(i, start)
	cb, err = f.Blocks(ctx, i)
	if start != was {
		f.Header.Columns[i].Start, f.columns[i], f.starts = was, had, nil
		read, f.Budget = budget-f.Budget, budget
	}
	return cb, read, err
}

// MarkUnreadable marks column i as one whose descriptors cannot be read.
func (f *File) MarkUnreadable(i int, why error) { f.columns[i] = descriptorsOf{err: why} }

// FirstBlocks is how many bytes of a column are read for its descriptors at first: enough for 200 blocks, about 13 MB.
const FirstBlocks = 4 << 10

// ParseDescriptors reads the beginning of a column:
//
//	block-count  fixed32
//	descriptors  for each block:
//	  block-row-count          fixed32
//	  block-uncompressed-size  fixed32
//	  block-compressed-size    fixed32, without the checksum; 0 in Impala's files that are not compressed
//	  first-value              of the column's type, if its metadata says so; a boolean takes a byte
//
// It fails if they take more than budget bytes.
func ParseDescriptors(c *layout.Cursor, col *layout.Column, d layout.Dialect, budget int64) (cb ColumnBlocks) {
	n := c.Count("block-count")
	if c.Err() == nil && n > (int64(c.Left())+c.More)/12 {
		c.Fail(c.Pos()-4, 4, "block-count", "%d blocks take at least %d bytes, the file has %d more", n, 12*n,
			int64(c.Left())+c.More)
	}
	if c.Err() == nil && 4+12*n > budget {
		c.Fail(c.Pos()-4, 4, "block-count",
			"%d blocks take at least %d bytes, the columns read before leave %d of the file's", n, 12*n, max(budget, 0))
	}
	for i := int64(0); i < n && c.Err() == nil; i++ {
		from := c.Pos()
		if !c.Need(fmt.Sprintf("descriptor[%d]", i), 12) {
			break
		}
		s := &layout.Cursor{Cursor: c.Cursor}
		name := fmt.Sprintf("descriptor[%d]", i)
		b := Block{Row: cb.Rows, Rows: s.Count(name + ".block-row-count"),
			Raw: s.Count(name + ".block-uncompressed-size"), Stored: s.Count(name + ".block-compressed-size")}
		if b.Stored == 0 && d != layout.Avro {
			b.Stored = b.Raw
		}
		if col.FirstValues {
			b.First = c.Value(name+".first-value", col.Type)
		}
		b.Desc = c.SpanOf(from, c.Pos()-from)
		cb.Blocks = append(cb.Blocks, b)
		cb.Rows += b.Rows
	}
	cb.Desc = c.SpanOf(0, c.Pos())
	return cb
}

// locate computes the spans of the blocks, which follow each other and the descriptors.
func (cb *ColumnBlocks) locate(f *File, col *layout.Column) {
	off := cb.Desc.End() - f.At.Off
	sum := int64(0)
	if col.Summed {
		sum = 4
	}
	for i := range cb.Blocks {
		b := &cb.Blocks[i]
		b.At = f.At.Sub(off, b.Stored+sum)
		off += b.At.Len
		if off > f.At.Len {
			doubt := ""
			if !col.Summed && i > 0 {
				doubt = "; if it was not cut at its end, the values of the blocks before are in doubt: " +
					"they have no checksums"
			}
			b.Lost = fault.Corruptf(b.Desc, fmt.Sprintf("descriptor[%d]", i),
				"the block would lie at %d to %d, the file has %d bytes%s", b.At.Off, b.At.End(), f.At.Len, doubt)
		}
	}
	cb.End = off
}

// IsFault reports whether err is about the contents of the file, not about reading it.
func IsFault(err error) bool {
	var e *fault.Error
	return errors.As(err, &e) && e.Class == fault.Corrupt
}
