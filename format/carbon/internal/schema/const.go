package schema

import (
	"context"
	"encoding/binary"
	"io"
	"math"
	"math/big"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/decimal128"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/layout"
	"stoa/internal/coerce"
	"stoa/pred"
	"stoa/vec"
)

// Constant is one value of a column's type: the value of a partition column, or the default of a column that was added
// after the file was written, in all rows of a file. Texts and dictionary values are also parsed to Constants.
type Constant struct {
	Null bool
	I    int64 // booleans (0, 1), whole numbers, dates (days since 1970), timestamps (milliseconds since 1970)
	F    float64
	D    decimal128.Num // unscaled
	S    string         // strings and binaries
}

// ConstChunk is a format.Chunk whose pages repeat a constant. They need no bytes.
type ConstChunk struct {
	v        Constant
	t        arrow.DataType
	rows     vec.Range
	n        int64 // rows of the blocklet
	at       int64 // first row of the next page
	children bool  // child of a column that is null everywhere: the number of entries is unknown
}

// constPage is the number of rows in a page of a constant.
const constPage = 32 << 10

// NewConstChunk returns a chunk of n rows of type t, of which those in rows are read. child states that it is a child
// of a nested column that is null.
func NewConstChunk(v Constant, t arrow.DataType, n int64, rows vec.Range, child bool) *ConstChunk {
	c := &ConstChunk{v: v, t: t, rows: rows, n: n, children: child}
	c.at = max(0, rows.From) / constPage * constPage
	return c
}

// Next is format.Chunk.Next.
func (c *ConstChunk) Next(context.Context) (format.Page, error) {
	if c.at >= c.n || c.at >= c.rows.To {
		return format.Page{}, io.EOF
	}
	n := min(constPage, c.n-c.at)
	p := format.Page{Ordinal: int(c.at / constPage), First: c.at, Rows: n, Entries: n}
	c.at += n
	if c.children {
		p.Entries = -1
		return p, nil
	}
	p.Bounds = c.v.Bounds(c.t)
	p.Bounds.Rows = n
	if c.v.Null {
		p.Bounds.Nulls = n
	}
	return p, nil
}

// Dict is format.Chunk.Dict: there is no dictionary.
func (c *ConstChunk) Dict() (format.Page, bool) { return format.Page{}, false }

// Decode is format.Chunk.Decode. It fails only for a type that no Constant has.
func (c *ConstChunk) Decode(t *format.Task, dst *vec.Vector) error {
	n := int(max(t.N, 0))
	if c.v.Null {
		dst.ExtendNulls(n)
		return nil
	}
	at := dst.Extend(n)
	switch dst.Type.ID() {
	case arrow.BOOL:
		vec.SetBits(dst.Bits(), at, at+n, c.v.I != 0)
	case arrow.INT8:
		fill(vec.Fixed[int8](dst, at), int8(c.v.I))
	case arrow.INT16:
		fill(vec.Fixed[int16](dst, at), int16(c.v.I))
	case arrow.INT32, arrow.DATE32:
		fill(vec.Fixed[int32](dst, at), int32(c.v.I))
	case arrow.INT64, arrow.TIMESTAMP:
		fill(vec.Fixed[int64](dst, at), c.v.I)
	case arrow.FLOAT32:
		fill(vec.Fixed[float32](dst, at), float32(c.v.F))
	case arrow.FLOAT64:
		fill(vec.Fixed[float64](dst, at), c.v.F)
	case arrow.DECIMAL128:
		fill(vec.Fixed[decimal128.Num](dst, at), c.v.D)
	case arrow.STRING, arrow.BINARY:
		offs := dst.Offsets(at)
		room, err := dst.Bytes(offs[0], int64(n)*int64(len(c.v.S)))
		if err != nil {
			return err
		}
		for i := range n {
			copy(room[i*len(c.v.S):], c.v.S)
			offs[i+1] = offs[0] + int32((i+1)*len(c.v.S))
		}
	default:
		return fault.Bugf("carbon: a constant of type %s", dst.Type)
	}
	return nil
}

