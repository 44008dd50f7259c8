package iceberg

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
)

// equality is a file of equality deletes: a row is deleted that has, in some columns, the values of one of its rows. A
// null equals a null. It applies to data files of older snapshots in its partition, or everywhere if its spec divides
// nothing.
type equality struct {
	op     *snapshotReader
	d      *live
	fields []arrow.Field
	every  bool
	mu     sync.Mutex
	keys   map[string]struct{} // nil: not read yet
}

// newEquality finds the columns of a file of equality deletes. Columns that were dropped since count as before.
func (op *snapshotReader) newEquality(d *live) (*equality, error) {
	e := &equality{op: op, d: d}
	at := fault.Span{Object: d.name}
	spec := op.table.Spec(d.spec)
	if spec == nil {
		return nil, fault.Corruptf(fault.Span{Object: op.file}, "partition-specs", "there is no spec %d, which %s has",
			d.spec, d.name)
	}
	e.every = !slices.ContainsFunc(spec.Fields, func(f meta.SpecField) bool { return f.Transform != "void" })
	if len(d.EqualityIDs) == 0 {
		return nil, fault.Corruptf(at, "equality_ids", "expected the columns of equality deletes, found none")
	}
	for _, id := range d.EqualityIDs {
		f, err := op.everyField(id)
		if err != nil {
			return nil, err
		}
		if f == nil {
			return nil, fault.Unsupportedf(at, "equality_ids", "the deletes compare field %d, which is no column of "+
				"the schemas: it is nested", id)
		}
		if _, nested := f.Type.(arrow.NestedType); nested {
			return nil, fault.Unsupportedf(at, "equality_ids", "the deletes compare the column %s of type %s", f.Name,
				f.Type)
		}
		f.Nullable = true
		e.fields = append(e.fields, *f)
	}
	return e, nil
}

// everyField returns the column with an id, of the schema or of the newest other one that has it; nil if there is none.
func (op *snapshotReader) everyField(id int) (*arrow.Field, error) {
	lists := [][]arrow.Field{op.fields}
	for _, s := range slices.Backward(op.table.Schemas) {
		fields, err := meta.Arrow(s.Fields, 0)
		if err != nil {
			return nil, fault.Corruptf(fault.Span{Object: op.file}, "schemas", "%v", err)
		}
		lists = append(lists, fields)
	}
	for _, fields := range lists {
		if i := slices.IndexFunc(fields, func(f arrow.Field) bool { return lake.IDOf(f) == id }); i >= 0 {
			return &fields[i], nil
		}
	}
	return nil, nil
}

// applies reports whether the deletes are about a data file.
func (e *equality) applies(f *live) bool {
	return f.seq < e.d.seq && (e.every ||
		f.spec == e.d.spec && e.op.samePartition(f.spec, f.Partition, e.d.Partition))
}

// samePartition compares partitions of a spec. Decimals are as wide in each manifest as its writer's digits need: the
// column may have got more since.
func (op *snapshotReader) samePartition(spec int, a, b map[string]any) bool {
	text := func(m map[string]any) string { return fmt.Sprintf("%#v", m) }
	if text(a) == text(b) {
		return true
	}
	a, b = maps.Clone(a), maps.Clone(b)
	decimals := false
	for _, f := range op.table.Spec(spec).Fields {
		if strings.HasPrefix(f.Transform, "bucket") || !op.isDecimal(f.Source) {
			continue
		}
		for _, name := range []string{f.Name, avroName(f.Name)} {
			x, ok1 := a[name].([]byte)
			y, ok2 := b[name].([]byte)
			if ok1 && ok2 {
				decimals = true
				a[name], b[name] = icebergBound(aDecimal, x), icebergBound(aDecimal, y)
			}
		}
	}
	return decimals && text(a) == text(b)
}

var aDecimal = &arrow.Decimal128Type{Precision: 38}

// isDecimal reports whether a field is a decimal, in any schema.
func (op *snapshotReader) isDecimal(id int) bool {
	return slices.ContainsFunc(op.table.Schemas, func(s meta.Schema) bool {
		return slices.ContainsFunc(s.Fields, func(f meta.Field) bool {
			return f.ID == id && strings.HasPrefix(f.Type.Name, "decimal")
		})
	})
}

// perKey estimates the memory of a key besides its bytes.
const perKey = 64

