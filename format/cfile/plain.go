package cfile

import (
	"stoa/fault"
	"stoa/internal/enc/groupvarint"
	"stoa/internal/enc/plain"
	"stoa/region"
	"stoa/vec"
	"stoa/wire"
)

// parseCounts reads what begins a plain block of fixed width and an RLE block: count u32, ordinal u32.
func parseCounts(c *wire.Cursor) (count int, ordinal uint32) {
	count = int(c.U32("num_values"))
	return count, c.U32("ordinal")
}

// left takes what is left, which must be n bytes.
func left(c *wire.Cursor, name string, n int64) (data []byte, at int) {
	if c.Err() == nil && int64(c.Left()) != n {
		c.Fail(c.Pos(), c.Left(), name, "%d bytes where the values have %d", c.Left(), n)
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
	v.form = formFixed
	v.count, v.ordinal = parseCounts(c)
	v.data, v.at = left(c, "values", int64(v.count)*int64(width))
	return v
}

// parsePlainBits reads a plain block of bools: as parsePlainFixed, with the values as bits, least significant first.
func parsePlainBits(c *wire.Cursor) (v values) {
	v.form = formBits
	v.count, v.ordinal = parseCounts(c)
	v.data, v.at = left(c, "values", (int64(v.count)+7)/8)
	return v
}

// plainBinaryHead is the size of the header of a plain binary block.
const plainBinaryHead = 12

// parsePlainBinary reads a plain block of strings. It is a block of its own in a dictionary, too.
//
//	ordinal      u32
//	num_values   u32
//	offsets_pos  u32, counted from the beginning of this header
//	values       one behind the other
//	offsets      where each value begins, counted likewise; group varints
func parsePlainBinary(c *wire.Cursor) (v values) {
	v.form = formStrings
	start := c.Pos()
	v.ordinal = c.U32("ordinal")
	v.count = int(c.U32("num_values"))
	pos := int64(c.U32("offsets_pos"))
	size := pos - plainBinaryHead
	switch {
	case c.Err() != nil:
		return v
	case size < 0 || size > int64(c.Left()):
		c.Fail(start+8, 4, "offsets_pos", "%d, but the block has %d bytes", pos, c.Left()+plainBinaryHead)
		return v
	case (int64(v.count)+3)/4*5 > int64(c.Left())-size:
		c.Fail(start+4, 4, "num_values", "%d offsets in %d bytes", v.count, int64(c.Left())-size)
		return v
	}
	v.at = c.Pos()
	v.data = c.Bytes("values", int(size))
	v.offsets = c.Rest()
	c.Node(region.Data, c.Pos(), c.Left(), "offsets", "")
	return v
}

// bits decodes n bools, after skip, to the bits of dst from at on.
func (v *values) bits(dst []byte, at, skip, n int) error {
	if v.form == formBits {
		plain.CopyBits(dst, at, v.data, skip, n)
		return nil
	}
	return v.bitRuns(dst, at, skip, n)
}

// strings decodes n strings, after skip, to the tail of dst that begins at entry at: offsets and bytes.
func (v *values) strings(dst *vec.Vector, at, skip, n int, a *vec.Arena, limit int64) error {
	if v.form == formPrefix {
		return v.prefixed(dst, at, skip, n, a, limit)
	}
	offs := dst.Offsets(at)
	if skip == 0 && n == v.count {
		return v.allStrings(dst, offs[:n+1], limit)
	}
	all := as[int32](a.Bytes(4*(v.count+1)), v.count+1)
	if err := v.starts(all, 0); err != nil {
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

// allStrings decodes all strings of a plain block; offs[0] is given.
func (v *values) allStrings(dst *vec.Vector, offs []int32, limit int64) error {
	base := offs[0]
	b, err := roomFor(dst, base, int64(len(v.data)), limit)
	if err != nil {
		return err
	}
	if err := v.starts(offs, base); err != nil {
		return err
	}
	copy(b, v.data)
	return nil
}

// starts fills offs with where the strings begin, and the last one ends, in v.data; base is added to each.
func (v *values) starts(offs []int32, base int32) error {
	n := len(offs) - 1
	used, err := groupvarint.DecodeOffsets(offs[:n], v.offsets, base-plainBinaryHead, uint32(plainBinaryHead+len(v.data)))
	end := len(v.data)
	switch {
	case err != nil:
	case used != len(v.offsets):
		err = fault.Rel(used, len(v.offsets)-used, "", "%d bytes are left over", len(v.offsets)-used)
	case n == 0 && end != 0 || n > 0 && offs[0] != base:
		return fault.Rel(0, end, "values", "the first value does not begin where the values begin")
	}
	if err != nil {
		return relative(err, end, "offsets")
	}
	offs[n] = base + int32(end)
	return nil
}

// relative moves a relative error by off and puts name in front of its path.
func relative(err error, off int, name string) error {
	e, ok := err.(*fault.Error)
	if !ok || e.Class == fault.Bug {
		return err
	}
	moved := *e
	moved.At.Off += int64(off)
	moved.Path = fault.JoinPath(name, e.Path)
	return &moved
}

// roomFor is dst.Bytes, within limit.
func roomFor(dst *vec.Vector, at int32, n, limit int64) ([]byte, error) {
	if n > limit {
		return nil, fault.Limitf(fault.Span{}, "", "%d bytes of strings are more than a page may have (%d)", n, limit)
	}
	return dst.Bytes(at, n)
}
