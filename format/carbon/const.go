package carbon

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
	"stoa/pred"
	"stoa/vec"
)

// constant is one value for all rows of a file: of a partition's column, or the default of a column that was added after the file
// was written.
type constant struct {
	null bool
	i    int64 // bools, whole numbers, dates, timestamps
	f    float64
	d    decimal128.Num
	s    string
}

// constChunk gives a constant's pages, which need no bytes. It is a format.Chunk.
type constChunk struct {
	v    constant
	t    arrow.DataType
	rows vec.Range
	n    int64 // rows of the blocklet
	at   int64
	kids bool // an item or child of what is null everywhere: there are no entries
}

// constPage is how many rows a page of a constant has.
const constPage = 32 << 10

func newConstChunk(v constant, t arrow.DataType, n int64, rows vec.Range, child bool) *constChunk {
	c := &constChunk{v: v, t: t, rows: rows, n: n, kids: child}
	c.at = max(0, rows.From) / constPage * constPage
	return c
}

func (c *constChunk) Next(context.Context) (format.Page, error) {
	if c.at >= c.n || c.at >= c.rows.To {
		return format.Page{}, io.EOF
	}
	n := min(constPage, c.n-c.at)
	p := format.Page{Ordinal: int(c.at / constPage), First: c.at, Rows: n, Entries: n}
	c.at += n
	if c.kids {
		p.Entries = -1
		return p, nil
	}
	p.Bounds = c.v.bounds(c.t)
	p.Bounds.Rows = n
	if c.v.null {
		p.Bounds.Nulls = n
	}
	return p, nil
}

func (c *constChunk) Dict() (format.Page, bool) { return format.Page{}, false }

