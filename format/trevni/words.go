package trevni

import (
	"stoa/format/trevni/internal/layout"
	"stoa/format/trevni/internal/schema"
)

// Types of the header; see internal/layout.
type (
	Column  = layout.Column
	Dialect = layout.Dialect
	Header  = layout.Header
	Pair    = layout.Pair
	Type    = layout.Type
)

// Codes lists the codes of the findings of Verify and Recover, in order, with their severities and help.
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

// Keys of field metadata, see package internal/schema.
const (
	MetaType    = schema.MetaType
	MetaValues  = schema.MetaValues
	MetaLogical = schema.MetaLogical
)
