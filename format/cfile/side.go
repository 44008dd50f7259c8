package cfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/vec"
)

// side is a file that is no column, shown as a table: a bloom file, a delta file, or an ad-hoc index with the
// types of its key. It is a format.Reader and a format.Batcher; it has no pages.
type side struct {
	name  string
	stamp string
	f     *columnfile.File
	sc    *arrow.Schema
	rows  int64 // -1: not known
	meta  []format.KeyValue
	order []format.Key
	// open gives a function that appends the next row to the builder, or only passes over it (nil); io.EOF at the end.
	open func(ctx context.Context) (func(b *array.RecordBuilder) error, error)
}

const sideBatch = 4096

func (s *side) Schema() *arrow.Schema   { return s.sc }
func (s *side) Meta() []format.KeyValue { return s.meta }
func (s *side) Order() []format.Key     { return s.order }
func (s *side) Close() error            { return s.f.Src.Close() }

func (s *side) Columns() []format.Column {
	out := make([]format.Column, s.sc.NumFields())
	for i, f := range s.sc.Fields() {
		out[i] = format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values, Type: f.Type}
	}
	return out
}

func (s *side) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		yield(format.Part{Ref: s.name, Stamp: s.stamp, Rows: s.rows, Bytes: s.f.At.Len}, nil)
	}
}

func (s *side) RowGroups(_ context.Context, p format.Part, _ format.Query) ([]format.RowGroup, error) {
	return []format.RowGroup{{Part: p.Ref, Rows: s.rows, Bytes: s.f.At.Len}}, nil
}

func (s *side) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, fault.Unsupportedf(s.f.At, "", "a %s has no pages: it gives batches", s.f.Kind())
}

// Batches reads the file from its beginning. Behind a damaged block it goes on with the next one if the loop does.
func (s *side) Batches(ctx context.Context, _ format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		next, err := s.open(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		b := array.NewRecordBuilder(mem, s.sc)
		defer b.Release()
		n, more := int64(0), true
		flush := func() {
			if more && n > 0 {
				more = s.give(b, n, q.Cols, yield)
			}
			n = 0
		}
		for at := int64(0); more && at < rows.To; at++ {
			to := b
			if at < rows.From {
				to = nil
			}
			again := err // the error before, if this try follows one
			if err = next(to); err == nil {
				if to != nil {
					n++
				}
				if n == sideBatch {
					flush()
				}
				continue
			}
			flush()
			if err == io.EOF || !more {
				return
			}
			if lost := (*columnfile.LostBlock)(nil); errors.As(err, &lost) {
				at = lost.First + lost.Rows - 1
			}
			if more = yield(nil, err); !errors.Is(err, fault.Corrupt) || again != nil && again.Error() == err.Error() {
				return // it does not get on
			}
		}
		flush()
	}
}

// give yields the wanted columns of what b holds.
func (s *side) give(b *array.RecordBuilder, n int64, cols []int, yield func(arrow.RecordBatch, error) bool) bool {
	all := b.NewRecordBatch()
	defer all.Release()
	fields := make([]arrow.Field, len(cols))
	arrs := make([]arrow.Array, len(cols))
	for i, c := range cols {
		fields[i], arrs[i] = s.sc.Field(c), all.Column(c)
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), arrs, n)
	defer rec.Release()
	return yield(rec, nil)
}

// openBloomTable shows a bloom file: one row a filter.
func openBloomTable(s *side) error {
	if err := s.f.WantBloom(); err != nil {
		return err
	}
	s.rows = -1
	s.sc = arrow.NewSchema([]arrow.Field{
		{Name: "first_key", Type: arrow.BinaryTypes.Binary},
		{Name: "hashes", Type: arrow.PrimitiveTypes.Int32},
		{Name: "bits", Type: arrow.PrimitiveTypes.Int64},
		{Name: "set_bits", Type: arrow.PrimitiveTypes.Int64},
		{Name: "filter", Type: arrow.BinaryTypes.Binary},
	}, nil)
	s.open = func(ctx context.Context) (func(*array.RecordBuilder) error, error) {
		w := s.f.Values()
		begun := false
		return func(b *array.RecordBuilder) error {
			step := w.Next
			if !begun {
				step, begun = w.First, true
			}
			if err := step(ctx); err != nil {
				return err
			}
			if w.Eof {
				return io.EOF
			}
			return bloomRow(s.f, ctx, w, b)
		}, nil
	}
	return nil
}

