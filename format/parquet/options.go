package parquet

import (
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/write"
)

// The types of the options in WriteOptions and ReadOptions that accept one of a few values.
type (
	Compress    = write.Compress
	Encode      = write.Encode
	Version     = write.Version
	PageVersion = write.PageVersion
	Cipher      = write.Cipher
	SortColumn  = write.SortColumn // a column by its dotted path, Descending, NullsFirst
	ArrowSchema = file.ArrowSchema
	Int96       = file.Int96

	EmptyStructs = write.EmptyStructs
)

const (
	CompressSnappy Compress = "snappy" // the default
	CompressNone   Compress = "none"
	CompressZstd   Compress = "zstd"
	CompressGzip   Compress = "gzip"
	CompressLZ4    Compress = "lz4"
	CompressBrotli Compress = "brotli"

	EncodeAuto  Encode = "auto"  // whatever is smaller; the default
	EncodePlain Encode = "plain" // PLAIN, or dictionaries

	Version10 Version = "1.0"
	Version24 Version = "2.4"
	Version26 Version = "2.6" // the default

	PageVersion1 PageVersion = "1" // the default
	PageVersion2 PageVersion = "2"

	CipherGCM    Cipher = "gcm"     // the default
	CipherGCMCTR Cipher = "gcm-ctr" // AES-CTR for page bodies, which does not authenticate them

	EmptyStructsKeep   EmptyStructs = "keep"   // written with a field that other readers see; the default
	EmptyStructsRefuse EmptyStructs = "refuse" // refused with an error

	ArrowSchemaUse    ArrowSchema = "use" // the default
	ArrowSchemaIgnore ArrowSchema = "ignore"

	Int96Nanos  Int96 = "ns" // the default: the years 1677 to 2262
	Int96Micros Int96 = "us" // finer digits are cut off
)

// WriteOptions are the options of writing, for stoa.CreateOptions.Typed. The zero value of each field is its default.
// Columns are named by their dotted paths.
type WriteOptions struct {
	Compression      Compress     // of pages
	CompressionLevel int          // of zstd, gzip and brotli; 0: the codec's default
	RowGroupRows     int64        // largest number of rows in a row group; 0: 1048576
	RowGroupSize     int64        // compressed bytes after which a row group ends; 0: 256 MiB
	Memory           int64        // bytes of a row group kept in memory, the rest goes to a temporary file; 0: 512 MiB
	PageSize         int          // bytes after which a data page ends; 0: 1 MiB
	PageRows         int64        // entries after which a data page ends; 0: 40000, or 320000 for booleans
	NoDictionary     bool         // dictionaries are not tried
	Encoding         Encode       // whether encodings other than dictionaries are tried
	Version          Version      // of the format
	PageVersion      PageVersion  // of data pages
	NoPageIndex      bool         // no column and offset indexes
	NoCRC            bool         // pages have no checksums
	Bloom            []string     // columns that get a Bloom filter
	KeyFile          string       // the keys to encrypt with; "": no encryption
	Encryption       Cipher       // with KeyFile
	PlainFooter      bool         // with KeyFile: the footer, with the schema, is signed and not encrypted
	PlainColumns     []string     // with KeyFile: columns that are not encrypted
	NoAADPrefix      bool         // with KeyFile: its aad-prefix is not stored in the file
	SortingColumns   []SortColumn // the order that rows must come in; rows that break it are refused
	Metadata         []string     // KEY=VALUE: key/value metadata to add or replace
	DropMetadata     []string     // keys of key/value metadata to leave out
	EmptyStructs     EmptyStructs // whether structs without fields are written
}

// Strings returns the options in the form that --opt accepts.
func (o WriteOptions) Strings() map[string]string {
	s := write.Options(o)
	return write.WriteTable.Strings(&s)
}

// Formats returns the names of the formats that accept these options.
func (WriteOptions) Formats() []string { return []string{"parquet"} }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each field is its default.
type ReadOptions struct {
	ArrowSchema  ArrowSchema // whether types come from the Arrow schema that the file may carry
	Int96        Int96       // the unit of the timestamps as which INT96 is read
	KeyFile      string      // the keys of an encrypted file
	Schema       string      // recovery: an intact Parquet file of the same columns by the same writer
	RowGroupRows int64       // recovery: rows in a row group, if the pages do not record them
}

// Strings returns the options in the form that --source-opt accepts.
func (o ReadOptions) Strings() map[string]string {
	s := file.ReadOptions(o)
	return file.ReadTable.Strings(&s)
}

// Formats returns the names of the formats that accept these options.
func (ReadOptions) Formats() []string { return []string{"parquet"} }
