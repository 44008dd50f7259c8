package trevni

import (
	"stoa/format/trevni/internal/table"
	"stoa/format/trevni/internal/write"
)

// Values of WriteOptions, spelled as the command's --opt has them.
type (
	Codec    = write.Codec
	Checksum = write.Checksum
)

const (
	CodecNull    Codec = "null" // the default
	CodecDeflate Codec = "deflate"
	CodecSnappy  Codec = "snappy"
	CodecBzip2   Codec = "bzip2"

	ChecksumCRC32 Checksum = "crc32" // the default
	ChecksumNull  Checksum = "null"
)

// WriteOptions are the options for writing the wiki's dialect, for stoa.CreateOptions.Typed. The zero value of each is
// the default.
type WriteOptions struct {
	Codec         Codec    // compression of blocks
	Checksum      Checksum // of blocks
	BlockSize     int      // raw bytes after which a block ends at the next row; 0: 64 KiB
	FileSize      int64    // stored bytes after which a new file begins, in a directory; 0: 1 GiB
	FirstValues   []string // columns whose descriptors have first values; "all" alone: all of them
	NoArrowSchema bool     // the Arrow schema is not stored in the file's metadata
}

// AvroWriteOptions are the options for writing Avro's dialect.
type AvroWriteOptions struct {
	WriteOptions
	Version int // of the format: 2 codes runs of equal array lengths, Avro before 1.7.5 reads only 1; 0: 2
}

// Strings are the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	s := write.Options(o)
	return write.Table.Strings(&s)
}

// Strings are the options as strings, as in --opt.
func (o AvroWriteOptions) Strings() map[string]string {
	return write.AvroTable.Strings(&write.AvroOptions{Options: write.Options(o.WriteOptions), Version: o.Version})
}

// Formats are the formats that the options are for.
func (WriteOptions) Formats() []string { return []string{Format.Name} }

// Formats are the formats that the options are for.
func (AvroWriteOptions) Formats() []string { return []string{AvroFormat.Name} }

// ReadOptions are the options for reading, in all dialects, for stoa.OpenOptions.Typed. The zero value of each is the
// default.
type ReadOptions struct {
	Sorted []string // columns that are known to be sorted: those with first values are searched by them
	// Schema is the name of a file. In the wiki's and Impala's dialects the columns are those of the schema in it,
	// which is as stoa schema -f json prints it.
	Schema string
}

// Strings are the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string {
	s := table.ReadOptions(o)
	return table.ReadTable.Strings(&s)
}

// Formats are the formats that the options are for.
func (ReadOptions) Formats() []string { return []string{Format.Name, AvroFormat.Name} }
