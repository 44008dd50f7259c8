package block

import (
	"math"

	"stoa/fault"
	"stoa/internal/enc/groupvarint"
	"stoa/vec"
	"stoa/wire"
)

// parseGroups reads a group-varint block, which only files of format v1 have:
//
//	header  group varint: number of values, smallest value, ordinal, unused
//	groups  group varints of four values each, relative to the smallest; the last one is padded with zeros
func parseGroups(c *wire.Cursor) (v values) {
	v.Form = formGroups
	g := parseGroup(c, "header")
	v.Count, v.base, v.Ordinal = int(g[0]), g[1], g[2]
	if c.Err() == nil && (int64(v.Count)+3)/4*5 > int64(c.Left()) {
		c.Fail(0, c.Pos(), "header", "%s in %d bytes", fault.Count(v.Count, "value"), c.Left())
	}
	v.data, v.At = takeRest(c, "groups", int64(c.Left()))
	return v
}

// groups skips skip values and decodes the next n to the front of dst.
func (v *values) groups(dst []byte, skip, n int, a *vec.Arena) error {
	all := a.Uint32s(v.Count)
	used, err := groupvarint.Decode(all, v.data)
	if err == nil && used != len(v.data) {
		err = fault.Rel(used, len(v.data)-used, "groups", "%d bytes are left", len(v.data)-used)
	}
	if err != nil {
		return err
	}
	out := As[uint32](dst, n)
	for i, x := range all[skip:][:n] {
		if x > math.MaxUint32-v.base {
			return fault.Rel(0, len(v.data), "groups", "%d + %d exceeds 32 bits", x, v.base)
		}
		out[i] = v.base + x
	}
	return nil
}
