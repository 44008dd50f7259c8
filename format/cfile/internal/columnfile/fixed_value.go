package columnfile

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/format/cfile/internal/block"
)

// AppendFixedValue appends a little-endian value of a type that can be a key.
func AppendFixedValue(b array.Builder, t block.Type, v []byte) {
	lo, hi := block.WideOf(t, v)
	switch b := b.(type) {
	case *array.Uint8Builder:
		b.Append(uint8(lo))
	case *array.Int8Builder:
		b.Append(int8(lo))
	case *array.Uint16Builder:
		b.Append(uint16(lo))
	case *array.Int16Builder:
		b.Append(int16(lo))
	case *array.Uint32Builder:
		b.Append(uint32(lo))
	case *array.Int32Builder:
		b.Append(int32(lo))
	case *array.Uint64Builder:
		b.Append(lo)
	case *array.Int64Builder:
		b.Append(int64(lo))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(lo))
	case *array.Date32Builder:
		b.Append(arrow.Date32(lo))
	case *array.Decimal128Builder:
		b.Append(decimal128.New(int64(hi), lo))
	}
}
