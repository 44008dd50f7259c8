package content

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/internal/diff"
	"stoa/internal/enc/half"
)

// value is a cell of the reference: nil, int64, uint64, float64, string, *big.Rat, bool, or []value for lists and
// records.
type value any

// random returns a random cell of type t. A few values are frequent, so that rows repeat and differ only slightly.
func random(r *rand.Rand, t arrow.DataType) value {
	if r.IntN(6) == 0 {
		return nil
	}
	small := int64(r.IntN(5)) - 2
	switch t := t.(type) {
	case *arrow.BooleanType:
		return r.IntN(2) == 0
	case *arrow.Uint64Type:
		return uint64(r.IntN(3)) * (math.MaxUint64 / 2)
	case *arrow.Uint8Type, *arrow.Uint16Type, *arrow.Uint32Type:
		return small + 2
	case *arrow.Float16Type, *arrow.Float32Type, *arrow.Float64Type:
		return []float64{0, math.Copysign(0, -1), math.NaN(), math.Inf(1), 1.5, -2}[r.IntN(6)]
	case arrow.DecimalType:
		n := big.NewInt([]int64{0, 1, -1, 10, -100, 1000, 123456789, -5}[r.IntN(8)])
		if r.IntN(3) == 0 && t.GetPrecision() > 30 {
			n.Mul(n, big.NewInt(math.MaxInt64))
		}
		return n
	case arrow.ListLikeType:
		out := make([]value, r.IntN(4))
		if f, ok := t.(*arrow.FixedSizeListType); ok {
			out = make([]value, f.Len())
		}
		for i := range out {
			out[i] = random(r, t.Elem())
			if k, ok := out[i].([]value); ok && t.ID() == arrow.MAP && k[0] == nil {
				k[0] = "k"
			}
			if out[i] == nil && t.ID() == arrow.MAP {
				out[i] = []value{"k", nil}
			}
		}
		return out
	case *arrow.StructType:
		var out []value
		for _, f := range t.Fields() {
			out = append(out, random(r, f.Type))
		}
		return out
	case arrow.UnionType:
		m := member{of: r.IntN(len(t.Fields()))}
		if m.value = random(r, t.Fields()[m.of].Type); m.value == nil {
			return nil
		}
		return m
	case *arrow.NullType:
		return nil
	case *arrow.FixedSizeBinaryType:
		return strings.Repeat(string(rune('a'+r.IntN(3))), t.ByteWidth)
	case *arrow.DictionaryType:
		return random(r, t.ValueType)
	}
	if wayOf(t) == diff.Bytes {
		return strings.Repeat("long text ", r.IntN(3)*r.IntN(9)) + string(rune('a'+r.IntN(2)))
	}
	return small // numbers, instants
}

// member is a value of a union.
type member struct {
	of    int
	value value
}

// putMember appends a value of a union; a null may belong to any member.
func putMember(r *rand.Rand, b array.UnionBuilder, c value) {
	t := b.Type().(arrow.UnionType)
	m, ok := c.(member)
	if !ok {
		m.of = r.IntN(len(t.Fields()))
	}
	b.Append(t.TypeCodes()[m.of])
	for k := range t.Fields() {
		switch {
		case k == m.of:
			put(r, b.Child(k), m.value)
		case t.Mode() == arrow.SparseMode:
			put(r, b.Child(k), random(r, t.Fields()[k].Type))
		}
	}
}

// build makes an array of cells. The values below nulls are noise.
func build(r *rand.Rand, t arrow.DataType, cells []value) arrow.Array {
	b := array.NewBuilder(memory.DefaultAllocator, t)
	defer b.Release()
	for _, c := range cells {
		put(r, b, c)
	}
	a := b.NewArray()
	noise(r, a.Data())
	return a
}

// noise overwrites the values of nulls that have a fixed width.
func noise(r *rand.Rand, d arrow.ArrayData) {
	if t, ok := d.DataType().(arrow.FixedWidthDataType); ok && d.NullN() > 0 && t.BitWidth()%8 == 0 &&
		d.DataType().ID() != arrow.DICTIONARY && len(d.Buffers()) > 1 {
		w := t.BitWidth() / 8
		for i := range d.Len() {
			if d.Buffers()[0].Bytes()[i/8]>>(i%8)&1 == 0 {
				for k := range w {
					d.Buffers()[1].Bytes()[i*w+k] = byte(r.Uint32())
				}
			}
		}
	}
	for _, k := range d.Children() {
		noise(r, k)
	}
}