func (c *constChunk) Decode(t *format.Task, dst *vec.Vector) error {
	n := int(max(t.N, 0))
	if c.v.null {
		dst.ExtendNulls(n)
		return nil
	}
	at := dst.Extend(n)
	switch dst.Type.ID() {
	case arrow.BOOL:
		vec.SetBits(dst.Bits(), at, at+n, c.v.i != 0)
	case arrow.INT8:
		fill(vec.Fixed[int8](dst, at), int8(c.v.i))
	case arrow.INT16:
		fill(vec.Fixed[int16](dst, at), int16(c.v.i))
	case arrow.INT32, arrow.DATE32:
		fill(vec.Fixed[int32](dst, at), int32(c.v.i))
	case arrow.INT64, arrow.TIMESTAMP:
		fill(vec.Fixed[int64](dst, at), c.v.i)
	case arrow.FLOAT32:
		fill(vec.Fixed[float32](dst, at), float32(c.v.f))
	case arrow.FLOAT64:
		fill(vec.Fixed[float64](dst, at), c.v.f)
	case arrow.DECIMAL128:
		fill(vec.Fixed[decimal128.Num](dst, at), c.v.d)
	case arrow.STRING, arrow.BINARY:
		offs := dst.Offsets(at)
		room, err := dst.Bytes(offs[0], int64(n)*int64(len(c.v.s)))
		if err != nil {
			return err
		}
		for i := range n {
			copy(room[i*len(c.v.s):], c.v.s)
			offs[i+1] = offs[0] + int32((i+1)*len(c.v.s))
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

// bounds are exact.
func (v constant) bounds(t arrow.DataType) *pred.Bounds {
	b := &pred.Bounds{Rows: -1}
	if v.null {
		b.Nulls = -1
		return b
	}
	var x pred.Value
	switch t := t.(type) {
	case *arrow.BooleanType:
		x = pred.Bool(v.i != 0)
	case *arrow.Date32Type:
		x = pred.Value{Kind: pred.KindDate, Int: v.i}
	case *arrow.TimestampType:
		x = instant(v.i)
	case *arrow.Float32Type, *arrow.Float64Type:
		return b
	case *arrow.Decimal128Type:
		x = pred.Value{Kind: pred.KindDecimal, Dec: v.d, Scale: t.Scale}
	case *arrow.StringType:
		x = pred.Value{Kind: pred.KindString, Text: v.s}
	case *arrow.BinaryType:
		x = pred.Value{Kind: pred.KindBytes, Text: v.s}
	default:
		x = pred.Int(v.i)
	}
	b.Min, b.Max = &x, &x
	return b
}

// instant is a timestamp of milliseconds.
func instant(ms int64) pred.Value {
	s := ms / 1000
	r := ms % 1000
	if r < 0 {
		s, r = s-1, r+1000
	}
	return pred.Value{Kind: pred.KindTimestamp, Int: s, Nanos: int32(r * 1e6)}
}

// defaultValue is what a column has in files without it: for most types a text.
func defaultValue(c *column) (constant, error) {
	b := c.def
	if b == nil || string(b) == nullText || c.typ.complex() {
		return constant{null: true}, nil
	}
	switch c.typ {
	case typeString, typeVarchar, typeBinary:
		return constant{s: string(b)}, nil
	case typeTimestamp:
		if len(b) == 8 {
			return constant{i: int64(binary.BigEndian.Uint64(b) ^ 1<<63)}, nil
		}
	case typeDate:
		if n, err := strconv.ParseInt(string(b), 10, 32); err == nil {
			return constant{i: n - dateOffset, null: n == nullCode}, nil
		}
	case typeDecimal:
		if len(b) >= 2 && len(b) <= 17 && int32(b[0]) <= c.scale {
			return constant{d: bigNum(b[1:]).Mul(decimal128.GetScaleMultiplier(int(c.scale) - int(b[0])))}, nil
		}
	default:
		return parseValue(c, string(b), nil)
	}
	return constant{}, fault.Corruptf(fault.Span{}, "default_value", "column %s, %s: %q", c.name, c.typ, b)
}

// hiveNull is the name of the directory of the rows whose partition column is null.
const hiveNull = "__HIVE_DEFAULT_PARTITION__"

// unescape undoes the escaping of a partition directory's name: %XX.
func unescape(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

// partitionValue is the value of a partition column that a directory's name says. Timestamps have no zone there; zone is the
// one that the rule for time zones gives.
func partitionValue(c *column, text string, zone *time.Location) (constant, error) {
	if text == hiveNull {
		return constant{null: true}, nil
	}
	return parseValue(c, unescape(text), zone)
}

// parseValue reads a value of c's type from a text.
func parseValue(c *column, s string, zone *time.Location) (v constant, err error) {
	if zone == nil {
		zone = time.UTC
	}
	switch c.typ {
	case typeString, typeVarchar, typeBinary:
		v.s = s
	case typeBoolean:
		var b bool
		if b, err = strconv.ParseBool(strings.ToLower(s)); b {
			v.i = 1
		}
	case typeByte, typeShort, typeInt, typeLong:
		bits := map[dataType]int{typeByte: 8, typeShort: 16, typeInt: 32, typeLong: 64}[c.typ]
		v.i, err = strconv.ParseInt(s, 10, bits)
	case typeFloat, typeDouble:
		if v.f, err = strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(v.f) || math.IsInf(v.f, 0)) {
			v.null = true // as the real reader has it
		}
	case typeDecimal:
		v.d, err = parseDecimal(s, c.scale)
	case typeDate:
		var when time.Time
		when, err = time.Parse(time.DateOnly, s)
		v.i = when.Unix() / 86400
	case typeTimestamp:
		var when time.Time
		for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04:05", time.DateOnly} {
			if when, err = time.ParseInLocation(layout, s, zone); err == nil {
				break
			}
		}
		v.i = when.UnixMilli()
	default:
		return v, fault.Unsupportedf(fault.Span{}, "", "column %s: a value of type %s from a text", c.name, c.typ)
	}
	if err != nil {
		return v, fault.Corruptf(fault.Span{}, "", "column %s: %q is no %s", c.name, s, c.typ)
	}
	return v, nil
}

// parseDecimal reads a decimal exactly.
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
