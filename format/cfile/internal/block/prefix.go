package block

import (
	"encoding/binary"
	"fmt"

	"stoa/fault"
	"stoa/internal/enc/groupvarint"
	"stoa/internal/enc/prefix"
	"stoa/vec"
	"stoa/wire"
)

// parseGroup reads one group varint, which is four numbers. Its bytes are traced as names.
func parseGroup(c *wire.Cursor, names string) (g [4]uint32) {
	g, used, err := groupvarint.Decode4(c.Rest())
	if err != nil {
		c.Fail(c.Pos(), c.Left(), "header", "a group varint does not fit in %d bytes", c.Left())
		return g
	}
	c.Bytes(names, used)
	return g
}

// parsePrefix reads a prefix block:
//
//	header        group varint: number of values, ordinal, restart interval, unused
//	entries       see package prefix
//	restarts      u32 each: offset from the header of a restart point's entry; the first is not stored
//	num_restarts  u32
func parsePrefix(c *wire.Cursor) (v values) {
	v.Form = FormPrefix
	v.start = c.Pos()
	g := parseGroup(c, "header")
	v.Count, v.Ordinal = int(g[0]), g[1]
	if c.Err() != nil {
		return v
	}
	rest := c.Rest()
	if len(rest) < 4 {
		c.Fail(c.Pos(), len(rest), "num_restarts", "4 bytes are needed, %d are left", len(rest))
		return v
	}
	n := uint64(Le32(rest[len(rest)-4:]))
	if 4*n > uint64(len(rest)-4) {
		c.Fail(c.Pos()+len(rest)-4, 4, "num_restarts", "%d in a block of %d bytes", n, len(rest))
		return v
	}
	v.restarts = int(n)
	size := len(rest) - 4 - 4*v.restarts
	if v.Count > size/2 {
		c.Fail(0, c.Pos(), "header", "%s in %d bytes", fault.Count(v.Count, "value"), size)
		return v
	}
	v.At = c.Pos()
	v.data = c.Bytes("entries", size)
	v.points = c.Bytes("restarts", 4*v.restarts)
	c.U32("num_restarts")
	return v
}

// prefixed skips skip strings and decodes the next n to dst from entry at on.
func (v *values) prefixed(dst *vec.Vector, at, skip, n int, a *vec.Arena, limit int64) error {
	total, used, err := prefix.Size(v.data, v.Count)
	if err != nil {
		return err
	}
	if used != len(v.data) {
		return fault.Rel(used, len(v.data)-used, "entries", "%d bytes are left", len(v.data)-used)
	}
	offs := dst.Offsets(at)
	if skip == 0 && n == v.Count {
		base := offs[0]
		if _, err := roomFor(dst, base, total, limit); err != nil {
			return err
		}
		b := dst.StringBytes()
		_, err = prefix.Decode(offs[:n+1], b[:int(base)+int(total)+prefix.Slack], v.data, n)
		return err
	}
	if total > limit {
		return fault.Limitf(fault.Span{}, "",
			"%d bytes of strings, a page has at most %d (page limit or memory limit)", total, limit)
	}
	return v.somePrefixed(dst, offs, skip, n, int(total), a)
}

// somePrefixed is prefixed for a part of the block, which is decoded to its end in scratch memory.
func (v *values) somePrefixed(dst *vec.Vector, offs []int32, skip, n, total int, a *vec.Arena) error {
	all := As[int32](a.Bytes(4*(v.Count+1)), v.Count+1)
	all[0] = 0
	b := a.Bytes(total + prefix.Slack)
	if _, err := prefix.Decode(all, b, v.data, v.Count); err != nil {
		return err
	}
	from, to := all[skip], all[skip+n]
	out, err := dst.Bytes(offs[0], int64(to-from))
	if err != nil {
		return err
	}
	copy(out, b[from:to])
	for i := 1; i <= n; i++ {
		offs[i] = offs[0] + all[skip+i] - from
	}
	return nil
}

// RestartProblem returns the first error in the restart points of a decoded block, or "". Each must be the offset of an
// entry that shares no bytes with the one before it.
func (v *values) RestartProblem() string {
	at := 0
	starts := map[int]bool{}
	for range v.Count {
		shared, n := binary.Uvarint(v.data[at:])
		unshared, m := binary.Uvarint(v.data[at+n:])
		starts[at+v.At-v.start] = shared == 0
		at += n + m + int(unshared)
	}
	for i := range v.restarts {
		if p := int(Le32(v.points[4*i:])); !starts[p] {
			return fmt.Sprintf("restart point %d is %d, which is not the offset of an entry without prefix", i, p)
		}
	}
	return ""
}