func fill[T any](dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

// Bounds returns the exact bounds of a value of type t; null and floating-point numbers have no min and max.
func (v Constant) Bounds(t arrow.DataType) *pred.Bounds {
	b := &pred.Bounds{Rows: -1}
	if v.Null {
		b.Nulls = -1
		return b
	}
	var x pred.Value
	switch t := t.(type) {
	case *arrow.BooleanType:
		x = pred.Bool(v.I != 0)
	case *arrow.Date32Type:
		x = pred.Value{Kind: pred.KindDate, Int: v.I}
	case *arrow.TimestampType:
		x = TimestampValue(v.I)
	case *arrow.Float32Type, *arrow.Float64Type:
		return b
	case *arrow.Decimal128Type:
		x = pred.Value{Kind: pred.KindDecimal, Dec: v.D, Scale: t.Scale}
	case *arrow.StringType:
		x = pred.Value{Kind: pred.KindString, Text: v.S}
	case *arrow.BinaryType:
		x = pred.Value{Kind: pred.KindBytes, Text: v.S}
	default:
		x = pred.Int(v.I)
	}
	b.Min, b.Max = &x, &x
	return b
}

// TimestampValue is the timestamp of ms milliseconds since 1970.
func TimestampValue(ms int64) pred.Value {
	s := ms / 1000
	r := ms % 1000
	if r < 0 {
		s, r = s-1, r+1000
	}
	return pred.Value{Kind: pred.KindTimestamp, Int: s, Nanos: int32(r * 1e6)}
}

// DefaultValue returns the value of a column in files that lack it. The schema keeps it as a text for most types, as
// bytes for timestamps and decimals. An error is Corrupt, without a place.
func DefaultValue(c *Column) (Constant, error) {
	b := c.Default
	if b == nil || string(b) == NullText || c.Type.Complex() {
		return Constant{Null: true}, nil
	}
	switch c.Type {
	case layout.TypeString, layout.TypeVarchar, layout.TypeBinary:
		return Constant{S: string(b)}, nil
	case layout.TypeTimestamp:
		if len(b) == 8 {
			return Constant{I: int64(binary.BigEndian.Uint64(b) ^ 1<<63)}, nil
		}
	case layout.TypeDate:
		if n, err := strconv.ParseInt(string(b), 10, 32); err == nil && n >= NullCode {
			return Constant{I: n - DateOffset, Null: n == NullCode}, nil
		}
	case layout.TypeDecimal:
		if len(b) >= 2 && len(b) <= 17 && int32(b[0]) <= c.Scale {
			return Constant{D: ParseDecimal(b[1:]).Mul(decimal128.GetScaleMultiplier(int(c.Scale) - int(b[0])))}, nil
		}
	default:
		return ParseValue(c, string(b), nil)
	}
	return Constant{}, fault.Corruptf(fault.Span{}, "default_value", "column %s, %s: %q", c.Name, c.Type, b)
}

// HiveNull stands for null in the name of a partition's directory.
const HiveNull = "__HIVE_DEFAULT_PARTITION__"

// Unescape replaces %XX in the name of a partition's directory; a name with a bad escape stays as it is.
func Unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// PartitionValue parses the value of a partition column in a directory's name. Timestamps have no time zone there and
// are interpreted in zone; nil means UTC. Errors are those of ParseValue.
func PartitionValue(c *Column, text string, zone *time.Location) (Constant, error) {
	if text == HiveNull {
		return Constant{Null: true}, nil
	}
	return ParseValue(c, Unescape(text), zone)
}

// ParseValue parses a text as a value of c's type; timestamps without a time zone are interpreted in zone; nil means
// UTC. A NaN or an infinite number is null. Errors, Corrupt and Unsupported (a nested type), have no place.
func ParseValue(c *Column, s string, zone *time.Location) (v Constant, err error) {
	if zone == nil {
		zone = time.UTC
	}
	switch c.Type {
	case layout.TypeString, layout.TypeVarchar, layout.TypeBinary:
		v.S = s
	case layout.TypeBoolean:
		var b bool
		if b, err = strconv.ParseBool(strings.ToLower(s)); b {
			v.I = 1
		}
	case layout.TypeByte, layout.TypeShort, layout.TypeInt, layout.TypeLong:
		bits := map[layout.DataType]int{layout.TypeByte: 8, layout.TypeShort: 16, layout.TypeInt: 32,
			layout.TypeLong: 64}[c.Type]
		v.I, err = strconv.ParseInt(s, 10, bits)
	case layout.TypeFloat, layout.TypeDouble:
		if v.F, err = strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(v.F) || math.IsInf(v.F, 0)) {
			v.Null = true // as CarbonData reads it
		}
	case layout.TypeDecimal:
		v.D, err = parseDecimal(s, c.Scale)
	case layout.TypeDate:
		var when time.Time
		when, err = time.Parse(time.DateOnly, s)
		v.I = when.Unix() / 86400
	case layout.TypeTimestamp:
		var when time.Time
		for _, form := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05", time.DateOnly} {
			if when, err = time.ParseInLocation(form, s, zone); err == nil {
				break
			}
		}
		v.I = when.UnixMilli()
	default:
		return v, fault.Unsupportedf(fault.Span{}, "", "column %s: a value of type %s as text", c.Name, c.Type)
	}
	if err != nil {
		return v, fault.Corruptf(fault.Span{}, "", "column %s: %q is not a valid %s", c.Name, s, c.Type)
	}
	return v, nil
}

