package trevni

import (
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
)

// Terms of the format, defined and documented in the packages below internal.
type (
	Column  = layout.Column
	Dialect = layout.Dialect
	Header  = layout.Header
	Pair    = layout.Pair
	Type    = layout.Type
)

// Codes are all kinds of findings of Verify and Recover, by name.
var Codes = layout.Codes

// The dialects.
const (
	Avro   = layout.Avro
	Impala = layout.Impala
	Wiki   = layout.Wiki
)

// The types of values.
const (
	Null      = layout.Null
	Boolean   = layout.Boolean
	Int       = layout.Int
	Long      = layout.Long
	Fixed32   = layout.Fixed32
	Fixed64   = layout.Fixed64
	Float     = layout.Float
	Double    = layout.Double
	String    = layout.String
	Bytes     = layout.Bytes
	Fixed8    = layout.Fixed8
	Fixed16   = layout.Fixed16
	Timestamp = layout.Timestamp
)

// Names of field metadata.
const (
	MetaType    = schema.MetaType
	MetaValues  = schema.MetaValues
	MetaLogical = schema.MetaLogical
)
