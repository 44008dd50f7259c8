package block

import (
	"fmt"

	"stoa/fault"
)

// Magics and limits. The magic is at the beginning of the header and, again, near the end of the footer.
const (
	MagicV1  = "kuducfil"
	MagicV2  = "kuducfl2"
	MagicLen = 8

	MaxProtobuf     = 64 << 10 // largest message of header or footer in bytes
	MaxUncompressed = 16 << 20 // largest decompressed block in bytes
)

// Feature bits of the footer's incompatible_features: a reader must refuse a file with one that it does not know.
const (
	FeatureChecksums   = 1 << 0 // header, footer and every block carry a CRC-32C
	FeatureArrayBlocks = 1 << 1 // data blocks are array data blocks
	FeaturesKnown      = FeatureChecksums | FeatureArrayBlocks
)

// Type is Kudu's DataType; the numbers are those in the footer.
type Type int32

const (
	Uint8          Type = 0
	Int8           Type = 1
	Uint16         Type = 2
	Int16          Type = 3
	Uint32         Type = 4
	Int32          Type = 5
	Uint64         Type = 6
	Int64          Type = 7
	String         Type = 8
	Bool           Type = 9
	Float          Type = 10
	Double         Type = 11
	Binary         Type = 12
	UnixtimeMicros Type = 13
	Int128         Type = 14
	Decimal32      Type = 15
	Decimal64      Type = 16
	Decimal128     Type = 17
	Varchar        Type = 19
	Date           Type = 20
)

// Encoding is Kudu's EncodingType.
type Encoding int32

const (
	AutoEncoding Encoding = 0 // never in a file
	Plain        Encoding = 1
	Prefix       Encoding = 2
	GroupVarint  Encoding = 3
	RLE          Encoding = 4
	Dict         Encoding = 5
	BitShuffle   Encoding = 6
)

// Compression is Kudu's CompressionType.
type Compression int32

const (
	DefaultCompression Compression = 0
	NoCompression      Compression = 1
	Snappy             Compression = 2
	LZ4                Compression = 3
	Zlib               Compression = 4
)

// typeInfo is an entry of Types.
type typeInfo struct {
	Name      string
	width     int // bytes in a fixed-width block; 0: bool (bits) or variable-length
	Signed    bool
	Encodings []Encoding // allowed; the first is Kudu's default
}

// Types are the types of values that a CFile can have, with their widths and the encodings allowed for them.
// GroupVarint was UINT32's in format v1; no current Kudu reads it.
var Types = map[Type]typeInfo{
	Uint8:          {"uint8", 1, false, []Encoding{BitShuffle, Plain, RLE}},
	Int8:           {"int8", 1, true, []Encoding{BitShuffle, Plain, RLE}},
	Uint16:         {"uint16", 2, false, []Encoding{BitShuffle, Plain, RLE}},
	Int16:          {"int16", 2, true, []Encoding{BitShuffle, Plain, RLE}},
	Uint32:         {"uint32", 4, false, []Encoding{BitShuffle, Plain, RLE, GroupVarint}},
	Int32:          {"int32", 4, true, []Encoding{BitShuffle, Plain, RLE}},
	Uint64:         {"uint64", 8, false, []Encoding{BitShuffle, Plain, RLE}},
	Int64:          {"int64", 8, true, []Encoding{BitShuffle, Plain, RLE}},
	String:         {"string", 0, false, []Encoding{Dict, Plain, Prefix}},
	Binary:         {"binary", 0, false, []Encoding{Dict, Plain, Prefix}},
	Varchar:        {"varchar", 0, false, []Encoding{Dict, Plain, Prefix}},
	Bool:           {"bool", 0, false, []Encoding{RLE, Plain}},
	Float:          {"float", 4, true, []Encoding{BitShuffle, Plain}},
	Double:         {"double", 8, true, []Encoding{BitShuffle, Plain}},
	UnixtimeMicros: {"unixtime_micros", 8, true, []Encoding{BitShuffle, Plain, RLE}},
	Date:           {"date", 4, true, []Encoding{BitShuffle, Plain, RLE}},
	Int128:         {"int128", 16, true, []Encoding{BitShuffle, Plain}},
	Decimal32:      {"decimal32", 4, true, []Encoding{BitShuffle, Plain, RLE}},
	Decimal64:      {"decimal64", 8, true, []Encoding{BitShuffle, Plain, RLE}},
	Decimal128:     {"decimal128", 16, true, []Encoding{BitShuffle, Plain}},
}

func (t Type) String() string {
	if i, ok := Types[t]; ok {
		return i.Name
	}
	return fmt.Sprintf("type %d", int32(t))
}

