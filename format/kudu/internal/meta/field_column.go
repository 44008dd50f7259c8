package meta

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format/cfile"
)

// columnTypes are Kudu's types for Arrow types without parameters.
var columnTypes = map[arrow.Type]cfile.Type{
	arrow.BOOL: cfile.Bool, arrow.INT8: cfile.Int8, arrow.INT16: cfile.Int16, arrow.INT32: cfile.Int32,
	arrow.INT64: cfile.Int64, arrow.FLOAT32: cfile.Float, arrow.FLOAT64: cfile.Double, arrow.DATE32: cfile.Date,
	arrow.STRING: cfile.String, arrow.BINARY: cfile.Binary,
}

// ColumnOf is the column for a field: the inverse of Column.Field, except that it is not a key column. What the field's
// metadata does not say gets Kudu's default. A type that Kudu's tables do not have is Unsupported, a value that does
// not fit Invalid.
func ColumnOf(f arrow.Field) (c Column, err error) {
	get := func(k string) string {
		v, _ := f.Metadata.GetValue(k)
		return v
	}
	c = Column{ID: -1, Name: f.Name, Nullable: f.Nullable, Comment: get(MetaComment),
		Immutable: get(MetaImmutable) == "true", AutoIncrement: get(MetaAutoIncrement) == "true"}
	if err := c.setType(f, get(cfile.MetaLength)); err != nil {
		return c, err
	}
	c.Encoding = cfile.EncodingByName(get(cfile.MetaEncoding))
	c.Compression = cfile.CompressionByName(get(cfile.MetaCompression))
	if n, err := strconv.ParseInt(get(cfile.MetaBlockSize), 10, 32); err == nil {
		c.BlockSize = int32(n)
	}
	if n, err := strconv.ParseInt(get(MetaColumnID), 10, 32); err == nil && n >= 0 {
		c.ID = int32(n)
	}
	if f.Metadata.FindKey(MetaDefault) >= 0 {
		if c.WriteDefault, err = c.Value(get(MetaDefault)); err != nil {
			return c, err
		}
		c.ReadDefault = c.WriteDefault
	}
	if f.Metadata.FindKey(MetaReadDefault) >= 0 {
		c.ReadDefault, err = c.Value(get(MetaReadDefault))
	}
	return c, err
}

// setType chooses the type for an Arrow type. length is that of a varchar, in characters.
func (c *Column) setType(f arrow.Field, length string) error {
	stored, _ := f.Metadata.GetValue(cfile.MetaType)
	switch t := f.Type.(type) {
	case *arrow.ListType:
		item := f
		item.Type = t.Elem()
		if item.Type.ID() == arrow.LIST {
			break
		}
		err := c.setType(item, length)
		if c.Array = true; err == nil && arrayKind(c.Type) == 0 {
			return fault.Unsupportedf(fault.Span{}, "", "column %q: Kudu has no arrays of %s", f.Name, t.Elem())
		}
		return err
	case *arrow.TimestampType:
		if t.Unit == arrow.Microsecond && t.TimeZone != "" {
			c.Type = cfile.UnixtimeMicros
			return nil
		}
		return fault.Unsupportedf(fault.Span{}, "",
			"column %q has type %s: Kudu's only timestamps are in microseconds, UTC", f.Name, t)
	case *arrow.Decimal128Type:
		c.Precision, c.Scale, c.Type = t.Precision, t.Scale, cfile.Decimal128
		if c.Precision <= 18 {
			c.Type = cfile.Decimal64
		}
		if c.Precision <= 9 {
			c.Type = cfile.Decimal32
		}
		return nil
	case *arrow.StringType:
		if stored != cfile.Varchar.String() {
			break
		}
		n, err := strconv.Atoi(length)
		if err != nil || n < 1 || n > 65535 {
			return fault.Invalidf("column %q is a varchar of length %q: it must be 1 to 65535", f.Name, length)
		}
		c.Type, c.Length = cfile.Varchar, int32(n)
		return nil
	}
	var ok bool
	if c.Type, ok = columnTypes[f.Type.ID()]; !ok {
		return fault.Unsupportedf(fault.Span{}, "", "column %q has type %s, for which Kudu's tables have no type",
			f.Name, f.Type)
	}
	return nil
}

// Value parses what PlainText wrote: the value in its stored form (see Column.ReadDefault). The error is Invalid.
func (c *Column) Value(text string) ([]byte, error) {
	v, err := c.value(text)
	if err != nil {
		return nil, fault.Invalidf("column %q: %q is not a valid %s: %v", c.Name, text, c.TypeText(), err)
	}
	return v, nil
}

func (c *Column) value(text string) ([]byte, error) {
	fixed := func(v int64) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v))[:StoredWidth(c.Type)] }
	if c.Array {
		return hex.DecodeString(text)
	}
	switch c.Type {
	case cfile.Binary:
		return hex.DecodeString(text)
	case cfile.String, cfile.Varchar:
		if digits, ok := strings.CutPrefix(text, HexText); ok {
			return hex.DecodeString(digits)
		}
		return []byte(text), nil
	case cfile.Bool:
		b, err := strconv.ParseBool(text)
		if b {
			return []byte{1}, err
		}
		return []byte{0}, err
	case cfile.Float:
		x, err := strconv.ParseFloat(text, 32)
		return fixed(int64(math.Float32bits(float32(x)))), err
	case cfile.Double:
		x, err := strconv.ParseFloat(text, 64)
		return fixed(int64(math.Float64bits(x))), err
	case cfile.UnixtimeMicros:
		t, err := time.Parse("2006-01-02T15:04:05.000000Z", paddedYear(text))
		return fixed(t.UnixMicro()), err
	case cfile.Date:
		t, err := time.Parse("2006-01-02", paddedYear(text))
		return fixed(t.Unix() / 86400), err
	case cfile.Decimal32, cfile.Decimal64, cfile.Decimal128:
		n, err := decimal128.FromString(text, 38, c.Scale)
		b := binary.LittleEndian.AppendUint64(nil, n.LowBits())
		b = binary.LittleEndian.AppendUint64(b, uint64(n.HighBits()))
		return b[:StoredWidth(c.Type)], err
	case cfile.Int8, cfile.Int16, cfile.Int32, cfile.Int64:
		n, err := strconv.ParseInt(text, 10, 8*StoredWidth(c.Type))
		return fixed(n), err
	}
	return nil, fmt.Errorf("values of this type cannot be parsed from text")
}

// paddedYear pads the year of a date to four digits: ValueText writes it without leading zeros.
func paddedYear(s string) string {
	if i := strings.IndexByte(s, '-'); i > 0 && i < 4 {
		return strings.Repeat("0", 4-i) + s
	}
	return s
}
