package parquet

import (
	"context"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
	"stoa/fault"
	"stoa/format"
	"stoa/vec"
)

// splitBlock is a Bloom filter as Parquet has it (BloomFilter.md): blocks of eight words of 32 bits, of which a
// value sets one bit each.
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

// bloom asks the Bloom filter of a column chunk for every value that the chunk has. Values that cannot be read
// are told of elsewhere.
func (v *verifier) bloom(group, leaf int) {
	m := v.r.meta.RowGroups[group].Columns[leaf].MetaData
	if m.BloomFilterOffset == nil || v.r.meta.RowGroups[group].Columns[leaf].crypto != nil {
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
		v.find("parquet.bloom", fault.Corruptf(v.r.footer, path+"_length",
			"%d, but the filter has %d bytes with its header", *n, header.Len+at.Len))
	}
	bits := make(splitBlock, at.Len)
	if err := format.ReadFull(v.ctx, v.r.src, at, path, bits); err != nil {
		v.find("parquet.bloom", err)
		return
	}
	var missing int64
	err = v.r.hashes(v.ctx, group, leaf, func(hash uint64) { missing += one(!bits.may(hash)) })
	if missing > 0 {
		v.find("parquet.bloom", fault.Corruptf(at, path, "%d values of the column chunk are not in it", missing))
	} else {
		v.unlessDamaged("parquet.bloom", err)
	}
}

// hashes gives the hash of every value of a column chunk.
func (r *reader) hashes(ctx context.Context, group, leaf int, f func(uint64)) error {
	most := byte(r.columns[leaf].maxDef)
	return r.eachStored(ctx, group, leaf, func(v *vec.Vector) error {
		def, width := v.Def(), v.Width()
		for i := range def {
			if def[i] != most {
				continue
			}
			switch {
			case r.columns[leaf].typ == typeBoolean:
				f(xxhash.Sum64([]byte{v.Bits()[i>>3] >> (i & 7) & 1}))
			case width == 0:
				o := v.Offsets(i)
				f(xxhash.Sum64(v.StringBytes()[o[0]:o[1]]))
			default:
				f(xxhash.Sum64(v.Data(i)[:width]))
			}
		}
		return nil
	})
}
