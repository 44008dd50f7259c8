package block

import (
	"stoa/internal/enc/rle"
	"stoa/wire"
)

// arrays is the header of an array data block: the cells are consecutive parts of one sequence of elements.
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
	Elements Bitmap
	Cells    Bitmap
	Lengths  []byte
	At       int // offset of lengths in the block
}

// parseArrays reads the header of an array data block.
func parseArrays(c *wire.Cursor) (a arrays) {
	elements := int(c.Uvarint32("num_elements"))
	cells := int(c.Uvarint32("num_arrays"))
	a.Elements = parseBitmap(c, "element_bitmap", "element_bitmap_size", elements)
	size := c.Length("lengths_size")
	a.At = c.Pos()
	a.Lengths = c.Bytes("lengths", size)
	a.Cells = parseBitmap(c, "array_bitmap", "array_bitmap_size", cells)
	return a
}

// Before returns the number of elements in the first n cells. spare is scratch space; its length must be greater than
// 0.
func (a *arrays) Before(n int, spare []uint16) (sum int64, err error) {
	for from := 0; from < n; from += len(spare) {
		s := spare[:min(len(spare), n-from)]
		if err := rle.DecodeInts(s, a.Lengths, 16, from); err != nil {
			return 0, Relative(err, a.At, "lengths")
		}
		for _, x := range s {
			sum += int64(x)
		}
	}
	return sum, nil
}
