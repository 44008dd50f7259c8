package carbon

import (
	"stoa/internal/thrift"
)

// dataChunk is DataChunk (format 1) or DataChunk2 (format 2, and a page of format 3).
type dataChunk struct {
	codec      string
	rowMajor   bool
	columns    []int32 // of a column group
	dataAt     int64   // format 1; the other offsets follow from the lengths elsewhere
	dataLen    int32
	rowidAt    int64
	rowidLen   int32
	rleAt      int64
	rleLen     int32
	presence   *presence
	sort       int32
	encoders   encodings
	meta       [][]byte
	minMax     *minMax
	rows       int64 // of the page; -1 if not said
	compressed int64
	raw        int64
}

// presence is PresenceMeta.
type presence struct {
	ones bool // a set bit is a value, not a null
	bits []byte
}

func parsePresence(r *thrift.Reader, name string) *presence {
	p := &presence{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			p.ones = r.Bool("represents_presence")
		case 2:
			p.bits = r.Bytes("present_bit_stream")
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
func parseChunkMeta(r *thrift.Reader, d *dataChunk) {
	d.codec = "snappy"
	for r.Struct("chunk_meta"); r.Next(); {
		switch r.Field() {
		case 1:
			r.Enum("compression_codec", codecText)
		case 2:
			d.raw = r.I64("total_uncompressed_size")
		case 3:
			d.compressed = r.I64("total_compressed_size")
		case 4:
			d.codec = r.String("compressor_name")
		}
	}
}

// parseDataChunk1 reads DataChunk of format 1.
func parseDataChunk1(r *thrift.Reader, name string) (d dataChunk) {
	d.rows = -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			parseChunkMeta(r, &d)
		case 2:
			d.rowMajor = r.Bool("rowMajor")
		case 3:
			d.columns = parseI32s(r, "column_ids")
		case 4:
			d.dataAt = r.I64("data_page_offset")
		case 5:
			d.dataLen = r.I32("data_page_length")
		case 6:
			d.rowidAt = r.I64("rowid_page_offset")
		case 7:
			d.rowidLen = r.I32("rowid_page_length")
		case 8:
			d.rleAt = r.I64("rle_page_offset")
		case 9:
			d.rleLen = r.I32("rle_page_length")
		case 10:
			d.presence = parsePresence(r, "presence")
		case 11:
			d.sort = r.I32("sort_state")
		case 12:
			d.encoders = parseEncodings(r, "encoders")
		case 13:
			d.meta = parseBinaries(r, "encoder_meta")
		}
	}
	return d
}

// parseDataChunk2 reads DataChunk2.
func parseDataChunk2(r *thrift.Reader, name string) (d dataChunk) {
	d.rows = -1
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			parseChunkMeta(r, &d)
		case 2:
			d.rowMajor = r.Bool("rowMajor")
		case 3:
			d.dataLen = r.I32("data_page_length")
		case 4:
			d.rowidLen = r.I32("rowid_page_length")
		case 5:
			d.rleLen = r.I32("rle_page_length")
		case 6:
			d.presence = parsePresence(r, "presence")
		case 7:
			d.sort = r.I32("sort_state")
		case 8:
			d.encoders = parseEncodings(r, "encoders")
		case 9:
			d.meta = parseBinaries(r, "encoder_meta")
		case 10:
			d.minMax = parseMinMax(r, "min_max")
		case 11:
			d.rows = int64(r.I32("numberOfRowsInpage"))
		}
	}
	return d
}

// columnChunk is DataChunk3: the pages of a column of a blocklet.
type columnChunk struct {
	pages   []dataChunk
	offsets []int32 // of the pages, from the end of this structure
	lengths []int32
	dict    *localDictionary
}

// localDictionary is LocalDictionaryChunk.
type localDictionary struct {
	encoders encodings
	meta     [][]byte
	data     []byte // the values as a page
	used     []byte // which codes have one: compressed bits
}

func parseDataChunk3(r *thrift.Reader, name string) (d columnChunk) {
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("data_chunk_list", thrift.Struct) {
				d.pages = append(d.pages, parseDataChunk2(r, ""))
			}
		case 2:
			d.offsets = parseI32s(r, "page_offset")
		case 3:
			d.lengths = parseI32s(r, "page_length")
		case 4:
			d.dict = parseLocalDictionary(r, "local_dictionary")
		}
	}
	return d
}

func parseLocalDictionary(r *thrift.Reader, name string) *localDictionary {
	d := &localDictionary{}
	for r.Struct(name); r.Next(); {
		switch r.Field() {
		case 1:
			for r.Struct("dictionary_meta"); r.Next(); {
				switch r.Field() {
				case 1:
					d.encoders = parseEncodings(r, "encoders")
				case 2:
					d.meta = parseBinaries(r, "encoder_meta")
				}
			}
		case 2:
			d.data = r.Bytes("dictionary_data")
		case 3:
			d.used = r.Bytes("dictionary_values")
		}
	}
	return d
}

// parseDictionaryChunk reads ColumnDictionaryChunk.
func parseDictionaryChunk(r *thrift.Reader, name string) (values [][]byte) {
	for r.Struct(name); r.Next(); {
		if r.Field() == 1 {
			values = parseBinaries(r, "values")
		}
	}
	return values
}