func put(r *rand.Rand, b array.Builder, c value) {
	if u, ok := b.(array.UnionBuilder); ok {
		putMember(r, u, c)
		return
	}
	if c == nil {
		b.AppendNull()
		return
	}
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(c.(bool))
	case *array.Int8Builder:
		b.Append(int8(c.(int64)))
	case *array.Int16Builder:
		b.Append(int16(c.(int64)))
	case *array.Int32Builder:
		b.Append(int32(c.(int64)))
	case *array.Int64Builder:
		b.Append(c.(int64))
	case *array.Uint8Builder:
		b.Append(uint8(c.(int64)))
	case *array.Uint16Builder:
		b.Append(uint16(c.(int64)))
	case *array.Uint32Builder:
		b.Append(uint32(c.(int64)))
	case *array.Uint64Builder:
		b.Append(c.(uint64))
	case *array.Float16Builder:
		b.Append(float16.FromBits(half.Of(c.(float64))))
	case *array.Float32Builder:
		f := float32(c.(float64))
		if f != f {
			f = math.Float32frombits(0x7fc00000 | r.Uint32()&0xff)
		}
		b.Append(f)
	case *array.Float64Builder:
		f := c.(float64)
		if f != f {
			f = math.Float64frombits(0x7ff8000000000000 | r.Uint64()&0xffff | r.Uint64()<<63)
		}
		b.Append(f)
	case *array.Date32Builder:
		b.Append(arrow.Date32(c.(int64)))
	case *array.Date64Builder:
		b.Append(arrow.Date64(c.(int64)))
	case *array.TimestampBuilder:
		b.Append(arrow.Timestamp(c.(int64)))
	case *array.Time32Builder:
		b.Append(arrow.Time32(c.(int64)))
	case *array.Time64Builder:
		b.Append(arrow.Time64(c.(int64)))
	case *array.DurationBuilder:
		b.Append(arrow.Duration(c.(int64)))
	case *array.Decimal128Builder:
		b.Append(decimal128.FromBigInt(c.(*big.Int)))
	case *array.Decimal256Builder:
		b.Append(decimal256.FromBigInt(c.(*big.Int)))
	case *array.MonthIntervalBuilder:
		b.Append(arrow.MonthInterval(c.(int64)))
	case array.ListLikeBuilder:
		switch l := b.(type) {
		case *array.FixedSizeListBuilder:
			l.Append(true)
		case *array.MapBuilder:
			l.Append(true)
			for _, e := range c.([]value) {
				put(r, l.KeyBuilder(), e.([]value)[0])
				put(r, l.ItemBuilder(), e.([]value)[1])
			}
			return
		default:
			b.(interface{ Append(bool) }).Append(true)
		}
		for _, x := range c.([]value) {
			put(r, b.ValueBuilder(), x)
		}
	case *array.StructBuilder:
		b.Append(true)
		for i, x := range c.([]value) {
			put(r, b.FieldBuilder(i), x)
		}
	case interface{ Append([]byte) }:
		b.Append([]byte(c.(string)))
	case interface{ Append(string) }:
		b.Append(c.(string))
	default:
		if err := b.AppendValueFromString(c.(string)); err != nil {
			panic(err)
		}
	}
}

// says returns a cell as text, which identifies it in the reference.
func says(c value) string {
	switch c := c.(type) {
	case []value:
		var parts []string
		for _, x := range c {
			parts = append(parts, says(x))
		}
		return fmt.Sprintf("%d[%s]", len(c), strings.Join(parts, ","))
	case float64:
		return fmt.Sprintf("%g", c+0)
	case member:
		return fmt.Sprintf("%d: %s", c.of, says(c.value))
	}
	return fmt.Sprintf("%T %q", c, fmt.Sprint(c))
}

// reference returns a table as the number of occurrences of each row.
func reference(rows [][]value) map[string]int {
	out := map[string]int{}
	for _, r := range rows {
		out[says(r)]++
	}
	return out
}

