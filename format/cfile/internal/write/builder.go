package write

import (
	"stoa/format/cfile/internal/block"
	"stoa/internal/enc/rle"
)

// blockBuilder makes the encoded values of one data block after the other. Values come in bulk.
type blockBuilder interface {
	// add takes values [from, to) up to the one that fills the block. all: takes them in any case, as the
	// elements of an array cell, which no block border divides.
	add(v *dense, from, to int, all bool) (taken int, f fullness)
	// rest takes the rest of the run after add said fullAtRunEnd. Fewer than offered: the block ends here.
	rest(v *dense, from, to int) int
	// finish appends the encoded values to dst.
	Finish(dst []byte, ordinal uint32) []byte
	reset()
}

// newBlockBuilder chooses by type and encoding, which have been checked.
func newBlockBuilder(t block.Type, o *WriterOptions) blockBuilder {
	limit := o.BlockSize
	switch o.Encoding {
	case block.Dict:
		return newDictStrings(limit)
	case block.Prefix:
		return newPrefixStrings(limit, o.RestartInterval)
	case block.GroupVarint:
		return &groupVarints{limit: limit}
	case block.RLE:
		if t == block.Bool {
			return &rleBools{limit: limit}
		}
		return &rleInts{enc: rle.NewEncoder(8 * t.Width()), width: t.Width(), limit: limit}
	case block.BitShuffle:
		return newShuffled(limit, t.Width(), t == block.Uint32)
	}
	switch {
	case t.IsBinary():
		return newPlainStrings(limit)
	case t == block.Bool:
		return &plainBools{limit: limit}
	}
	return &plainFixed{width: t.Width(), limit: limit}
}
