package write

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
)

// mostBloom is how many bytes a Bloom filter has at most.
const mostBloom = 8 << 20

// hash notes the hashes of the page's values: XXH64 of their PLAIN form, without a length.
func (c *ChunkWriter) hash() {
	w := c.width()
	if c.phys == meta.TypeBoolean {
		w = 1
	}
	for i := range c.page.n {
		c.Hashes = append(c.Hashes, xxhash.Sum64(c.page.at(i, w)))
	}
}

// Filter makes a split-block Bloom filter of the hashes, with about one false answer in a hundred.
func (c *ChunkWriter) Filter() meta.SplitBlock {
	slices.Sort(c.Hashes)
	c.Hashes = slices.Compact(c.Hashes)
	wanted := -8 * float64(len(c.Hashes)) / math.Log(1-math.Pow(0.01, 1./8)) / 8
	size := meta.SplitBlockLen
	if n := uint(math.Ceil(wanted)); n > meta.SplitBlockLen {
		size = min(mostBloom, 1<<bits.Len(n-1))
	}
	f := make(meta.SplitBlock, size)
	for _, h := range c.Hashes {
		f.Put(h)
	}
	return f
}

// bloomHeader is a BloomFilterHeader: numBytes, BLOCK, XXHASH, UNCOMPRESSED.
func bloomHeader(size int) []byte {
	w := thrift.NewWriter(thrift.Compact)
	w.Struct(thrift.Item)
	w.I32(1, int32(size))
	for id := int16(2); id <= 4; id++ {
		w.Struct(id)
		w.Struct(1)
		w.End()
		w.End()
	}
	w.End()
	return w.Encoded()
}