// load reads the keys of the deleted rows, once. What one caller could not read, because it was cancelled or a store
// failed, the next one reads.
func (e *equality) load(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys != nil {
		return nil
	}
	keys := map[string]struct{}{}
	in := &lake.Input{Name: e.d.name, Rows: e.d.Rows, Bytes: e.d.Bytes}
	t := e.op.tableOf(e.fields, in)
	defer t.Close()
	err := t.EachOf(ctx, in, func(_ func(int) int64, b arrow.RecordBatch) error {
		var key []byte
		for r := range int(b.NumRows()) {
			key = rowKey(key[:0], b, r)
			keys[string(key)] = struct{}{}
			at := fault.Span{Object: e.d.name}
			if err := e.op.memory.Take(perKey+int64(len(key)), at, "deleted rows"); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
	if err == nil {
		e.keys = keys
	}
	return err
}

// tableOf returns a reader of some columns of a file.
func (op *snapshotReader) tableOf(fields []arrow.Field, in *lake.Input) *lake.Table {
	return lake.New(lake.Config{Catalogue: "the manifest", Sized: true, Tree: op.tree, Match: op.match, Open: op.o,
		Schema: arrow.NewSchema(fields, nil), Defaults: op.defaults, Files: []*lake.Input{in}})
}

// rowKey appends the values of a row: equal for equal values, as Iceberg compares them. All NaN are equal, and the two
// zeros are not.
func rowKey(key []byte, b arrow.RecordBatch, r int) []byte {
	for _, c := range b.Columns() {
		if c.IsNull(r) {
			key = append(key, 0)
			continue
		}
		s := c.ValueStr(r)
		key = append(binary.AppendUvarint(append(key, 1), uint64(len(s))), s...)
	}
	return key
}

// equalityPositions returns the positions of the rows of a data file that equality deletes delete, ascending.
func (op *snapshotReader) equalityPositions(ctx context.Context, f *live, deletes []*equality) (rows []int64,
	err error) {
	by := map[string][]*equality{} // by the columns, which are read once
	var order []string
	for _, e := range deletes {
		if err := e.load(ctx); err != nil {
			return nil, err
		}
		k := fmt.Sprint(e.d.EqualityIDs)
		if by[k] == nil {
			order = append(order, k)
		}
		by[k] = append(by[k], e)
	}
	for _, k := range order {
		if rows, err = op.matching(ctx, f, by[k], rows); err != nil {
			return nil, err
		}
	}
	slices.Sort(rows)
	rows = slices.Compact(rows)
	return rows, op.memory.Take(int64(8*len(rows)), fault.Span{Object: f.name}, "deleted rows")
}

// matching appends the positions of the rows of a data file that some deletes of the same columns delete.
func (op *snapshotReader) matching(ctx context.Context, f *live, some []*equality, rows []int64) ([]int64, error) {
	in := &lake.Input{Name: f.name, Rows: f.Rows, Bytes: f.Bytes}
	if err := op.values(some[0].fields, in, f); err != nil {
		return nil, err
	}
	t := op.tableOf(some[0].fields, in)
	defer t.Close()
	err := t.EachOf(ctx, in, func(at func(int) int64, b arrow.RecordBatch) error {
		var key []byte
		for r := range int(b.NumRows()) {
			key = rowKey(key[:0], b, r)
			gone := func(e *equality) bool { _, ok := e.keys[string(key)]; return ok }
			if slices.ContainsFunc(some, gone) {
				rows = append(rows, at(r))
			}
		}
		return ctx.Err()
	})
	return rows, err
}

// assignEqualities adds the rows that equality deletes delete to those of position deletes. They are found when the
// file is opened.
func (op *snapshotReader) assignEqualities(all []*equality, f *live, in *lake.Input) {
	var some []*equality
	for _, e := range all {
		if e.applies(f) {
			some = append(some, e)
		}
	}
	if len(some) == 0 {
		return
	}
	positions := in.Deleted
	in.Deleted = func(ctx context.Context) ([]int64, error) {
		rows, err := op.equalityPositions(ctx, f, some)
		if err != nil || positions == nil {
			return rows, err
		}
		more, err := positions(ctx)
		rows = append(rows, more...)
		slices.Sort(rows)
		return slices.Compact(rows), err
	}
}
