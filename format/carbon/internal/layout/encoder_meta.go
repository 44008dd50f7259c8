package layout

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"stoa/region"
	"stoa/wire"
)

// StoreType is a type as numbered in ColumnPageEncoderMeta (DataType.java), which differs from the numbering in
// schema.thrift.
type StoreType uint8

const (
	storeString    StoreType = 0
	storeDate      StoreType = 1
	StoreTimestamp StoreType = 2
	StoreBoolean   StoreType = 3
	StoreShort     StoreType = 4
	StoreInt       StoreType = 5
	StoreFloat     StoreType = 6
	StoreLong      StoreType = 7
	StoreDouble    StoreType = 8
	storeNull      StoreType = 9
	StoreDecimal   StoreType = 10
	storeArray     StoreType = 11
	storeStruct    StoreType = 12
	storeMap       StoreType = 13
	StoreByte      StoreType = 14
	StoreByteArray StoreType = 15
	StoreShortInt  StoreType = 16
	storeLegacy    StoreType = 17
	storeVarchar   StoreType = 18
	StoreBinary    StoreType = 19
)

var storeNames = [...]string{"STRING", "DATE", "TIMESTAMP", "BOOLEAN", "SHORT", "INT", "FLOAT", "LONG", "DOUBLE",
	"NULL", "DECIMAL", "ARRAY",
	"STRUCT", "MAP", "BYTE", "BYTE_ARRAY", "SHORT_INT", "LEGACY_LONG", "VARCHAR", "BINARY"}