// batches divides rows into batches of random sizes, some of them slices of larger ones.
func batches(r *rand.Rand, sc *arrow.Schema, rows [][]value) (out []arrow.RecordBatch) {
	for from := 0; from < len(rows); {
		n := min(len(rows)-from, 1+r.IntN(40))
		cut := r.IntN(n)
		cols := make([]arrow.Array, sc.NumFields())
		for c, f := range sc.Fields() {
			cells := make([]value, n)
			for i := range cells {
				cells[i] = rows[from+i][c]
			}
			cols[c] = build(r, f.Type, cells)
		}
		b := array.NewRecordBatch(sc, cols, int64(n))
		out = append(out, b.NewSlice(0, int64(cut)), b.NewSlice(int64(cut), int64(n)))
		from += n
	}
	return out
}

func sumOf(r *rand.Rand, p *Plan, side int, sc *arrow.Schema, rows [][]value) Sum {
	s := p.Summer(side)
	for _, b := range batches(r, sc, rows) {
		s.Add(b)
	}
	return s.Sum()
}

// union returns a union of a number, null, a text and a list.
func union(mode arrow.UnionMode) arrow.DataType {
	return arrow.UnionOf(mode, []arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		{Name: "z", Type: arrow.Null, Nullable: true}, {Name: "s", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "l", Type: arrow.ListOf(arrow.PrimitiveTypes.Int8), Nullable: true}},
		[]arrow.UnionTypeCode{4, 0, 9, 1})
}

var everyType = []arrow.DataType{
	union(arrow.DenseMode), union(arrow.SparseMode), arrow.ListOf(union(arrow.DenseMode)),
	arrow.FixedWidthTypes.Boolean, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16,
	arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64,
	arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Uint32, arrow.PrimitiveTypes.Uint64,
	arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64,
	arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, arrow.BinaryTypes.Binary,
	arrow.BinaryTypes.LargeBinary,
	&arrow.FixedSizeBinaryType{ByteWidth: 3},
	arrow.PrimitiveTypes.Date32, arrow.PrimitiveTypes.Date64, arrow.FixedWidthTypes.Timestamp_s,
	arrow.FixedWidthTypes.Timestamp_ns,
	arrow.FixedWidthTypes.Time32ms, arrow.FixedWidthTypes.Time64ns, arrow.FixedWidthTypes.Duration_us,
	&arrow.Decimal128Type{Precision: 38, Scale: 3}, &arrow.Decimal256Type{Precision: 60, Scale: 2},
	&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
	arrow.ListOf(arrow.PrimitiveTypes.Int32), arrow.LargeListOf(arrow.ListOf(arrow.BinaryTypes.String)),
	arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16),
	arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64), arrow.FixedWidthTypes.MonthInterval,
	arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "y", Type: arrow.ListOf(arrow.BinaryTypes.String), Nullable: true}),
	arrow.ListOf(arrow.StructOf(arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int8, Nullable: true},
		arrow.Field{Name: "y", Type: arrow.BinaryTypes.String, Nullable: true})),
}

func randomRows(r *rand.Rand, sc *arrow.Schema, n int) (rows [][]value) {
	for range n {
		var row []value
		for _, f := range sc.Fields() {
			row = append(row, random(r, f.Type))
		}
		rows = append(rows, row)
	}
	return rows
}

