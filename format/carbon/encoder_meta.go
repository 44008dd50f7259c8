package carbon

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"

	"stoa/region"
	"stoa/wire"
)

// storeType is the number that ColumnPageEncoderMeta gives a type; they are not those of schema.thrift.
type storeType uint8

const (
	storeString    storeType = 0
	storeDate      storeType = 1
	storeTimestamp storeType = 2
	storeBoolean   storeType = 3
	storeShort     storeType = 4
	storeInt       storeType = 5
	storeFloat     storeType = 6
	storeLong      storeType = 7
	storeDouble    storeType = 8
	storeNull      storeType = 9
	storeDecimal   storeType = 10
	storeArray     storeType = 11
	storeStruct    storeType = 12
	storeMap       storeType = 13
	storeByte      storeType = 14
	storeByteArray storeType = 15
	storeShortInt  storeType = 16
	storeLegacy    storeType = 17
	storeVarchar   storeType = 18
	storeBinary    storeType = 19
)

var storeNames = [...]string{"STRING", "DATE", "TIMESTAMP", "BOOLEAN", "SHORT", "INT", "FLOAT", "LONG", "DOUBLE", "NULL", "DECIMAL", "ARRAY",
	"STRUCT", "MAP", "BYTE", "BYTE_ARRAY", "SHORT_INT", "LEGACY_LONG", "VARCHAR", "BINARY"}

func (t storeType) String() string {
	if int(t) < len(storeNames) {
		return storeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// width is the bytes of a value of a type of fixed width, else 0.
func (t storeType) width() int {
	switch t {
	case storeBoolean, storeByte:
		return 1
	case storeShort:
		return 2
	case storeShortInt:
		return 3
	case storeInt, storeFloat:
		return 4
	case storeLong, storeDouble, storeTimestamp, storeLegacy:
		return 8
	}
	return 0
}

// columnType is the class that ColumnPageEncoderMeta gives a column.
type columnType uint8

const (
	plainValue       columnType = 2
	complexPrimitive columnType = 7
	plainLongValue   columnType = 8
)

// encoderMeta is ColumnPageEncoderMeta: how the values of a page were made small. All numbers are big-endian.
//
//	field name     u16 length, UTF-8
//	schema type    1
//	column type    1
//	scale          i32, -1 unless decimal
//	precision      i32
//	store type     1
//	decimal count  i32
//	selected       1
//	max, min, zero of the schema type's width; decimals with a u16 length each, and scale and precision behind them
//	compressor     u16 length, UTF-8
//	page size      i32, of RLE_INTEGRAL only
type encoderMeta struct {
	schema     storeType
	column     columnType
	scale      int32
	precision  int32
	store      storeType
	decimals   int32
	max, min   int64   // of whole numbers, and the unscaled of decimals of up to 64 bits
	fmax, fmin float64 // of floating numbers
	compressor string
	pageSize   int32
}

// be are big-endian reads of a cursor.
type be struct{ *wire.Cursor }

func (c be) u16(name string) uint16 {
	if b := c.take(name, 2); b != nil {
		v := binary.BigEndian.Uint16(b)
		c.told(name, 2, fmt.Sprint(v))
		return v
	}
	return 0
}

func (c be) i32(name string) int32 {
	if b := c.take(name, 4); b != nil {
		v := int32(binary.BigEndian.Uint32(b))
		c.told(name, 4, fmt.Sprint(v))
		return v
	}
	return 0
}

func (c be) i64(name string) int64 {
	if b := c.take(name, 8); b != nil {
		v := int64(binary.BigEndian.Uint64(b))
		c.told(name, 8, fmt.Sprint(v))
		return v
	}
	return 0
}

// take gives n bytes and moves over them without telling them.
func (c be) take(name string, n int) []byte {
	rest := c.Rest()
	c.Skip(name, n)
	if c.Err() != nil {
		return nil
	}
	return rest[:n]
}

func (c be) told(name string, n int, value string) {
	c.Node(region.Data, c.Pos()-n, n, name, value)
}

func (c be) text(name string) string {
	n := int(c.u16(name + ".length"))
	b := c.take(name, n)
	c.told(name, len(b), string(b))
	return string(b)
}

func (c be) signed(name string, width int) int64 {
	switch width {
	case 1:
		return int64(int8(c.U8(name)))
	case 2:
		return int64(int16(c.u16(name)))
	case 4:
		return int64(c.i32(name))
	}
	return c.i64(name)
}

// parseEncoderMeta reads the encoder_meta of a page; rle says that it is one of RLE_INTEGRAL.
func parseEncoderMeta(cur *wire.Cursor, rle bool) (m encoderMeta) {
	c := be{cur}
	c.text("fieldName")
	m.schema = storeType(c.U8("schemaDataType"))
	m.column = columnType(c.U8("columnType"))
	m.scale = c.i32("scale")
	m.precision = c.i32("precision")
	m.store = storeType(c.U8("storeDataType"))
	m.decimals = c.i32("decimal")
	c.U8("dataTypeSelected")
	m.bounds(c)
	m.compressor = c.text("compressorName")
	if rle {
		m.pageSize = c.i32("pageSize")
	}
	return m
}

// bounds reads the greatest and the least value and the unused third one.
func (m *encoderMeta) bounds(c be) {
	switch m.schema {
	case storeBoolean, storeByte, storeShort, storeInt, storeLong, storeTimestamp:
		w := m.schema.width()
		m.max, m.min = c.signed("maxValue", w), c.signed("minValue", w)
		c.i64("uniqueValue")
	case storeDouble:
		m.fmax, m.fmin = math.Float64frombits(uint64(c.i64("maxValue"))), math.Float64frombits(uint64(c.i64("minValue")))
		c.i64("uniqueValue")
	case storeFloat:
		m.fmax, m.fmin = float64(math.Float32frombits(uint32(c.i32("maxValue")))), float64(math.Float32frombits(uint32(c.i32("minValue"))))
		c.i32("uniqueValue")
	case storeDecimal:
		m.max, m.min = unscaled(c, "maxValue"), unscaled(c, "minValue")
		unscaled(c, "uniqueValue")
		c.i32("scale")
		c.i32("precision")
	case storeByteArray, storeBinary:
	default:
		c.Fail(c.Pos(), 0, "schemaDataType", "%s has no bounds here", m.schema)
	}
}

// unscaled reads a decimal: u16 length, scale, and the digits as a big-endian number, of which the low 64 bits are kept
// as the writer keeps them when it subtracts.
func unscaled(c be, name string) int64 {
	n := int(c.u16(name + ".length"))
	b := c.take(name, n)
	c.told(name, len(b), decimalText(b))
	if len(b) < 2 {
		if c.Err() == nil {
			c.Fail(c.Pos()-len(b), len(b), name, "a decimal of %d bytes", len(b))
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

// decimalText is the digits and the scale of a decimal as the writer has it.
func decimalText(b []byte) string {
	if len(b) < 2 {
		return ""
	}
	return fmt.Sprintf("%s, scale %d", twosComplement(b[1:]), b[0])
}

// twosComplement is a big-endian number.
func twosComplement(b []byte) *big.Int {
	v := new(big.Int).SetBytes(b)
	if len(b) > 0 && b[0] >= 0x80 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	return v
}
