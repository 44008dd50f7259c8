package verify

import (
	"context"

	"github.com/cespare/xxhash/v2"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/format/parquet/internal/read"
	"stoa/vec"
)

// bloom looks up every value of a column chunk in its Bloom filter. Values that cannot be read are reported elsewhere.
func (v *verifier) bloom(group, leaf int) {
	c := v.r.Footer.RowGroups[group].Columns[leaf]
	m := c.MetaData
	if m.BloomFilterOffset == nil || c.Encrypted {
		return
	}
	path := meta.IndexPath(group, leaf, "bloom_filter")
	f, err := v.r.Bloom(v.ctx, c)
	header, at := f.Header, f.Bits
	if err != nil {
		v.findUnlessDamage("parquet.bloom", err)
		return
	}
	n := m.BloomFilterLength
	switch {
	case !f.Valid(v.r.File):
		v.find("parquet.bloom", fault.Corruptf(v.r.FooterAt, path, "at %d is no Bloom filter", *m.BloomFilterOffset))
		return
	case at.Len > v.r.Limits.Page:
		v.find("parquet.bloom", fault.Limitf(at, path, "%d bytes, the limit is %d", at.Len, v.r.Limits.Page))
		return
	case n != nil && int64(*n) != header.Len+at.Len:
		v.find("parquet.bloom", fault.Corruptf(v.r.FooterAt, path+"_length",
			"%d, but the filter has %d bytes with its header", *n, header.Len+at.Len))
	}
	bits, err := f.Read(v.ctx, v.r.File, path)
	if err != nil {
		v.find("parquet.bloom", err)
		return
	}
	var missing int64
	err = hashes(v.r, v.ctx, group, leaf, func(hash uint64) { missing += order.BoolInt(!bits.MightContain(hash)) })
	if missing > 0 {
		v.find("parquet.bloom", fault.Corruptf(at, path, "%s of the column chunk are not in it",
			fault.Count(missing, "value")))
	} else {
		v.findUnlessDamage("parquet.bloom", err)
	}
}

// hashes calls f with the hash of every value of a column chunk.
func hashes(r *read.Reader, ctx context.Context, group, leaf int, f func(uint64)) error {
	maxDef := byte(r.Leaves[leaf].MaxDef)
	return r.EachStored(ctx, group, leaf, func(v *vec.Vector) error {
		def, width := v.Def(), v.Width()
		for i := range def {
			if def[i] != maxDef {
				continue
			}
			switch {
			case r.Leaves[leaf].Typ == meta.TypeBoolean:
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
