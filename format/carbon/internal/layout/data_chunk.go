package layout

import (
	"stoa/internal/thrift"
)

// DataChunk is the metadata of a page: DataChunk of carbondata.thrift (format 1) or DataChunk2 (format 2, and a page of
// format 3). Lengths are in bytes. The offsets are those of format 1, from the start of the file; in the other formats
// data, row ids and runs follow each other.
type DataChunk struct {
	Codec    string
	RowMajor bool // a column group, which is not supported
	DataAt   int64
	DataLen  int32
	RowidAt  int64
	RowidLen int32
	RleAt    int64
	RleLen   int32
	Presence *Presence
	Sort     int32 // sort_state: 1 native, 2 explicit
	Encoders Encodings
	Meta     [][]byte // encoder_meta, one for each encoder that needs it
	MinMax   *MinMax
	Rows     int64 // of the page; -1: unknown
	Raw      int64 // total_uncompressed_size
}

// Presence is PresenceMeta: which entries are null.
type Presence struct {
	Ones bool   // a set bit means a value and not a null; no writer does this
	Bits []byte // Java's BitSet, least significant bit first; compressed except in format 1
}

func parsePresence(r *thrift.Reader, name string) *Presence {
	p := &Presence{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			p.Ones = r.Bool("represents_presence")
		case 2:
			p.Bits = r.Bytes("present_bit_stream")
		default: // frozen structure: unknown fields are damage, and lost bits would turn nulls into values
			r.UnexpectedField()
		}
	}
	return p
}

func codecText(v int32) string {
	switch v {
	case 0:
		return "SNAPPY"
	case 1:
		return "DEPRECATED"
	}
	return "?"
}

// parseChunkMeta reads ChunkCompressionMeta.
func parseChunkMeta(r *thrift.Reader, d *DataChunk) {
	d.Codec = "snappy"
	for r.Struct("chunk_meta"); r.Next(); {
		switch r.Field() {
		case 1:
			r.Enum("compression_codec", codecText)
		case 2:
			d.Raw = r.I64("total_uncompressed_size")
		case 3:
			r.I64("total_compressed_size")
		case 4:
			d.Codec = r.String("compressor_name")
		}
	}
}

// parseDataChunk1 reads DataChunk of format 1. Format 1 is frozen, so an unknown field means a damaged field number.
func parseDataChunk1(r *thrift.Reader, name string) (d DataChunk) {
	d.Rows = -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			parseChunkMeta(r, &d)
		case 2:
			d.RowMajor = r.Bool("rowMajor")
		case 3:
			ParseI32s(r, "column_ids") // of a column group
		case 4:
			d.DataAt = r.I64("data_page_offset")
		case 5:
			d.DataLen = r.I32("data_page_length")
		case 6:
			d.RowidAt = r.I64("rowid_page_offset")
		case 7:
			d.RowidLen = r.I32("rowid_page_length")
		case 8:
			d.RleAt = r.I64("rle_page_offset")
		case 9:
			d.RleLen = r.I32("rle_page_length")
		case 10:
			d.Presence = parsePresence(r, "presence")
		case 11:
			d.Sort = r.I32("sort_state")
		case 12:
			d.Encoders = parseEncodings(r, "encoders")
		case 13:
			d.Meta = parseBinaries(r, "encoder_meta")
		default:
			r.UnexpectedField()
		}
	}
	return d
}

// ParseDataChunk2 reads DataChunk2. Errors are those of r.
func ParseDataChunk2(r *thrift.Reader, name string) (d DataChunk) {
	d.Rows = -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			parseChunkMeta(r, &d)
		case 2:
			d.RowMajor = r.Bool("rowMajor")
		case 3:
			d.DataLen = r.I32("data_page_length")
		case 4:
			d.RowidLen = r.I32("rowid_page_length")
		case 5:
			d.RleLen = r.I32("rle_page_length")
		case 6:
			d.Presence = parsePresence(r, "presence")
		case 7:
			d.Sort = r.I32("sort_state")
		case 8:
			d.Encoders = parseEncodings(r, "encoders")
		case 9:
			d.Meta = parseBinaries(r, "encoder_meta")
		case 10:
			d.MinMax = parseMinMax(r, "min_max")
		case 11:
			d.Rows = int64(r.I32("numberOfRowsInpage"))
		}
	}
	return d
}

// ColumnChunk is DataChunk3: the pages of a column of a blocklet. Pages, Offsets and Lengths have one element per page.
type ColumnChunk struct {
	Pages   []DataChunk
	Offsets []int32          // bytes from the end of this structure
	Lengths []int32          // bytes
	Dict    *LocalDictionary // nil: the pages have no codes
}

// LocalDictionary is LocalDictionaryChunk.
type LocalDictionary struct {
	Encoders Encodings
	Meta     [][]byte
	Data     []byte // the values, encoded like a page, in the order of their codes
	Used     []byte // a compressed bit set of the codes that have a value
}

// ParseDataChunk3 reads DataChunk3. Errors are those of r.
func ParseDataChunk3(r *thrift.Reader, name string) (d ColumnChunk) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("data_chunk_list", thrift.Struct) {
				d.Pages = append(d.Pages, ParseDataChunk2(r, ""))
			}
		case 2:
			d.Offsets = ParseI32s(r, "page_offset")
		case 3:
			d.Lengths = ParseI32s(r, "page_length")
		case 4:
			d.Dict = parseLocalDictionary(r, "local_dictionary")
		}
	}
	return d
}

func parseLocalDictionary(r *thrift.Reader, name string) *LocalDictionary {
	d := &LocalDictionary{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			for r.Struct("dictionary_meta"); r.Next(); {
				switch r.Field() {
				case 1:
					d.Encoders = parseEncodings(r, "encoders")
				case 2:
					d.Meta = parseBinaries(r, "encoder_meta")
				}
			}
		case 2:
			d.Data = r.Bytes("dictionary_data")
		case 3:
			d.Used = r.Bytes("dictionary_values")
		}
	}
	return d
}

// ParseDictionaryChunk reads ColumnDictionaryChunk of dictionary.thrift. Errors are those of r.
func ParseDictionaryChunk(r *thrift.Reader, name string) (values [][]byte) {
	for r.Struct(name); r.Next(); {
		if r.Field() == 1 {
			values = parseBinaries(r, "values")
		}
	}
	return values
}

// FirstEncoding returns the first encoder, which determines how the values are stored; -1 if there is none.
func (d *DataChunk) FirstEncoding() Encoding {
	if len(d.Encoders) == 0 {
		return -1
	}
	return d.Encoders[0]
}
