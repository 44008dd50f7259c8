package cfile

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/bits"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
)

// auxiliary implements format.Reader for a file that is not a column, read as a table: a bloom file, a delta file, or
// an ad-hoc index whose key types are known.
type auxiliary struct {
	format.RowSource
	f *columnfile.File
}

// openBloomTable opens a bloom file as a table with one row per filter.
func openBloomTable(s *auxiliary) error {
	if err := s.f.CheckBloom(); err != nil {
		return err
	}
	s.Rows = -1
	s.Fields = arrow.NewSchema([]arrow.Field{
		{Name: "first_key", Type: arrow.BinaryTypes.Binary},
		{Name: "hashes", Type: arrow.PrimitiveTypes.Int32},
		{Name: "bits", Type: arrow.PrimitiveTypes.Int64},
		{Name: "set_bits", Type: arrow.PrimitiveTypes.Int64},
		{Name: "filter", Type: arrow.BinaryTypes.Binary},
	}, nil)
	s.Begin = func(ctx context.Context) (func(*array.RecordBuilder) error, error) {
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

// openDeltaTable opens a delta file as a table with one row per change. blocks are the blocks that recovery found in a
// damaged file; nil means all blocks in the index.
func openDeltaTable(s *auxiliary, blocks []columnfile.DataBlock) error {
	d, err := columnfile.NewDelta(s.f)
	if err != nil {
		return err
	}
	s.Rows = d.Len()
	if stats, ok := d.Stats(); ok {
		s.Facts = append(s.Facts, stats.Facts()...)
	}
	s.Fields = arrow.NewSchema([]arrow.Field{
		{Name: "row", Type: arrow.PrimitiveTypes.Int64},
		{Name: "timestamp", Type: arrow.PrimitiveTypes.Uint64},
		{Name: "op", Type: arrow.BinaryTypes.String},
		{Name: "column_ids", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)},
		{Name: "values", Type: arrow.ListOf(arrow.BinaryTypes.Binary)},
	}, nil)
	s.Sorted = []format.Key{{Column: 0}}
	s.Begin = func(ctx context.Context) (func(*array.RecordBuilder) error, error) {
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

// openIndexTable opens an ad-hoc index as a table with one row per row of the rowset and one column per part of the
// key. blocks are the blocks that recovery found in a damaged file; nil means all blocks in the index.
func openIndexTable(s *auxiliary, key []block.Type, blocks []columnfile.DataBlock) error {
	if s.f.Footer.ValIdx == nil {
		return fault.New(fault.Invalid, s.f.FootSpan(), "footer", "not an ad-hoc index: it has no value index")
	}
	fields := make([]arrow.Field, len(key))
	for i, t := range key {
		if !block.Keyable(t) {
			return fault.Invalidf("cfile: option key: a %s cannot be a key", t)
		}
		fields[i] = arrow.Field{Name: fmt.Sprintf("k%d", i), Type: t.Arrow(0, 0)}
		s.Sorted = append(s.Sorted, format.Key{Column: i})
	}
	s.Rows = s.f.Footer.NumValues
	s.Fields = arrow.NewSchema(fields, nil)
	s.Begin = func(ctx context.Context) (func(*array.RecordBuilder) error, error) {
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

// appendValue appends one value of type t, encoded as in a block, to a builder of the corresponding Arrow type.
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
