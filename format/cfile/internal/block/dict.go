package block

import (
	"stoa/fault"
	"stoa/vec"
	"stoa/wire"
)

// The modes of a block of a dictionary-encoded file.
const (
	DictCodes = 1 // words of the dictionary
	DictPlain = 2 // the dictionary was full: strings
)

// parseDict reads a block of a dictionary-encoded file:
//
//	mode  u32: 1 words of the dictionary, 2 strings
//	      1: a bitshuffle block of uint32;  2: a plain binary block
func parseDict(c *wire.Cursor) (v values) {
	switch mode := c.U32("mode"); {
	case c.Err() != nil:
	case mode == DictCodes:
		v = parseShuffled(c, 4, true)
		v.Form = FormCodes
	case mode == DictPlain:
		v = ParsePlainBinary(c)
	default:
		c.Fail(c.Pos()-4, 4, "mode", "%d is neither words (1) nor strings (2)", mode)
	}
	return v
}

// Codes decodes n words, after skip, to the front of dst, and sees that dict has them.
func (v *values) Codes(dst []uint32, skip, n int, dict *vec.Vector, a *vec.Arena) error {
	if n == 0 {
		return nil
	}
	if dict == nil {
		return fault.Rel(0, len(v.data), "", "words of a dictionary, and the file has none")
	}
	if err := v.unshuffle(BytesOf(dst), skip, n, 4, a); err != nil {
		return err
	}
	most := uint32(0)
	for _, x := range dst[:n] {
		most = max(most, x)
	}
	if uint64(most) >= uint64(dict.Len()) {
		return fault.Rel(0, len(v.data), "", "word %d, but the dictionary has %d entries", most, dict.Len())
	}
	return nil
}
