package pred

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"pgregory.net/rapid"
)

func dict(index, value arrow.DataType) *arrow.DictionaryType {
	return &arrow.DictionaryType{IndexType: index, ValueType: value}
}

var inner = arrow.StructOf(
	arrow.Field{Name: "w", Type: arrow.PrimitiveTypes.Float64, Nullable: true},
	arrow.Field{Name: "and", Type: arrow.BinaryTypes.String, Nullable: true})

// testSchema has a column of every type.
var testSchema = arrow.NewSchema([]arrow.Field{
	{Name: "b", Type: arrow.FixedWidthTypes.Boolean},
	{Name: "i8", Type: arrow.PrimitiveTypes.Int8},
	{Name: "i16", Type: arrow.PrimitiveTypes.Int16},
	{Name: "i32", Type: arrow.PrimitiveTypes.Int32},
	{Name: "i64", Type: arrow.PrimitiveTypes.Int64},
	{Name: "u8", Type: arrow.PrimitiveTypes.Uint8},
	{Name: "u16", Type: arrow.PrimitiveTypes.Uint16},
	{Name: "u32", Type: arrow.PrimitiveTypes.Uint32},
	{Name: "u64", Type: arrow.PrimitiveTypes.Uint64},
	{Name: "f16", Type: arrow.FixedWidthTypes.Float16},
	{Name: "f32", Type: arrow.PrimitiveTypes.Float32},
	{Name: "f64", Type: arrow.PrimitiveTypes.Float64},
	{Name: "d32", Type: &arrow.Decimal32Type{Precision: 9, Scale: 2}},
	{Name: "d64", Type: &arrow.Decimal64Type{Precision: 18, Scale: 0}},
	{Name: "d128", Type: &arrow.Decimal128Type{Precision: 38, Scale: 3}},
	{Name: "dneg", Type: &arrow.Decimal128Type{Precision: 20, Scale: -2}},
	{Name: "d256", Type: &arrow.Decimal256Type{Precision: 76, Scale: 30}},
	{Name: "s", Type: arrow.BinaryTypes.String},
	{Name: "ls", Type: arrow.BinaryTypes.LargeString},
	{Name: "sv", Type: arrow.BinaryTypes.StringView},
	{Name: "bin", Type: arrow.BinaryTypes.Binary},
	{Name: "lbin", Type: arrow.BinaryTypes.LargeBinary},
	{Name: "bv", Type: arrow.BinaryTypes.BinaryView},
	{Name: "fsb", Type: &arrow.FixedSizeBinaryType{ByteWidth: 2}},
	{Name: "d_32", Type: arrow.FixedWidthTypes.Date32},
	{Name: "d_64", Type: arrow.FixedWidthTypes.Date64},
	{Name: "t32s", Type: arrow.FixedWidthTypes.Time32s},
	{Name: "t32ms", Type: arrow.FixedWidthTypes.Time32ms},
	{Name: "t64us", Type: arrow.FixedWidthTypes.Time64us},
	{Name: "t64ns", Type: arrow.FixedWidthTypes.Time64ns},
	{Name: "ts_s", Type: &arrow.TimestampType{Unit: arrow.Second}},
	{Name: "ts_ms", Type: &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"}},
	{Name: "ts_us", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}},
	{Name: "ts_ns", Type: &arrow.TimestampType{Unit: arrow.Nanosecond}},
	{Name: "dur", Type: arrow.FixedWidthTypes.Duration_us},
	{Name: "ds", Type: dict(arrow.PrimitiveTypes.Int8, arrow.BinaryTypes.String)},
	{Name: "di", Type: dict(arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int32)},
	{Name: "df", Type: dict(arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float32)},
	{Name: "nul", Type: arrow.Null},
	{Name: "st", Type: arrow.StructOf(
		arrow.Field{Name: "x", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "a.b", Type: inner, Nullable: true})},
	{Name: "list", Type: arrow.ListOf(arrow.StructOf(arrow.Field{Name: "p", Type: arrow.PrimitiveTypes.Int32}))},
	{Name: "null", Type: arrow.BinaryTypes.String},
}, nil)