// parseDecimal parses a decimal as an unscaled value; nonzero digits beyond the scale are an error.
func parseDecimal(s string, scale int32) (decimal128.Num, error) {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		return decimal128.Num{}, strconv.ErrSyntax
	}
	r.Mul(r, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil)))
	if !r.IsInt() || r.Num().BitLen() > 127 {
		return decimal128.Num{}, strconv.ErrRange
	}
	return decimal128.FromBigInt(r.Num()), nil
}

// Set sets entry i of dst, which must have the constant's type, a type of fixed width.
func (v Constant) Set(dst *vec.Vector, i int) {
	switch dst.Type.ID() {
	case arrow.BOOL:
		vec.SetBits(dst.Bits(), i, i+1, v.I != 0)
	case arrow.INT8:
		vec.Fixed[int8](dst, i)[0] = int8(v.I)
	case arrow.INT16:
		vec.Fixed[int16](dst, i)[0] = int16(v.I)
	case arrow.INT32, arrow.DATE32:
		vec.Fixed[int32](dst, i)[0] = int32(v.I)
	case arrow.INT64, arrow.TIMESTAMP:
		vec.Fixed[int64](dst, i)[0] = v.I
	case arrow.FLOAT32:
		vec.Fixed[float32](dst, i)[0] = float32(v.F)
	case arrow.FLOAT64:
		vec.Fixed[float64](dst, i)[0] = v.F
	case arrow.DECIMAL128:
		vec.Fixed[decimal128.Num](dst, i)[0] = v.D
	}
}

// ParseDecimal reads a signed big-endian number; if it has more than 16 bytes, only the last 16 count.
func ParseDecimal(b []byte) decimal128.Num {
	n, _ := coerce.OfBigEndian(b[max(0, len(b)-16):])
	return n
}

// DateOffset plus the days since 1970 is a date's code in a direct dictionary (DateDirectDictionaryGenerator.java).
const DateOffset = math.MaxInt32 >> 1

// NullCode is the code that stands for null in every dictionary.
const NullCode = 1

// NullText is the value that CarbonData stores for a null string (CarbonCommonConstants.MEMBER_DEFAULT_VAL).
const NullText = "@NU#LL$!"

// SetNull clears bit i of a validity bitmap: entry i is null.
func SetNull(valid []byte, i int) { valid[i>>3] &^= 1 << (i & 7) }

// ParseCode reads a code as bounds have it, of one to four bytes, big-endian; ok is false for any other length.
func ParseCode(b []byte) (uint32, bool) {
	if len(b) == 0 || len(b) > 4 {
		return 0, false
	}
	var four [4]byte
	copy(four[4-len(b):], b)
	return binary.BigEndian.Uint32(four[:]), true
}
