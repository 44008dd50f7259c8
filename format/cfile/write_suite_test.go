package cfile_test

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format/cfile"
	"stoa/format/formattest"
)

// TestWriteSuite runs the suite that every format must pass.
func TestWriteSuite(t *testing.T) {
	p := arrow.PrimitiveTypes
	var options []map[string]string
	for _, e := range []string{"plain", "bitshuffle", "rle", "prefix", "dict"} {
		options = append(options, map[string]string{"encoding": e, "block-size": "512", "index-block-size": "100"})
	}
	for _, c := range []string{"lz4", "snappy", "zlib"} {
		options = append(options, map[string]string{"compression": c, "block-size": "1024", "checksums": "false"},
			map[string]string{"compression": c, "version": "1", "block-size": "600"})
	}
	options = append(options, map[string]string{},
		map[string]string{"encoding": "group-varint", "version": "1", "block-size": "512"},
		map[string]string{"positional-index": "true", "plain-metadata": "false", "restart-interval": "3"})
	withoutSums := []map[string]string{{"version": "1", "encoding": "group-varint", "block-size": "512"}}
	for _, e := range []string{"plain", "bitshuffle", "rle", "prefix", "dict"} {
		withoutSums = append(withoutSums, map[string]string{"encoding": e, "block-size": "600", "checksums": "false"},
			map[string]string{"encoding": e, "block-size": "512", "version": "1"})
	}
	withoutSums = append(withoutSums, map[string]string{"compression": "lz4", "block-size": "900",
		"checksums": "false"},
		map[string]string{"block-size": "512", "version": "1"})
	formattest.Run(t, formattest.Suite{
		NoChecksums: withoutSums,
		Format:      cfile.Format,
		Types: []arrow.DataType{
			p.Int8, p.Int16, p.Int32, p.Int64, p.Uint8, p.Uint16, p.Uint32, p.Uint64, p.Float32, p.Float64,
			arrow.FixedWidthTypes.Boolean, arrow.BinaryTypes.String, arrow.BinaryTypes.Binary, p.Date32,
			arrow.FixedWidthTypes.Timestamp_us,
			&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 18, Scale: 3},
			&arrow.Decimal128Type{Precision: 38, Scale: 10},
			arrow.ListOf(p.Int32), arrow.ListOf(arrow.BinaryTypes.String), arrow.ListOf(arrow.FixedWidthTypes.Boolean),
		},
		Options:    options,
		SmallPages: map[string]string{"block-size": "512", "encoding": "plain"},
		Fits: func(opts map[string]string, typ arrow.DataType) bool {
			if l, ok := typ.(*arrow.ListType); ok {
				if opts["version"] == "1" {
					return false
				}
				typ = l.Elem()
			}
			e := opts["encoding"]
			switch typ.ID() {
			case arrow.BOOL:
				return e == "" || e == "plain" || e == "rle"
			case arrow.STRING, arrow.BINARY:
				return e == "" || e == "plain" || e == "prefix" || e == "dict"
			case arrow.FLOAT32, arrow.FLOAT64:
				return e == "" || e == "plain" || e == "bitshuffle"
			case arrow.DECIMAL128:
				if typ.(*arrow.Decimal128Type).Precision > 18 && e == "rle" {
					return false
				}
			case arrow.UINT32:
				if e == "group-varint" {
					return true
				}
			}
			return !strings.Contains("prefix dict group-varint", e) || e == ""
		},
	})
}

// TestStructSuite runs the suite with structs: nested, with non-nullable fields, with lists, without fields.
func TestStructSuite(t *testing.T) {
	p := arrow.PrimitiveTypes
	field := func(name string, typ arrow.DataType, nullable bool) arrow.Field {
		return arrow.Field{Name: name, Type: typ, Nullable: nullable}
	}
	deep := arrow.StructOf(field("x", arrow.BinaryTypes.String, false), field("y", arrow.FixedWidthTypes.Boolean, true))
	formattest.Run(t, formattest.Suite{
		Format: cfile.Format,
		Types: []arrow.DataType{
			p.Int32,
			arrow.StructOf(field("a", p.Int64, true), field("b", arrow.BinaryTypes.String, true)),
			arrow.StructOf(field("a", p.Int8, false), field("d", deep, true), field("e", deep, false),
				field("l", arrow.ListOf(p.Int16), true)),
			arrow.StructOf(field("n", arrow.StructOf(field("n", arrow.StructOf(field("z", p.Float64, true)), true)),
				true)),
			arrow.StructOf(),
			arrow.BinaryTypes.String,
		},
		Options: []map[string]string{{}, {"block-size": "512", "compression": "lz4", "checksums": "false"},
			{"version": "1", "encoding": "plain"}, {"plain-metadata": "true", "layout": "dir"}},
		SmallPages: map[string]string{"block-size": "512", "encoding": "plain"},
		NoChecksums: []map[string]string{{"block-size": "512", "checksums": "false"},
			{"block-size": "600", "version": "1", "encoding": "plain"}},
		Fits: func(opts map[string]string, typ arrow.DataType) bool {
			st, ok := typ.(*arrow.StructType)
			return !ok || opts["version"] != "1" || st.NumFields() < 4 // arrays need version 2
		},
	})
}