// leafColumns are the paths that literals can be compared with.
var leafColumns = func() (out []string) {
	for _, f := range testSchema.Fields() {
		if f.Name != "st" && f.Name != "list" {
			out = append(out, f.Name)
		}
	}
	return append(out, "st.x", `st."a.b".w`, `st."a.b".and`)
}()

func typeOf(path string) arrow.DataType {
	switch path {
	case "st.x":
		return arrow.PrimitiveTypes.Int32
	case `st."a.b"`:
		return inner
	case `st."a.b".w`:
		return arrow.PrimitiveTypes.Float64
	case `st."a.b".and`:
		return arrow.BinaryTypes.String
	}
	f, _ := testSchema.FieldsByName(path)
	return f[0].Type
}

// testTable has random rows of some columns.
type testTable struct {
	n     int
	cells map[string][]any // for the naive evaluator
	arrs  map[string]arrow.Array
}

var someTexts = []string{"", "a", "b", "ab", "abc", "a%", "a_c", "é", "aé", "aéc", "日本", "日本語",
	"\xff", "\xff\xff", "a\xff", "a\x00", "A", "abcabc", "50%", "\\"}

var someFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.1, 3.5, math.Inf(1), math.Inf(-1), math.NaN(),
	math.Float64frombits(0xfff8000000000001),
	math.MaxFloat64, math.SmallestNonzeroFloat64, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32,
	65504, 0x1p-24, 1 << 53, 1<<53 + 2, 1e20}

func genInt(bits int) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Int64Range(-4, 4),
		rapid.Map(rapid.Int64(), func(x int64) int64 { return x >> (64 - bits) }),
		rapid.SampledFrom([]int64{math.MinInt64 >> (64 - bits), math.MaxInt64 >> (64 - bits)}))
}

// fill appends one random cell to a builder and returns it for the naive evaluator.
func fill(t *rapid.T, b array.Builder) any {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		v := rapid.Bool().Draw(t, "bool")
		b.Append(v)
		return v
	case *array.Int8Builder:
		return fillInt(t, 8, func(x int64) { b.Append(int8(x)) })
	case *array.Int16Builder:
		return fillInt(t, 16, func(x int64) { b.Append(int16(x)) })
	case *array.Int32Builder:
		return fillInt(t, 32, func(x int64) { b.Append(int32(x)) })
	case *array.Int64Builder:
		return fillInt(t, 64, func(x int64) { b.Append(x) })
	case *array.DurationBuilder:
		return fillInt(t, 64, func(x int64) { b.Append(arrow.Duration(x)) })
	case *array.Uint8Builder:
		return fillUint(t, 8, func(x uint64) { b.Append(uint8(x)) })
	case *array.Uint16Builder:
		return fillUint(t, 16, func(x uint64) { b.Append(uint16(x)) })
	case *array.Uint32Builder:
		return fillUint(t, 32, func(x uint64) { b.Append(uint32(x)) })
	case *array.Uint64Builder:
		return fillUint(t, 64, func(x uint64) { b.Append(x) })
	case *array.Float16Builder:
		h := rapid.OneOf(rapid.Uint16(),
			rapid.SampledFrom([]uint16{0, 0x8000, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 1, 0x8001, 0x7bff, 0x3c00,
				0x2e66})).Draw(t, "f16")
		b.Append(float16.FromBits(h))
		return naiveHalf(h)
	case *array.Float32Builder:
		f := float32(genFloat().Draw(t, "f32"))
		b.Append(f)
		return float64(f)
	case *array.Float64Builder:
		f := genFloat().Draw(t, "f64")
		b.Append(f)
		return f
	case *array.Decimal32Builder:
		return fillDecimal(t, 2, 32, func(x *big.Int) { b.Append(decimal.Decimal32(x.Int64())) })
	case *array.Decimal64Builder:
		return fillDecimal(t, 0, 64, func(x *big.Int) { b.Append(decimal.Decimal64(x.Int64())) })
	case *array.Decimal128Builder:
		return fillDecimal(t, b.Type().(*arrow.Decimal128Type).Scale, 120,
			func(x *big.Int) { b.Append(decimal128.FromBigInt(x)) })
	case *array.Decimal256Builder:
		return fillDecimal(t, 30, 250, func(x *big.Int) { b.Append(decimal256.FromBigInt(x)) })
	case *array.Date32Builder:
		return fillTime(t, genInt(32), 1, 86400e9, func(x int64) { b.Append(arrow.Date32(x)) })
	case *array.Date64Builder:
		return fillTime(t, genInt(64), 1e3, 1e9, func(x int64) { b.Append(arrow.Date64(x)) })
	case *array.Time32Builder:
		per := perSecond(b.Type().(*arrow.Time32Type).Unit)
		return fillTime(t, rapid.Int64Range(0, 86400*per-1), per, 1e9, func(x int64) { b.Append(arrow.Time32(x)) })
	case *array.Time64Builder:
		per := perSecond(b.Type().(*arrow.Time64Type).Unit)
		return fillTime(t, rapid.Int64Range(0, 86400*per-1), per, 1e9, func(x int64) { b.Append(arrow.Time64(x)) })
	case *array.TimestampBuilder:
		return fillTime(t, genInt(64), perSecond(b.Type().(*arrow.TimestampType).Unit), 1e9,
			func(x int64) { b.Append(arrow.Timestamp(x)) })
	}
	return fillText(t, b)
}

