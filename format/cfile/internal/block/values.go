package block

import (
	"stoa/fault"
	"stoa/vec"
	"stoa/wire"
)

// parseValues reads the header of the encoded values, which fill the rest of c.
func parseValues(c *wire.Cursor, t Type, e Encoding) (v values) {
	switch e {
	case Plain:
		switch {
		case t.IsBinary():
			v = ParsePlainBinary(c)
		case t == Bool:
			v = parsePlainBits(c)
		default:
			v = parsePlainFixed(c, t.Width())
		}
	case Prefix:
		v = parsePrefix(c)
	case Dict:
		v = parseDict(c)
	case BitShuffle:
		v = parseShuffled(c, t.Width(), t == Uint32)
	case RLE:
		v = parseRuns(c, t)
	case GroupVarint:
		v = parseGroups(c)
	}
	return v
}

// fixed skips skip values of width bytes and decodes the next n to the front of dst, which may be longer.
func (v *values) fixed(dst []byte, skip, n, width int, a *vec.Arena) error {
	switch v.Form {
	case formFixed:
		copy(dst, v.data[skip*width:(skip+n)*width])
		return nil
	case formShuffled:
		return v.unshuffle(dst, skip, n, width, a)
	case formRuns:
		return v.runs(dst, skip, n, width)
	case formGroups:
		return v.groups(dst, skip, n, a)
	}
	return fault.Bugf("cfile: form %d holds no values of fixed width", v.Form)
}

// Wide skips skip values of width bytes and decodes the next n, sign-extended, to slots of size bytes in dst.
func (v *values) Wide(dst []byte, skip, n, width, size int, a *vec.Arena) error {
	if width == size {
		return v.fixed(dst, skip, n, width, a)
	}
	narrow := a.Bytes(n*width + shuffleSlack)
	if err := v.fixed(narrow, skip, n, width, a); err != nil {
		return err
	}
	out := As[[2]uint64](dst, n)
	switch width {
	case 4:
		for i, x := range As[int32](narrow, n) {
			out[i] = [2]uint64{uint64(x), uint64(x >> 31)}
		}
	case 8:
		for i, x := range As[int64](narrow, n) {
			out[i] = [2]uint64{uint64(x), uint64(x >> 63)}
		}
	}
	return nil
}