func randomSchema(r *rand.Rand, n int) *arrow.Schema {
	var fields []arrow.Field
	for i := range n {
		fields = append(fields, arrow.Field{Name: fmt.Sprint("c", i), Type: everyType[r.IntN(len(everyType))],
			Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// TestSumIsThatOfTheRows: however a table is changed, its sum is the same if and only if its rows are, as counted by
// the reference.
func TestSumIsThatOfTheRows(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 1))
		sc := randomSchema(r, 1+r.IntN(4))
		if seed < uint64(len(everyType)) { // each type alone, at least once
			sc = arrow.NewSchema([]arrow.Field{{Name: "c", Type: everyType[seed], Nullable: true}}, nil)
		}
		rows := randomRows(r, sc, 1+r.IntN(80))
		p := Same(sc)
		want := sumOf(r, p, 0, sc, rows)
		for range 8 {
			other := slices.Clone(rows)
			r.Shuffle(len(other), func(i, j int) { other[i], other[j] = other[j], other[i] })
			what := change(r, sc, other)
			if len(what) > 0 && what[0] == '-' {
				other = other[1:]
			}
			got := sumOf(r, p, 1, sc, other)
			same := maps.Equal(reference(rows), reference(other))
			if want.Equal(got) != same {
				t.Fatalf("seed %d, %s, %s: the sums say equal: %v, the rows say %v", seed, sc, what,
					want.Equal(got), same)
			}
			if (want.Difference(got) == "") != same {
				t.Fatalf("seed %d: %q", seed, want.Difference(got))
			}
		}
	}
}

// TestSummersWorkTogether: batches that several Summers of one side share, each on its own goroutine, have the sum that
// one Summer gives them, also if they are codes of different dictionaries.
func TestSummersWorkTogether(t *testing.T) {
	const workers = 4
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 2))
		var all [][]arrow.RecordBatch
		coded := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
		sc := arrow.NewSchema([]arrow.Field{{Name: "d", Type: coded, Nullable: true},
			{Name: "l", Type: arrow.ListOf(coded), Nullable: true}}, nil)
		one := Same(sc).Summer(1)
		for range workers {
			own := batches(r, sc, randomRows(r, sc, 400))
			for _, b := range own {
				one.Add(b)
			}
			all = append(all, own)
		}
		p := Same(sc)
		sums := p.Summers(1, workers)
		var wait sync.WaitGroup
		for i, own := range all {
			wait.Go(func() {
				for range 20 {
					for _, b := range own {
						if err := sums.Add(i, b); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		wait.Wait()
		want := p.Summer(1)
		for range 20 {
			want.AddSum(one.Sum())
		}
		for range 2 { // asking does not change the answer
			if got := sums.Sum(); !want.Sum().Equal(got) {
				t.Fatalf("seed %d: %s", seed, want.Sum().Difference(got))
			}
		}
	}
}

// change makes one change to rows: none, a new cell, two cells of a column exchanged, a row repeated, a row removed
// ("-").
func change(r *rand.Rand, sc *arrow.Schema, rows [][]value) string {
	i, j, c := r.IntN(len(rows)), r.IntN(len(rows)), r.IntN(sc.NumFields())
	switch r.IntN(5) {
	case 0:
		return ""
	case 1:
		rows[i] = slices.Clone(rows[i])
		rows[i][c] = random(r, sc.Field(c).Type)
		return "another cell"
	case 2:
		rows[i], rows[j] = slices.Clone(rows[i]), slices.Clone(rows[j])
		if i != j {
			rows[i][c], rows[j][c] = rows[j][c], rows[i][c]
		}
		return "cells exchanged"
	case 3:
		rows[i] = rows[j]
		return "a row twice"
	}
	return "- a row less"
}

// TestDifferenceIsPlaced: the changed column is named, and no other; values that moved between rows are reported as
// such.
func TestDifferenceIsPlaced(t *testing.T) {
	sc := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.BinaryTypes.String}}, nil)
	r := rand.New(rand.NewPCG(1, 1))
	p := Same(sc)
	sum := func(rows ...[]value) Sum { return sumOf(r, p, 0, sc, rows) }
	base := sum([]value{int64(1), "x"}, []value{int64(2), "y"})
	for _, c := range []struct {
		rows [][]value
		want string
	}{
		{[][]value{{int64(2), "y"}, {int64(1), "x"}}, ""},
		{[][]value{{int64(1), "x"}, {int64(2), "z"}}, "2 rows went in, 2 came back; other values in the column b"},
		{[][]value{{int64(1), "y"}, {int64(2), "x"}},
			"2 rows went in, 2 came back; every column has the same values, but not in the same rows"},
		{[][]value{{int64(1), "x"}}, "2 rows went in, 1 came back; other values in the columns a, b"},
	} {
		if got := base.Difference(sum(c.rows...)); got != c.want {
			t.Errorf("%v: %q, want %q", c.rows, got, c.want)
		}
	}
}

