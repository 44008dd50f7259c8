package block

import (
	"slices"

	"stoa/fault"
	"stoa/vec"
	"stoa/wire"
)

// The modes of a block of a dictionary-encoded file.
const (
	DictCodes = 1 // codes of the dictionary's entries
	DictPlain = 2 // strings, because the dictionary was full
)

// parseDict reads a block of a dictionary-encoded file:
//
//	mode  u32: 1 codes of the dictionary's entries, 2 strings
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
		c.Fail(c.Pos()-4, 4, "mode", "expected codes (1) or strings (2), found %d", mode)
	}
	return v
}

// Codes skips skip codes and decodes the next n to the front of dst. A code without an entry in dict is an error.
func (v *values) Codes(dst []uint32, skip, n int, dict *vec.Vector, a *vec.Arena) error {
	if n == 0 {
		return nil
	}
	if dict == nil {
		return fault.Rel(0, len(v.data), "", "found codes of a dictionary, which the file does not have")
	}
	if err := v.unshuffle(BytesOf(dst), skip, n, 4, a); err != nil {
		return err
	}
	if highest := slices.Max(dst[:n]); uint64(highest) >= uint64(dict.Len()) {
		return fault.Rel(0, len(v.data), "", "expected codes below %d, the number of entries, found %d", dict.Len(),
			highest)
	}
	return nil
}