func bloomRow(f *columnfile.File, ctx context.Context, w *columnfile.Walker, b *array.RecordBuilder) error {
	e, err := w.Current()
	if err == nil {
		err = w.Block(e)
	}
	if err != nil || b == nil {
		return err
	}
	x, err := f.ReadBloom(ctx, e.Ptr, w.Path())
	if err != nil {
		return err
	}
	set := 0
	for _, y := range x.Bits {
		set += bits.OnesCount8(y)
	}
	b.Field(0).(*array.BinaryBuilder).Append(e.Key)
	b.Field(1).(*array.Int32Builder).Append(int32(x.Hashes))
	b.Field(2).(*array.Int64Builder).Append(8 * int64(len(x.Bits)))
	b.Field(3).(*array.Int64Builder).Append(int64(set))
	b.Field(4).(*array.BinaryBuilder).Append(x.Bits)
	return nil
}

// openDeltaTable shows a delta file: one row a change. blocks are those that were found of a damaged one.
func openDeltaTable(s *side, blocks []columnfile.DataBlock) error {
	d, err := columnfile.NewDelta(s.f)
	if err != nil {
		return err
	}
	s.rows = d.Len()
	s.meta = append(s.meta, d.Kept.Facts(d.Told)...)
	s.sc = arrow.NewSchema([]arrow.Field{
		{Name: "row", Type: arrow.PrimitiveTypes.Int64},
		{Name: "timestamp", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "op", Type: arrow.BinaryTypes.String},
		{Name: "column_ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)},
		{Name: "values", Type: arrow.ListOf(arrow.BinaryTypes.Binary)},
	}, nil)
	s.order = []format.Key{{Column: 0}}
	s.open = func(ctx context.Context) (func(*array.RecordBuilder) error, error) {
		all := d.Listed(blocks)
		if blocks == nil {
			var err error
			if all, err = d.All(ctx); err != nil {
				return nil, err
			}
		}
		return func(b *array.RecordBuilder) error {
			x, err := all.Next(ctx)
			if err != nil || b == nil {
				return err
			}
			deltaRow(b, x)
			return nil
		}, nil
	}
	return nil
}

func deltaRow(b *array.RecordBuilder, d columnfile.Delta) {
	b.Field(0).(*array.Int64Builder).Append(d.Row)
	b.Field(1).(*array.Uint64Builder).Append(d.Timestamp)
	b.Field(2).(*array.StringBuilder).Append(d.Op.String())
	ids, vals := b.Field(3).(*array.ListBuilder), b.Field(4).(*array.ListBuilder)
	ids.Append(true)
	vals.Append(true)
	for _, c := range d.Changes {
		ids.ValueBuilder().(*array.Int32Builder).Append(int32(c.Column))
		if c.Value == nil {
			vals.ValueBuilder().AppendNull()
		} else {
			vals.ValueBuilder().(*array.BinaryBuilder).Append(c.Value)
		}
	}
}

// openIndexTable shows an ad-hoc index with its key taken apart: one row a row of the rowset. blocks are those that
// were found of a damaged one.
func openIndexTable(s *side, key []block.Type, blocks []columnfile.DataBlock) error {
	if s.f.Footer.ValIdx == nil {
		return fault.New(fault.Invalid, s.f.FootSpan(), "footer", "not an ad-hoc index: it has no value index")
	}
	fields := make([]arrow.Field, len(key))
	for i, t := range key {
		if !block.Keyable(t) {
			return fault.Invalidf("cfile: option key: a %s cannot be a key", t)
		}
		fields[i] = arrow.Field{Name: fmt.Sprintf("k%d", i), Type: t.Arrow(0, 0)}
		s.order = append(s.order, format.Key{Column: i})
	}
	s.rows = s.f.Footer.NumValues
	s.sc = arrow.NewSchema(fields, nil)
	s.open = func(ctx context.Context) (func(*array.RecordBuilder) error, error) {
		v := &columnfile.BinaryValues{F: s.f, List: blocks}
		if blocks == nil {
			if err := v.Seek(ctx, nil); err != nil {
				return nil, err
			}
		}
		return func(b *array.RecordBuilder) error { return indexRow(ctx, v, b, key) }, nil
	}
	return nil
}

func indexRow(ctx context.Context, v *columnfile.BinaryValues, b *array.RecordBuilder, key []block.Type) error {
	k, c, err := v.Next(ctx)
	if err != nil || b == nil {
		return err
	}
	parts, err := block.DecodeKey(k, key)
	if err != nil {
		return fault.Locate(err, v.At, false, c.Path(""))
	}
	for i, t := range key {
		appendValue(b.Field(i), t, parts[i])
	}
	return nil
}

// appendValue appends one value as a block has it to the builder of its type.
func appendValue(b array.Builder, t block.Type, v []byte) {
	switch {
	case t == block.Binary:
		b.(*array.BinaryBuilder).Append(bytes.Clone(v))
	case t.IsBinary():
		b.(*array.StringBuilder).Append(string(v))
	default:
		columnfile.AppendFixedValue(b, t, v)
	}
}