func (t StoreType) String() string {
	if int(t) < len(storeNames) {
		return storeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Width is the size of a value in bytes; 0 if the type has no fixed width.
func (t StoreType) Width() int {
	switch t {
	case StoreBoolean, StoreByte:
		return 1
	case StoreShort:
		return 2
	case StoreShortInt:
		return 3
	case StoreInt, StoreFloat:
		return 4
	case StoreLong, StoreDouble, StoreTimestamp, storeLegacy:
		return 8
	}
	return 0
}

// ColumnType is the class of a column in ColumnPageEncoderMeta.
type ColumnType uint8

const (
	PlainValue       ColumnType = 2
	ComplexPrimitive ColumnType = 7
	PlainLongValue   ColumnType = 8
)

// EncoderMeta is ColumnPageEncoderMeta: how the values of a page are encoded. All numbers are big-endian.
//
//	field name     u16 length, UTF-8
//	schema type    1
//	column type    1
//	scale          i32, -1 unless decimal
//	precision      i32
//	store type     1
//	decimal count  i32
//	selected       1
//	max, min, zero of the schema type's width; decimals with a u16 length each, and scale and precision after them
//	compressor     u16 length, UTF-8
//	page size      i32, of RLE_INTEGRAL only
type EncoderMeta struct {
	Schema    StoreType // of the column
	Column    ColumnType
	Scale     int32
	Precision int32
	Store     StoreType // of the values in the page
	Decimals  int32     // floating-point values are stored multiplied by 10^Decimals
	Max, Min  int64     // of whole numbers; of decimals the low 64 bits of the unscaled value
	Fmax      float64   // max of floating-point values
	Codec     string    // compressor_name once more
}

// BigEndian reads big-endian numbers from a cursor, and traces them.
type BigEndian struct{ *wire.Cursor }

func (c BigEndian) U16(name string) uint16 {
	if b := c.take(name, 2); b != nil {
		v := binary.BigEndian.Uint16(b)
		c.trace(name, 2, fmt.Sprint(v))
		return v
	}
	return 0
}

func (c BigEndian) I32(name string) int32 {
	if b := c.take(name, 4); b != nil {
		v := int32(binary.BigEndian.Uint32(b))
		c.trace(name, 4, fmt.Sprint(v))
		return v
	}
	return 0
}

func (c BigEndian) I64(name string) int64 {
	if b := c.take(name, 8); b != nil {
		v := int64(binary.BigEndian.Uint64(b))
		c.trace(name, 8, fmt.Sprint(v))
		return v
	}
	return 0
}

// take returns the next n bytes without tracing them; nil after an error.
func (c BigEndian) take(name string, n int) []byte {
	rest := c.Rest()
	c.Skip(name, n)
	if c.Err() != nil {
		return nil
	}
	return rest[:n]
}

func (c BigEndian) trace(name string, n int, value string) {
	c.Node(region.Data, c.Pos()-n, n, name, value)
}

func (c BigEndian) text(name string) string {
	n := int(c.U16(name + ".length"))
	b := c.take(name, n)
	c.trace(name, len(b), string(b))
	return string(b)
}

func (c BigEndian) signed(name string, width int) int64 {
	switch width {
	case 1:
		return int64(int8(c.U8(name)))
	case 2:
		return int64(int16(c.U16(name)))
	case 4:
		return int64(c.I32(name))
	}
	return c.I64(name)
}

// ParseEncoderMeta reads the encoder_meta of a page; rle states that the encoder is RLE_INTEGRAL, whose metadata ends
// with a page size. Errors are those of cur.
func ParseEncoderMeta(cur *wire.Cursor, rle bool) (m EncoderMeta) {
	c := BigEndian{cur}
	c.text("fieldName")
	m.Schema = StoreType(c.U8("schemaDataType"))
	m.Column = ColumnType(c.U8("columnType"))
	m.Scale = c.I32("scale")
	m.Precision = c.I32("precision")
	m.Store = StoreType(c.U8("storeDataType"))
	m.Decimals = c.I32("decimal")
	c.U8("dataTypeSelected")
	m.bounds(c)
	m.Codec = c.text("compressorName")
	if rle {
		c.I32("pageSize")
	}
	return m
}

// bounds reads max and min, and a third value that no reader uses.
func (m *EncoderMeta) bounds(c BigEndian) {
	switch m.Schema {
	case StoreBoolean, StoreByte, StoreShort, StoreInt, StoreLong, StoreTimestamp:
		w := m.Schema.Width()
		m.Max, m.Min = c.signed("maxValue", w), c.signed("minValue", w)
		c.I64("uniqueValue")
	case StoreDouble:
		m.Fmax = math.Float64frombits(uint64(c.I64("maxValue")))
		c.I64("minValue")
		c.I64("uniqueValue")
	case StoreFloat:
		m.Fmax = float64(math.Float32frombits(uint32(c.I32("maxValue"))))
		c.I32("minValue")
		c.I32("uniqueValue")
	case StoreDecimal:
		m.Max, m.Min = unscaled(c, "maxValue"), unscaled(c, "minValue")
		unscaled(c, "uniqueValue")
		c.I32("scale")
		c.I32("precision")
	case StoreByteArray, StoreBinary:
	default:
		c.Fail(c.Pos(), 0, "schemaDataType", "a page of type %s has no bounds", m.Schema)
	}
}

// unscaled reads a decimal: u16 length, u8 scale, and the unscaled value as a big-endian number. It returns the low 64
// bits; the writer computes deltas with these alone.
func unscaled(c BigEndian, name string) int64 {
	n := int(c.U16(name + ".length"))
	b := c.take(name, n)
	c.trace(name, len(b), decimalText(b))
	if len(b) < 2 {
		if c.Err() == nil {
			c.Fail(c.Pos()-len(b), len(b), name, "expected a decimal of at least 2 bytes, found %d", len(b))
		}
		return 0
	}
	var v int64
	if b[1] >= 0x80 {
		v = -1
	}
	for _, x := range b[1:] {
		v = v<<8 | int64(x)
	}
	return v
}

// decimalText formats the unscaled value and the scale of a stored decimal, for traces.
func decimalText(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	return fmt.Sprintf("%s, scale %d", twosComplement(b[1:]), b[0])
}

// twosComplement reads a signed big-endian number of any length.
func twosComplement(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}
