package cfile

import (
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
)

// Values of WriteOptions and ReadOptions.
type (
	Encode      = write.Encode
	Compress    = write.Compress
	Coerce      = write.Coerce
	Layout      = write.Layout
	NullStructs = write.NullStructs
	FileKind    = columnfile.Kind
)

const (
	EncodePlain       Encode = "plain"
	EncodeBitShuffle  Encode = "bitshuffle"
	EncodeRLE         Encode = "rle"
	EncodePrefix      Encode = "prefix"
	EncodeDict        Encode = "dict"
	EncodeGroupVarint Encode = "group-varint"

	CompressNone   Compress = "none" // the default
	CompressLZ4    Compress = "lz4"
	CompressSnappy Compress = "snappy"
	CompressZlib   Compress = "zlib"

	CoerceRefuse Coerce = "refuse" // the default
	CoerceMicros Coerce = "us"     // the nearest microsecond
	CoerceFloor  Coerce = "floor"  // the microsecond before

	LayoutAuto Layout = "auto" // one column is a file, several are a directory; the default
	LayoutDir  Layout = "dir"

	NullStructsKeep    NullStructs = "keep"    // structs stay structs; the default
	NullStructsFlatten NullStructs = "flatten" // their fields are columns, null where the struct is
	NullStructsRefuse  NullStructs = "refuse"  // likewise, and a null struct is an error

	FileColumn FileKind = "column"
	FileBloom  FileKind = "bloom"
	FileDelta  FileKind = "delta"
	FileIndex  FileKind = "index"
)

// WriteOptions are the options for writing, for stoa.CreateOptions.Typed. The zero value of each is the default.
type WriteOptions struct {
	All           ColumnOptions            // of all columns
	Columns       map[string]ColumnOptions // of single columns, by dotted path; these take precedence
	PlainMetadata bool                     // leave out the metadata that keeps names and Arrow types
	Layout        Layout                   // a file or a directory
	NullStructs   NullStructs              // how structs are written
}

// ColumnOptions are the options for writing a column. The zero value of each is the default.
type ColumnOptions struct {
	Version         int      // of the file format; 0: 2
	Checksums       *bool    // blocks carry checksums, which version 1 does not have; nil: true
	Encoding        Encode   // of values; "": by type, as in Kudu
	Compression     Compress // of blocks
	BlockSize       int      // bytes of data blocks and of a dictionary; 0: 256 KiB
	IndexBlockSize  int      // bytes of index blocks; 0: 32 KiB
	RestartInterval int      // values from one restart point of prefix encoding to the next; 0: 16
	ValueIndex      *bool    // an index by value: the values must be sorted, and none null; nil: false
	PositionalIndex *bool    // an index by row number; nil: true
	Coerce          Coerce   // handling of timestamps with fractions of a microsecond
}

// Strings are the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	s := write.Options{All: write.ColumnOptions(o.All), PlainMetadata: o.PlainMetadata, Layout: o.Layout,
		NullStructs: o.NullStructs, Columns: map[string]write.ColumnOptions{}}
	for name, c := range o.Columns {
		s.Columns[name] = write.ColumnOptions(c)
	}
	return write.Table.Strings(&s)
}

// Formats are the formats that the options are for.
func (WriteOptions) Formats() []string { return []string{"cfile"} }

// ReadOptions are the options for reading, for stoa.OpenOptions.Typed. The zero value of each is the default. Those
// from Schema on are for recovery without a footer.
type ReadOptions struct {
	Name        string   // of the column, in place of the file's
	Precision   int      // of a decimal column, if the file does not record it
	Scale       *int     // likewise
	Kind        FileKind // kind of file, if the footer does not show it
	Key         []string // types of the key's columns, into which the keys of an ad-hoc index are decoded
	Schema      string   // file printed by stoa schema -f json; it states the options below for the column named Name
	Type        string   // of the values, by Kudu's name
	Encoding    Encode   // "": the one under which blocks are found
	Compression Compress // likewise
	Nullable    *bool    // blocks have null bitmaps; nil: the one under which blocks are found
	NoChecksums bool     // blocks have no checksums
}

// Strings are the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string {
	s := columnfile.Options(o)
	return columnfile.ReadTable.Strings(&s)
}

// Formats are the formats that the options are for.
func (ReadOptions) Formats() []string { return []string{"cfile"} }
