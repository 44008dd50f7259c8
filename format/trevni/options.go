package trevni

import (
	"stoa/format/trevni/internal/table"
	"stoa/format/trevni/internal/write"
)

// Values of WriteOptions, spelled as in the command's --opt.
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
	Version int // of the format: 2 encodes runs of equal array lengths, Avro before 1.7.5 reads only 1; 0: 2
}

// Strings returns the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	s := write.Options(o)
	return write.Table.Strings(&s)
}

// Strings returns the options as strings, as in --opt.
func (o AvroWriteOptions) Strings() map[string]string {
	return write.AvroTable.Strings(&write.AvroOptions{Options: write.Options(o.WriteOptions), Version: o.Version})
}

// Formats returns the names of the formats that the options are for.
func (WriteOptions) Formats() []string { return []string{Format.Name} }

// Formats returns the names of the formats that the options are for.
func (AvroWriteOptions) Formats() []string { return []string{AvroFormat.Name} }

// ReadOptions are the options for reading, in all dialects, for stoa.OpenOptions.Typed. The zero value of each is the
// default.
type ReadOptions struct {
	Sorted []string // columns known to be sorted: those with first values are searched by them
	// Schema is the name of a file with a schema as printed by stoa schema -f json. It gives the columns in the wiki's
	// and Impala's dialects.
	Schema string
}

// Strings returns the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string {
	s := table.ReadOptions(o)
	return table.ReadTable.Strings(&s)
}

// Formats returns the names of the formats that the options are for.
func (ReadOptions) Formats() []string { return []string{Format.Name, AvroFormat.Name} }
