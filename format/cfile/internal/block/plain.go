package block

import (
	"stoa/fault"
	"stoa/internal/enc/groupvarint"
	"stoa/internal/enc/plain"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// parseCounts reads the header of a plain block of fixed width and of an RLE block: count u32, ordinal u32.
func parseCounts(c *wire.Cursor) (count int, ordinal uint32) {
	count = int(c.U32("num_values"))
	return count, c.U32("ordinal")
}

// takeRest reads the rest of c, which must be n bytes, and returns it with its offset.
func takeRest(c *wire.Cursor, name string, n int64) (data []byte, at int) {
	if c.Err() == nil && int64(c.Left()) != n {
		c.Fail(c.Pos(), c.Left(), name, "expected %d bytes of values, found %d", n, c.Left())
	}
	if c.Err() != nil {
		return nil, c.Pos()
	}
	at = c.Pos()
	return c.Bytes(name, int(n)), at
}

// parsePlainFixed reads a plain block of values of width bytes:
//
//	num_values  u32
//	ordinal     u32
//	values      little-endian
func parsePlainFixed(c *wire.Cursor, width int) (v values) {
	v.Form = formFixed
	v.Count, v.Ordinal = parseCounts(c)
	v.data, v.At = takeRest(c, "values", int64(v.Count)*int64(width))
	return v
}

// parsePlainBits reads a plain block of bools: as parsePlainFixed, with the values as bits, least significant first.
func parsePlainBits(c *wire.Cursor) (v values) {
	v.Form = formBits
	v.Count, v.Ordinal = parseCounts(c)
	v.data, v.At = takeRest(c, "values", (int64(v.Count)+7)/8)
	return v
}

// plainBinaryHead is the size of the header of a plain binary block.
const plainBinaryHead = 12

// ParsePlainBinary reads a plain block of strings, which is a data block, the dictionary, or a part of a block.
//
//	ordinal      u32
//	num_values   u32
//	offsets_pos  u32, counted from the beginning of this header
//	values       one after the other
//	offsets      of each value, counted likewise; group varints
func ParsePlainBinary(c *wire.Cursor) (v values) {
	v.Form = formStrings
	start := c.Pos()
	v.Ordinal = c.U32("ordinal")
	v.Count = int(c.U32("num_values"))
	pos := int64(c.U32("offsets_pos"))
	size := pos - plainBinaryHead
	switch {
	case c.Err() != nil:
		return v
	case size < 0 || size > int64(c.Left()):
		c.Fail(start+8, 4, "offsets_pos", "expected an offset in the block of %d bytes, found %d",
			c.Left()+plainBinaryHead, pos)
		return v
	case (int64(v.Count)+3)/4*5 > int64(c.Left())-size:
		c.Fail(start+4, 4, "num_values", "%d offsets in %d bytes", v.Count, int64(c.Left())-size)
		return v
	}
	v.At = c.Pos()
	v.data = c.Bytes("values", int(size))
	v.offsets = c.Rest()
	c.Node(region.Data, c.Pos(), c.Left(), "offsets", "")
	return v
}

// Bits skips skip bools and decodes the next n to the bits of dst from bit at on.
func (v *values) Bits(dst []byte, at, skip, n int) error {
	if v.Form == formBits {
		plain.CopyBits(dst, at, v.data, skip, n)
		return nil
	}
	return v.bitRuns(dst, at, skip, n)
}

// Strings skips skip strings and decodes the next n, offsets and bytes, to dst from entry at on. More than limit bytes
// are a Limit error.
func (v *values) Strings(dst *vec.Vector, at, skip, n int, a *vec.Arena, limit int64) error {
	if v.Form == FormPrefix {
		return v.prefixed(dst, at, skip, n, a, limit)
	}
	offs := dst.Offsets(at)
	if skip == 0 && n == v.Count {
		return v.allStrings(dst, offs[:n+1], limit)
	}
	all := As[int32](a.Bytes(4*(v.Count+1)), v.Count+1)
	if err := v.Starts(all, 0); err != nil {
		return err
	}
	from, to := all[skip], all[skip+n]
	b, err := roomFor(dst, offs[0], int64(to-from), limit)
	if err != nil {
		return err
	}
	copy(b, v.data[from:to])
	for i := 1; i <= n; i++ {
		offs[i] = offs[0] + all[skip+i] - from
	}
	return nil
}

// allStrings decodes all strings of a plain block; the caller has set offs[0].
func (v *values) allStrings(dst *vec.Vector, offs []int32, limit int64) error {
	base := offs[0]
	b, err := roomFor(dst, base, int64(len(v.data)), limit)
	if err != nil {
		return err
	}
	if err := v.Starts(offs, base); err != nil {
		return err
	}
	copy(b, v.data)
	return nil
}

// Starts fills offs, which has one entry more than there are strings, with the offset in v.data at which each string
// begins and, as the last entry, the offset at which the last one ends. base is added to each.
func (v *values) Starts(offs []int32, base int32) error {
	n := len(offs) - 1
	used, err := groupvarint.DecodeOffsets(offs[:n], v.offsets, base-plainBinaryHead,
		uint32(plainBinaryHead+len(v.data)))
	end := len(v.data)
	switch {
	case err != nil:
	case used != len(v.offsets):
		err = fault.Rel(used, len(v.offsets)-used, "", "%d bytes are left", len(v.offsets)-used)
	case n == 0 && end != 0 || n > 0 && offs[0] != base:
		return fault.Rel(0, end, "values", "the first offset is not that of the first byte")
	}
	if err != nil {
		return Relative(err, end, "offsets")
	}
	offs[n] = base + int32(end)
	return nil
}

// Relative moves a relative error by off bytes and prepends name to its path.
func Relative(err error, off int, name string) error {
	e, ok := err.(*fault.Error)
	if !ok || e.Class == fault.Bug {
		return err
	}
	moved := *e
	moved.At.Off += int64(off)
	moved.Path = fault.JoinPath(name, e.Path)
	return &moved
}

// roomFor is dst.Bytes with a check against limit.
func roomFor(dst *vec.Vector, at int32, n, limit int64) ([]byte, error) {
	if n > limit {
		return nil, fault.Limitf(fault.Span{}, "",
			"%d bytes of strings, a page has at most %d (page limit or memory limit)", n, limit)
	}
	return dst.Bytes(at, n)
}