func fillInt(t *rapid.T, bits int, add func(int64)) any {
	x := genInt(bits).Draw(t, "int")
	add(x)
	return new(big.Rat).SetInt64(x)
}

func fillUint(t *rapid.T, bits int, add func(uint64)) any {
	x := uint64(genInt(bits).Draw(t, "uint")) << (64 - bits) >> (64 - bits)
	add(x)
	return new(big.Rat).SetUint64(x)
}

func genFloat() *rapid.Generator[float64] {
	return rapid.OneOf(rapid.SampledFrom(someFloats), rapid.Float64(),
		rapid.Map(rapid.Int64Range(-8, 8), func(i int64) float64 { return float64(i) / 2 }))
}

func fillDecimal(t *rapid.T, scale int32, bits int, add func(*big.Int)) any {
	x := big.NewInt(genInt(min(bits, 64)).Draw(t, "decimal"))
	if bits > 64 && rapid.Bool().Draw(t, "large") {
		x.Lsh(x, uint(rapid.IntRange(0, bits-64).Draw(t, "shift")))
	}
	add(x)
	r := new(big.Rat).SetInt(x)
	if scale < 0 {
		return r.Mul(r, new(big.Rat).SetInt(pow10(-scale)))
	}
	return r.Quo(r, new(big.Rat).SetInt(pow10(scale)))
}

// fillTime appends a time; per of its units are unit nanoseconds.
func fillTime(t *rapid.T, g *rapid.Generator[int64], per, unit int64, add func(int64)) any {
	x := g.Draw(t, "time")
	add(x)
	n := new(big.Int).Mul(big.NewInt(x), big.NewInt(unit))
	return n.Quo(n, big.NewInt(per))
}

func fillText(t *rapid.T, b array.Builder) any {
	s := rapid.SampledFrom(someTexts).Draw(t, "text")
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(s)
	case *array.LargeStringBuilder:
		b.Append(s)
	case *array.StringViewBuilder:
		s += s + s + s + s // for some, beyond the twelve bytes that views store inline
		b.Append(s)
	case *array.FixedSizeBinaryBuilder:
		v := append([]byte(s), 0, 0)[:2]
		b.Append(v)
		return v
	case *array.BinaryBuilder: // and large binary
		b.Append([]byte(s))
		return []byte(s)
	case *array.BinaryViewBuilder:
		b.Append([]byte(s))
		return []byte(s)
	default:
		panic(fmt.Sprintf("%T", b))
	}
	return s
}

