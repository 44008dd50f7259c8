package redfile

import "stoa/format/redfile/internal/layout"

// Types of the metadata, as Compression and Encoding of a column chunk; see internal/layout.
type (
	Compression = layout.Compression
	Encoding    = layout.Encoding
	Generation  = layout.Generation
	Physical    = layout.Physical
)

// Codes lists the codes of the findings of Verify and Recover, in order, with their severities and help.
var Codes = layout.Codes

// The generations of the metadata; see the package comment.
const (
	GenA = layout.GenA
	GenB = layout.GenB
	GenC = layout.GenC
	GenD = layout.GenD
	GenE = layout.GenE
)

// The types of stored values.
const (
	Boolean   = layout.Boolean
	Int32     = layout.Int32
	Int64     = layout.Int64
	Int96     = layout.Int96
	Float     = layout.Float
	Double    = layout.Double
	ByteArray = layout.ByteArray
)

// Encodings of values, and compressions of pages.
const (
	Plain        = layout.Plain
	GroupVarInt  = layout.GroupVarInt
	Uncompressed = layout.Uncompressed
	Snappy       = layout.Snappy
	Gzip         = layout.Gzip
	LZO          = layout.LZO
)
