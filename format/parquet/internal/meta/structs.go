package meta

import (
	"strconv"

	"stoa/internal/thrift"
)

// structure describes a struct of parquet.thrift: its fields by number.
type structure map[int]field

// field is a field of a structure. For a list, elem is the type of its elements; of is the structure of a struct or of
// a list's elements; enum names the values of an enum.
type field struct {
	name string
	elem thrift.Type
	of   structure
	enum []string
}

// The structs of parquet.thrift from which the footer is built.
var (
	fileMetaData = structure{
		1: {name: "version"},
		2: {name: "schema", elem: thrift.Struct, of: SchemaElement},
		3: {name: "num_rows"},
		4: {name: "row_groups", elem: thrift.Struct, of: RowGroup},
		5: {name: "key_value_metadata", elem: thrift.Struct, of: keyValue},
		6: {name: "created_by"},
		7: {name: "column_orders", elem: thrift.Struct, of: columnOrder},
		8: {name: "encryption_algorithm"},
		9: {name: "footer_signing_key_metadata"},
	}
	SchemaElement = structure{
		1: {name: "type", enum: physicalTypes}, 2: {name: "type_length"},
		3: {name: "repetition_type", enum: repetitions}, 4: {name: "name"},
		5: {name: "num_children"}, 6: {name: "converted_type", enum: convertedTypes}, 7: {name: "scale"},
		8: {name: "precision"},
		9: {name: "field_id"}, 10: {name: "logical_type", of: logicalType},
	}
	logicalType = structure{
		1: {name: "STRING"}, 2: {name: "MAP"}, 3: {name: "LIST"}, 4: {name: "ENUM"}, 6: {name: "DATE"},
		11: {name: "UNKNOWN"},
		12: {name: "JSON"}, 13: {name: "BSON"}, 14: {name: "UUID"}, 15: {name: "FLOAT16"},
		16: {name: "VARIANT", of: structure{1: {name: "specification_version"}}},
		17: {name: "GEOMETRY", of: structure{1: {name: "crs"}}},
		18: {name: "GEOGRAPHY", of: structure{1: {name: "crs"}, 2: {name: "algorithm", enum: algorithms}}},
		5:  {name: "DECIMAL", of: structure{1: {name: "scale"}, 2: {name: "precision"}}},
		7:  {name: "TIME", of: instantType},
		8:  {name: "TIMESTAMP", of: instantType},
		10: {name: "INTEGER", of: structure{1: {name: "bit_width"}, 2: {name: "is_signed"}}},
	}
	instantType = structure{1: {name: "is_adjusted_to_utc"},
		2: {name: "unit", of: structure{1: {name: "MILLIS"}, 2: {name: "MICROS"}, 3: {name: "NANOS"}}}}
	RowGroup = structure{
		1: {name: "columns", elem: thrift.Struct, of: ColumnChunk}, 2: {name: "total_byte_size"}, 3: {name: "num_rows"},
		4: {name: "sorting_columns", elem: thrift.Struct,
			of: structure{1: {name: "column_idx"}, 2: {name: "descending"}, 3: {name: "nulls_first"}}},
		5: {name: "file_offset"}, 6: {name: "total_compressed_size"}, 7: {name: "ordinal"},
	}
	ColumnChunk = structure{
		1: {name: "file_path"}, 2: {name: "file_offset"}, 3: {name: "meta_data", of: ColumnMetaData},
		4: {name: "offset_index_offset"},
		5: {name: "offset_index_length"}, 6: {name: "column_index_offset"}, 7: {name: "column_index_length"},
		8: {name: "crypto_metadata"}, 9: {name: "encrypted_column_metadata"},
	}
	ColumnMetaData = structure{
		1: {name: "type", enum: physicalTypes}, 2: {name: "encodings", elem: thrift.I32, enum: Encodings},
		3: {name: "path_in_schema", elem: thrift.Bytes},
		4: {name: "codec", enum: codecNames}, 5: {name: "num_values"}, 6: {name: "total_uncompressed_size"},
		7: {name: "total_compressed_size"},
		8: {name: "key_value_metadata", elem: thrift.Struct, of: keyValue}, 9: {name: "data_page_offset"},
		10: {name: "index_page_offset"},
		11: {name: "dictionary_page_offset"}, 12: {name: "statistics", of: statistics},
		13: {name: "encoding_stats", elem: thrift.Struct,
			of: structure{1: {name: "page_type", enum: PageTypes}, 2: {name: "encoding", enum: Encodings},
				3: {name: "count"}}},
		14: {name: "bloom_filter_offset"}, 15: {name: "bloom_filter_length"},
		16: {name: "size_statistics", of: structure{1: {name: "unencoded_byte_array_data_bytes"},
			2: {name: "repetition_level_histogram", elem: thrift.I64},
			3: {name: "definition_level_histogram", elem: thrift.I64}}},
	}
	statistics = structure{
		1: {name: "max"}, 2: {name: "min"}, 3: {name: "null_count"}, 4: {name: "distinct_count"},
		5: {name: "max_value"}, 6: {name: "min_value"},
		7: {name: "is_max_value_exact"}, 8: {name: "is_min_value_exact"}, 9: {name: "nan_count"},
	}
	keyValue    = structure{1: {name: "key"}, 2: {name: "value"}}
	columnOrder = structure{1: {name: "TYPE_ORDER"}, 2: {name: "IEEE_754_TOTAL_ORDER"},
		3: {name: "INT96_TIMESTAMP_ORDER"}}
)

