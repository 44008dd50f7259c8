package cells

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/internal/enc/half"
)

// AppendCell appends row i of arr as in a table for people: strings without quotes, decimals with all digits of their
// scale, binary as 0x…, nested values as JSON. Null is written as null; strings are not escaped.
func AppendCell(dst []byte, arr arrow.Array, i int) []byte {
	if arr.IsNull(i) {
		return append(dst, "null"...)
	}
	if b := binaryOf(arr); b != nil {
		return hex.AppendEncode(append(dst, "0x"...), b(i))
	}
	if _, ok := arr.(array.ExtensionArray); ok {
		return unquoted(jsonAny(arr))(dst, i)
	}
	if a, ok := arr.(*array.Dictionary); ok {
		return AppendCell(dst, a.Dictionary(), a.GetValueIndex(i))
	}
	if f := plainTime(arr, ' ', true); f != nil {
		return f(dst, i)
	}
	return plainCell(arr)(dst, i)
}

// AppendCSV appends row i of arr, which is not null, as in CSV before quoting.
func AppendCSV(dst []byte, arr arrow.Array, i int) []byte { return csvCell(arr)(dst, i) }

// csvCell writes rows that are not null, as in CSV before quoting: numbers in their shortest form that reads back as
// the same value, decimals with all digits of the scale, dates as ISO 8601, timestamps as RFC 3339 with the digits of
// their unit, binary in base64, nested types as JSON.
func csvCell(a arrow.Array) appender {
	if b := binaryOf(a); b != nil {
		return func(dst []byte, i int) []byte { return base64.StdEncoding.AppendEncode(dst, b(i)) }
	}
	if s := stored(a); s != nil {
		return csvCell(s)
	}
	switch a := a.(type) {
	case *array.Dictionary:
		f := csvCell(a.Dictionary())
		return func(dst []byte, i int) []byte { return f(dst, a.GetValueIndex(i)) }
	case *array.RunEndEncoded:
		f := csvCell(a.Values())
		return func(dst []byte, i int) []byte { return f(dst, a.GetPhysicalIndex(i)) }
	}
	if f := plainTime(a, 'T', false); f != nil {
		return f
	}
	return plainCell(a)
}

func plainCell(a arrow.Array) appender {
	switch a := a.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.LargeString:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.StringView:
		return func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) }
	case *array.Float16:
		return func(dst []byte, i int) []byte { return appendFloat(dst, float64(half.Float(a.Value(i).Uint16())), 32) }
	case *array.Float32:
		return func(dst []byte, i int) []byte { return appendFloat(dst, float64(a.Value(i)), 32) }
	case *array.Float64:
		return func(dst []byte, i int) []byte { return appendFloat(dst, a.Value(i), 64) }
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		scale := int(a.DataType().(arrow.DecimalType).GetScale())
		digits := digitsOf(a)
		return func(dst []byte, i int) []byte {
			var b [80]byte
			return plainDecimal(dst, digits(b[:0], i), scale)
		}
	}
	return unquoted(jsonAppender(a))
}

// unquoted removes the quotes of JSON strings, for extension types whose form is a string (a UUID).
func unquoted(f appender) appender {
	return func(dst []byte, i int) []byte {
		at := len(dst)
		dst = f(dst, i)
		if len(dst)-at < 2 || dst[at] != '"' {
			return dst
		}
		var s string
		if json.Unmarshal(dst[at:], &s) != nil {
			return dst
		}
		return append(dst[:at], s...)
	}
}

// appendFloat writes the shortest form; non-finite values are NaN, +Inf and -Inf.
func appendFloat(dst []byte, f float64, bits int) []byte {
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}
