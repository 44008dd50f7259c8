package table

import (
	"context"
	"fmt"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/vec"
)

// side is a file beside the data, shown as a table: a dictionary, its metadata, a sort index. It was read
// whole; what could be understood is rows, and damage comes behind them. It is a format.Reader and a
// format.Batcher.
type side struct {
	layout.Object
	stamp  string
	kind   string
	sc     *arrow.Schema
	rows   int
	fill   func(b *array.RecordBuilder, row int)
	damage error // behind the last row
	meta   []format.KeyValue
}

// sideBatch is how many rows a batch of a side file has.
const sideBatch = 16 << 10

func (s *side) Schema() *arrow.Schema   { return s.sc }
func (s *side) Meta() []format.KeyValue { return s.meta }
func (s *side) Order() []format.Key     { return nil }
func (s *side) Close() error            { return nil }

func (s *side) Columns() []format.Column {
	out := make([]format.Column, s.sc.NumFields())
	for i, f := range s.sc.Fields() {
		out[i] = format.Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: format.Values, Type: f.Type}
	}
	return out
}

// known is the number of rows, -1 if there is damage.
func (s *side) known() int64 {
	if s.damage != nil {
		return -1
	}
	return int64(s.rows)
}

func (s *side) Parts(context.Context, format.Query) iter.Seq2[format.Part, error] {
	return func(yield func(format.Part, error) bool) {
		yield(format.Part{Ref: s.At.Object, Stamp: s.stamp, Rows: s.known(), Bytes: s.At.Len}, nil)
	}
}

func (s *side) RowGroups(_ context.Context, p format.Part, _ format.Query) ([]format.RowGroup, error) {
	return []format.RowGroup{{Part: p.Ref, Rows: s.known(), Bytes: s.At.Len}}, nil
}

func (s *side) Chunk(context.Context, format.RowGroup, int, vec.Range) (format.Chunk, error) {
	return nil, fault.Unsupportedf(s.At, "", "a %s has no pages: it gives batches", s.kind)
}

func (s *side) Batches(ctx context.Context, _ format.RowGroup, q format.Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		b := array.NewRecordBuilder(mem, s.sc)
		defer b.Release()
		for at := int(max(rows.From, 0)); at < s.rows && int64(at) < rows.To; {
			if err := ctx.Err(); err != nil {
				yield(nil, err)
				return
			}
			n := min(sideBatch, s.rows-at)
			if left := rows.To - int64(at); left < int64(n) {
				n = int(left)
			}
			for i := range n {
				s.fill(b, at+i)
			}
			at += n
			if !s.give(b, int64(n), q.Cols, yield) {
				return
			}
		}
		if s.damage != nil && rows.To > int64(s.rows) {
			yield(nil, s.damage)
		}
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

func (s *side) fact(k string, v any) {
	s.meta = append(s.meta, format.KeyValue{Key: k, Value: fmt.Sprint(v)})
}
