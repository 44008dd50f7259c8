package cells

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/internal/enc/half"
)

// appender appends the text of row i of one array. It is made once per array, so that the switch over types is outside
// of the loop over rows.
type appender func(dst []byte, i int) []byte

// AppendJSON appends row i of arr as JSON. Values are those of arrow-go's own record-to-JSON form (GetOneForMarshal),
// except for -0.0 and decimals: numbers as numbers (NaN, +Inf and -Inf as strings), decimals as strings with all digits
// of their scale, dates, times, timestamps and durations as strings, binary in base64, structs as objects, lists as
// arrays, maps as arrays of {"key", "value"}, unions as [type code, value], extensions as their storage. The fields of
// a struct keep their order.
func AppendJSON(dst []byte, arr arrow.Array, i int) []byte { return jsonAppender(arr)(dst, i) }

// jsonAppender is AppendJSON for many rows of a.
func jsonAppender(a arrow.Array) appender {
	f := jsonValue(a)
	if a.NullN() == 0 {
		return f
	}
	return func(dst []byte, i int) []byte {
		if a.IsNull(i) {
			return append(dst, "null"...)
		}
		return f(dst, i)
	}
}

// jsonValue writes rows that are not null.
func jsonValue(a arrow.Array) appender {
	if s := stored(a); s != nil {
		return jsonAppender(s)
	}
	if f := integers(a); f != nil {
		return f
	}
	if f := jsonFloat(a); f != nil {
		return f
	}
	if f := jsonTime(a); f != nil {
		return f
	}
	if f := jsonBytes(a); f != nil {
		return f
	}
	if f := jsonNested(a); f != nil {
		return f
	}
	switch a := a.(type) {
	case *array.Null:
		return func(dst []byte, _ int) []byte { return append(dst, "null"...) }
	case *array.Boolean:
		return func(dst []byte, i int) []byte { return strconv.AppendBool(dst, a.Value(i)) }
	case *array.Decimal32, *array.Decimal64, *array.Decimal128, *array.Decimal256:
		return jsonDecimal(a)
	}
	return jsonAny(a)
}

// stored returns the storage of an extension array, since storage values can be loaded into a column of any table to
// which the array was converted, and an extension's own form (such as that of a UUID) cannot. It returns nil if a is
// not an extension, or if it is a VARIANT, whose two binary columns would be unreadable.
func stored(a arrow.Array) arrow.Array {
	x, ok := a.(array.ExtensionArray)
	if !ok || x.ExtensionType().ExtensionName() == "parquet.variant" {
		return nil
	}
	return x.Storage()
}

// jsonAny is the slow path: arrow-go's own value, through encoding/json. It serves extension types that have their own
// form.
func jsonAny(a arrow.Array) appender {
	return func(dst []byte, i int) []byte {
		b, err := json.Marshal(a.GetOneForMarshal(i))
		if err != nil {
			return appendJSONString(dst, a.ValueStr(i))
		}
		return append(dst, b...)
	}
}

// integers writes integers of every width; nil if a has another type.
func integers(a arrow.Array) appender {
	switch a := a.(type) {
	case *array.Int8:
		return signed(a.Int8Values())
	case *array.Int16:
		return signed(a.Int16Values())
	case *array.Int32:
		return signed(a.Int32Values())
	case *array.Int64:
		return signed(a.Int64Values())
	case *array.Uint8:
		return unsigned(a.Uint8Values())
	case *array.Uint16:
		return unsigned(a.Uint16Values())
	case *array.Uint32:
		return unsigned(a.Uint32Values())
	case *array.Uint64:
		return unsigned(a.Uint64Values())
	}
	return nil
}

func signed[T int8 | int16 | int32 | int64](v []T) appender {
	return func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(v[i]), 10) }
}

func unsigned[T uint8 | uint16 | uint32 | uint64](v []T) appender {
	return func(dst []byte, i int) []byte { return strconv.AppendUint(dst, uint64(v[i]), 10) }
}

func jsonFloat(a arrow.Array) appender {
	switch a := a.(type) {
	case *array.Float16:
		return func(dst []byte, i int) []byte {
			return appendJSONFloat(dst, float64(half.Float(a.Value(i).Uint16())), 32)
		}
	case *array.Float32:
		v := a.Float32Values()
		return func(dst []byte, i int) []byte { return appendJSONFloat(dst, float64(v[i]), 32) }
	case *array.Float64:
		v := a.Float64Values()
		return func(dst []byte, i int) []byte { return appendJSONFloat(dst, v[i], 64) }
	}
	return nil
}

