package meta

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/cfile"
	"stoa/vec"
)

// CellOf is entry i of a vector of a column's values, in stored form (see Column.ReadDefault); nil is NULL. It shares
// the vector's memory, except for bools.
func CellOf(v *vec.Vector, i int, c *Column) []byte {
	switch {
	case !v.Valid(i):
		return nil
	case c.Type == cfile.Bool:
		return []byte{v.Bits()[i/8] >> (i % 8) & 1}
	case c.Type.IsBinary():
		o := v.Offsets(i)
		if v.StringBytes() == nil {
			return []byte{}
		}
		return v.StringBytes()[o[0]:o[1]:o[1]]
	}
	return v.Data(i)[:c.Type.Width()]
}

// Vector makes a vector of values in stored form, as a delta or a default has them: little-endian, bools in one byte,
// or the bytes of a string or array; nil is NULL.
func (c *Column) Vector(values [][]byte) (*vec.Vector, error) {
	typ, err := c.arrowType()
	if err != nil {
		return nil, err
	}
	if c.Array {
		return c.lists(typ, values)
	}
	v, err := vec.New(typ, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	width, total := StoredWidth(c.Type), int64(0)
	for _, x := range values {
		if width > 0 && x != nil && len(x) != width {
			return nil, fault.Rel(0, 0, "value", "%d bytes for a %s (column %q)", len(x), c.Type, c.Name)
		}
		if x == nil && !c.Nullable {
			return nil, fault.Rel(0, 0, "value", "a NULL for column %q, which is not nullable", c.Name)
		}
		total += int64(len(x))
	}
	v.Extend(len(values))
	nulls := 0
	for i, x := range values {
		if x == nil {
			vec.SetBits(v.Validity(), i, i+1, false)
			nulls++
		}
	}
	v.AddNulls(nulls)
	if len(values) == 0 {
		return v, nil
	}
	switch {
	case c.Type.IsBinary():
		return v, fillStrings(v, values, total)
	case c.Type == cfile.Bool:
		for i, x := range values {
			vec.SetBits(v.Bits(), i, i+1, len(x) > 0 && x[0] != 0)
		}
	case v.Width() == width:
		d := v.Data(0)
		for i, x := range values {
			copy(d[i*width:(i+1)*width], x)
		}
	default: // decimals, which Arrow has in 16 bytes
		d := v.Data(0)
		for i, x := range values {
			n := wideInt(x)
			binary.LittleEndian.PutUint64(d[16*i:], n.LowBits())
			binary.LittleEndian.PutUint64(d[16*i+8:], uint64(n.HighBits()))
		}
	}
	return v, nil
}

func fillStrings(v *vec.Vector, values [][]byte, total int64) error {
	out, err := v.Bytes(0, total)
	if err != nil {
		return err
	}
	offs := v.Offsets(0)
	pos := 0
	for i, x := range values {
		pos += copy(out[pos:], x)
		offs[i+1] = int32(pos)
	}
	return nil
}

// HexText begins the text of a string whose bytes follow in hexadecimal.
const HexText = `\x`

// PlainText writes a value, given in stored form, for field metadata: numbers, dates and times in their usual form,
// decimals with their point, strings as they are, binary and arrays in hexadecimal. A string that is not UTF-8, or that
// begins with HexText, is written as HexText and hexadecimal.
func (c *Column) PlainText(v []byte) string {
	switch {
	case c.Array, c.Type == cfile.Binary:
		return hex.EncodeToString(v)
	case c.Type.IsBinary() && (!utf8.Valid(v) || strings.HasPrefix(string(v), HexText)):
		return HexText + hex.EncodeToString(v)
	case c.Type.IsBinary():
		return string(v)
	case len(v) != StoredWidth(c.Type):
		return hex.EncodeToString(v)
	}
	switch c.Type {
	case cfile.Bool:
		return strconv.FormatBool(v[0] != 0)
	case cfile.Float:
		return strconv.FormatFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(v))), 'g', -1, 32)
	case cfile.Double:
		return strconv.FormatFloat(math.Float64frombits(binary.LittleEndian.Uint64(v)), 'g', -1, 64)
	case cfile.Decimal32, cfile.Decimal64, cfile.Decimal128:
		return wideInt(v).ToString(c.Scale)
	}
	return ValueText(c.Type, v)
}

// wideInt is a signed little-endian number of at most 16 bytes.
func wideInt(v []byte) decimal128.Num {
	var b [16]byte
	if n := copy(b[:], v); n > 0 && v[n-1]&0x80 != 0 {
		for i := n; i < len(b); i++ {
			b[i] = 0xff
		}
	}
	return decimal128.New(int64(binary.LittleEndian.Uint64(b[8:])), binary.LittleEndian.Uint64(b[:8]))
}

