package kudufs

import (
	"bytes"
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/kudu/internal/meta"
	"stoa/internal/nest"
	"stoa/internal/sorted"
)

// tablet buffers the rows of one tablet until they make a rowset.
type tablet struct {
	*meta.Tablet
	batches []arrow.RecordBatch // columns in the order of the table's schema
	keys    []rowKey            // of the buffered rows, in the order in which they came
	bytes   int64               // of the buffered rows and keys
	written []keyRun            // of the rowsets that were written
}

// rowKey is an encoded key, and the index of the buffered row that has it.
type rowKey struct {
	key []byte
	row int32
}

// add buffers a batch, whose rows have the given encoded keys and size in bytes. It takes over the reference to the
// batch.
func (t *tablet) add(b arrow.RecordBatch, keys [][]byte, bytes int64) {
	t.batches = append(t.batches, b)
	for _, k := range keys {
		t.keys = append(t.keys, rowKey{k, int32(len(t.keys))})
		bytes += int64(len(k)) + 32
	}
	t.bytes += bytes
}

// flush writes the buffered rows as a rowset.
func (t *tablet) flush(ctx context.Context, v *server, spool *keySpool, mem memory.Allocator) error {
	if len(t.keys) == 0 {
		return nil
	}
	defer t.clear()
	sorted.StablyBy(t.keys, func(a, b rowKey) int { return bytes.Compare(a.key, b.key) })
	keys := make([][]byte, len(t.keys))
	order := make([]int32, len(t.keys))
	for i, k := range t.keys {
		if keys[i], order[i] = k.key, k.row; i > 0 && bytes.Equal(keys[i-1], k.key) {
			return t.duplicateKey(k.key)
		}
	}
	run, err := spool.add(keys)
	if err != nil {
		return err
	}
	columns, err := t.columns(order, mem)
	if err != nil {
		return err
	}
	defer release(columns)
	rs, err := writeRowSet(ctx, v, &t.Schema, uint64(len(t.RowSets)), columns, keys)
	if err != nil {
		return err
	}
	t.RowSets, t.written = append(t.RowSets, rs), append(t.written, run)
	t.LastDurableMRS = int64(len(t.RowSets) - 1)
	return nil
}

// columns are the buffered rows in the given order, column by column. The caller releases them.
func (t *tablet) columns(order []int32, mem memory.Allocator) (out []arrow.Array, err error) {
	for c := range t.Schema.Columns {
		parts := make([]arrow.Array, len(t.batches))
		for i, b := range t.batches {
			parts[i] = b.Column(c)
		}
		all, err := array.Concatenate(parts, mem)
		if err != nil {
			release(out)
			return nil, err
		}
		sorted, err := nest.Take(all, order, mem)
		all.Release()
		if err != nil {
			release(out)
			return nil, err
		}
		out = append(out, sorted)
	}
	return out, nil
}

func release(arrays []arrow.Array) {
	for _, a := range arrays {
		a.Release()
	}
}

// clear releases the buffered rows.
func (t *tablet) clear() {
	for _, b := range t.batches {
		b.Release()
	}
	t.batches, t.keys, t.bytes = nil, nil, 0
}

// duplicateKey is the error of two rows with the same key.
func (t *tablet) duplicateKey(key []byte) error {
	text, err := t.Schema.KeyText(key)
	if err != nil {
		return err
	}
	return fault.Invalidf("two rows have the primary key %s", text)
}
