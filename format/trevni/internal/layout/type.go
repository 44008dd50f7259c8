package layout

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

// form is the stored form of a value.
type form uint8

const (
	FormNone   form = iota // no bytes
	FormBits               // a bit, least significant first
	FormVarint             // zig-zag varint
	FormFixed              // width bytes, little-endian
	FormString             // zig-zag varint length, then that many bytes
)

// Types lists for each type its name in Avro's and Impala's files and in the wiki, its stored form, and its Arrow type.
var Types = [...]struct {
	name, Wiki string
	Form       form
	Width      int // in bytes: of FormFixed the size, of FormVarint the maximum
	Arrow      arrow.DataType
}{
	Null:      {"null", "Null", FormNone, 0, arrow.Null},
	Boolean:   {"boolean", "Boolean", FormBits, 0, arrow.FixedWidthTypes.Boolean},
	Int:       {"int", "Int", FormVarint, 5, arrow.PrimitiveTypes.Int32},
	Long:      {"long", "Long", FormVarint, 10, arrow.PrimitiveTypes.Int64},
	Fixed32:   {"fixed32", "Fixed32", FormFixed, 4, arrow.PrimitiveTypes.Int32},
	Fixed64:   {"fixed64", "Fixed64", FormFixed, 8, arrow.PrimitiveTypes.Int64},
	Float:     {"float", "Float", FormFixed, 4, arrow.PrimitiveTypes.Float32},
	Double:    {"double", "Double", FormFixed, 8, arrow.PrimitiveTypes.Float64},
	String:    {"string", "String", FormString, 0, arrow.BinaryTypes.String},
	Bytes:     {"bytes", "Bytes", FormString, 0, arrow.BinaryTypes.Binary},
	Fixed8:    {"fixed8", "Fixed8", FormFixed, 1, arrow.PrimitiveTypes.Int8},
	Fixed16:   {"fixed16", "Fixed16", FormFixed, 2, arrow.PrimitiveTypes.Int16},
	Timestamp: {"timestamp", "Timestamp", FormFixed, 12, &arrow.FixedSizeBinaryType{ByteWidth: 12}},
}

// String returns the type's name in Avro's spelling.
func (t Type) String() string { return Types[t].name }

// TypeByName finds a type by its name, in upper or lower case, as Avro's reader does.
func TypeByName(name string) (Type, bool) {
	for t, info := range Types {
		if strings.EqualFold(info.name, name) {
			return Type(t), true
		}
	}
	return 0, false
}

// MinBytes is the minimum size in bytes of n values of t.
func (t Type) MinBytes(n int64) int64 {
	switch info := &Types[t]; info.Form {
	case FormNone:
		return 0
	case FormBits:
		return (n + 7) / 8
	case FormFixed:
		return n * int64(info.Width)
	}
	return n
}

// Value reads a value of type t and returns its stored bytes, without the length of a string.
func (c *Cursor) Value(name string, t Type) []byte {
	var out []byte
	switch info := &Types[t]; info.Form {
	case FormNone:
	case FormString:
		out = c.text(name)
	case FormVarint:
		start := c.Pos()
		rest := c.Rest()
		c.long(name)
		out = rest[:c.Pos()-start]
	default:
		n := max(info.Width, 1)
		if c.Need(name, int64(n)) {
			out = c.Bytes(name, n)
		}
	}
	return append([]byte(nil), out...)
}