// Width is the size in bytes of a value in a fixed-width block; 0 for bool and the variable-length types.
func (t Type) Width() int { return Types[t].width }

// IsBinary reports whether values have variable length.
func (t Type) IsBinary() bool { return t == String || t == Binary || t == Varchar }

func (e Encoding) String() string {
	switch e {
	case AutoEncoding:
		return "auto"
	case Plain:
		return "plain"
	case Prefix:
		return "prefix"
	case GroupVarint:
		return "group-varint"
	case RLE:
		return "rle"
	case Dict:
		return "dict"
	case BitShuffle:
		return "bitshuffle"
	}
	return fmt.Sprintf("encoding %d", int32(e))
}

func (c Compression) String() string {
	switch c {
	case DefaultCompression:
		return "default"
	case NoCompression:
		return "none"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zlib:
		return "zlib"
	}
	return fmt.Sprintf("compression %d", int32(c))
}

// BlockPtr is a BlockPointerPB: a block's offset from the beginning of the CFile (which may be part of a container),
// and its size in bytes including the checksum.
type BlockPtr struct {
	Offset int64
	Size   int64
}

// MetaPair is a FileMetadataPairPB.
type MetaPair struct {
	Key   string
	Value []byte
}

// Header is the CFileHeaderPB.
type Header struct {
	Version      int // 1 or 2, by the magic
	Major, Minor int // fields of v1, which Kudu ignores; -1: absent
	Meta         []MetaPair
}

// Footer is the CFileFooterPB.
type Footer struct {
	Version      int // by the footer's own magic
	Type         Type
	Encoding     Encoding
	NumValues    int64
	PosIdx       *BlockPtr // root of the positional index; nil = none
	ValIdx       *BlockPtr // root of the value index; nil = none
	Compression  Compression
	Meta         []MetaPair
	Nullable     bool
	Dict         *BlockPtr
	Incompatible uint32 // feature bits
	Compatible   uint32
}

// Checksums reports whether header, footer and blocks carry checksums.
func (f *Footer) Checksums() bool { return f.Incompatible&FeatureChecksums != 0 }

// Array reports whether data blocks are array data blocks.
func (f *Footer) Array() bool { return f.Incompatible&FeatureArrayBlocks != 0 }

// Get is the value of the first metadata pair with the key.
func (f *Footer) Get(key string) ([]byte, bool) {
	for _, m := range f.Meta {
		if m.Key == key {
			return m.Value, true
		}
	}
	return nil, false
}

// Allowed returns an error, Unsupported, if t is not known or encoding e is not defined for it.
func Allowed(t Type, e Encoding) error {
	info, ok := Types[t]
	if !ok {
		return fault.Unsupportedf(fault.Span{}, "data_type", "data type %d is not known", int32(t))
	}
	for _, x := range info.Encodings {
		if x == e {
			return nil
		}
	}
	return fault.Unsupportedf(fault.Span{}, "encoding", "encoding %s is not defined for type %s", e, t)
}

// Digits is the largest precision of a decimal type, 0 of other types.
func (t Type) Digits() int {
	switch t {
	case Decimal32:
		return 9
	case Decimal64:
		return 18
	case Decimal128:
		return 38
	}
	return 0
}

// HasDigits reports whether a column of type t can have decimals of the given precision and scale; 0 and 0 mean that
// none are stated.
func (t Type) HasDigits(precision, scale int) bool {
	return precision >= 0 && precision <= t.Digits() && scale >= 0 && (t.Digits() > 0 || scale == 0) &&
		(precision == 0 || scale <= precision)
}

// TypeByName is the type whose String is name.
func TypeByName(name string) (Type, bool) {
	for t, info := range Types {
		if info.Name == name {
			return t, true
		}
	}
	return -1, false
}

// TypeOption is TypeByName for options; the error is Invalid.
func TypeOption(name string) (Type, error) {
	t, ok := TypeByName(name)
	if !ok {
		return t, fault.Invalidf("cfile: there is no type %q", name)
	}
	return t, nil
}

// EncodingByName is the encoding whose String is name; AutoEncoding if there is none.
func EncodingByName(name string) Encoding {
	for _, e := range []Encoding{Plain, Prefix, GroupVarint, RLE, Dict, BitShuffle} {
		if e.String() == name {
			return e
		}
	}
	return AutoEncoding
}

// CompressionByName is the compression whose String is name; DefaultCompression if there is none.
func CompressionByName(name string) Compression {
	for _, c := range []Compression{NoCompression, Snappy, LZ4, Zlib} {
		if c.String() == name {
			return c
		}
	}
	return DefaultCompression
}
