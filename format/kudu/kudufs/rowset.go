package kudufs

import (
	"bufio"
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/cfile"
	"stoa/format/kudu/internal/meta"
)

// writeRowSet writes rows, sorted by key, as a rowset. columns are their values in the order of the schema, keys their
// encoded keys.
func writeRowSet(ctx context.Context, v *server, s *meta.Schema, id uint64, columns []arrow.Array,
	keys [][]byte) (r meta.RowSet, err error) {
	r = meta.RowSet{ID: id, LastDurableDMS: -1, LiveRows: int64(len(keys)), MinKey: keys[0], MaxKey: keys[len(keys)-1]}
	for i := range s.Columns {
		b, err := writeColumn(ctx, v, s, i, columns[i])
		if err != nil {
			return r, err
		}
		r.Columns = append(r.Columns, meta.ColumnBlock{Column: s.Columns[i].ID, BlockRef: b})
	}
	r.Bloom, err = v.block(ctx, func(w *bufio.Writer) (int64, error) {
		f, err := cfile.NewBloomWriter(w, cfile.BloomOptions{})
		if err != nil {
			return 0, err
		}
		return addKeys(f, keys)
	})
	if err != nil || s.NumKeys == 1 {
		return r, err
	}
	r.Adhoc, err = v.block(ctx, func(w *bufio.Writer) (int64, error) {
		f, err := cfile.NewAdhocIndexWriter(w, cfile.WriterOptions{})
		if err != nil {
			return 0, err
		}
		return addKeys(f, keys)
	})
	return r, err
}

// keyFile is a writer of encoded keys: a bloom filter or an ad-hoc index.
type keyFile interface {
	Add(key []byte) error
	Close() (cfile.Summary, error)
}

func addKeys(f keyFile, keys [][]byte) (bytes int64, err error) {
	for _, k := range keys {
		if err := f.Add(k); err != nil {
			return 0, err
		}
	}
	sum, err := f.Close()
	return sum.Bytes, err
}

// writeColumn writes a column's block, with a value index if it is the whole key.
func writeColumn(ctx context.Context, v *server, s *meta.Schema, i int, values arrow.Array) (meta.BlockRef, error) {
	c := &s.Columns[i]
	field := cfile.Field{Name: c.Name, Type: c.Type, Nullable: c.Nullable, Array: c.Array,
		Precision: int(c.Precision), Scale: int(c.Scale), Length: int(c.Length)}
	o := cfile.WriterOptions{Encoding: c.Encoding, Compression: c.Compression, BlockSize: int(c.BlockSize),
		ValueIndex: c.Key && s.NumKeys == 1}
	return v.block(ctx, func(w *bufio.Writer) (int64, error) {
		f, err := cfile.NewWriter(w, field, o)
		if err != nil {
			return 0, err
		}
		if err := f.Append(values); err != nil {
			return 0, err
		}
		sum, err := f.Close()
		return sum.Bytes, err
	})
}
