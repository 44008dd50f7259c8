package format

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/vec"
)

// RowSource is a Reader of a structure that has neither columns nor pages, shown as a table: an index, a dictionary,
// deltas, a Bloom filter. Its rows are built one by one. It is a Batcher with one part and one row group.
type RowSource struct {
	At     fault.Span // the bytes
	Stamp  string     // of these bytes: see Part
	Kind   string     // the kind of structure, for people: "bloom file"
	Fields *arrow.Schema
	Rows   int64 // -1: known only by reading
	Sorted []Key
	Facts  []KeyValue
	Closed func() error // implements Close; nil: there is nothing to close

	// Begin returns a function that appends the next row to the builder, or skips it if the builder is nil, and returns
	// io.EOF after the last. After damage it continues with the row after the damaged one. An error has a method
	// LostRows if the lost rows are known.
	Begin func(ctx context.Context) (func(b *array.RecordBuilder) error, error)
}

// rowBatch is the number of rows in a batch of a RowSource.
const rowBatch = 4096

func (s *RowSource) Schema() *arrow.Schema { return s.Fields }
func (s *RowSource) Meta() []KeyValue      { return s.Facts }
func (s *RowSource) Order() []Key          { return s.Sorted }

func (s *RowSource) Close() error {
	if s.Closed == nil {
		return nil
	}
	return s.Closed()
}

func (s *RowSource) Columns() []Column {
	out := make([]Column, s.Fields.NumFields())
	for i, f := range s.Fields.Fields() {
		out[i] = Column{Name: f.Name, Path: []int{i}, Parent: -1, Has: Values, Type: f.Type}
	}
	return out
}

func (s *RowSource) Parts(context.Context, Query) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		yield(Part{Ref: s.At.Object, Stamp: s.Stamp, Rows: s.Rows, Bytes: s.At.Len}, nil)
	}
}

func (s *RowSource) RowGroups(_ context.Context, p Part, _ Query) ([]RowGroup, error) {
	return []RowGroup{{Part: p.Ref, Rows: s.Rows, Bytes: s.At.Len}}, nil
}

func (s *RowSource) Chunk(context.Context, RowGroup, int, vec.Range) (Chunk, error) {
	return nil, fault.Unsupportedf(s.At, "", "a %s has no pages: it gives batches", s.Kind)
}

// Batches returns the rows in the range. After damage it continues with the next row if the caller goes on.
func (s *RowSource) Batches(ctx context.Context, _ RowGroup, q Query, rows vec.Range,
	mem memory.Allocator) iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		next, err := s.Begin(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		b := array.NewRecordBuilder(mem, s.Fields)
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
			again := err // the previous error, if this attempt follows one
			if err = next(to); err == nil {
				if to != nil {
					n++
				}
				if n == rowBatch {
					if flush(); ctx.Err() != nil {
						yield(nil, ctx.Err())
						return
					}
				}
				continue
			}
			flush()
			if err == io.EOF || !more {
				return
			}
			if lost := (interface{ LostRows() (from, to int64) })(nil); errors.As(err, &lost) {
				_, to := lost.LostRows()
				at = to - 1
			}
			if more = yield(nil, err); !errors.Is(err, fault.Corrupt) || again != nil && again.Error() == err.Error() {
				return // it makes no progress
			}
		}
		flush()
	}
}

// give yields the wanted columns of the rows in b.
func (s *RowSource) give(b *array.RecordBuilder, n int64, cols []int, yield func(arrow.RecordBatch, error) bool) bool {
	all := b.NewRecordBatch()
	defer all.Release()
	fields := make([]arrow.Field, len(cols))
	arrs := make([]arrow.Array, len(cols))
	for i, c := range cols {
		fields[i], arrs[i] = s.Fields.Field(c), all.Column(c)
	}
	rec := array.NewRecordBatch(arrow.NewSchema(fields, nil), arrs, n)
	defer rec.Release()
	return yield(rec, nil)
}

// MakeRows makes s return n rows, each built by row from its number, followed by the error damage if that is not nil.
func (s *RowSource) MakeRows(n int, damage error, row func(b *array.RecordBuilder, i int)) {
	if s.Rows = int64(n); damage != nil {
		s.Rows = -1
	}
	s.Begin = func(context.Context) (func(b *array.RecordBuilder) error, error) {
		at := 0
		return func(b *array.RecordBuilder) error {
			switch at++; {
			case at == n+1 && damage != nil:
				return damage
			case at > n:
				return io.EOF
			case b != nil:
				row(b, at-1)
			}
			return nil
		}, nil
	}
}
