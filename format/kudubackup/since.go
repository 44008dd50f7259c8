package kudubackup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"iter"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet"
	"stoa/internal/budget"
	"stoa/internal/nest"
	"stoa/internal/scan"
	"stoa/store"
)

// An incremental backup has the rows that differ from the table at an earlier backup, and those that are gone. They are
// found by comparing the rows with that backup, not by the table's history: so it is what the chain lacks, wherever the
// rows come from, and however much of the history is left.

// actionColumn is the name that Kudu's job gives to the column of row actions.
const actionColumn = "backup_row_action"

// digest is half a SHA-256 of a row: two rows with the same one are taken to be equal.
type digest [sha256.Size / 2]byte

// changes compares rows with an earlier backup.
type changes struct {
	base  *reader
	rows  map[string]digest // by key: a digest of the row; nil: not read yet
	keys  []int             // columns of the key
	order []int             // all columns, in the order of the backup's metadata
	mem   memory.Allocator
}

// since opens the backup at o.since as a table with the columns that m has, and returns how to compare rows with it.
func since(ctx context.Context, o options, m *tableMetadata, sc *arrow.Schema, mem memory.Allocator) (*changes,
	error) {
	tg := format.Target{Tree: store.Local{}, Name: o.since, Limits: format.Limits{}.WithDefaults()}
	f, err := find(ctx, tg)
	if err != nil {
		return nil, err
	}
	if tg.Table = m.TableID; f.end == nil && f.tables[m.TableID] == nil {
		tg.Table = m.TableName
	}
	all, err := f.pick(tg)
	if err != nil {
		return nil, err
	}
	at := int64(0)
	if f.end != nil {
		at = f.end.to
	}
	r := &reader{tree: tg.Tree, limits: tg.Limits}
	if r.chain, err = chainOf(all, at); err != nil {
		return nil, err
	}
	last := r.chain[len(r.chain)-1]
	if o.time.UnixMilli() <= last.to {
		return nil, fault.Invalidf("kudu-backup: the backup of %s is not later than that of %s, since which it has "+
			"the changes (option time)", calendar(o.time.UnixMilli()), calendar(last.to))
	}
	// as if the new backup were already there, without rows: the earlier ones are then read with its columns
	m.FromMs = last.meta.ToMs
	r.chain = append(slices.Clone(r.chain), &backupDir{dir: o.since, from: last.to, to: o.time.UnixMilli(), meta: *m})
	if err = r.checkPartitions(); err == nil {
		err = r.open(ctx, format.OpenOptions{Limits: tg.Limits})
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	c := &changes{base: r, mem: mem}
	if c.mem == nil {
		c.mem = memory.DefaultAllocator
	}
	for i, x := range m.Columns {
		at := sc.FieldIndices(x.Name)[0]
		if c.order = append(c.order, at); x.Key {
			c.keys = append(c.keys, i)
		}
	}
	return c, nil
}

func (c *changes) close() error {
	if c == nil {
		return nil
	}
	return c.base.Close()
}

// each calls do for each batch of the earlier backup, whose columns are in the order of the metadata.
func (c *changes) each(ctx context.Context, do func(arrow.RecordBatch) error) error {
	src := scan.Source{Reader: c.base, Objects: scan.NewObjects(c.base.tree), Dicts: scan.NewDicts(),
		Limits: c.base.limits}
	defer src.Objects.Close()
	for b, err := range scan.Run(ctx, src, scan.Spec{Unordered: true}, nil) {
		if err != nil {
			return err
		}
		if err := do(b); err != nil {
			return err
		}
	}
	return nil
}

// read reads the digests of the rows of the earlier backup.
func (c *changes) read(ctx context.Context) error {
	if c.rows != nil {
		return nil
	}
	c.rows = map[string]digest{}
	held, at := budget.Of(int64(c.base.limits.Opening)), fault.Span{Object: c.base.chain[0].dir}
	return c.each(ctx, func(b arrow.RecordBatch) error {
		return c.digests(b.Columns(), func(_ int, key []byte, of digest) error {
			c.rows[string(key)] = of
			return held.Take(int64(len(key))+keyBytes, at, "keys of the earlier backup")
		})
	})
}

// digests calls do for each row, with its key and a digest of it. columns are in the order of the metadata.
func (c *changes) digests(columns []arrow.Array, do func(row int, key []byte, of digest) error) error {
	var key, whole []byte
	for i := range columns[0].Len() {
		key, whole = key[:0], whole[:0]
		for k, a := range columns {
			from := len(whole)
			var err error
			if whole, err = appendCell(whole, a, i); err != nil {
				return err
			}
			if k < len(c.keys) {
				key = append(key, whole[from:]...)
			}
		}
		sum := sha256.Sum256(whole)
		if err := do(i, key, digest(sum[:])); err != nil {
			return err
		}
	}
	return nil
}

// changed returns the rows of a batch that the earlier backup lacks, or has with other values; nil: none.
func (c *changes) changed(ctx context.Context, b arrow.RecordBatch, sc *arrow.Schema) (arrow.RecordBatch, error) {
	if err := c.read(ctx); err != nil {
		return nil, err
	}
	columns := make([]arrow.Array, len(c.order))
	for i, at := range c.order {
		columns[i] = b.Column(at)
	}
	var rows []int32
	err := c.digests(columns, func(row int, key []byte, of digest) error {
		if was, ok := c.rows[string(key)]; !ok || was != of {
			rows = append(rows, int32(row))
		}
		delete(c.rows, string(key)) // what is left in the end is gone
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.acting(b.Columns(), rows, actionUpsert, sc)
}

// gone calls do for the rows of the earlier backup that did not come again.
func (c *changes) gone(ctx context.Context, sc *arrow.Schema, do func(arrow.RecordBatch) error) error {
	if err := c.read(ctx); err != nil || len(c.rows) == 0 {
		return err
	}
	return c.each(ctx, func(b arrow.RecordBatch) error {
		columns := make([]arrow.Array, len(c.order))
		for i, at := range c.order {
			columns[at] = b.Column(i)
			if want, has := sc.Field(at).Type, b.Column(i).DataType(); !arrow.TypeEqual(want, has) {
				return fault.Unsupportedf(fault.Span{Object: c.base.chain[0].dir}, "", "column %q is %s in the "+
					"earlier backup, and %s now; one chain has one type", sc.Field(at).Name, has, want)
			}
		}
		var rows []int32
		err := c.digests(b.Columns(), func(row int, key []byte, _ digest) error {
			if _, ok := c.rows[string(key)]; ok {
				rows = append(rows, int32(row))
			}
			return nil
		})
		if err != nil {
			return err
		}
		out, err := c.acting(columns, rows, actionDelete, sc)
		if err != nil || out == nil {
			return err
		}
		defer out.Release()
		return do(out)
	})
}

// acting returns rows with a column of their action; nil if there are none.
func (c *changes) acting(columns []arrow.Array, rows []int32, action int8, sc *arrow.Schema) (arrow.RecordBatch,
	error) {
	if len(rows) == 0 {
		return nil, nil
	}
	picked := make([]arrow.Array, 0, len(columns)+1)
	defer func() {
		for _, a := range picked {
			a.Release()
		}
	}()
	for _, a := range columns {
		p, err := nest.Take(a, rows, c.mem)
		if err != nil {
			return nil, err
		}
		picked = append(picked, p)
	}
	actions := array.NewInt8Builder(c.mem)
	defer actions.Release()
	actions.AppendValues(slices.Repeat([]int8{action}, len(rows)), nil)
	picked = append(picked, actions.NewArray())
	return array.NewRecordBatch(sc, picked, int64(len(rows))), nil
}

// appendCell appends a value so that equal values have equal bytes whatever Arrow type holds them, and no value's bytes
// begin with those of another.
func appendCell(dst []byte, a arrow.Array, i int) ([]byte, error) {
	if a.IsNull(i) {
		return append(dst, 0), nil
	}
	dst = append(dst, 1)
	number := func(v int64) ([]byte, error) { return binary.LittleEndian.AppendUint64(dst, uint64(v)), nil }
	text := func(v string) ([]byte, error) {
		return append(binary.AppendUvarint(dst, uint64(len(v))), v...), nil
	}
	switch a := a.(type) {
	case *array.String:
		return text(a.Value(i))
	case *array.Binary:
		return append(binary.AppendUvarint(dst, uint64(len(a.Value(i)))), a.Value(i)...), nil
	case *array.LargeString:
		return text(a.Value(i))
	case *array.LargeBinary:
		return append(binary.AppendUvarint(dst, uint64(len(a.Value(i)))), a.Value(i)...), nil
	case *array.Dictionary:
		return appendCell(dst[:len(dst)-1], a.Dictionary(), a.GetValueIndex(i))
	case *array.Boolean:
		if a.Value(i) {
			return number(1)
		}
		return number(0)
	case *array.Timestamp:
		return number(int64(a.Value(i)))
	case *array.Decimal32:
		return text(a.Value(i).ToString(0))
	case *array.Decimal64:
		return text(a.Value(i).ToString(0))
	case *array.Decimal128:
		return text(a.Value(i).BigInt().String())
	case array.ListLike:
		from, to := a.ValueOffsets(i)
		dst = binary.AppendUvarint(dst, uint64(to-from))
		for k := from; k < to; k++ {
			var err error
			if dst, err = appendCell(dst, a.ListValues(), int(k)); err != nil {
				return nil, err
			}
		}
		return dst, nil
	}
	t, ok := a.DataType().(arrow.FixedWidthDataType)
	if !ok || t.BitWidth()%8 != 0 {
		return nil, fault.Unsupportedf(fault.Span{}, "", "changes since a backup in columns of %s", a.DataType())
	}
	w, at := t.BitWidth()/8, a.Data().Offset()+i
	return append(dst, bytes.Clone(a.Data().Buffers()[1].Bytes()[at*w:(at+1)*w])...), nil
}

// reread returns the format that reads what Create writes. With option since that is the table that the backup makes
// together with the earlier ones, so the proof of an incremental backup is that of the whole table.
func reread(_ *arrow.Schema, wo format.WriteOptions) (format.Format, bool) {
	o, err := parseOptions(wo.Opts)
	if err != nil || o.since == "" {
		return parquet.Format, true
	}
	f := format.Format{Name: "kudu-backup", Title: "a backup and those before it", ReadKeys: reading.Keys()}
	f.Open = func(ctx context.Context, tg format.Target, ro format.OpenOptions) (format.Reader, error) {
		tg.Tree = besides{tg.Tree}
		ro.Opts = map[string]string{"earlier": o.since}
		return open(ctx, tg, ro)
	}
	return f, true
}

// besides is a tree in which local files are, too.
type besides struct{ store.Tree }

func (b besides) of(ctx context.Context, name string) store.Tree {
	if _, err := b.Tree.Stat(ctx, name); errors.Is(err, fs.ErrNotExist) {
		return store.Local{}
	}
	return b.Tree
}

func (b besides) Open(ctx context.Context, name string) (store.Source, error) {
	return b.of(ctx, name).Open(ctx, name)
}

func (b besides) Stat(ctx context.Context, name string) (store.Info, error) {
	return b.of(ctx, name).Stat(ctx, name)
}

func (b besides) List(ctx context.Context, dir string) iter.Seq2[store.Info, error] {
	return b.of(ctx, dir).List(ctx, dir)
}
