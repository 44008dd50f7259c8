package pred

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/vec"
)

const benchRows = 64 << 10

// bench evaluates the predicate over benchRows rows of one column x.
func bench(b *testing.B, pred string, a arrow.Array, in *vec.Sel) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: a.DataType(), Nullable: true}}, nil)
	e := must(Bind(must(Parse(pred)), sc))
	col := func(string) arrow.Array { return a }
	b.SetBytes(benchRows)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := e.Eval(benchRows, col, in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
}

// column2 makes a column in which one row in nulls is null (0: none).
func column2[B array.Builder](typ arrow.DataType, nulls int, add func(b B, r *rand.Rand)) arrow.Array {
	r := rand.New(rand.NewPCG(1, 2))
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	for range benchRows {
		if nulls > 0 && r.IntN(nulls) == 0 {
			b.AppendNull()
			continue
		}
		add(b.(B), r)
	}
	return b.NewArray()
}

func ints64(nulls int) arrow.Array {
	return column2(arrow.PrimitiveTypes.Int64, nulls,
		func(b *array.Int64Builder, r *rand.Rand) { b.Append(r.Int64N(1000)) })
}

func benchStrings() arrow.Array {
	return column2(arrow.BinaryTypes.String, 10,
		func(b *array.StringBuilder, r *rand.Rand) { b.Append(fmt.Sprintf("name-%03d", r.IntN(1000))) })
}

func BenchmarkInt64Greater(b *testing.B)      { bench(b, "x > 500", ints64(0), nil) }
func BenchmarkInt64GreaterNulls(b *testing.B) { bench(b, "x > 500", ints64(10), nil) }
func BenchmarkInt64In(b *testing.B)           { bench(b, "x in (1, 5, 700, 200)", ints64(10), nil) }
func BenchmarkInt64And(b *testing.B)          { bench(b, "x > 100 and x < 900 and x != 500", ints64(10), nil) }
func BenchmarkInt64GreaterSparse(b *testing.B) {
	bits := make([]byte, benchRows/8)
	for i := 0; i < len(bits); i += 100 {
		bits[i] = 1
	}
	bench(b, "x > 500", ints64(0), vec.NewSel(bits, benchRows))
}

func BenchmarkInt32Greater(b *testing.B) {
	bench(b, "x > 500", column2(arrow.PrimitiveTypes.Int32, 10,
		func(b *array.Int32Builder, r *rand.Rand) { b.Append(r.Int32N(1000)) }), nil)
}

func BenchmarkInt8Greater(b *testing.B) {
	bench(b, "x > 50", column2(arrow.PrimitiveTypes.Int8, 10,
		func(b *array.Int8Builder, r *rand.Rand) { b.Append(int8(r.IntN(100))) }), nil)
}

func BenchmarkFloat64Between(b *testing.B) {
	bench(b, "x between 0.25 and 0.75", column2(arrow.PrimitiveTypes.Float64, 10,
		func(b *array.Float64Builder, r *rand.Rand) { b.Append(r.Float64()) }), nil)
}

func BenchmarkDecimal128Less(b *testing.B) {
	typ := &arrow.Decimal128Type{Precision: 20, Scale: 2}
	bench(b, "x < 5.5", column2(typ, 10,
		func(b *array.Decimal128Builder, r *rand.Rand) { b.Append(decimal128.FromI64(r.Int64N(1000))) }), nil)
}

func BenchmarkStringEqual(b *testing.B) { bench(b, "x = 'name-500'", benchStrings(), nil) }
func BenchmarkStringLess(b *testing.B)  { bench(b, "x < 'name-500'", benchStrings(), nil) }
func BenchmarkStringIn(b *testing.B) {
	bench(b, "x in ('name-500', 'name-501', 'x')", benchStrings(), nil)
}
func BenchmarkLikePrefix(b *testing.B)   { bench(b, "x like 'name-5%'", benchStrings(), nil) }
func BenchmarkLikeContains(b *testing.B) { bench(b, "x like '%-5%'", benchStrings(), nil) }
func BenchmarkLikeGeneral(b *testing.B)  { bench(b, "x like '%e_5%0'", benchStrings(), nil) }

func BenchmarkDictionary(b *testing.B) {
	typ := dict(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String)
	codes := column2(arrow.PrimitiveTypes.Int32, 10,
		func(b *array.Int32Builder, r *rand.Rand) { b.Append(r.Int32N(1000)) })
	values := array.NewStringBuilder(memory.DefaultAllocator)
	for i := range 1000 {
		values.Append(fmt.Sprintf("name-%03d", i))
	}
	bench(b, "x like '%5'", array.NewDictionaryArray(typ, codes, values.NewArray()), nil)
}

func BenchmarkPrune(b *testing.B) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64},
		{Name: "s", Type: arrow.BinaryTypes.String}}, nil)
	e := must(Bind(must(Parse("x > 500 and s like 'abc%'")), sc))
	lo, hi, from, to := Int(400), Int(900), String("abb"), String("abd")
	known := map[string]*Bounds{"x": {Min: &lo, Max: &hi, Rows: 10}, "s": {Min: &from, Max: &to, Rows: 10}}
	b.ReportAllocs()
	for b.Loop() {
		e.Prune(func(p string) *Bounds { return known[p] })
	}
}

// parsed are texts of predicates, by what they are like.
var parsed = []struct{ name, text string }{
	{"one test", "i64 > 500"},
	{"ten tests", strings.Repeat("i64 > 500 and s like 'name-5%' or ", 5) + "b"},
	{"a list of 1000", "i64 in (" + strings.Repeat("123456, ", 999) + "7)"},
	{"expressions", "i64 * 2 + i32 > round(f64, 2) and lower(s) || 'x' ~ '^a.*z$' and " +
		"case when i8 > 0 then date_trunc('month', ts_us) else null end >= date '2024-02-29'"},
}

func BenchmarkParse(b *testing.B) {
	for _, p := range parsed {
		b.Run(p.name, func(b *testing.B) {
			b.SetBytes(int64(len(p.text)))
			b.ReportAllocs()
			for b.Loop() {
				must(Parse(p.text))
			}
		})
	}
}

func BenchmarkBind(b *testing.B) {
	for _, p := range parsed {
		b.Run(p.name, func(b *testing.B) {
			e := must(Parse(p.text))
			b.ReportAllocs()
			for b.Loop() {
				must(Bind(e, testSchema))
			}
		})
	}
}
