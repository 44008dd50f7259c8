package meta

import (
	"fmt"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/wire"
)

// FileMeta is what is read of a footer (parquet.thrift, FileMetaData). Nobody changes it after it was read.
type FileMeta struct {
	Version   int32
	NumRows   int64
	Schema    *SchemaTree
	RowGroups []*rowGroupMeta
	Pairs     []KeyPair
	CreatedBy string
	Orders    []int      // per column the number of its ColumnOrder; nil: none are said
	Algorithm *Algorithm // some columns are encrypted, or the footer is signed; nil: nothing is, or the whole footer
	Signer    []byte     // metadata of the key that the footer is signed with
	Length    int        // of the Thrift
	Elements  []SchemaElem
}

// TypeOrder is the number of TypeDefinedOrder among column orders.
const TypeOrder = 1

type KeyPair struct {
	Key   string
	Value *string
}

type rowGroupMeta struct {
	Columns             []*ChunkMeta
	TotalByteSize       int64
	NumRows             int64
	SortingColumns      []sortingColumn
	FileOffset          *int64
	TotalCompressedSize *int64
	Ordinal             *int16
}

type sortingColumn struct {
	ColumnIdx  int32
	Descending bool
	NullsFirst bool
}

type ChunkMeta struct {
	FilePath          string
	FileOffset        int64
	MetaData          *ColumnMeta
	OffsetIndexOffset *int64
	OffsetIndexLength *int32
	ColumnIndexOffset *int64
	ColumnIndexLength *int32
	Encrypted         bool         // and no key opens it
	Veiled            fault.Span   // where its pages lie, if that is said although it is encrypted
	Crypto            *ChunkCrypto // nil: it is not encrypted
	Locked            []byte       // its metadata; nil: it is plain
	Sealed            *Sealed      // opens the pages; nil: they are plain, or nobody knows the key
}

// ColumnMeta is ColumnMetaData. Sizes that are missing are -1.
type ColumnMeta struct {
	Type                  Physical
	Encodings             []Encoding
	PathInSchema          []string
	Codec                 Compression
	NumValues             int64
	TotalUncompressedSize int64
	TotalCompressedSize   int64
	DataPageOffset        int64
	DictionaryPageOffset  *int64
	Statistics            *Said
	EncodingStats         []encodingStat
	BloomFilterOffset     *int64
	BloomFilterLength     *int32
	SizeStatistics        *sizeStatistics
}

type encodingStat struct {
	PageType int32
	Encoding Encoding
	Count    int32
}

type sizeStatistics struct {
	UnencodedByteArrayDataBytes *int64
	RepetitionLevelHistogram    []int64
	DefinitionLevelHistogram    []int64
}

// Physical is a Type, encoding an Encoding, compression a CompressionCodec of parquet.thrift.
type (
	Physical    int32
	Encoding    int32
	Compression int32
)

func (p Physical) String() string    { return Named(physicalTypes, int32(p)) }
func (e Encoding) String() string    { return Named(Encodings, int32(e)) }
func (c Compression) String() string { return Named(codecNames, int32(c)) }

// textOf names the values of an enum for who traces.
func textOf(names []string) func(int32) string {
	return func(v int32) string { return Named(names, v) }
}

func Ptr[T any](v T) *T { return &v }