// TestStoredOtherwise: the same values in other types have the same sum; with a value more or fewer it differs.
func TestStoredOtherwise(t *testing.T) {
	rec := func(x, y arrow.DataType) arrow.DataType {
		return arrow.StructOf(arrow.Field{Name: "x", Type: x, Nullable: true},
			arrow.Field{Name: "y", Type: y, Nullable: true})
	}
	dict := func(t arrow.DataType) arrow.DataType {
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: t}
	}
	i8, i64, u16, str := arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint16,
		arrow.BinaryTypes.String
	d := func(n int64) *big.Int { return big.NewInt(n) }
	huge := new(big.Int).Exp(d(10), d(30), nil)
	for _, c := range []struct {
		a, b   arrow.DataType
		as, bs []value
	}{
		{i8, i64, []value{int64(-1), int64(7), nil}, nil},
		{u16, i64, []value{int64(60000)}, nil},
		{arrow.PrimitiveTypes.Uint64, i64, []value{uint64(5)}, []value{int64(5)}},
		{arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, []value{1.5, math.NaN(), math.Copysign(0, -1)},
			[]value{1.5, math.NaN(), 0.0}},
		{arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float64, []value{-2.0}, nil},
		{str, arrow.BinaryTypes.LargeString, []value{"", "x", nil}, nil},
		{str, arrow.BinaryTypes.StringView, []value{"", strings.Repeat("x", 40)}, nil},
		{str, dict(str), []value{"", "x", "x", nil}, nil},
		{str, arrow.BinaryTypes.Binary, []value{"", "x"}, nil},
		{arrow.FixedWidthTypes.Timestamp_s, arrow.FixedWidthTypes.Timestamp_ns, []value{int64(-1), int64(3)},
			[]value{int64(-1e9), int64(3e9)}},
		{arrow.PrimitiveTypes.Date32, arrow.FixedWidthTypes.Timestamp_ms, []value{int64(-1)},
			[]value{int64(-86_400_000)}},
		{arrow.PrimitiveTypes.Date32, arrow.PrimitiveTypes.Date64, []value{int64(20000)},
			[]value{int64(20000 * 86_400_000)}},
		{&arrow.Decimal128Type{Precision: 38, Scale: 2}, &arrow.Decimal256Type{Precision: 60, Scale: 4},
			[]value{d(-150), huge}, []value{d(-15000), new(big.Int).Mul(huge, d(100))}},
		{&arrow.Decimal128Type{Precision: 38, Scale: 2}, i64, []value{d(700), d(0), d(-100)},
			[]value{int64(7), int64(0), int64(-1)}},
		{&arrow.Decimal128Type{Precision: 38, Scale: 0}, arrow.PrimitiveTypes.Uint64,
			[]value{new(big.Int).SetUint64(math.MaxUint64)}, []value{uint64(math.MaxUint64)}},
		{i64, arrow.PrimitiveTypes.Float64, []value{int64(5)}, []value{5.0}},
		{i64, str, []value{int64(-17)}, []value{"-17"}},
		{arrow.FixedWidthTypes.Timestamp_ms, str, []value{int64(1000)}, []value{"1970-01-01T00:00:01Z"}},
		{arrow.ListOf(i8), arrow.LargeListOf(i64), []value{[]value{int64(1), nil}, []value{}, nil}, nil},
		{arrow.ListOf(i8), arrow.FixedSizeListOf(1, i64), []value{[]value{int64(1)}}, nil},
		{rec(i8, str), rec(i64, dict(str)), []value{[]value{int64(1), nil}, nil, []value{nil, "x"}}, nil},
	} {
		if c.bs == nil {
			c.bs = c.as
		}
		one := func(t arrow.DataType) *arrow.Schema {
			return arrow.NewSchema([]arrow.Field{{Name: "c", Type: t, Nullable: true}}, nil)
		}
		rowsOf := func(cells []value) (rows [][]value) {
			for _, x := range cells {
				rows = append(rows, []value{x})
			}
			return rows
		}
		r := rand.New(rand.NewPCG(3, 3))
		for _, swap := range []bool{false, true} {
			if swap {
				c.a, c.b, c.as, c.bs = c.b, c.a, c.bs, c.as
			}
			p := Between(one(c.a), one(c.b))
			if len(p.Incomparable()) > 0 {
				t.Errorf("%s and %s are apart", c.a, c.b)
				continue
			}
			a, b := sumOf(r, p, 0, one(c.a), rowsOf(c.as)), sumOf(r, p, 1, one(c.b), rowsOf(c.bs))
			if !a.Equal(b) {
				t.Errorf("%s and %s: %s", c.a, c.b, a.Difference(b))
			}
			if a.Equal(sumOf(r, p, 1, one(c.b), rowsOf(c.bs[1:]))) {
				t.Errorf("%s and %s: a row less is the same", c.a, c.b)
			}
			if a.Equal(sumOf(r, p, 1, one(c.b), rowsOf(append([]value{nil}, c.bs[1:]...)))) && c.bs[0] != nil {
				t.Errorf("%s and %s: null is the same as %v", c.a, c.b, c.bs[0])
			}
		}
	}
}

