package read

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/cespare/xxhash/v2"

	"stoa/fault"
	"stoa/format/parquet/internal/meta"
	"stoa/format/parquet/internal/order"
	"stoa/pred"
)

// bloomExcludes reports whether a Bloom filter of the row group shows that no row can pass e, because it contains none
// of the values that a column would have to equal. A damaged filter excludes nothing; verify reports it.
func (r *Reader) bloomExcludes(ctx context.Context, group int, e *pred.Expr, leaves map[string]order.LeafField) (bool,
	error) {
	for name, l := range leaves {
		values, ok := e.Equals(name)
		if !ok || len(values) == 0 || r.Footer.RowGroups[group].Columns[l.Column].MetaData.BloomFilterOffset == nil {
			continue
		}
		hashes, ok := r.hashesOf(l, values)
		if !ok {
			continue
		}
		bits, err := r.bloomBits(ctx, group, l.Column)
		if err != nil {
			return false, err
		}
		if bits == nil {
			continue
		}
		none := true
		for _, h := range hashes {
			none = none && !bits.MightContain(h)
		}
		if none {
			return true, nil
		}
	}
	return false, nil
}

// bloomBits reads the Bloom filter of a chunk; nil if there is none or it cannot be trusted. An error means that bytes
// could not be read.
func (r *Reader) bloomBits(ctx context.Context, group, leaf int) (meta.SplitBlock, error) {
	c := r.Footer.RowGroups[group].Columns[leaf]
	if c.FilePath != "" {
		return nil, nil
	}
	f, err := r.Bloom(ctx, c)
	if err != nil || !f.Valid(r.File) || f.Bits.Len > r.Limits.Page {
		return nil, err
	}
	bits, err := f.Read(ctx, r.File, meta.IndexPath(group, leaf, "bloom_filter"))
	if errors.Is(err, fault.Corrupt) {
		return nil, nil
	}
	return bits, err
}

// hashesOf returns the hashes of values in the form in which the column stores them; ok is false if a value has several
// stored forms, as floats and decimals have.
func (r *Reader) hashesOf(l order.LeafField, values []pred.Value) (out []uint64, ok bool) {
	col := r.Leaves[l.Column]
	for _, v := range values {
		var b []byte
		switch l.Typ.ID() {
		case arrow.STRING, arrow.BINARY, arrow.FIXED_SIZE_BINARY:
			if v.Kind != pred.KindString && v.Kind != pred.KindBytes {
				return nil, false
			}
			b = []byte(v.Text)
		case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64:
			n := uint64(v.Int)
			switch {
			case v.Kind == pred.KindUint:
				n = v.Uint
			case v.Kind != pred.KindInt:
				return nil, false
			}
			switch b = binary.LittleEndian.AppendUint64(nil, n); {
			case col.Typ == meta.TypeInt32 && (int64(n) < math.MinInt32 || int64(n) > math.MaxUint32):
				return nil, false
			case col.Typ == meta.TypeInt32:
				b = b[:4]
			}
		default:
			return nil, false
		}
		out = append(out, xxhash.Sum64(b))
	}
	return out, true
}