// ParseFileMeta reads a footer. What it does not keep is still looked at, so that the footer is known to be whole.
// A schema that cannot have less than the fields that are allowed is left where that is seen, before it is built.
func ParseFileMeta(r *thrift.Reader, c *wire.Cursor, limits format.Limits) *FileMeta {
	m := &FileMeta{NumRows: -1}
	for r.Struct("metadata"); r.Next(); {
		switch r.Field() {
		case 1:
			m.Version = r.I32("version")
		case 2:
			from := c.Pos()
			for range r.List("schema", thrift.Struct) {
				m.Elements = append(m.Elements, parseElement(r))
				if over := tooMany(limits, len(m.Elements)); over != "" {
					c.FailClass(fault.Limit, from, c.Pos()-from, "schema", "%s", over)
					break
				}
			}
		case 3:
			m.NumRows = r.I64("num_rows")
		case 4:
			for range r.List("row_groups", thrift.Struct) {
				m.RowGroups = append(m.RowGroups, parseRowGroup(r))
			}
		case 5:
			for range r.List("key_value_metadata", thrift.Struct) {
				m.Pairs = append(m.Pairs, parsePair(r))
			}
		case 6:
			m.CreatedBy = r.String("created_by")
		case 7:
			m.Orders = []int{}
			for range r.List("column_orders", thrift.Struct) {
				m.Orders = append(m.Orders, parseUnion(r, "", columnOrder))
			}
		case 8:
			m.Algorithm = Ptr(ParseAlgorithm(r))
		case 9:
			m.Signer = r.Bytes("footer_signing_key_metadata")
		default:
			other(r, fileMetaData)
		}
	}
	return m
}

// tooMany says what is wrong if a schema of so many elements, and perhaps more, has more fields than are allowed; ""
// if it may have fewer. Besides the root, a field is at least half of the elements: a list and a map are two groups.
func tooMany(limits format.Limits, elements int) string {
	if n, most := int64(elements-1), limits.WithDefaults().Fields; n > 2*most {
		return fmt.Sprintf("%d elements or more, and at most %d fields are read (--max-fields)", n, most)
	}
	return ""
}

// other goes through a field that is not kept, if s has it; what it does not have is told as unknown.
func other(r *thrift.Reader, s structure) {
	if f, ok := s[r.Field()]; ok {
		value(r, f)
	}
}

// parseUnion reads a union of which only the kind matters, and gives the number of the field that is set; 0: none.
func parseUnion(r *thrift.Reader, name string, s structure) (kind int) {
	for r.Struct(name); r.Next(); {
		kind = r.Field()
		other(r, s)
	}
	return kind
}

func parsePair(r *thrift.Reader) (p KeyPair) {
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			p.Key = r.String("key")
		case 2:
			p.Value = Ptr(r.String("value"))
		}
	}
	return p
}

func parseRowGroup(r *thrift.Reader) *rowGroupMeta {
	g := &rowGroupMeta{NumRows: -1}
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			for range r.List("columns", thrift.Struct) {
				g.Columns = append(g.Columns, parseChunk(r))
			}
		case 2:
			g.TotalByteSize = r.I64("total_byte_size")
		case 3:
			g.NumRows = r.I64("num_rows")
		case 4:
			for range r.List("sorting_columns", thrift.Struct) {
				g.SortingColumns = append(g.SortingColumns, parseSorting(r))
			}
		case 5:
			g.FileOffset = Ptr(r.I64("file_offset"))
		case 6:
			g.TotalCompressedSize = Ptr(r.I64("total_compressed_size"))
		case 7:
			g.Ordinal = Ptr(r.I16("ordinal"))
		}
	}
	return g
}

func parseSorting(r *thrift.Reader) (s sortingColumn) {
	s.ColumnIdx = -1
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			s.ColumnIdx = r.I32("column_idx")
		case 2:
			s.Descending = r.Bool("descending")
		case 3:
			s.NullsFirst = r.Bool("nulls_first")
		}
	}
	return s
}

func parseChunk(r *thrift.Reader) *ChunkMeta {
	c := &ChunkMeta{}
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			c.FilePath = r.String("file_path")
		case 2:
			c.FileOffset = r.I64("file_offset")
		case 3:
			c.MetaData = ParseColumnMeta(r)
		case 4:
			c.OffsetIndexOffset = Ptr(r.I64("offset_index_offset"))
		case 5:
			c.OffsetIndexLength = Ptr(r.I32("offset_index_length"))
		case 6:
			c.ColumnIndexOffset = Ptr(r.I64("column_index_offset"))
		case 7:
			c.ColumnIndexLength = Ptr(r.I32("column_index_length"))
		case 8:
			c.Encrypted, c.Crypto = true, parseChunkCrypto(r)
		case 9:
			c.Locked = r.Bytes("encrypted_column_metadata")
		default:
			other(r, ColumnChunk)
		}
	}
	return c
}

