package change

import (
	"encoding/binary"
	"math"
	"math/bits"

	"stoa/fault"
	"stoa/format/carbon/internal/layout"
	"stoa/format/carbon/internal/page"
	"stoa/format/carbon/internal/schema"

	"github.com/apache/arrow-go/v18/arrow"
)

// bucketHash is Spark's hash of the value of a bucket column in row i. The hash modulo the number of buckets is the
// bucket of the row.
func bucketHash(l *Load, b arrow.RecordBatch, i int, c *layout.ColumnSchema) (int32, error) {
	a := l.fieldOf(b, c)
	if a == nil || a.IsNull(i) {
		return HashSeed, nil
	}
	x := &page.Cells{}
	if err := x.Add(&schema.Column{ColumnSchema: c}, a, i, i+1, &l.wo); err != nil {
		return 0, err
	}
	switch c.Type {
	case layout.TypeLong:
		return MurmurLong(uint64(x.Ints[0])), nil
	case layout.TypeTimestamp:
		return MurmurLong(uint64(x.Ints[0] * 1000)), nil
	case layout.TypeDouble:
		return MurmurLong(math.Float64bits(x.Nums[0])), nil
	case layout.TypeFloat:
		return MurmurInt(math.Float32bits(float32(x.Nums[0]))), nil
	case layout.TypeDate:
		return MurmurInt(uint32(x.Ints[0])), nil
	case layout.TypeShort, layout.TypeInt, layout.TypeBoolean:
		return MurmurInt(uint32(x.Ints[0])), nil
	case layout.TypeString, layout.TypeVarchar:
		return MurmurText(x.Text(0)), nil
	}
	return 0, fault.Unsupportedf(fault.Span{Object: l.dir}, c.Name, "buckets by a column of type %s", c.Type)
}

// HashSeed is the seed of Spark's hash, which is 32-bit MurmurHash3. It is also the hash of null.
const HashSeed = 42

func murmurMix(h, k uint32) uint32 {
	k = bits.RotateLeft32(k*0xcc9e2d51, 15) * 0x1b873593
	return bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
}

func murmurFinish(h, n uint32) int32 {
	h ^= n
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return int32(h ^ h>>16)
}

// MurmurInt is Spark's hash of an int.
func MurmurInt(v uint32) int32 { return murmurFinish(murmurMix(HashSeed, v), 4) }

// MurmurLong is Spark's hash of a long.
func MurmurLong(v uint64) int32 {
	return murmurFinish(murmurMix(murmurMix(HashSeed, uint32(v)), uint32(v>>32)), 8)
}

// MurmurText is Spark's hash of a string: little-endian words of four bytes, then each remaining byte separately. In
// the latter it differs from MurmurHash3.
func MurmurText(b []byte) int32 {
	h, n := uint32(HashSeed), uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		h = murmurMix(h, binary.LittleEndian.Uint32(b))
	}
	for _, c := range b {
		h = murmurMix(h, uint32(int32(int8(c))))
	}
	return murmurFinish(h, n)
}