// appendJSONFloat writes the shortest form that reads back as f, with an exponent wherever encoding/json writes one.
func appendJSONFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case f != f:
		return append(dst, `"NaN"`...)
	case f > math.MaxFloat64:
		return append(dst, `"+Inf"`...)
	case f < -math.MaxFloat64:
		return append(dst, `"-Inf"`...)
	case f == 0 && math.Signbit(f): // written as -0, many readers would parse it as an integer and lose the sign
		return append(dst, "-0.0"...)
	}
	abs, form := math.Abs(f), byte('f')
	if abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, f, form, -1, bits)
}

func jsonDecimal(a arrow.Array) appender {
	scale := int(a.DataType().(arrow.DecimalType).GetScale())
	digits := digitsOf(a)
	return func(dst []byte, i int) []byte {
		var b [80]byte
		dst = plainDecimal(append(dst, '"'), digits(b[:0], i), scale)
		return append(dst, '"')
	}
}

// jsonTime writes dates, times of day, timestamps, durations and intervals; nil if a has another type.
func jsonTime(a arrow.Array) appender {
	switch a := a.(type) {
	case *array.MonthInterval:
		return func(dst []byte, i int) []byte { return appendInterval(dst, []string{"months"}, int64(a.Value(i))) }
	case *array.DayTimeInterval:
		return func(dst []byte, i int) []byte {
			v := a.Value(i)
			return appendInterval(dst, []string{"days", "milliseconds"}, int64(v.Days), int64(v.Milliseconds))
		}
	case *array.MonthDayNanoInterval:
		return func(dst []byte, i int) []byte {
			v := a.Value(i)
			return appendInterval(dst, []string{"months", "days", "nanoseconds"}, int64(v.Months), int64(v.Days),
				v.Nanoseconds)
		}
	}
	f := plainTime(a, 'T', true)
	if f == nil {
		return nil
	}
	return func(dst []byte, i int) []byte { return append(f(append(dst, '"'), i), '"') }
}

func appendInterval(dst []byte, names []string, values ...int64) []byte {
	sep := byte('{')
	for k, n := range names {
		dst = append(append(append(dst, sep, '"'), n...), '"', ':')
		dst = strconv.AppendInt(dst, values[k], 10)
		sep = ','
	}
	return append(dst, '}')
}

