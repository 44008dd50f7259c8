package meta

import (
	"fmt"
	"slices"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/thrift"
	"stoa/wire"
)

// FileMeta is the footer (parquet.thrift, FileMetaData). It is immutable once read.
type FileMeta struct {
	Version   int32
	NumRows   int64
	Schema    *SchemaTree
	RowGroups []*rowGroupMeta
	KeyValues []KeyValue
	CreatedBy string
	Orders    []int      // the union field of each column's ColumnOrder; nil if not stated
	Algorithm *Algorithm // nil if nothing is encrypted or signed, or if the whole footer is encrypted
	Signer    []byte     // metadata of the key that signed the footer
	Length    int        // length of the Thrift in bytes
	Elements  []SchemaElem
}

// GroupRows returns the total number of rows in all row groups.
func (m *FileMeta) GroupRows() (n int64) {
	for _, g := range m.RowGroups {
		n += g.NumRows
	}
	return n
}

// Coded reports whether a chunk of column k has pages of codes, as far as the metadata say.
func (m *FileMeta) Coded(k int) bool {
	coded := func(e Encoding) bool { return IsDictionary(int32(e)) }
	return slices.ContainsFunc(m.RowGroups, func(g *rowGroupMeta) bool {
		return k < len(g.Columns) && g.Columns[k].MetaData != nil &&
			slices.ContainsFunc(g.Columns[k].MetaData.Encodings, coded)
	})
}

// TypeOrder is TypeDefinedOrder in ColumnOrder.
const TypeOrder = 1

// KeyValue is one pair of key/value metadata.
type KeyValue struct {
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

// ChunkMeta is ColumnChunk.
type ChunkMeta struct {
	FilePath          string
	FileOffset        int64
	MetaData          *ColumnMeta
	OffsetIndexOffset *int64
	OffsetIndexLength *int32
	ColumnIndexOffset *int64
	ColumnIndexLength *int32
	Encrypted         bool         // and its key was not supplied
	EncryptedSpan     fault.Span   // span of the pages of an encrypted chunk, if the footer states it in plaintext
	Crypto            *ChunkCrypto // nil if not encrypted
	EncryptedMeta     []byte       // the encrypted metadata; nil if it is plaintext
	Cipher            *Cipher      // decrypts the pages; nil if they are plaintext or the key is unknown
}

// ColumnMeta is ColumnMetaData. Missing required numbers are -1.
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
	Statistics            *Stats
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

// Physical, Encoding and Compression are the enums Type, Encoding and CompressionCodec of parquet.thrift.
type (
	Physical    int32
	Encoding    int32
	Compression int32
)

func (p Physical) String() string    { return EnumName(physicalTypes, int32(p)) }
func (e Encoding) String() string    { return EnumName(Encodings, int32(e)) }
func (c Compression) String() string { return EnumName(codecNames, int32(c)) }

// enumText returns a function that names the values of an enum, for traces.
func enumText(names []string) func(int32) string {
	return func(v int32) string { return EnumName(names, v) }
}

// Ptr returns a pointer to v.
func Ptr[T any](v T) *T { return &v }

// ParseFileMeta reads a footer. It also walks fields that it does not keep, so that the footer is known to be intact.
// It stops as soon as the schema must have more fields than limits allow, before the schema is built.
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
				m.KeyValues = append(m.KeyValues, parseKeyValue(r))
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
			walkOther(r, fileMetaData)
		}
	}
	return m
}

// tooMany returns an error message if a schema of at least the given number of elements must have more fields than
// allowed, and "" otherwise. Apart from the root, at least half of the elements are fields: a list or map consists of
// two groups.
func tooMany(limits format.Limits, elements int) string {
	if n, limit := int64(elements-1), limits.WithDefaults().Fields; n > 2*limit {
		return fmt.Sprintf("%d elements or more, and at most %d fields are read (field limit)", n, limit)
	}
	return ""
}

// walkOther walks a field that is not kept. A field that s does not know goes to the tracer as unknown.
func walkOther(r *thrift.Reader, s structure) {
	if f, ok := s[r.Field()]; ok {
		walkValue(r, f)
	}
}

// parseUnion reads a union of which only the kind matters. It returns the number of the field that is set, 0 if none
// is.
func parseUnion(r *thrift.Reader, name string, s structure) (kind int) {
	for r.Struct(name); r.Next(); {
		kind = r.Field()
		walkOther(r, s)
	}
	return kind
}

func parseKeyValue(r *thrift.Reader) (p KeyValue) {
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
			c.EncryptedMeta = r.Bytes("encrypted_column_metadata")
		default:
			walkOther(r, ColumnChunk)
		}
	}
	return c
}

// ParseColumnMeta reads a ColumnMetaData; errors are left in the reader.
func ParseColumnMeta(r *thrift.Reader) *ColumnMeta {
	m := &ColumnMeta{Type: -1, Codec: -1, NumValues: -1, TotalUncompressedSize: -1, TotalCompressedSize: -1,
		DataPageOffset: -1}
	for r.Struct("meta_data"); r.Next(); {
		switch r.Field() {
		case 1:
			m.Type = Physical(r.Enum("type", enumText(physicalTypes)))
		case 2:
			for range r.List("encodings", thrift.I32) {
				m.Encodings = append(m.Encodings, Encoding(r.Enum("", enumText(Encodings))))
			}
		case 3:
			for range r.List("path_in_schema", thrift.Bytes) {
				m.PathInSchema = append(m.PathInSchema, r.String(""))
			}
		case 4:
			m.Codec = Compression(r.Enum("codec", enumText(codecNames)))
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
			m.trailingFields(r)
		}
	}
	return m
}

// trailingFields reads the fields that were added late. Some writers had used these field numbers for other things;
// such fields are skipped.
func (m *ColumnMeta) trailingFields(r *thrift.Reader) {
	switch f, t := r.Field(), r.Type(); {
	case f == 14 && t == thrift.I64:
		m.BloomFilterOffset = Ptr(r.I64("bloom_filter_offset"))
	case f == 15 && t == thrift.I32:
		m.BloomFilterLength = Ptr(r.I32("bloom_filter_length"))
	case f == 16 && t == thrift.Struct:
		m.SizeStatistics = parseSizes(r)
	case f < 14 || f > 16:
		walkOther(r, ColumnMetaData)
	}
}

func parseEncodingStat(r *thrift.Reader) (s encodingStat) {
	for r.Struct(""); r.Next(); {
		switch r.Field() {
		case 1:
			s.PageType = r.Enum("page_type", enumText(PageTypes))
		case 2:
			s.Encoding = Encoding(r.Enum("encoding", enumText(Encodings)))
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

// Missing returns the name of a required field that is missing or negative; "" if there is none.
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
