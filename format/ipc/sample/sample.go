// Package sample makes record batches of random values, of every Arrow type, for tests.
package sample

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/enc/half"
)

// Scalars returns scalar types that most formats support.
func Scalars() []arrow.DataType {
	return []arrow.DataType{
		arrow.FixedWidthTypes.Boolean,
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
		arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32,
		arrow.PrimitiveTypes.Uint64,
		arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.Binary,
		arrow.BinaryTypes.LargeBinary,
		&arrow.FixedSizeBinaryType{ByteWidth: 5},
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64,
		arrow.FixedWidthTypes.Time32s, arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64us,
		arrow.FixedWidthTypes.Time64ns,
		&arrow.TimestampType{Unit: arrow.Second}, &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"},
		&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "Europe/Paris"},
		&arrow.TimestampType{Unit: arrow.Nanosecond},
		&arrow.Decimal128Type{Precision: 9, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 10},
		&arrow.Decimal256Type{Precision: 76, Scale: 6},
	}
}

// Rare returns further scalar types, which not every format supports.
func Rare() []arrow.DataType {
	return []arrow.DataType{
		arrow.Null, arrow.BinaryTypes.StringView, arrow.BinaryTypes.BinaryView,
		arrow.FixedWidthTypes.Duration_s, arrow.FixedWidthTypes.Duration_ns,
		&arrow.Decimal32Type{Precision: 7, Scale: 3}, &arrow.Decimal64Type{Precision: 15, Scale: 4},
		arrow.FixedWidthTypes.MonthInterval, arrow.FixedWidthTypes.DayTimeInterval,
		arrow.FixedWidthTypes.MonthDayNanoInterval,
	}
}

// Nested returns lists, structs and maps.
func Nested() []arrow.DataType {
	str := arrow.BinaryTypes.String
	inner := arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "y", Type: str, Nullable: true})
	return []arrow.DataType{
		arrow.ListOf(arrow.PrimitiveTypes.Int64), inner, arrow.MapOf(str, arrow.PrimitiveTypes.Float64),
		arrow.ListOf(inner), arrow.StructOf(arrow.Field{Name: "l", Type: arrow.ListOf(str), Nullable: true}),
		arrow.ListOf(arrow.ListOf(str)),
	}
}

// NestedRare returns further nested types.
func NestedRare() []arrow.DataType {
	return []arrow.DataType{
		arrow.LargeListOf(arrow.BinaryTypes.String), arrow.FixedSizeListOf(3, arrow.PrimitiveTypes.Int16),
		&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
	}
}

// Schema returns a schema with one nullable field for each type, named by its index and type.
func Schema(types ...arrow.DataType) *arrow.Schema {
	fields := make([]arrow.Field, len(types))
	for i, t := range types {
		fields[i] = arrow.Field{Name: fmt.Sprintf("f%d_%s", i, t.Name()), Type: t, Nullable: true}
	}
	return arrow.NewSchema(fields, nil)
}

// Batch returns rows random rows of sc; a nullable cell is null with probability nulls.
func Batch(r *rand.Rand, sc *arrow.Schema, rows int, nulls float64) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), sc)
	defer b.Release()
	g := gen{r, nulls}
	for i, f := range sc.Fields() {
		for range rows {
			g.value(b.Field(i), f.Type, f.Nullable)
		}
	}
	return b.NewRecordBatch()
}

type gen struct {
	*rand.Rand
	nulls float64
}

// words are strings that some format handles specially.
var words = []string{"", " ", "a", "null", "NULL", "NaN", "true", "0", "a,b", "a\tb", "a\"b", "line\nbreak",
	"cr\r\nlf", "\\N", "日本語", "é\u2028", " padded ", "{\"k\":1}", "\x01\x7f", "\ufeffbom", "-", "1e5"}

func (g gen) value(b array.Builder, t arrow.DataType, nullable bool) {
	if nullable && g.Float64() < g.nulls {
		b.AppendNull()
		return
	}
	if g.number(b) || g.time(b, t) || g.decimal(b, t) || g.bytes(b, t) {
		return
	}
	switch b := b.(type) {
	case *array.NullBuilder:
		b.AppendNull()
	case *array.BooleanBuilder:
		b.Append(g.IntN(2) == 0)
	case *array.StructBuilder:
		b.Append(true)
		for i, f := range t.(*arrow.StructType).Fields() {
			g.value(b.FieldBuilder(i), f.Type, f.Nullable)
		}
	case *array.MapBuilder:
		b.Append(true)
		m := t.(*arrow.MapType)
		for range g.IntN(4) {
			g.value(b.KeyBuilder(), m.KeyType(), false)
			g.value(b.ItemBuilder(), m.ItemType(), true)
		}
	case *array.FixedSizeListBuilder:
		b.Append(true)
		f := t.(*arrow.FixedSizeListType)
		for range f.Len() {
			g.value(b.ValueBuilder(), f.Elem(), true)
		}
	case array.ListLikeBuilder:
		b.Append(true)
		for range g.IntN(4) {
			g.value(b.ValueBuilder(), t.(arrow.ListLikeType).Elem(), true)
		}
	case *array.BinaryDictionaryBuilder:
		if err := b.AppendString(words[g.IntN(8)]); err != nil {
			panic(err)
		}
	default:
		panic(fmt.Sprintf("no values for %T", b))
	}
}