// TestPartners: columns are matched by name, then by position, and columns with nothing in common are reported.
func TestPartners(t *testing.T) {
	of := func(names ...string) *arrow.Schema {
		var fields []arrow.Field
		for _, n := range names {
			name, typ := n, arrow.DataType(arrow.PrimitiveTypes.Int64)
			if rest, ok := strings.CutPrefix(n, "list:"); ok {
				name, typ = rest, arrow.ListOf(arrow.PrimitiveTypes.Int64)
			}
			fields = append(fields, arrow.Field{Name: name, Type: typ, Nullable: true})
		}
		return arrow.NewSchema(fields, nil)
	}
	for _, c := range []struct {
		in, out *arrow.Schema
		at      string
		apart   string
	}{
		{of("a", "b"), of("a", "b"), "00 11", ""},
		{of("a", "b"), of("b", "a"), "01 10", ""},
		{of("A", "b"), of("b", "a"), "01 10", ""},
		{of("a", "b"), of("value", "b"), "00 11", ""},
		{of("a", "a"), of("a", "a"), "00 11", ""},
		{of("a", "b"), of("b"), "10", "a"},
		{of("list:a", "b"), of("a", "b"), "11", "a"},
	} {
		p := Between(c.in, c.out)
		var at []string
		for _, x := range p.columns {
			at = append(at, fmt.Sprintf("%d%d", x.at[0], x.at[1]))
		}
		if got := strings.Join(at, " "); got != c.at || strings.Join(p.Incomparable(), " ") != c.apart {
			t.Errorf("%v and %v: %s, apart %v", c.in, c.out, got, p.Incomparable())
		}
	}
}

// TestFlattened: fields of a struct that are read back as columns are compared one by one.
func TestFlattened(t *testing.T) {
	i32, str := arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String
	inner := arrow.StructOf(arrow.Field{Name: "y", Type: str, Nullable: true})
	in := arrow.NewSchema([]arrow.Field{{Name: "a", Type: i32, Nullable: true},
		{Name: "s", Type: arrow.StructOf(arrow.Field{Name: "x", Type: i32, Nullable: true},
			arrow.Field{Name: "in", Type: inner, Nullable: true}), Nullable: true}}, nil)
	out := arrow.NewSchema([]arrow.Field{{Name: "a", Type: i32, Nullable: true},
		{Name: "s.x", Type: i32, Nullable: true}, {Name: "s.in.y", Type: str, Nullable: true}}, nil)
	r := rand.New(rand.NewPCG(1, 1))
	p := Between(in, out)
	want := sumOf(r, p, 0, in, [][]value{{int64(1), []value{int64(2), []value{"x"}}}, {int64(2), nil},
		{int64(3), []value{nil, nil}}})
	same := [][]value{{int64(1), int64(2), "x"}, {int64(2), nil, nil}, {int64(3), nil, nil}}
	if d := want.Difference(sumOf(r, p, 1, out, same)); d != "" || len(p.Incomparable()) > 0 {
		t.Errorf("%s, apart %v", d, p.Incomparable())
	}
	same[1][2] = "z"
	if d := want.Difference(sumOf(r, p, 1, out, same)); !strings.Contains(d, "s.in.y") {
		t.Error(d)
	}
}

func BenchmarkSum(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, typ := range []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64,
		arrow.BinaryTypes.String, arrow.FixedWidthTypes.Timestamp_us,
		&arrow.Decimal128Type{Precision: 38, Scale: 3}, arrow.ListOf(arrow.PrimitiveTypes.Int32)} {
		b.Run(typ.String(), func(b *testing.B) {
			sc := arrow.NewSchema([]arrow.Field{{Name: "c", Type: typ, Nullable: true}}, nil)
			const n = 60_000
			cells := make([]value, n)
			for i := range cells {
				cells[i] = random(r, typ)
			}
			batch := array.NewRecordBatch(sc, []arrow.Array{build(r, typ, cells)}, n)
			s := Same(sc).Summer(0)
			for b.Loop() {
				s.Add(batch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