// makeTable makes n rows of the columns at paths.
func makeTable(t *rapid.T, n int, paths []string) *testTable {
	tab := &testTable{n: n, cells: map[string][]any{}, arrs: map[string]arrow.Array{}}
	for _, p := range paths {
		if SplitPath(p)[0] == "st" {
			p = "st"
		}
		if tab.arrs[p] != nil {
			continue
		}
		skip := rapid.IntRange(0, 9).Draw(t, "offset")
		nulls := rapid.SampledFrom([]int{0, 3, 10}).Draw(t, "nulls") // of ten cells
		typ := typeOf(p)
		switch {
		case p == "st":
			tab.arrs[p] = array.NewSlice(tab.structs(t, n+skip, skip, nulls), int64(skip), int64(skip+n))
		case typ.ID() == arrow.NULL:
			tab.arrs[p], tab.cells[p] = array.NewNull(n), make([]any, n)
		case typ.ID() == arrow.LIST:
			tab.lists(t, p, n, nulls)
		case typ.ID() == arrow.DICTIONARY:
			tab.dict(t, p, n, skip, nulls)
		default:
			a, cells := column1(t, typ, n+skip, nulls)
			tab.arrs[p], tab.cells[p] = array.NewSlice(a, int64(skip), int64(skip+n)), cells[skip:]
		}
	}
	return tab
}

func isNullCell(t *rapid.T, nulls int) bool { return rapid.IntRange(1, 10).Draw(t, "null") <= nulls }

func column1(t *rapid.T, typ arrow.DataType, n, nulls int) (arrow.Array, []any) {
	b := array.NewBuilder(memory.DefaultAllocator, typ)
	var cells []any
	for range n {
		if isNullCell(t, nulls) {
			b.AppendNull()
			cells = append(cells, nil)
		} else {
			cells = append(cells, fill(t, b))
		}
	}
	return b.NewArray(), cells
}

func (tab *testTable) lists(t *rapid.T, p string, n, nulls int) {
	b := array.NewBuilder(memory.DefaultAllocator, typeOf(p)).(*array.ListBuilder)
	for range n {
		if isNullCell(t, nulls) {
			b.AppendNull()
			tab.cells[p] = append(tab.cells[p], nil)
		} else {
			b.AppendEmptyValue()
			tab.cells[p] = append(tab.cells[p], true)
		}
	}
	tab.arrs[p] = b.NewArray()
}

func (tab *testTable) dict(t *rapid.T, p string, n, skip, nulls int) {
	typ := typeOf(p).(*arrow.DictionaryType)
	values, cells := column1(t, typ.ValueType, rapid.IntRange(1, 20).Draw(t, "values"), nulls/2)
	b := array.NewBuilder(memory.DefaultAllocator, typ.IndexType)
	var all []any
	for range n + skip {
		if isNullCell(t, nulls) {
			b.AppendNull()
			all = append(all, nil)
			continue
		}
		k := rapid.IntRange(0, len(cells)-1).Draw(t, "code")
		if err := b.AppendValueFromString(fmt.Sprint(k)); err != nil {
			panic(err)
		}
		all = append(all, cells[k])
	}
	tab.arrs[p] = array.NewSlice(array.NewDictionaryArray(typ, b.NewArray(), values), int64(skip), int64(skip+n))
	tab.cells[p] = all[skip:]
}

// structs makes the column st of n rows, and the cells of the rows from skip on.
func (tab *testTable) structs(t *rapid.T, n, skip, nulls int) arrow.Array {
	bits := func() ([]bool, *memory.Buffer) {
		ok := make([]bool, n)
		raw := make([]byte, 8*((n+63)/64))
		for i := range ok {
			if ok[i] = !isNullCell(t, nulls); ok[i] {
				raw[i/8] |= 1 << (i % 8)
			}
		}
		return ok, memory.NewBufferBytes(raw)
	}
	must := func(a *array.Struct, err error) *array.Struct {
		if err != nil {
			panic(err)
		}
		return a
	}
	okOut, bufOut := bits()
	okIn, bufIn := bits()
	x, xs := column1(t, arrow.PrimitiveTypes.Int32, n, nulls)
	w, ws := column1(t, arrow.PrimitiveTypes.Float64, n, nulls)
	a, as := column1(t, arrow.BinaryTypes.String, n, nulls)
	in := must(array.NewStructArrayWithFieldsAndNulls([]arrow.Array{w, a}, inner.Fields(), bufIn,
		array.UnknownNullCount, 0))
	st := typeOf("st").(*arrow.StructType)
	out := must(array.NewStructArrayWithFieldsAndNulls([]arrow.Array{x, in}, st.Fields(), bufOut,
		array.UnknownNullCount, 0))
	for i := skip; i < n; i++ {
		put := func(p string, ok bool, v any) {
			if !ok {
				v = nil
			}
			tab.cells[p] = append(tab.cells[p], v)
		}
		put("st", okOut[i], true)
		put("st.x", okOut[i], xs[i])
		put(`st."a.b"`, okOut[i] && okIn[i], true)
		put(`st."a.b".w`, okOut[i] && okIn[i], ws[i])
		put(`st."a.b".and`, okOut[i] && okIn[i], as[i])
	}
	return out
}