func ParseColumnMeta(r *thrift.Reader) *ColumnMeta {
	m := &ColumnMeta{Type: -1, Codec: -1, NumValues: -1, TotalUncompressedSize: -1, TotalCompressedSize: -1,
		DataPageOffset: -1}
	for r.Struct("meta_data"); r.Next(); {
		switch r.Field() {
		case 1:
			m.Type = Physical(r.Enum("type", textOf(physicalTypes)))
		case 2:
			for range r.List("encodings", thrift.I32) {
				m.Encodings = append(m.Encodings, Encoding(r.Enum("", textOf(Encodings))))
			}
		case 3:
			for range r.List("path_in_schema", thrift.Bytes) {
				m.PathInSchema = append(m.PathInSchema, r.String(""))
			}
		case 4:
			m.Codec = Compression(r.Enum("codec", textOf(codecNames)))
		case 5:
			m.NumValues = r.I64("num_values")
		case 6:
			m.TotalUncompressedSize = r.I64("total_uncompressed_size")
		case 7:
			m.TotalCompressedSize = r.I64("total_compressed_size")
		case 9:
			m.DataPageOffset = r.I64("data_page_offset")
		case 11:
			m.DictionaryPageOffset = Ptr(r.I64("dictionary_page_offset"))
		case 12:
			m.Statistics = parseStatistics(r)
		case 13:
			for range r.List("encoding_stats", thrift.Struct) {
				m.EncodingStats = append(m.EncodingStats, parseEncodingStat(r))
			}
		default:
			m.late(r)
		}
	}
	return m
}

// late reads the fields that came late: some writers had other things under these numbers before, which are
// passed over.
func (m *ColumnMeta) late(r *thrift.Reader) {
	switch f, t := r.Field(), r.Type(); {
	case f == 14 && t == thrift.I64:
		m.BloomFilterOffset = Ptr(r.I64("bloom_filter_offset"))
	case f == 15 && t == thrift.I32:
		m.BloomFilterLength = Ptr(r.I32("bloom_filter_length"))
	case f == 16 && t == thrift.Struct:
		m.SizeStatistics = parseSizes(r)
	case f < 14 || f > 16:
		other(r, ColumnMetaData)
	}
}

func parseEncodingStat(r *thrift.Reader) (s encodingStat) {
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			s.PageType = r.Enum("page_type", textOf(PageTypes))
		case 2:
			s.Encoding = Encoding(r.Enum("encoding", textOf(Encodings)))
		case 3:
			s.Count = r.I32("count")
		}
	}
	return s
}

func parseSizes(r *thrift.Reader) *sizeStatistics {
	s := &sizeStatistics{}
	for r.Struct("size_statistics"); r.Next(); {
		switch r.Field() {
		case 1:
			s.UnencodedByteArrayDataBytes = Ptr(r.I64("unencoded_byte_array_data_bytes"))
		case 2:
			for range r.List("repetition_level_histogram", thrift.I64) {
				s.RepetitionLevelHistogram = append(s.RepetitionLevelHistogram, r.I64(""))
			}
		case 3:
			for range r.List("definition_level_histogram", thrift.I64) {
				s.DefinitionLevelHistogram = append(s.DefinitionLevelHistogram, r.I64(""))
			}
		}
	}
	return s
}

// Missing names a field that the chunk's metadata must have, and has not; "" is none.
func (m *ColumnMeta) Missing() string {
	switch {
	case m.Type < 0:
		return "type"
	case m.Codec < 0:
		return "codec"
	case m.NumValues < 0:
		return "num_values"
	case m.TotalUncompressedSize < 0:
		return "total_uncompressed_size"
	case m.TotalCompressedSize < 0:
		return "total_compressed_size"
	case m.DataPageOffset < 0:
		return "data_page_offset"
	}
	return ""
}
