package cfile

import (
	"stoa/fault"
	"stoa/internal/enc/rle"
	"stoa/vec"
	"stoa/wire"
)

// arrays is what stands before the values of an array data block: the cells are cut out of one sequence of elements.
//
//	num_elements         varint, nulls included
//	num_arrays           varint, null cells included
//	element_bitmap_size  varint
//	element_bitmap       RLE of width 1: elements that are not null
//	lengths_size         varint
//	lengths              RLE of width 16: elements of each cell
//	array_bitmap_size    varint
//	array_bitmap         RLE of width 1: cells that are not null
type arrays struct {
	elements bitmap
	cells    bitmap
	lengths  []byte
	at       int // where lengths begins in the block
}

func parseArrays(c *wire.Cursor) (a arrays) {
	elements := int(c.Uvarint32("num_elements"))
	cells := int(c.Uvarint32("num_arrays"))
	a.elements = parseBitmap(c, "element_bitmap", "element_bitmap_size", elements)
	size := c.Length("lengths_size")
	a.at = c.Pos()
	a.lengths = c.Bytes("lengths", size)
	a.cells = parseBitmap(c, "array_bitmap", "array_bitmap_size", cells)
	return a
}

// before is how many elements the first n cells have.
func (a *arrays) before(n int, spare []uint16) (sum int64, err error) {
	for from := 0; from < n; from += len(spare) {
		s := spare[:min(len(spare), n-from)]
		if err := rle.DecodeInts(s, a.lengths, 16, from); err != nil {
			return 0, relative(err, a.at, "lengths")
		}
		for _, x := range s {
			sum += int64(x)
		}
	}
	return sum, nil
}

// list decodes n cells, after skip, to the end of dst.
func (d *decoding) list(dst *vec.Vector, skip, n int) error {
	h := &d.lay.arrays
	spare := as[uint16](d.t.Scratch.Bytes(2*maxSub), maxSub)
	first, err := h.before(skip, spare)
	if err != nil {
		return err
	}
	at := dst.Extend(n)
	if _, _, err := h.cells.mark(dst, at, skip, n); err != nil {
		return err
	}
	offs := dst.Offsets(at)
	last := int64(offs[0])
	for from := 0; from < n; from += maxSub {
		s := spare[:min(maxSub, n-from)]
		if err := rle.DecodeInts(s, h.lengths, 16, skip+from); err != nil {
			return relative(err, h.at, "lengths")
		}
		for i, x := range s {
			last += int64(x)
			offs[from+i+1] = int32(last)
		}
		if last > 1<<31-1 {
			return fault.Limitf(fault.Span{}, "lengths", "%d elements do not fit one batch", last)
		}
	}
	items := last - int64(offs[0])
	if end := skip+n == h.cells.n; first+items > int64(h.elements.n) || end && first+items != int64(h.elements.n) {
		return fault.Rel(h.at, len(h.lengths), "lengths", "the cells have %d elements, the block has %d", first+items, h.elements.n)
	}
	return d.flat(dst.Items, &h.elements, int(first), int(items))
}
