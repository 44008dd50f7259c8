package parquet

import (
	"stoa/format/parquet/internal/file"
	"stoa/format/parquet/internal/write"
)

// Words of WriteOptions and ReadOptions.
type (
	Compress    = write.Compress
	Encode      = write.Encode
	Version     = write.Version
	PageVersion = write.PageVersion
	Cipher      = write.Cipher
	SortColumn  = write.SortColumn // a column by its dotted path, Descending, NullsFirst
	ArrowSchema = file.ArrowSchema
)

const (
	CompressSnappy Compress = "snappy" // the default
	CompressNone   Compress = "none"
	CompressZstd   Compress = "zstd"
	CompressGzip   Compress = "gzip"
	CompressLZ4    Compress = "lz4"
	CompressBrotli Compress = "brotli"

	EncodeAuto  Encode = "auto"  // what is smaller; the default
	EncodePlain Encode = "plain" // or dictionaries

	Version10 Version = "1.0"
	Version24 Version = "2.4"
	Version26 Version = "2.6" // the default

	PageVersion1 PageVersion = "1" // the default
	PageVersion2 PageVersion = "2"

	CipherGCM    Cipher = "gcm"     // the default
	CipherGCMCTR Cipher = "gcm-ctr" // AES-CTR for the bodies of pages, which proves nothing

	ArrowSchemaUse    ArrowSchema = "use" // the default
	ArrowSchemaIgnore ArrowSchema = "ignore"
)

// WriteOptions are the options of writing, for stoa.CreateOptions.Typed. The zero value of each is the default. Columns
// are named by their dotted paths.
type WriteOptions struct {
	Compression      Compress     // of pages
	CompressionLevel int          // of zstd, gzip and brotli; 0: as the library likes
	RowGroupRows     int64        // rows of a row group at most; 0: 1048576
	RowGroupSize     int64        // stored bytes after which a row group is ended; 0: 256 MiB
	Memory           int64        // bytes of a row group kept in memory, more go to a temporary file; 0: 512 MiB
	PageSize         int          // bytes at which a data page is ended; 0: 1 MiB
	PageRows         int64        // entries after which a data page is ended; 0: 40000, of booleans 320000
	NoDictionary     bool         // dictionaries are not tried
	Encoding         Encode       // whether encodings other than dictionaries are tried
	Version          Version      // of the format
	PageVersion      PageVersion  // of data pages
	NoPageIndex      bool         // no column and offset indexes
	NoCRC            bool         // pages have no checksums
	Bloom            []string     // columns that get a Bloom filter
	KeyFile          string       // the keys with which it is encrypted; "": it is not
	Encryption       Cipher       // with KeyFile
	PlainFooter      bool         // with KeyFile: the footer, with the schema, is signed and not encrypted
	PlainColumns     []string     // with KeyFile: columns that are not encrypted
	NoAADPrefix      bool         // with KeyFile: its aad-prefix does not stand in the file
	SortingColumns   []SortColumn // by which rows are sorted: rows that are not are refused
	Metadata         []string     // KEY=VALUE: key/value metadata that are added, or replace others
	DropMetadata     []string     // keys of key/value metadata that are left out
}

// Strings are the options as --opt has them.
func (o WriteOptions) Strings() map[string]string {
	s := write.Options(o)
	return write.WriteTable.Strings(&s)
}

// Formats are those that have the options.
func (WriteOptions) Formats() []string { return []string{"parquet"} }

// ReadOptions are the options of reading, for stoa.OpenOptions.Typed. The zero value of each is the default.
type ReadOptions struct {
	ArrowSchema  ArrowSchema // whether the types are those of the Arrow schema that the file may carry
	KeyFile      string      // the keys of an encrypted file
	Schema       string      // recovery: a whole Parquet file by the same writer, which has the columns
	RowGroupRows int64       // recovery: rows of a row group, where pages do not tell
}

// Strings are the options as --source-opt has them.
func (o ReadOptions) Strings() map[string]string {
	s := file.ReadOptions(o)
	return file.ReadTable.Strings(&s)
}

// Formats are those that have the options.
func (ReadOptions) Formats() []string { return []string{"parquet"} }
