// Package hive has the names of directories in which Hive and Spark keep partitions: y=2024/region=a%2Fb. It converts
// values to such names and back, and keeps the schema that stoa writes beside them.
package hive

import (
	"encoding/json"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/internal/arrowschema"
)

// Null is the value, in a name, of null.
const Null = "__HIVE_DEFAULT_PARTITION__"

// EmptyMark is the file of a table without rows. Hive and Spark ignore names that begin with an underscore.
const EmptyMark = "_EMPTY"

// SchemaFile is the file, beside the partitions, that has the schema of a table that stoa wrote: names of directories
// do not have types.
const SchemaFile = "_stoa_partitions.json"

// Value is a partition column and the text of its value, as they are in the name of a directory, still escaped.
type Value struct{ Column, Text string }

// Split returns the column and the value in the name of a directory; ok is false for a directory that is no partition.
func Split(dir string) (v Value, ok bool) {
	name, text, ok := strings.Cut(path.Base(dir), "=")
	return Value{Unescape(name), text}, ok && name != ""
}

// Dir returns the name of the directory of a value.
func Dir(column string, a arrow.Array, i int) (string, error) {
	text, err := Text(a, i)
	if err != nil {
		return "", fault.Invalidf("partition column %s: %v", column, err)
	}
	return Escape(column) + "=" + text, nil
}

// stampLayout is Spark's form of timestamps in names; the fraction is optional.
const stampLayout = "2006-01-02 15:04:05.999999999"

// Text returns a value as it is in the name of a directory, escaped. An empty text has no representation: Hive and
// Spark read it as null.
func Text(a arrow.Array, i int) (string, error) {
	if a.IsNull(i) {
		return Null, nil
	}
	var s string
	switch a := a.(type) {
	case *array.Timestamp:
		s = a.Value(i).ToTime(a.DataType().(*arrow.TimestampType).Unit).Format(stampLayout)
	case *array.Float32:
		s = floatText(float64(a.Value(i)), 32)
	case *array.Float64:
		s = floatText(a.Value(i), 64)
	case array.StringLike:
		s = a.Value(i)
	case *array.Decimal128: // in full, not as 3e-08
		s = a.Value(i).ToString(a.DataType().(*arrow.Decimal128Type).Scale)
	case *array.Int8, *array.Int16, *array.Int32, *array.Int64, *array.Uint8, *array.Uint16, *array.Uint32,
		*array.Uint64, *array.Boolean, *array.Date32, *array.Dictionary:
		s = a.ValueStr(i)
	default:
		return "", fmt.Errorf("values of type %s cannot be names of directories", a.DataType())
	}
	if s == "" || s == Null {
		return "", fmt.Errorf("%q cannot be told from null in the name of a directory", s)
	}
	return Escape(s), nil
}

func floatText(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 0):
		return strings.TrimPrefix(strconv.FormatFloat(f, 'g', -1, 64), "+") + "inity"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// Escape writes as %XX the characters that Hive and Spark escape in names of partitions.
func Escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0 || i == 0 && c == '.' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// Unescape undoes Escape.
func Unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Parse returns an array with the one value of a text in the name of a directory.
func Parse(t arrow.DataType, text string) (arrow.Array, error) {
	b := array.NewBuilder(memory.NewGoAllocator(), t)
	defer b.Release()
	if text == Null {
		b.AppendNull()
		return b.NewArray(), nil
	}
	text = Unescape(text)
	ts, ok := b.(*array.TimestampBuilder)
	if !ok {
		if err := b.AppendValueFromString(text); err != nil {
			return nil, err
		}
		return b.NewArray(), nil
	}
	when, err := time.Parse(stampLayout, text)
	if err != nil {
		return nil, err
	}
	v, err := arrow.TimestampFromTime(when, t.(*arrow.TimestampType).Unit)
	if err != nil {
		return nil, err
	}
	ts.Append(v)
	return b.NewArray(), nil
}

// TypeOf infers the type of a column from the texts of its values: int64, float64, date32, a timestamp in microseconds,
// or else a string. A text that another type would print differently, such as 007, makes the column a string.
func TypeOf(texts []string) arrow.DataType {
	stamp := &arrow.TimestampType{Unit: arrow.Microsecond}
	forms := []struct {
		t    arrow.DataType
		same func(s string) bool
	}{
		{arrow.PrimitiveTypes.Int64, func(s string) bool {
			n, err := strconv.ParseInt(s, 10, 64)
			return err == nil && strconv.FormatInt(n, 10) == s
		}},
		{arrow.PrimitiveTypes.Float64, func(s string) bool {
			f, err := strconv.ParseFloat(s, 64)
			return err == nil && floatText(f, 64) == s
		}},
		{arrow.FixedWidthTypes.Date32, func(s string) bool {
			_, err := time.Parse(time.DateOnly, s)
			return err == nil
		}},
		{stamp, func(s string) bool {
			at, err := time.Parse(stampLayout, s)
			return err == nil && at.Truncate(time.Microsecond).Format(stampLayout) == s
		}},
	}
	for _, f := range forms {
		fits, any := true, false
		for _, s := range texts {
			if s == Null {
				continue
			}
			if any = true; !f.same(Unescape(s)) {
				fits = false
				break
			}
		}
		if fits && any {
			return f.t
		}
	}
	return arrow.BinaryTypes.String
}

// Schema is the content of SchemaFile.
type Schema struct {
	Stoa       string   `json:"stoa"`       // "partitions"
	Partitions []string `json:"partitions"` // the columns that are directories, in order
	Arrow      []byte   `json:"arrow"`      // the schema of the table: an Arrow IPC message
}

const ofPartitions = "partitions"

// Encode returns the content of SchemaFile.
func Encode(sc *arrow.Schema, partitions []string) ([]byte, error) {
	b, err := arrowschema.Encode(sc)
	if err != nil {
		return nil, err
	}
	out, err := json.MarshalIndent(Schema{ofPartitions, partitions, b}, "", "  ")
	return append(out, '\n'), err
}

// Decode reads the content of SchemaFile.
func Decode(b []byte) (*arrow.Schema, []string, error) {
	var s Schema
	if err := json.Unmarshal(b, &s); err != nil || s.Stoa != ofPartitions {
		return nil, nil, fmt.Errorf("expected the schema of a table with partitions, found something else")
	}
	sc, err := arrowschema.Decode(s.Arrow)
	return sc, s.Partitions, err
}
