package redfile_test

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/formattest"
	"stoa/format/redfile"
)

func TestFormat(t *testing.T) {
	formattest.Run(t, formattest.Suite{
		Format: redfile.Format,
		Types: []arrow.DataType{
			arrow.PrimitiveTypes.Int32, arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8,
			arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int64,
			arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32,
			arrow.PrimitiveTypes.Uint64,
			arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String,
			arrow.BinaryTypes.Binary,
			arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us,
			&arrow.Decimal128Type{Precision: 20, Scale: 3},
		},
		Options: []map[string]string{
			{}, {"generation": "A"}, {"compression": "none", "index": "false"},
			{"compression": "gzip", "generation": "A"}, {"encoding": "group-varint"},
			{"encoding": "group-varint", "protocol": "binary", "page-size": "100"},
			{"sync": "0", "crc": "false", "generation": "A"},
			{"row-group-rows": "150", "sync": "1"},
			{"row-group-size": "3000", "memory": "500", "page-size": "300", "generation": "A", "protocol": "binary"},
			{"page-size": "64", "index": "false"},
		},
		SmallPages: map[string]string{"page-size": "150"},
		NoChecksums: []map[string]string{
			{"crc": "false", "page-size": "150"},
			{"crc": "false", "generation": "A", "page-size": "100", "compression": "none"},
			{"crc": "false", "encoding": "group-varint", "page-size": "150"},
			{"crc": "false", "compression": "gzip", "page-size": "200"},
		},
	})
}

// Lists, also without the index, so that the rows of a page are unknown.
func TestFormatNested(t *testing.T) {
	formattest.Run(t, formattest.Suite{
		Format: redfile.Format,
		Types: []arrow.DataType{arrow.PrimitiveTypes.Int32, arrow.ListOf(arrow.PrimitiveTypes.Int32),
			arrow.ListOf(arrow.BinaryTypes.String), arrow.BinaryTypes.String},
		Options: []map[string]string{{}, {"generation": "A", "row-group-rows": "100"},
			{"encoding": "group-varint", "index": "false", "page-size": "100"}},
		SmallPages: map[string]string{"page-size": "150", "index": "false"},
		NoChecksums: []map[string]string{{"crc": "false", "page-size": "150"},
			{"crc": "false", "page-size": "100", "generation": "A", "compression": "none"}},
	})
}
