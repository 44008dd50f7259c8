package block

import (
	"stoa/fault"
	"stoa/internal/enc/rle"
	"stoa/region"
	"stoa/wire"
)

// parseRuns reads an RLE block:
//
//	num_values  u32
//	ordinal     u32
//	runs        see package rle; values have the bits of the type, bools one
//
// The size of the runs is not stored, so bytes after them are ignored.
func parseRuns(c *wire.Cursor, t Type) (v values) {
	v.Form = formRuns
	if t == Bool {
		v.Form = formBitRuns
	}
	v.Count, v.Ordinal = parseCounts(c)
	v.At = c.Pos()
	v.data = c.Rest()
	c.Node(region.Data, c.Pos(), c.Left(), "runs", "")
	return v
}

// runs skips skip integers of width bytes and decodes the next n to the front of dst.
func (v *values) runs(dst []byte, skip, n, width int) error {
	switch width {
	case 1:
		return rle.DecodeInts(As[uint8](dst, n), v.data, 8, skip)
	case 2:
		return rle.DecodeInts(As[uint16](dst, n), v.data, 16, skip)
	case 4:
		return rle.DecodeInts(As[uint32](dst, n), v.data, 32, skip)
	case 8:
		return rle.DecodeInts(As[uint64](dst, n), v.data, 64, skip)
	}
	return fault.Bugf("cfile: runs of values of %d bytes", width)
}

// bitRuns skips skip bools and decodes the next n to the bits of dst from bit at on.
func (v *values) bitRuns(dst []byte, at, skip, n int) error {
	_, err := rle.DecodeBits(dst, at, v.data, skip, n)
	return err
}