// bits returns integers of all magnitudes.
func (g gen) bits() uint64 {
	v := g.Uint64() >> g.IntN(64)
	if g.IntN(2) == 0 {
		return -v
	}
	return v
}

func (g gen) number(b array.Builder) bool {
	floats := []float64{0, math.Copysign(0, -1), 1, -1.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64,
		math.SmallestNonzeroFloat64, 1e21, 1e-7, 0.1, 123456789.25}
	f := floats[g.IntN(len(floats))]
	if g.IntN(2) == 0 {
		f = g.NormFloat64() * math.Pow(10, float64(g.IntN(30)-15))
	}
	switch b := b.(type) {
	case *array.Int8Builder:
		b.Append(int8(g.bits()))
	case *array.Int16Builder:
		b.Append(int16(g.bits()))
	case *array.Int32Builder:
		b.Append(int32(g.bits()))
	case *array.Int64Builder:
		b.Append(int64(g.bits()))
	case *array.Uint8Builder:
		b.Append(uint8(g.bits()))
	case *array.Uint16Builder:
		b.Append(uint16(g.bits()))
	case *array.Uint32Builder:
		b.Append(uint32(g.bits()))
	case *array.Uint64Builder:
		b.Append(g.bits())
	case *array.Float16Builder:
		b.Append(float16.FromBits(half.Of(g.NormFloat64() * 100)))
	case *array.Float32Builder:
		b.Append(float32(f))
	case *array.Float64Builder:
		b.Append(f)
	default:
		return false
	}
	return true
}

func (g gen) time(b array.Builder, t arrow.DataType) bool {
	const day = 86400
	seconds := g.Int64N(200*365*day) - 100*365*day
	switch b := b.(type) {
	case *array.Date32Builder:
		b.Append(arrow.Date32(g.IntN(3_600_000) - 719_000))
	case *array.Date64Builder:
		b.Append(arrow.Date64(int64(g.IntN(3_600_000)-719_000) * day * 1000))
	case *array.Time32Builder:
		b.Append(arrow.Time32(g.Int64N(day) * per(t.(*arrow.Time32Type).Unit)))
	case *array.Time64Builder:
		u := per(t.(*arrow.Time64Type).Unit)
		b.Append(arrow.Time64(g.Int64N(day)*u + g.Int64N(u)))
	case *array.TimestampBuilder:
		u := per(t.(*arrow.TimestampType).Unit)
		b.Append(arrow.Timestamp(seconds*u + g.Int64N(u)))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(g.bits()))
	case *array.MonthIntervalBuilder:
		b.Append(arrow.MonthInterval(g.bits()))
	case *array.DayTimeIntervalBuilder:
		b.Append(arrow.DayTimeInterval{Days: int32(g.bits()), Milliseconds: int32(g.bits())})
	case *array.MonthDayNanoIntervalBuilder:
		b.Append(arrow.MonthDayNanoInterval{Months: int32(g.bits()), Days: int32(g.bits()),
			Nanoseconds: int64(g.bits())})
	default:
		return false
	}
	return true
}

func per(u arrow.TimeUnit) int64 { return int64(1e9 / u.Multiplier().Nanoseconds()) }

func (g gen) decimal(b array.Builder, t arrow.DataType) bool {
	d, ok := t.(arrow.DecimalType)
	if !ok {
		return false
	}
	digits := big.NewInt(0)
	for range g.IntN(int(d.GetPrecision()) + 1) {
		digits.Add(digits.Mul(digits, big.NewInt(10)), big.NewInt(g.Int64N(10)*g.Int64N(2)))
	}
	if g.IntN(2) == 0 {
		digits.Neg(digits)
	}
	switch b := b.(type) {
	case *array.Decimal32Builder:
		b.Append(decimal.Decimal32(digits.Int64()))
	case *array.Decimal64Builder:
		b.Append(decimal.Decimal64(digits.Int64()))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(digits))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(digits))
	}
	return true
}

func (g gen) bytes(b array.Builder, t arrow.DataType) bool {
	raw := make([]byte, g.IntN(12))
	if f, ok := t.(*arrow.FixedSizeBinaryType); ok {
		raw = make([]byte, f.ByteWidth)
	}
	for i := range raw {
		raw[i] = byte(g.Uint32())
	}
	word := words[g.IntN(len(words))]
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(word)
	case *array.LargeStringBuilder:
		b.Append(word)
	case *array.StringViewBuilder:
		b.Append(word + word + word)
	case *array.FixedSizeBinaryBuilder:
		b.Append(raw)
	case *array.BinaryViewBuilder:
		b.Append(raw)
	case *array.BinaryBuilder:
		b.Append(raw)
	default:
		return false
	}
	return true
}
