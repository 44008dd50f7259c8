package page

import (
	"encoding/binary"

	"stoa/fault"
	"stoa/format/carbon/internal/dict"
	"stoa/format/carbon/internal/schema"
	"stoa/vec"

	"github.com/apache/arrow-go/v18/arrow"
)

// globalCodes decodes a page of codes of a global dictionary: big-endian, of the width that the largest code needs.
func (c *Content) globalCodes(dst *vec.Vector) error {
	values := c.T.Dict
	if values == nil {
		return fault.Bugf("carbon: codes without a dictionary")
	}
	codes, err := c.readCodes()
	if err != nil {
		return err
	}
	at := dst.Len()
	if codes, err = c.checkCodes(codes, values); err != nil {
		return err
	}
	if dst.Type.ID() == arrow.STRING || dst.Type.ID() == arrow.BINARY {
		copy(dst.ExtendCodes(c.N, values), codes)
	} else {
		dst.Extend(c.N)
		dict.Gather(dst, at, values, codes)
	}
	nulls := 0
	for i, v := range codes {
		if v == schema.NullCode {
			schema.SetNull(dst.Validity(), at+i)
			nulls++
		}
	}
	dst.AddNulls(nulls)
	return nil
}

// readCodes returns the codes in row order.
func (c *Content) readCodes() ([]uint32, error) {
	if c.N <= 0 || len(c.Raw)%c.N != 0 || len(c.Raw)/c.N > 4 || len(c.Raw) == 0 {
		if c.N == 0 && len(c.Raw) == 0 {
			return nil, nil
		}
		return nil, fault.Rel(0, 0, "", "expected 1 to 4 bytes for each of %d codes, found %d bytes", c.N, len(c.Raw))
	}
	w := len(c.Raw) / c.N
	c.filterCodes(w)
	out := c.T.Scratch.Uint32s(c.N)
	raw := c.inOrder(w)
	switch w {
	case 1:
		for i := range out {
			out[i] = uint32(raw[i])
		}
	case 2:
		for i := range out {
			out[i] = uint32(binary.BigEndian.Uint16(raw[2*i:]))
		}
	case 3:
		for i := range out {
			b := raw[3*i : 3*i+3]
			out[i] = uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
		}
	case 4:
		for i := range out {
			out[i] = binary.BigEndian.Uint32(raw[4*i:])
		}
	}
	return out, nil
}

// checkCodes returns codes, or an error if one of them neither has a value nor is the code of null.
func (c *Content) checkCodes(codes []uint32, values *vec.Vector) ([]uint32, error) {
	holes := values.Nulls() > 2 // some codes other than 0 and 1 have no value
	for i, v := range codes {
		if v == 0 || int64(v) >= int64(values.Len()) {
			return nil, fault.Rel(0, 0, "", "entry %d: expected a code from 1 to %d, found %d", i, values.Len()-1, v)
		}
		if holes && v != schema.NullCode && !values.Valid(int(v)) {
			return nil, fault.Rel(0, 0, "", "entry %d: the dictionary value of code %d is not of type %s", i, v,
				values.Type)
		}
	}
	return codes, nil
}
