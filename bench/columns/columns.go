// Package columns generates the data of the benchmarks: ten columns, by a formula that is the same everywhere.
package columns

import (
	"context"
	"fmt"
	"os"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
)

// Schema is the schema of every benchmark: ten columns.
var Schema = arrow.NewSchema([]arrow.Field{
	{Name: "key", Type: arrow.PrimitiveTypes.Int64},
	{Name: "int32", Type: arrow.PrimitiveTypes.Int32},
	{Name: "float64", Type: arrow.PrimitiveTypes.Float64},
	{Name: "low", Type: arrow.BinaryTypes.String},
	{Name: "high", Type: arrow.BinaryTypes.String},
	{Name: "time", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "bool", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "nullable", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
	{Name: "decimal", Type: &arrow.Decimal128Type{Precision: 18, Scale: 2}},
	{Name: "date", Type: arrow.FixedWidthTypes.Date32},
}, nil)

// Mix is one step of splitmix64: the same numbers everywhere, but irregular.
func Mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Rows returns the rows [from, to).
func Rows(from, to int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, Schema)
	defer b.Release()
	for r := from; r < to; r++ {
		h := Mix(uint64(r))
		b.Field(0).(*array.Int64Builder).Append(int64(r)*3 + int64(h%3))
		b.Field(1).(*array.Int32Builder).Append(int32(h % 100000))
		b.Field(2).(*array.Float64Builder).Append(float64(int64(h>>20)) / 1024)
		b.Field(3).(*array.StringBuilder).Append(fmt.Sprintf("city-%d", h>>8%200))
		b.Field(4).(*array.StringBuilder).Append(fmt.Sprintf("user-%016x", Mix(h)>>(h%32)))
		b.Field(5).(*array.TimestampBuilder).Append(
			arrow.Timestamp(1_700_000_000_000_000 + int64(r)*250_000 + int64(h%250_000)))
		b.Field(6).(*array.BooleanBuilder).Append(h>>33%4 == 0)
		if h>>40%5 == 0 {
			b.Field(7).(*array.Int32Builder).AppendNull()
		} else {
			b.Field(7).(*array.Int32Builder).Append(int32(h >> 44))
		}
		b.Field(8).(*array.Decimal128Builder).Append(decimal128.FromI64(int64(h % 100_000_000)))
		b.Field(9).(*array.Date32Builder).Append(arrow.Date32(18000 + r/2000 + int(h%7)))
	}
	return b.NewRecordBatch()
}

// Write writes n rows to an Arrow file, from which the peers make theirs, and to each of the writers, which it closes.
func Write(ctx context.Context, n int, arrowFile string, writers []*stoa.Writer) error {
	f, err := os.Create(arrowFile)
	if err != nil {
		return err
	}
	defer f.Close()
	aw, err := ipc.NewFileWriter(f, ipc.WithSchema(Schema))
	if err != nil {
		return err
	}
	const step = 100_000
	for at := 0; at < n; at += step {
		b := Rows(at, min(n, at+step))
		if err := aw.Write(b); err != nil {
			return err
		}
		for _, w := range writers {
			if err := w.Write(ctx, b); err != nil {
				return err
			}
		}
		b.Release()
	}
	if err := aw.Close(); err != nil {
		return err
	}
	for _, w := range writers {
		if _, err := w.Close(ctx); err != nil {
			return err
		}
	}
	return f.Close()
}