// plainTime writes dates, times, timestamps and durations without quotes; nil if a has another type. sep is written
// between the date and the time of a timestamp; trim omits trailing zeros of the fraction.
func plainTime(a arrow.Array, sep byte, trim bool) appender {
	switch a := a.(type) {
	case *array.Date32:
		return func(dst []byte, i int) []byte { return appendDate(dst, int64(a.Value(i))) }
	case *array.Date64:
		return func(dst []byte, i int) []byte { return appendDate(dst, int64(a.Value(i))/(SecondsPerDay*1000)) }
	case *array.Time32:
		return clock(a.DataType().(*arrow.Time32Type).Unit, trim, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Time64:
		return clock(a.DataType().(*arrow.Time64Type).Unit, trim, func(i int) int64 { return int64(a.Value(i)) })
	case *array.Timestamp:
		s := newStamp(a.DataType().(*arrow.TimestampType), sep, trim)
		return func(dst []byte, i int) []byte { return s.append(dst, int64(a.Value(i))) }
	case *array.Duration:
		unit := a.DataType().(*arrow.DurationType).Unit.String()
		return func(dst []byte, i int) []byte {
			return append(strconv.AppendInt(dst, int64(a.Value(i)), 10), unit...)
		}
	}
	return nil
}

// clock writes times of day; values outside a day are reduced modulo a day, as in arrow-go.
func clock(u arrow.TimeUnit, trim bool, value func(int) int64) appender {
	per, digits := PerSecond(u)
	return func(dst []byte, i int) []byte {
		sec, frac := floorDiv(value(i), per)
		_, sec = floorDiv(sec, SecondsPerDay)
		return appendFraction(appendClock(dst, sec), frac, digits, trim)
	}
}

// jsonBytes writes strings and binary; nil if a has another type.
func jsonBytes(a arrow.Array) appender {
	switch a := a.(type) {
	case *array.String:
		return func(dst []byte, i int) []byte { return appendJSONString(dst, a.Value(i)) }
	case *array.LargeString:
		return func(dst []byte, i int) []byte { return appendJSONString(dst, a.Value(i)) }
	case *array.StringView:
		return func(dst []byte, i int) []byte { return appendJSONString(dst, a.Value(i)) }
	}
	f := binaryOf(a)
	if f == nil {
		return nil
	}
	return func(dst []byte, i int) []byte {
		dst = base64.StdEncoding.AppendEncode(append(dst, '"'), f(i))
		return append(dst, '"')
	}
}

// binaryOf returns a function that returns the bytes of binary values; nil if a has another type.
func binaryOf(a arrow.Array) func(i int) []byte {
	switch a := a.(type) {
	case *array.Binary:
		return a.Value
	case *array.LargeBinary:
		return a.Value
	case *array.BinaryView:
		return a.Value
	case *array.FixedSizeBinary:
		return a.Value
	}
	return nil
}

const hexDigits = "0123456789abcdef"

// appendJSONString quotes s. Bytes that are not UTF-8 become U+FFFD.
func appendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[start:i]...), "\ufffd"...)
				start = i + 1
			}
			i += n
			continue
		}
		dst = appendEscape(append(dst, s[start:i]...), c)
		i++
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// jsonNested writes arrays that consist of other arrays; nil if a has another type.
func jsonNested(a arrow.Array) appender {
	switch a := a.(type) {
	case *array.Struct:
		return jsonStruct(a)
	case array.ListLike: // lists of every kind, and maps
		item := jsonAppender(a.ListValues())
		return func(dst []byte, i int) []byte {
			from, to := a.ValueOffsets(i)
			dst = append(dst, '[')
			for k := from; k < to; k++ {
				if k > from {
					dst = append(dst, ',')
				}
				dst = item(dst, int(k))
			}
			return append(dst, ']')
		}
	case *array.Dictionary:
		value := jsonAppender(a.Dictionary())
		return func(dst []byte, i int) []byte { return value(dst, a.GetValueIndex(i)) }
	case *array.RunEndEncoded:
		value := jsonAppender(a.Values())
		return func(dst []byte, i int) []byte { return value(dst, a.GetPhysicalIndex(i)) }
	case array.Union:
		return jsonUnion(a)
	}
	return nil
}

func jsonStruct(a *array.Struct) appender {
	t := a.DataType().(*arrow.StructType)
	fields := make([]appender, t.NumFields())
	names := make([][]byte, t.NumFields())
	for k := range fields {
		fields[k] = jsonAppender(a.Field(k))
		names[k] = jsonName(t.Field(k).Name, k)
	}
	return func(dst []byte, i int) []byte { return appendObject(dst, names, fields, i) }
}

// jsonName returns the text before a member's value: the brace or comma, the name, the colon.
func jsonName(name string, k int) []byte {
	sep := byte(',')
	if k == 0 {
		sep = '{'
	}
	return append(appendJSONString([]byte{sep}, name), ':')
}

func appendObject(dst []byte, names [][]byte, fields []appender, i int) []byte {
	if len(fields) == 0 {
		return append(dst, '{', '}')
	}
	for k, f := range fields {
		dst = f(append(dst, names[k]...), i)
	}
	return append(dst, '}')
}

// jsonUnion writes [type code, value], or null if the value is null.
func jsonUnion(a array.Union) appender {
	children, null := make([]appender, a.NumFields()), Nulls(a)
	for k := range children {
		children[k] = jsonAppender(a.Field(k))
	}
	row := func(i int) int { return i }
	if d, ok := a.(*array.DenseUnion); ok {
		offsets := d.RawValueOffsets()
		row = func(i int) int { return int(offsets[i]) }
	}
	codes := a.RawTypeCodes()
	return func(dst []byte, i int) []byte {
		if null(i) {
			return append(dst, "null"...)
		}
		child := a.ChildID(i)
		dst = strconv.AppendInt(append(dst, '['), int64(codes[i]), 10)
		return append(children[child](append(dst, ','), row(i)), ']')
	}
}
