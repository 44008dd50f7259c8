package write

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"stoa/format/parquet/internal/meta"
	"stoa/internal/thrift"
)

// maxBloom is the size in bytes of the largest Bloom filter that is written.
const maxBloom = 8 << 20

// appendHashes appends the hashes of values of width bytes: XXH64 of their PLAIN form, without a length.
func appendHashes(dst []uint64, v dense, width int) []uint64 {
	for i := range v.n {
		dst = append(dst, xxhash.Sum64(v.at(i, width)))
	}
	return dst
}

// FilterOf builds a split block Bloom filter of hashes, with about 1 % false positives. It sorts hashes.
func FilterOf(hashes []uint64) meta.SplitBlock {
	slices.Sort(hashes)
	hashes = slices.Compact(hashes)
	wanted := -8 * float64(len(hashes)) / math.Log(1-math.Pow(0.01, 1./8)) / 8
	size := meta.SplitBlockLen
	if n := uint(math.Ceil(wanted)); n > meta.SplitBlockLen {
		size = min(maxBloom, 1<<bits.Len(n-1))
	}
	f := make(meta.SplitBlock, size)
	for _, h := range hashes {
		f.Insert(h)
	}
	return f
}

// bloomHeader returns a BloomFilterHeader: numBytes, BLOCK, XXHASH, UNCOMPRESSED.
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
