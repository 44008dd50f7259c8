package cfile

import (
	"stoa/format/cfile/internal/block"
	"stoa/format/cfile/internal/columnfile"
	"stoa/format/cfile/internal/write"
)

// Types of the format, and readers and writers of the other files that Kudu stores as CFiles. They are documented where
// they are declared, in the internal packages.
type (
	AdhocIndexWriter = write.AdhocIndexWriter
	Bloom            = columnfile.Bloom
	BloomOptions     = write.BloomOptions
	BloomWriter      = write.BloomWriter
	ChangeList       = write.ChangeList
	Code             = block.Code
	Compression      = block.Compression
	Delta            = columnfile.Delta
	DeltaBlock       = columnfile.DeltaBlock
	DeltaChange      = columnfile.DeltaChange
	DeltaDecoder     = columnfile.DeltaDecoder
	DeltaFile        = columnfile.DeltaFile
	DeltaOp          = columnfile.DeltaOp
	DeltaStats       = columnfile.DeltaStats
	DeltaWriter      = write.DeltaWriter
	Deltas           = columnfile.Deltas
	Encoding         = block.Encoding
	Field            = write.Field
	Footer           = block.Footer
	Header           = block.Header
	Kind             = block.Kind
	MetaPair         = block.MetaPair
	Summary          = write.Summary
	Type             = block.Type
	Writer           = write.Writer
	WriterOptions    = write.WriterOptions
)

// Types, encodings, codecs and kinds, as Kudu numbers them; names of field metadata.
const (
	AutoEncoding       = block.AutoEncoding
	Binary             = block.Binary
	BitShuffle         = block.BitShuffle
	Bool               = block.Bool
	Date               = block.Date
	Decimal128         = block.Decimal128
	Decimal32          = block.Decimal32
	Decimal64          = block.Decimal64
	DefaultCompression = block.DefaultCompression
	DeltaDelete        = columnfile.DeltaDelete
	DeltaReinsert      = columnfile.DeltaReinsert
	DeltaUpdate        = columnfile.DeltaUpdate
	Dict               = block.Dict
	Double             = block.Double
	Float              = block.Float
	GroupVarint        = block.GroupVarint
	Int128             = block.Int128
	Int16              = block.Int16
	Int32              = block.Int32
	Int64              = block.Int64
	Int8               = block.Int8
	KindBloom          = block.KindBloom
	KindColumn         = block.KindColumn
	KindDelta          = block.KindDelta
	KindIndex          = block.KindIndex
	LZ4                = block.LZ4
	MetaBlockSize      = write.MetaBlockSize
	MetaCompression    = block.MetaCompression
	MetaEncoding       = block.MetaEncoding
	MetaLength         = block.MetaLength
	MetaType           = block.MetaType
	NoCompression      = block.NoCompression
	Plain              = block.Plain
	Prefix             = block.Prefix
	RLE                = block.RLE
	Snappy             = block.Snappy
	String             = block.String
	Uint16             = block.Uint16
	Uint32             = block.Uint32
	Uint64             = block.Uint64
	Uint8              = block.Uint8
	UnixtimeMicros     = block.UnixtimeMicros
	Varchar            = block.Varchar
	Zlib               = block.Zlib
)

// Functions that read and write them.
var (
	AppendKey           = block.AppendKey
	CompressionByName   = block.CompressionByName
	DecodeKey           = block.DecodeKey
	EncodingByName      = block.EncodingByName
	NewAdhocIndexWriter = write.NewAdhocIndexWriter
	NewBloomWriter      = write.NewBloomWriter
	NewDeltaWriter      = write.NewDeltaWriter
	NewWriter           = write.NewWriter
	OpenBloom           = columnfile.OpenBloom
	OpenBloomAt         = columnfile.OpenBloomAt
	OpenDelta           = columnfile.OpenDelta
	OpenDeltaAt         = columnfile.OpenDeltaAt
	ParseCells          = columnfile.ParseCells
	ParseChanges        = columnfile.ParseChanges
	ParseDeltaStats     = columnfile.ParseDeltaStats
	TypeByName          = block.TypeByName
)

// Codes are the codes of findings in CFiles.
var Codes = block.Codes