// The enums of parquet.thrift. Unassigned numbers are empty strings.
var (
	physicalTypes = []string{"BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY",
		"FIXED_LEN_BYTE_ARRAY"}
	repetitions    = []string{"REQUIRED", "OPTIONAL", "REPEATED"}
	convertedTypes = []string{"UTF8", "MAP", "MAP_KEY_VALUE", "LIST", "ENUM", "DECIMAL", "DATE", "TIME_MILLIS",
		"TIME_MICROS", "TIMESTAMP_MILLIS",
		"TIMESTAMP_MICROS", "UINT_8", "UINT_16", "UINT_32", "UINT_64", "INT_8", "INT_16", "INT_32", "INT_64",
		"JSON", "BSON", "INTERVAL"}
	Encodings = []string{"PLAIN", "", "PLAIN_DICTIONARY", "RLE", "BIT_PACKED", "DELTA_BINARY_PACKED",
		"DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY",
		"RLE_DICTIONARY", "BYTE_STREAM_SPLIT"}
	codecNames     = []string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}
	PageTypes      = []string{"DATA_PAGE", "INDEX_PAGE", "DICTIONARY_PAGE", "DATA_PAGE_V2"}
	BoundaryOrders = []string{"UNORDERED", "ASCENDING", "DESCENDING"}
)

// EnumName returns the name of value v of an enum, or v in decimal if it has no name.
func EnumName(names []string, v int32) string {
	if v >= 0 && int(v) < len(names) && names[v] != "" {
		return names[v]
	}
	return strconv.Itoa(int(v))
}

// Walk reads through a struct without keeping anything, so that the struct is known to be intact and a tracer has seen
// it. Fields that are not in s are skipped.
func Walk(r *thrift.Reader, name string, s structure) {
	for r.Struct(name); r.Next(); {
		if f, ok := s[r.Field()]; ok {
			walkValue(r, f)
		}
	}
}

// walkValue reads through one value.
func walkValue(r *thrift.Reader, f field) {
	switch t := r.Type(); {
	case t == thrift.Bool:
		r.Bool(f.name)
	case t == thrift.I8:
		r.I8(f.name)
	case t == thrift.I16:
		r.I16(f.name)
	case t == thrift.I32:
		r.Enum(f.name, func(v int32) string { return EnumName(f.enum, v) })
	case t == thrift.I64:
		r.I64(f.name)
	case t == thrift.Double:
		r.Double(f.name)
	case t == thrift.Bytes:
		r.Bytes(f.name)
	case t == thrift.Struct:
		Walk(r, f.name, f.of)
	case (t == thrift.List || t == thrift.Set) && f.elem != thrift.Stop:
		for range r.List(f.name, f.elem) {
			walkValue(r, field{of: f.of, enum: f.enum})
		}
	}
}
