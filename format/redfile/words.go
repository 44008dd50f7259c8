package redfile

import "stoa/format/redfile/internal/layout"

// Terms of the format, defined and documented in the packages below internal.
type (
	Compression = layout.Compression
	Encoding    = layout.Encoding
	Generation  = layout.Generation
	Physical    = layout.Physical
)

// Codes are all kinds of findings of Verify and Recover, by name.
var Codes = layout.Codes

// The generations of the metadata.
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
