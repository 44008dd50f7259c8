package iceberg

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/iceberg/internal/meta"
	"stoa/format/internal/lake"
	"stoa/internal/coerce"
	"stoa/pred"
)

func timeText(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// values sets the facts about a file from the manifest: bounds of columns, and the values of its partition. fields are
// the columns.
func (op *snapshotReader) values(fields []arrow.Field, in *lake.Input, f *live) error {
	in.Bounds, in.Values = map[int]pred.Bounds{}, map[int]arrow.Array{}
	for i, x := range fields {
		id := lake.IDOf(x)
		if b, ok := boundsOf(x.Type, &f.DataFile, id); ok {
			in.Bounds[i] = b
		}
	}
	spec := op.table.Spec(f.spec)
	if spec == nil {
		return fault.Corruptf(fault.Span{Object: op.file}, "partition-specs", "there is no spec %d, which %s has",
			f.spec, f.name)
	}
	for _, s := range spec.Fields {
		if s.Transform != "identity" {
			continue
		}
		for i, x := range fields {
			if lake.IDOf(x) != s.Source {
				continue
			}
			v, ok := f.Partition[s.Name]
			if !ok {
				v = f.Partition[avroName(s.Name)]
			}
			a, ok := constant(x.Type, v)
			if !ok {
				return fault.Corruptf(fault.Span{Object: f.name}, s.Name,
					"expected a partition value of type %s, found %v",
					x.Type, v)
			}
			in.Values[i] = a
		}
	}
	return nil
}

// constant returns an array of one partition value, as decoded from Avro; ok is false if it is not of type t.
func constant(t arrow.DataType, v any) (a arrow.Array, ok bool) {
	b := array.NewBuilder(memory.NewGoAllocator(), t)
	defer b.Release()
	switch x := v.(type) {
	case nil:
		b.AppendNull()
	case bool:
		if b, ok := b.(*array.BooleanBuilder); ok {
			b.Append(x)
		}
	case int64:
		appendInteger(b, x)
	case float64:
		switch b := b.(type) {
		case *array.Float32Builder:
			b.Append(float32(x))
		case *array.Float64Builder:
			b.Append(x)
		}
	case string:
		if b, ok := b.(*array.StringBuilder); ok {
			b.Append(x)
		}
	case []byte:
		appendBytes(b, t, x)
	}
	a = b.NewArray()
	return a, a.Len() == 1
}

// appendInteger appends an integer, provided that the builder's type can represent it.
func appendInteger(b array.Builder, n int64) {
	fits := n == int64(int32(n))
	switch b := b.(type) {
	case *array.Int32Builder:
		if fits {
			b.Append(int32(n))
		}
	case *array.Date32Builder:
		if fits {
			b.Append(arrow.Date32(n))
		}
	case *array.Int64Builder:
		b.Append(n)
	case *array.Time64Builder:
		b.Append(arrow.Time64(n))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(n))
	}
}

// appendBytes appends bytes, provided that they are a value of the builder's type.
func appendBytes(b array.Builder, t arrow.DataType, raw []byte) {
	switch b := b.(type) {
	case *array.BinaryBuilder:
		b.Append(raw)
	case *array.FixedSizeBinaryBuilder:
		if len(raw) == t.(*arrow.FixedSizeBinaryType).ByteWidth {
			b.Append(raw)
		}
	case *array.Decimal128Builder:
		if d, ok := coerce.OfBigEndian(raw); ok {
			b.Append(d)
		}
	}
}

// boundsOf returns the bounds of a column according to a manifest.
func boundsOf(t arrow.DataType, f *meta.DataFile, id int) (pred.Bounds, bool) {
	b := pred.Bounds{Nulls: -1, Rows: f.Rows}
	nulls, known := f.Nulls[id]
	if known {
		b.Nulls = nulls
	}
	lo, ok1 := decodeBound(t, f.Lower[id])
	hi, ok2 := decodeBound(t, f.Upper[id])
	if ok1 && ok2 {
		b.Min, b.Max = &lo, &hi
	}
	if n, ok := f.NaNs[id]; ok && n == 0 {
		b.NoNaN = true
	}
	return b, known || ok1 && ok2
}

// decodeBound decodes a bound in Iceberg's single-value serialization.
func decodeBound(t arrow.DataType, b []byte) (v pred.Value, ok bool) {
	switch x := t.(type) {
	case *arrow.BooleanType:
		if len(b) == 1 {
			return pred.Bool(b[0] != 0), true
		}
	case *arrow.StringType:
		return pred.String(string(b)), b != nil
	case *arrow.BinaryType:
		return pred.Bytes(b), b != nil
	case *arrow.Float32Type:
		if len(b) == 4 {
			return pred.Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), true
		}
	case *arrow.Float64Type:
		switch len(b) {
		case 4: // the column was float when the file was written
			return pred.Float(float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))), true
		case 8:
			return pred.Float(math.Float64frombits(binary.LittleEndian.Uint64(b))), true
		}
	case *arrow.Decimal128Type:
		if d, ok := coerce.OfBigEndian(b); ok && len(b) > 0 {
			return pred.Decimal(d, x.Scale), true
		}
	case *arrow.Int32Type, *arrow.Int64Type, *arrow.Date32Type, *arrow.Time64Type, *arrow.TimestampType:
		switch len(b) {
		case 4: // a long column was int when the file was written
			return pred.Typed(t, int64(int32(binary.LittleEndian.Uint32(b)))), t.ID() != arrow.TIMESTAMP
		case 8:
			return pred.Typed(t, int64(binary.LittleEndian.Uint64(b))), t.ID() != arrow.INT32 && t.ID() != arrow.DATE32
		}
	}
	return v, false
}
