package parquet_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/formattest"
	"stoa/format/parquet"
)

func TestSuite(t *testing.T) {
	formattest.Run(t, formattest.Suite{Format: parquet.Format, Rows: 300,
		Options:    []map[string]string{{}, {"compression": "zstd", "dictionary": "false"}, {"row-group-rows": "50"}},
		SmallPages: map[string]string{"page-size": "100", "dictionary": "false"},
		NoChecksums: []map[string]string{
			{"crc": "false", "page-size": "100"},
			{"crc": "false", "page-size": "100", "page-version": "2", "compression": "zstd", "row-group-rows": "90"},
			{"crc": "false", "page-size": "150", "dictionary": "false", "compression": "none"},
			{"crc": "false", "page-size": "150", "dictionary": "false", "encoding": "plain", "compression": "lz4",
				"page-version": "2"},
			{"crc": "false", "page-size": "100", "page-index": "false", "compression": "gzip"},
		},
		Types: []arrow.DataType{arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint64,
			arrow.PrimitiveTypes.Float32, arrow.BinaryTypes.String,
			arrow.FixedWidthTypes.Boolean, &arrow.Decimal128Type{Precision: 20, Scale: 3},
			arrow.ListOf(arrow.PrimitiveTypes.Int32), &arrow.TimestampType{Unit: arrow.Nanosecond},
			arrow.PrimitiveTypes.Int64}})
}
