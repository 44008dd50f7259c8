package page

import (
	"encoding/binary"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
)

// strings decodes values that are each preceded by a length of lv bytes.
func (c *Content) strings(dst *vec.Vector, lv int) error {
	switch dst.Type.ID() {
	case arrow.STRING, arrow.BINARY:
	default:
		return c.leaves(dst, lv)
	}
	if c.rowids == nil && c.N >= 0 && len(c.Nulls) == 0 && c.P.Col.Parent == nil {
		return c.texts(dst, lv)
	}
	starts, err := c.Lengths(lv)
	if err != nil {
		return err
	}
	c.filterTexts(starts)
	at := dst.Extend(c.N)
	offs := dst.Offsets(at)
	pos := offs[0]
	room, err := dst.Bytes(pos, int64(len(c.Raw)-lv*c.N))
	if err != nil {
		return err
	}
	isNull := c.nullRule()
	var valid []byte
	nulls, k := 0, 0
	for i := range c.N {
		v := c.Raw[starts[2*i]:starts[2*i+1]]
		if isNull(i, v) {
			if valid == nil {
				valid = dst.Validity()
			}
			schema.SetNull(valid, at+i)
			nulls++
		} else if c.T.Want.Has(i) {
			k += copy(room[k:], v)
		}
		offs[i+1] = pos + int32(k)
	}
	dst.AddNulls(nulls)
	return nil
}

// texts is strings for values that are in row order and have no null bits; it needs one pass instead of two. Values
// that the task does not want are skipped, unless they are null.
func (c *Content) texts(dst *vec.Vector, lv int) error {
	if c.N > len(c.Raw)/lv {
		return fault.Rel(0, len(c.Raw), "", "%d bytes are too few for %s", len(c.Raw), fault.Count(c.N, "value"))
	}
	at := dst.Extend(c.N)
	offs := dst.Offsets(at)
	room, err := dst.Bytes(offs[0], int64(len(c.Raw)-lv*c.N))
	if err != nil {
		return err
	}
	canBeNull := c.P.Col.Type != layout.TypeBinary
	var valid []byte
	nulls, k, pos := 0, 0, 0
	first := offs[0]
	for i := range c.N {
		n, err := c.length(pos, lv)
		if err != nil {
			return err
		}
		v := c.Raw[pos+lv : pos+lv+n]
		pos += lv + n
		switch {
		case canBeNull && n == len(schema.NullText) && string(v) == schema.NullText:
			if valid == nil {
				valid = dst.Validity()
			}
			schema.SetNull(valid, at+i)
			nulls++
		case c.T.Want == nil || c.T.Want.Has(i):
			k += copy(room[k:], v)
		}
		offs[i+1] = first + int32(k)
	}
	if pos != len(c.Raw) {
		return fault.Rel(pos, len(c.Raw)-pos, "", "%d bytes after the last of %s", len(c.Raw)-pos,
			fault.Count(c.N, "value"))
	}
	dst.AddNulls(nulls)
	return nil
}

// Lengths returns the start and end of each value in Raw, in row order. If N is unknown it is set. lv is the width in
// bytes of the length before each value.
func (c *Content) Lengths(lv int) ([]uint32, error) {
	if c.N < 0 || c.N > len(c.Raw)/lv {
		if c.N >= 0 {
			return nil, fault.Rel(0, len(c.Raw), "", "%d bytes are too few for %s", len(c.Raw),
				fault.Count(c.N, "value"))
		}
		if err := c.countLengths(lv); err != nil {
			return nil, err
		}
	}
	if err := c.nullsWithin(c.N); err != nil {
		return nil, err
	}
	out := c.T.Scratch.Uint32s(2 * c.N)
	pos := 0
	for i := range c.N {
		n, err := c.length(pos, lv)
		if err != nil {
			return nil, err
		}
		pos += lv
		r := i
		if c.rowids != nil {
			r = int(c.rowids[i])
		}
		out[2*r], out[2*r+1] = uint32(pos), uint32(pos+n)
		pos += n
	}
	if pos != len(c.Raw) {
		return nil, fault.Rel(pos, len(c.Raw)-pos, "", "%d bytes after the last of %s", len(c.Raw)-pos,
			fault.Count(c.N, "value"))
	}
	return out, nil
}

func (c *Content) length(pos, lv int) (n int, err error) {
	b := c.Raw[pos:]
	switch {
	case len(b) < lv:
		return 0, fault.Rel(pos, 0, "", "expected the length of a value, found %d bytes", len(b))
	case lv == 2:
		n = int(binary.BigEndian.Uint16(b))
	default:
		n = int(int32(binary.BigEndian.Uint32(b)))
	}
	if n < 0 || n > len(b)-lv {
		return 0, fault.Rel(pos, lv, "", "expected a value of at most %d bytes, found %d", len(b)-lv, n)
	}
	return n, nil
}

// countLengths sets N to the number of values.
func (c *Content) countLengths(lv int) error {
	c.N = 0
	for pos := 0; pos < len(c.Raw); c.N++ {
		n, err := c.length(pos, lv)
		if err != nil {
			return err
		}
		pos += lv + n
	}
	return nil
}