func (tab *testTable) col(path string) arrow.Array { return tab.arrs[path] }

// naive returns the truth values of e.
func (tab *testTable) naive(e *Expr) []*bool {
	out := make([]*bool, tab.n)
	for i := range out {
		out[i] = naive(e, func(p string) (any, arrow.DataType) {
			t := typeOf(p)
			if d, ok := t.(*arrow.DictionaryType); ok {
				t = d.ValueType
			}
			return tab.cells[p][i], t
		})
	}
	return out
}

// cellValue returns a cell as a Value.
func cellValue(c any, d domain) Value {
	switch c := c.(type) {
	case bool:
		return Bool(c)
	case string:
		return String(c)
	case []byte:
		return Bytes(c)
	case float64:
		return Float(c)
	case *big.Int:
		if d.means == meansTime {
			return Time(c.Int64())
		}
		sec, nanos := new(big.Int).DivMod(c, big.NewInt(1e9), new(big.Int))
		if d.means == meansDays {
			return Date(sec.Int64() / 86400)
		}
		return Timestamp(sec.Int64(), int32(nanos.Int64()))
	case *big.Rat:
		if c.IsInt() && c.Num().IsInt64() {
			return Int(c.Num().Int64())
		}
		if c.IsInt() && c.Num().IsUint64() {
			return Uint(c.Num().Uint64())
		}
		if x := new(big.Rat).Mul(c, new(big.Rat).SetInt(pow10(d.scale))); d.scale > 0 && x.Num().BitLen() < 127 {
			return Decimal(decimal128.FromBigInt(x.Num()), d.scale)
		}
	}
	return Null()
}

// genLiteral makes a literal to compare with column path, often one of its values.
func genLiteral(t *rapid.T, tab *testTable, path string) Value {
	typ := typeOf(path)
	d := domainOf(typ)
	k := rapid.IntRange(0, 19).Draw(t, "literal")
	if k == 0 {
		return Null()
	}
	if cells := tab.cells[path]; k < 12 && len(cells) > 0 {
		if v := cellValue(rapid.SampledFrom(cells).Draw(t, "cell"), d); v.Kind != KindNull {
			return v
		}
	}
	switch d.means {
	case meansBool:
		return Bool(rapid.Bool().Draw(t, "bool"))
	case meansString, meansBinary:
		s := rapid.SampledFrom(someTexts).Draw(t, "text")
		if rapid.Bool().Draw(t, "bytes") {
			return Bytes([]byte(s))
		}
		return String(s)
	case meansTime:
		v := Time(rapid.Int64Range(0, dayNanos-1).Draw(t, "time"))
		if rapid.Bool().Draw(t, "string") {
			return String(v.plain())
		}
		return v
	case meansDays, meansInstant:
		return genInstant(t)
	}
	return genNumber(t)
}

func genInstant(t *rapid.T) Value {
	v := Date(genInt(40).Draw(t, "date"))
	if rapid.Bool().Draw(t, "timestamp") {
		v = Timestamp(genInt(rapid.SampledFrom([]int{36, 64}).Draw(t, "bits")).Draw(t, "sec"),
			rapid.SampledFrom([]int32{0, 1, 999, 1000, 1e6, 5e8, 999_999_999}).Draw(t, "nanos"))
	}
	if rapid.Bool().Draw(t, "string") {
		return String(v.plain())
	}
	return v
}

