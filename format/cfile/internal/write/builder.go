package write

import (
	"stoa/format/cfile/internal/block"
	"stoa/internal/enc/rle"
)

// blockBuilder encodes the values of one data block after another. Values are added in bulk.
type blockBuilder interface {
	// add appends values [from, to) up to the one that fills the block. With all it appends every value regardless of
	// size: the elements of an array cell must not be split between blocks.
	add(v *dense, from, to int, all bool) (taken int, f fullness)
	// rest appends the rest of the run after add returned fullAtRunEnd. If it accepts fewer than offered, the block
	// ends there.
	rest(v *dense, from, to int) int
	// Finish appends the encoded values to dst.
	Finish(dst []byte, ordinal uint32) []byte
	reset()
}

// newBlockBuilder returns the builder for a type and encoding, which must have been validated.
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
