package trevni

import (
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
)

// Type is the type of a column's values.
type Type uint8

// The types. Boolean is Avro's and Impala's; Fixed8, Fixed16 and Timestamp are Impala's alone.
const (
	Null Type = iota
	Boolean
	Int
	Long
	Fixed32
	Fixed64
	Float
	Double
	String
	Bytes
	Fixed8
	Fixed16
	Timestamp
)

// form is how a value is stored.
type form uint8

const (
	formNone   form = iota // no bytes
	formBits               // a bit, least significant first
	formVarint             // zig-zag varint
	formFixed              // width bytes, little-endian
	formString             // zig-zag varint length, then so many bytes
)

// types has for each type its name in Avro's and Impala's files, in the wiki's words, how it is stored, and how
// it is shown.
var types = [...]struct {
	name, wiki string
	form       form
	width      int // of formFixed; the most bytes of a formVarint
	arrow      arrow.DataType
}{
	Null:      {"null", "Null", formNone, 0, arrow.Null},
	Boolean:   {"boolean", "Boolean", formBits, 0, arrow.FixedWidthTypes.Boolean},
	Int:       {"int", "Int", formVarint, 5, arrow.PrimitiveTypes.Int32},
	Long:      {"long", "Long", formVarint, 10, arrow.PrimitiveTypes.Int64},
	Fixed32:   {"fixed32", "Fixed32", formFixed, 4, arrow.PrimitiveTypes.Int32},
	Fixed64:   {"fixed64", "Fixed64", formFixed, 8, arrow.PrimitiveTypes.Int64},
	Float:     {"float", "Float", formFixed, 4, arrow.PrimitiveTypes.Float32},
	Double:    {"double", "Double", formFixed, 8, arrow.PrimitiveTypes.Float64},
	String:    {"string", "String", formString, 0, arrow.BinaryTypes.String},
	Bytes:     {"bytes", "Bytes", formString, 0, arrow.BinaryTypes.Binary},
	Fixed8:    {"fixed8", "Fixed8", formFixed, 1, arrow.PrimitiveTypes.Int8},
	Fixed16:   {"fixed16", "Fixed16", formFixed, 2, arrow.PrimitiveTypes.Int16},
	Timestamp: {"timestamp", "Timestamp", formFixed, 12, &arrow.FixedSizeBinaryType{ByteWidth: 12}},
}

// String is the type's name as Avro's files have it.
func (t Type) String() string { return types[t].name }

// typeByName finds a type. Avro's reader takes any case, and so do we.
func typeByName(name string) (Type, bool) {
	for t, info := range types {
		if strings.EqualFold(info.name, name) {
			return Type(t), true
		}
	}
	return 0, false
}

// least is the fewest bytes of n values of t; the lengths of strings take one each.
func (t Type) least(n int64) int64 {
	switch info := &types[t]; info.form {
	case formNone:
		return 0
	case formBits:
		return (n + 7) / 8
	case formFixed:
		return n * int64(info.width)
	}
	return n
}

// value reads one value of type t and gives its bytes as stored, without the length of a string.
func (c *cursor) value(name string, t Type) []byte {
	var out []byte
	switch info := &types[t]; info.form {
	case formNone:
	case formString:
		out = c.text(name)
	case formVarint:
		start := c.Pos()
		rest := c.Rest()
		c.long(name)
		out = rest[:c.Pos()-start]
	default:
		n := max(info.width, 1)
		if c.need(name, int64(n)) {
			out = c.Bytes(name, n)
		}
	}
	return append([]byte(nil), out...)
}
