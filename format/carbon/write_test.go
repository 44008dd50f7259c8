package carbon_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/carbon"
	"stoa/format/formattest"
)

var writtenTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Float32,
	arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
	arrow.PrimitiveTypes.Date32,
	&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
	&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 18, Scale: 0},
	&arrow.Decimal128Type{Precision: 38, Scale: 10},
}

// TestSuite runs the suite that every format must pass.
func TestSuite(t *testing.T) {
	formattest.Run(t, formattest.Suite{Format: carbon.Format, Types: writtenTypes, Options: []map[string]string{
		{}, {"page-rows": "100"}, {"compression": "zstd", "page-rows": "64"},
		{"compression": "gzip", "local-dictionary": "false", "page-rows": "200"},
		{"local-dictionary-threshold": "20", "page-rows": "128"},
	}, SmallPages: map[string]string{"page-rows": "32"},
		NoChecksums: []map[string]string{{"page-rows": "40", "compression": "zstd"},
			{"page-rows": "64", "local-dictionary": "false"}}})
}
