package parquet

import (
	"context"
	"encoding/binary"
	"math"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"

	"stoa/fault"
	"stoa/format"
)

// splitBlock is a Bloom filter as Parquet has it (BloomFilter.md): blocks of eight words of 32 bits, of which a value sets one bit each.
type splitBlock []byte

const splitBlockLen = 32

var salts = [8]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}

// may reports whether a value with this hash may be there.
func (f splitBlock) may(hash uint64) bool {
	block := f[(hash>>32*uint64(len(f)/splitBlockLen))>>32*splitBlockLen:]
	for i, salt := range salts {
		word := binary.LittleEndian.Uint32(block[4*i:])
		if word&(1<<(uint32(hash)*salt>>27)) == 0 {
			return false
		}
	}
	return true
}

// bloom asks the Bloom filter of a column chunk for every value that the chunk has. Values that cannot be read are told of elsewhere.
func (v *verifier) bloom(group, leaf int) {
	m := v.r.meta.RowGroups[group].Columns[leaf].MetaData
	if m.BloomFilterOffset == nil {
		return
	}
	path := indexPath(group, leaf, "bloom_filter")
	header, at, err := v.r.bloomSpans(v.ctx, *m.BloomFilterOffset)
	if err != nil {
		v.unlessDamaged("parquet.bloom", err)
		return
	}
	n := m.BloomFilterLength
	switch {
	case header.Len == 0 || at.Len < splitBlockLen || at.Len%splitBlockLen != 0 || at.End() > v.r.base+v.r.size:
		v.find("parquet.bloom", fault.Corruptf(v.r.footer, path, "at %d is no Bloom filter", *m.BloomFilterOffset))
		return
	case at.Len > v.r.limits.Page:
		v.find("parquet.bloom", fault.Limitf(at, path, "%d bytes, the limit is %d", at.Len, v.r.limits.Page))
		return
	case n != nil && int64(*n) != header.Len+at.Len:
		v.find("parquet.bloom", fault.Corruptf(v.r.footer, path+"_length", "%d, but the filter has %d bytes with its header", *n, header.Len+at.Len))
	}
	bits := make(splitBlock, at.Len)
	if err := format.ReadFull(v.ctx, v.r.src, at, path, bits); err != nil {
		v.find("parquet.bloom", err)
		return
	}
	var missing int64
	err = guard(v.r.chunkSpan(group, leaf), path, func() error {
		return v.r.hashes(v.ctx, group, leaf, func(hash uint64) { missing += one(!bits.may(hash)) })
	})
	err = v.r.blame(err, v.r.chunkSpan(group, leaf), path)
	if missing > 0 {
		v.find("parquet.bloom", fault.Corruptf(at, path, "%d values of the column chunk are not in it", missing))
	} else {
		v.unlessDamaged("parquet.bloom", err)
	}
}

// hashes gives the hash of every value of a column chunk.
func (r *reader) hashes(ctx context.Context, group, leaf int, f func(uint64)) error {
	col, err := r.chunkReader(ctx, group, leaf)
	if err != nil {
		return err
	}
	small := metadata.NewBloomFilter(splitBlockLen, splitBlockLen, memory.NewGoAllocator())
	defer small.Release()
	hash := small.Hasher().Sum64
	var b [8]byte
	number := func(n int, x uint64) {
		binary.LittleEndian.PutUint64(b[:], x)
		f(hash(b[:n]))
	}
	switch c := col.(type) {
	case *file.BooleanColumnChunkReader:
		return eachValue(c, func(x bool) { number(1, uint64(one(x))) })
	case *file.Int32ColumnChunkReader:
		return eachValue(c, func(x int32) { number(4, uint64(uint32(x))) })
	case *file.Int64ColumnChunkReader:
		return eachValue(c, func(x int64) { number(8, uint64(x)) })
	case *file.Float32ColumnChunkReader:
		return eachValue(c, func(x float32) { number(4, uint64(math.Float32bits(x))) })
	case *file.Float64ColumnChunkReader:
		return eachValue(c, func(x float64) { number(8, math.Float64bits(x)) })
	case *file.Int96ColumnChunkReader:
		return eachValue(c, func(x parquet.Int96) { f(hash(x[:])) })
	case *file.ByteArrayColumnChunkReader:
		return eachValue(c, func(x parquet.ByteArray) { f(hash(x)) })
	case *file.FixedLenByteArrayColumnChunkReader:
		return eachValue(c, func(x parquet.FixedLenByteArray) { f(hash(x)) })
	}
	return nil
}

// batchReader is a reader of the library's of values of type T.
type batchReader[T any] interface {
	ReadBatch(n int64, values []T, def, rep []int16) (total int64, read int, err error)
	HasNext() bool
	Err() error
}

func eachValue[T any](c batchReader[T], f func(T)) error {
	return eachBatch(c, func(values []T, _ int64, _, _ []int16) {
		for _, x := range values {
			f(x)
		}
	})
}

// eachBatch gives the values of a chunk, and the levels of the entries that they and its nulls are.
func eachBatch[T any](c batchReader[T], f func(values []T, total int64, def, rep []int16)) error {
	const n = 4096
	values, def, rep := make([]T, n), make([]int16, n), make([]int16, n)
	for c.HasNext() {
		total, read, err := c.ReadBatch(n, values, def, rep)
		if err != nil {
			return err
		}
		if f(values[:read], total, def, rep); total == 0 {
			break
		}
	}
	return c.Err()
}
