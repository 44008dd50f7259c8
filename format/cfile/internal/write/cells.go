package write

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/internal/enc/plain"
	"stoa/internal/enc/rle"
)

// maxCell is the largest number of elements of a cell, whose counts are 16 bits wide.
const maxCell = 1<<16 - 1

// cellHeads is the description of the cells in an array block, except for the bitmap of the elements (Writer.present).
//
// Source: cfile.md, "Array Data Block Layout"; the rule for when a block ends is that of Kudu's writer: only after a
// cell that has elements.
type cellHeads struct {
	counts *rle.Encoder // number of elements per cell, 0 for a null cell
	valid  BitRuns
}

func newCellHeads() *cellHeads { return &cellHeads{counts: rle.NewEncoder(16)} }

func (s *cellHeads) reset() {
	s.counts.Reset()
	s.valid.reset()
}

// appendHead appends the header of an array block, before the encoded elements:
//
//	varint elements (with nulls), varint cells
//	varint length, bitmap of the elements
//	varint length, counts of elements (RLE of width 16)
//	varint length, bitmap of the cells
func (s *cellHeads) appendHead(b []byte, n int, elems *BitRuns) []byte {
	b = binary.AppendUvarint(b, uint64(elems.N))
	b = binary.AppendUvarint(b, uint64(n))
	for _, part := range [][]byte{elems.Finish(), s.counts.Finish(), s.valid.Finish()} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return b
}

// listSource is a list array of any kind: cell i has the elements [bounds(i)) of items.
type listSource struct {
	arr    arrow.Array
	items  arrow.Array
	bounds func(i int) (lo, hi int64)
}

func newListSource(f *Field, arr arrow.Array) (*listSource, error) {
	l := &listSource{arr: arr}
	switch a := arr.(type) {
	case *array.List:
		l.items, l.bounds = a.ListValues(), a.ValueOffsets
	case *array.LargeList:
		l.items, l.bounds = a.ListValues(), a.ValueOffsets
	case *array.FixedSizeList:
		l.items, l.bounds = a.ListValues(), a.ValueOffsets
	default:
		return nil, fault.Invalidf("column %q: an array column does not hold values of type %s", f.Name, arr.DataType())
	}
	return l, nil
}

// appendCells appends the cells of a list array, some thousand elements at a time.
func (c *Writer) appendCells(arr arrow.Array) error {
	l, err := newListSource(&c.f, arr)
	if err != nil {
		return err
	}
	col, err := newSource(&c.f, l.items, c.O.Coerce)
	if err != nil {
		return err
	}
	for a := 0; a < arr.Len(); {
		b := a + 1
		first, hi := l.bounds(a)
		for b < arr.Len() && hi-first < chunkRows && b-a < chunkRows {
			_, hi = l.bounds(b)
			b++
		}
		if err := c.appendCellRun(l, col, a, b); err != nil {
			return err
		}
		a = b
	}
	return nil
}

// appendCellRun appends the cells [a, b).
func (c *Writer) appendCellRun(l *listSource, col *source, a, b int) error {
	from, _ := l.bounds(a)
	_, to := l.bounds(b - 1)
	row := c.rows - int64(a)
	ch, err := col.chunk(int(from), int(to), &c.buf, func(i int) int64 {
		cell := a
		for cell+1 < b {
			if lo, _ := l.bounds(cell + 1); lo > from+int64(i) {
				break
			}
			cell++
		}
		return row + int64(cell)
	})
	if err != nil {
		return err
	}
	d := 0
	for i := a; i < b; i++ {
		lo, hi := l.bounds(i)
		n, k := int(hi-lo), int(hi-lo) // elements, and those of them that are not null
		if ch.valid != nil {
			k = plain.CountBits(ch.valid, ch.at+int(lo-from), n)
		}
		if err := c.appendCell(ch, l.arr.IsNull(i), int(lo-from), n, d, k); err != nil {
			return err
		}
		d += k
	}
	return nil
}

// appendCell appends one cell: the n elements of ch from element at on, whose non-null values are the k values from
// value d on.
func (c *Writer) appendCell(ch *portion, null bool, at, n, d, k int) error {
	switch {
	case null && !c.f.Nullable:
		return fault.Invalidf("column %q, row %d: null in a column without nulls", c.f.Name, c.rows)
	case n > maxCell && !null:
		return fault.Invalidf("column %q, row %d: %d elements; a cell holds no more than %d", c.f.Name, c.rows, n,
			maxCell)
	}
	c.rows++
	c.blockRows++
	if null {
		c.cells.valid.PutRun(0, 1)
		c.cells.counts.Put(0)
		return nil
	}
	c.cells.valid.PutRun(1, 1)
	c.cells.counts.Put(uint64(n))
	if n == 0 {
		return nil
	}
	if ch.valid == nil {
		c.present.PutRun(1, n)
	} else {
		c.present.Put(ch.valid, ch.at+at, n)
	}
	_, f := c.b.add(&ch.values, d, d+k, true)
	if f == spaceLeft {
		return nil
	}
	return c.finishBlock()
}