// ValueText writes a value, given in stored form, as Kudu's tools do in keys and bounds of partitions: decimals
// unscaled and followed by their width, strings quoted, years without leading zeros.
func ValueText(t cfile.Type, v []byte) string {
	switch t {
	case cfile.String, cfile.Varchar:
		return `"` + escaped(v, false) + `"`
	case cfile.Binary:
		return `"` + escaped(v, true) + `"`
	}
	if len(v) != StoredWidth(t) || len(v) == 0 || len(v) > 16 {
		return fmt.Sprintf("<%x>", v)
	}
	var le [16]byte
	copy(le[:], v)
	u := binary.LittleEndian.Uint64(le[:])
	switch t {
	case cfile.Uint8, cfile.Uint16, cfile.Uint32, cfile.Uint64:
		return strconv.FormatUint(u, 10)
	case cfile.Bool:
		return strconv.FormatBool(v[0] != 0)
	case cfile.Float:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(u))), 'g', -1, 32)
	case cfile.Double:
		return strconv.FormatFloat(math.Float64frombits(u), 'g', -1, 64)
	case cfile.UnixtimeMicros:
		at := time.UnixMicro(int64(u)).UTC()
		return fmt.Sprintf("%d-%02d-%02dT%02d:%02d:%02d.%06dZ", at.Year(), at.Month(), at.Day(), at.Hour(),
			at.Minute(), at.Second(), at.Nanosecond()/1000)
	case cfile.Date:
		days := int32(uint32(u))
		if days < MinDate || days > MaxDate {
			return fmt.Sprintf("value %d out of range for DATE type", days)
		}
		at := time.Unix(int64(days)*86400, 0).UTC()
		return fmt.Sprintf("%d-%02d-%02d", at.Year(), at.Month(), at.Day())
	}
	s := wideInt(v).BigInt().String()
	switch t {
	case cfile.Decimal32:
		return s + "_D32"
	case cfile.Decimal64:
		return s + "_D64"
	case cfile.Decimal128:
		return s + "_D128"
	}
	return s
}

// The range of Kudu's DATE, in days since 1970-01-01: 0001-01-01 to 9999-12-31.
const MinDate, MaxDate = -719162, 2932896

// escaped writes bytes as in a C string literal: binary with hexadecimal escapes; text with octal ones, UTF-8 as it is.
func escaped(v []byte, binary bool) string {
	var b strings.Builder
	hexed := false // the last thing written was \xNN: a hexadecimal digit after it must be escaped, too
	for _, x := range v {
		was := hexed
		hexed = false
		switch {
		case x == '\n':
			b.WriteString(`\n`)
		case x == '\r':
			b.WriteString(`\r`)
		case x == '\t':
			b.WriteString(`\t`)
		case x == '"' || x == '\'' || x == '\\':
			b.WriteByte('\\')
			b.WriteByte(x)
		case x >= 0x80 && !binary, x >= ' ' && x < 0x7f && !(was && isHex(x)):
			b.WriteByte(x)
		case binary:
			fmt.Fprintf(&b, `\x%02x`, x)
			hexed = true
		default:
			fmt.Fprintf(&b, `\%03o`, x)
		}
	}
	return b.String()
}

func isHex(x byte) bool {
	return x >= '0' && x <= '9' || x >= 'a' && x <= 'f' || x >= 'A' && x <= 'F'
}

// minValue is the minimum of a type that can be a key, in stored form.
func minValue(t cfile.Type) []byte {
	v := make([]byte, t.Width())
	switch t {
	case cfile.Uint8, cfile.Uint16, cfile.Uint32, cfile.Uint64:
	case cfile.Date:
		days := int32(MinDate)
		binary.LittleEndian.PutUint32(v, uint32(days))
	default:
		if len(v) > 0 {
			v[len(v)-1] = 0x80
		}
	}
	return v
}

// KeyText writes an encoded primary key as Kudu's tools do: (1, "a"), cut at the first column after the first that has
// its minimum.
func (s *Schema) KeyText(key []byte) (string, error) {
	values, err := cfile.DecodeKey(key, s.KeyTypes())
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteByte('(')
	for i, v := range values {
		t := s.Columns[i].Type
		if i > 0 {
			if string(v) == string(minValue(t)) {
				break
			}
			b.WriteString(", ")
		}
		b.WriteString(ValueText(t, v))
	}
	b.WriteByte(')')
	return b.String(), nil
}
