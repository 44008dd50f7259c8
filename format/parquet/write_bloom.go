package parquet

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"stoa/internal/thrift"
)

// mostBloom is how many bytes a Bloom filter has at most.
const mostBloom = 8 << 20

// hash notes the hashes of the page's values: XXH64 of their PLAIN form, without a length.
func (c *chunkWriter) hash() {
	w := c.width()
	if c.phys == typeBoolean {
		w = 1
	}
	for i := range c.page.n {
		c.hashes = append(c.hashes, xxhash.Sum64(c.page.at(i, w)))
	}
}

// filter makes a split-block Bloom filter of the hashes, with about one false answer in a hundred.
func (c *chunkWriter) filter() splitBlock {
	slices.Sort(c.hashes)
	c.hashes = slices.Compact(c.hashes)
	wanted := -8 * float64(len(c.hashes)) / math.Log(1-math.Pow(0.01, 1./8)) / 8
	size := splitBlockLen
	if n := uint(math.Ceil(wanted)); n > splitBlockLen {
		size = min(mostBloom, 1<<bits.Len(n-1))
	}
	f := make(splitBlock, size)
	for _, h := range c.hashes {
		f.put(h)
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
