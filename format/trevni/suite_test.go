package trevni_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/formattest"
	"stoa/format/trevni"
)

var flatTypes = []arrow.DataType{
	arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8,
	arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Float32,
	arrow.PrimitiveTypes.Float64,
	arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, arrow.PrimitiveTypes.Date32,
	arrow.FixedWidthTypes.Timestamp_us,
	&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Vienna"}, &arrow.TimestampType{Unit: arrow.Second},
	&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 10},
}

var suiteOptions = []map[string]string{
	{}, {"block-size": "300"}, {"codec": "deflate", "block-size": "2000"},
	{"codec": "snappy", "block-size": "2000", "checksum": "null"}, {"codec": "bzip2", "block-size": "4000"},
	{"first-values": "all", "block-size": "500"},
}

// withoutSums has option sets without checksums.
var withoutSums = []map[string]string{{"checksum": "null", "block-size": "256"},
	{"checksum": "null", "block-size": "700", "codec": "snappy"},
	{"checksum": "null", "block-size": "600", "codec": "deflate"}}

// TestSuiteWiki and TestSuiteAvro compare writer and reader with what every format must do.
func TestSuiteWiki(t *testing.T) {
	formattest.Run(t, formattest.Suite{Format: trevni.Format,
		Types: append([]arrow.DataType{arrow.PrimitiveTypes.Uint64},
			flatTypes...), Options: suiteOptions, NoChecksums: withoutSums,
		SmallPages: map[string]string{"block-size": "256"}})
}

func TestSuiteAvro(t *testing.T) {
	formattest.Run(t, formattest.Suite{Format: trevni.AvroFormat, Types: flatTypes, NoChecksums: withoutSums,
		Options:    append([]map[string]string{{"version": "1", "block-size": "400"}}, suiteOptions...),
		SmallPages: map[string]string{"block-size": "256"}})
}