func genNumber(t *rapid.T) Value {
	switch rapid.IntRange(0, 4).Draw(t, "number") {
	case 0:
		return Int(genInt(rapid.SampledFrom([]int{8, 16, 32, 64}).Draw(t, "bits")).Draw(t, "int"))
	case 1:
		return Uint(rapid.Uint64().Draw(t, "uint"))
	case 2:
		return Float(genFloat().Draw(t, "float"))
	case 3:
		var b [16]byte
		binary.LittleEndian.PutUint64(b[:], rapid.Uint64().Draw(t, "lo"))
		hi := genInt(56).Draw(t, "hi")
		return Decimal(decimal128.New(hi, binary.LittleEndian.Uint64(b[:])), rapid.Int32Range(-10, 30).Draw(t, "scale"))
	}
	return Decimal(decimal128.FromI64(genInt(16).Draw(t, "unscaled")), rapid.Int32Range(-3, 5).Draw(t, "scale"))
}

// genExpr makes a predicate on the columns at paths.
func genExpr(t *rapid.T, tab *testTable, paths []string, depth int) *Expr {
	k := rapid.IntRange(0, 9).Draw(t, "node")
	if depth > 0 && k < 6 {
		if k == 0 {
			return Not(genExpr(t, tab, paths, depth-1))
		}
		out := &Expr{Op: []Op{OpAnd, OpOr}[k%2]}
		for range rapid.IntRange(2, 4).Draw(t, "args") {
			out.Args = append(out.Args, genExpr(t, tab, paths, depth-1))
		}
		return out
	}
	if rapid.IntRange(0, 30).Draw(t, "constant") == 0 {
		return &Expr{Op: rapid.SampledFrom([]Op{OpTrue, OpFalse, OpUnknown}).Draw(t, "op")}
	}
	return genTest(t, tab, rapid.SampledFrom(paths).Draw(t, "column"))
}

var testOps = func() (out []Op) {
	for op, o := range ops {
		if o.column {
			out = append(out, op)
		}
	}
	slices.Sort(out)
	return out
}()

func genTest(t *rapid.T, tab *testTable, path string) *Expr {
	op := rapid.SampledFrom(testOps).Draw(t, "op")
	if id := typeOf(path).ID(); id == arrow.STRUCT || id == arrow.LIST {
		op = rapid.SampledFrom([]Op{OpIsNull, OpIsNotNull}).Draw(t, "null op")
	}
	d := domainOf(typeOf(path))
	if (op == OpLike || op == OpNotLike) && d.class != classBytes {
		op = OpEq
	}
	e := &Expr{Op: op, Column: path}
	n := ops[op].values
	if n < 0 {
		n = rapid.IntRange(0, 5).Draw(t, "list")
	}
	for range n {
		if op == OpLike || op == OpNotLike {
			e.Values, e.Escape = genPattern(t)
			break
		}
		e.Values = append(e.Values, genLiteral(t, tab, path))
	}
	return e
}

func genPattern(t *rapid.T) ([]Value, string) {
	esc := rapid.SampledFrom([]string{"", "!", "é", NoEscape}).Draw(t, "escape")
	char := map[string]string{"": "\\", "!": "!", "é": "é"}[esc]
	s := ""
	for range rapid.IntRange(0, 5).Draw(t, "pattern") {
		switch p := rapid.SampledFrom([]string{"%", "_", "a", "b", "c", "é", "日", "%", "\x00"}).Draw(t, "piece"); {
		case char != "" && (p == char || rapid.IntRange(0, 5).Draw(t, "escaped") == 0):
			s += char + p
		default:
			s += p
		}
	}
	if rapid.IntRange(0, 15).Draw(t, "null pattern") == 0 {
		return []Value{Null()}, esc
	}
	return []Value{String(s)}, esc
}

// naiveHalf returns the value of a float of 16 bits. (arrow-go v18.8.0 gets those below 2^-14 wrong.)
func naiveHalf(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	switch exp, frac := int(h>>10&31), float64(h&1023)/1024; {
	case exp == 31 && frac != 0:
		return math.NaN()
	case exp == 31:
		return sign * math.Inf(1)
	case exp == 0:
		return sign * frac * 0x1p-14
	default:
		return sign * (1 + frac) * math.Pow(2, float64(exp-15))
	}
}
