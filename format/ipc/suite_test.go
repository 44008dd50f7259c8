package ipc_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/formattest"
	"stoa/format/ipc"
)

func TestSuite(t *testing.T) {
	formattest.Run(t, formattest.Suite{Format: ipc.Format, Rows: 300,
		Options: []map[string]string{{}, {"stream": "true"}, {"compression": "lz4"}, {"compression": "zstd"}},
		Types: []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint64,
			arrow.PrimitiveTypes.Float32, arrow.BinaryTypes.String,
			arrow.FixedWidthTypes.Boolean, &arrow.Decimal128Type{Precision: 20, Scale: 3},
			arrow.ListOf(arrow.BinaryTypes.Binary), &arrow.TimestampType{Unit: arrow.Nanosecond},
			arrow.PrimitiveTypes.Int64}})
}
