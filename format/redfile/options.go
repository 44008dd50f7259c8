package redfile

import (
	"stoa/format/redfile/internal/layout"
	"stoa/format/redfile/internal/write"
)

// Values of WriteOptions, spelled as in the command's --opt.
type (
	Form     = write.Form
	Compress = write.Compress
	Encode   = write.Encode
	Protocol = write.Protocol
	Split    = write.Split
)

const (
	FormE Form = "E" // readable by programs of 2013; the default
	FormA Form = "A" // as in the first document

	CompressSnappy Compress = "snappy" // the default
	CompressGzip   Compress = "gzip"
	CompressNone   Compress = "none"

	EncodePlain       Encode = "plain" // the default
	EncodeGroupVarint Encode = "group-varint"

	CompactProtocol Protocol = "compact" // the default
	BinaryProtocol  Protocol = "binary"

	OneFile       Split = "none"      // the default
	SplitGroups   Split = "row-group" // a directory with one data file per row group, and the metadata
	SplitMetadata Split = "metadata"  // one data file, and the metadata
)

// WriteOptions are the options for writing, for stoa.CreateOptions.Typed. The zero value is the default of each.
type WriteOptions struct {
	Generation    Form              // of the metadata
	Compression   Compress          // of pages
	Encoding      Encode            // of INT32 and INT64
	Encodings     map[string]Encode // of single columns by name, if different
	RowGroupSize  int64             // stored bytes of a row group; 0: 512 MiB
	RowGroupRows  int64             // maximum number of rows of a row group; 0: no limit
	PageSize      int               // raw bytes of a page; 0: 8 KiB
	Memory        int64             // bytes of a row group kept in memory; 0: 256 MiB, negative: none
	NoCRC         bool              // no checksums of pages and of the metadata
	NoIndex       bool              // no index pages
	Sync          int               // intermediate metadata after every N-th row group; 0: 16, negative: no sync blocks
	Protocol      Protocol          // Thrift's, of the metadata
	NoArrowSchema bool              // the Arrow schema is not stored in the metadata
	Split         Split             // whether the table is split into several files
}

// Strings returns the options as strings, as in --opt.
func (o WriteOptions) Strings() map[string]string {
	s := write.Options(o)
	return write.Table.Strings(&s)
}

// Formats returns the formats to which the options apply.
func (WriteOptions) Formats() []string { return []string{Format.Name} }

// ReadOptions are the options for reading, for stoa.OpenOptions.Typed. The zero value is the default of each.
type ReadOptions struct {
	UTF8    bool // BYTE_ARRAY columns without an annotation are text
	Outside bool // a file_path that leads out of the directory of the file is allowed
	NoIndex bool // index pages are not used
	// Schema names a file with the schema for a file of generation A or B or, in recovery, for a file that lost its
	// metadata: an intact RedFile, or JSON as printed by stoa schema -f json.
	Schema string
}

// Strings returns the options as strings, as in --source-opt.
func (o ReadOptions) Strings() map[string]string {
	s := layout.Options(o)
	return layout.ReadTable.Strings(&s)
}

// Formats returns the formats to which the options apply.
func (ReadOptions) Formats() []string { return []string{Format.Name} }
