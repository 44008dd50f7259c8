package carbon_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	arrowMemory "github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/interop/fuzz"
)

// The real row reader is the judge of the writer: STOA_CARBON_READ is the command that makes it read many directories
// (interop/carbon's read.sh). It must return the rows that were written.

// shape generates values of a column.
type shape struct {
	t    arrow.DataType
	make func(r *rand.Rand, i int) any
}

var millis = &arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "UTC"}

// shapes are columns each of which needs a different encoder.
var shapes = map[string]shape{
	"bool":        {arrow.FixedWidthTypes.Boolean, func(r *rand.Rand, i int) any { return r.IntN(2) == 1 }},
	"byte":        {arrow.PrimitiveTypes.Int8, func(r *rand.Rand, i int) any { return int8(r.Int()) }},
	"short_wide":  {arrow.PrimitiveTypes.Int16, func(r *rand.Rand, i int) any { return int16(r.Int()) }},
	"short_small": {arrow.PrimitiveTypes.Int16, func(r *rand.Rand, i int) any { return int16(r.IntN(200) - 100) }},
	"int_wide":    {arrow.PrimitiveTypes.Int32, func(r *rand.Rand, i int) any { return int32(r.Int()) }},
	"int_three":   {arrow.PrimitiveTypes.Int32, func(r *rand.Rand, i int) any { return int32(r.IntN(1<<24) - 1<<23) }},
	"int_delta": {arrow.PrimitiveTypes.Int32,
		func(r *rand.Rand, i int) any { return int32(2e9) + int32(r.IntN(100)) }},
	"int_one":   {arrow.PrimitiveTypes.Int32, func(r *rand.Rand, i int) any { return int32(-7) }},
	"long_wide": {arrow.PrimitiveTypes.Int64, func(r *rand.Rand, i int) any { return int64(r.Uint64()) }},
	"long_delta": {arrow.PrimitiveTypes.Int64,
		func(r *rand.Rand, i int) any { return int64(1)<<60 + int64(r.IntN(1<<20)) }},
	"long_ends": {arrow.PrimitiveTypes.Int64,
		func(r *rand.Rand, i int) any { return []int64{math.MinInt64, math.MaxInt64, 0}[r.IntN(3)] }},
	"float_half": {arrow.PrimitiveTypes.Float32,
		func(r *rand.Rand, i int) any { return float32(r.IntN(20000)-10000) / 4 }},
	"float_wide": {arrow.PrimitiveTypes.Float32,
		func(r *rand.Rand, i int) any { return float32(r.NormFloat64() * 1e10) }},
	"float_tenth": {arrow.PrimitiveTypes.Float32,
		func(r *rand.Rand, i int) any { return float32(r.IntN(1000))/10 + 1e4 }},
	"float_whole": {arrow.PrimitiveTypes.Float32, func(r *rand.Rand, i int) any { return float32(r.IntN(1000)) }},
	"double_cent": {arrow.PrimitiveTypes.Float64,
		func(r *rand.Rand, i int) any { return float64(r.IntN(2e6)-1e6) / 100 }},
	"double_near": {arrow.PrimitiveTypes.Float64,
		func(r *rand.Rand, i int) any { return 1e6 + float64(r.IntN(100))/1000 }},
	"double_wide": {arrow.PrimitiveTypes.Float64, func(r *rand.Rand, i int) any { return r.NormFloat64() * 1e100 }},
	"double_int":  {arrow.PrimitiveTypes.Float64, func(r *rand.Rand, i int) any { return float64(r.IntN(1e6)) }},
	"double_zero": {arrow.PrimitiveTypes.Float64,
		func(r *rand.Rand, i int) any { return []float64{math.Copysign(0, -1), 0, 1}[r.IntN(3)] }},
	"dec_4": {&arrow.Decimal128Type{Precision: 4, Scale: 1},
		func(r *rand.Rand, i int) any { return decimal128.FromI64(int64(r.IntN(19999) - 9999)) }},
	"dec_9": {&arrow.Decimal128Type{Precision: 9, Scale: 2},
		func(r *rand.Rand, i int) any { return decimal128.FromI64(900_000_000 + int64(r.IntN(100))) }},
	"dec_18": {&arrow.Decimal128Type{Precision: 18, Scale: 6},
		func(r *rand.Rand, i int) any { return decimal128.FromI64(r.Int64N(2e17) - 1e17) }},
	"dec_30": {&arrow.Decimal128Type{Precision: 30, Scale: 10}, func(r *rand.Rand, i int) any {
		return decimal128.FromI64(r.Int64() - 1<<62).Mul(decimal128.FromI64(int64(r.IntN(1e9))))
	}},
	"dec_38": {&arrow.Decimal128Type{Precision: 38, Scale: 0}, func(r *rand.Rand, i int) any {
		return decimal128.FromI64(r.Int64() - 1<<62).Mul(decimal128.FromI64(r.Int64N(1e18)))
	}},
	"str_few":  {arrow.BinaryTypes.String, func(r *rand.Rand, i int) any { return fmt.Sprintf("c%d", r.IntN(12)) }},
	"str_many": {arrow.BinaryTypes.String, func(r *rand.Rand, i int) any { return fmt.Sprintf("é%x", r.Uint64()) }},
	"str_runs": {arrow.BinaryTypes.String, func(r *rand.Rand, i int) any { return fmt.Sprint("run ", i/100) }},
	"str_long": {arrow.BinaryTypes.String,
		func(r *rand.Rand, i int) any { return strings.Repeat("0123456789", r.IntN(30)) }},
	"bin": {arrow.BinaryTypes.Binary,
		func(r *rand.Rand, i int) any { return []byte{1, byte(i), byte(r.Int())}[:1+r.IntN(3)] }},
	"date": {arrow.FixedWidthTypes.Date32,
		func(r *rand.Rand, i int) any { return arrow.Date32(r.IntN(60000) - 20000) }},
	"ts":      {millis, func(r *rand.Rand, i int) any { return arrow.Timestamp(r.Int64N(4e12) - 1e12) }},
	"ts_near": {millis, func(r *rand.Rand, i int) any { return arrow.Timestamp(1.6e12 + r.Int64N(1e6)) }},
}

// sortableShapes are the shapes by which a table can be sorted.
var sortableShapes = []string{"bool", "short_wide", "short_small", "int_wide", "int_three", "int_delta",
	"long_wide", "long_ends", "str_few", "str_many", "str_runs", "date", "ts", "ts_near"}

func appendValue(b array.Builder, v any) {
	switch b := b.(type) {
	case *array.BooleanBuilder:
		b.Append(v.(bool))
	case *array.Int8Builder:
		b.Append(v.(int8))
	case *array.Int16Builder:
		b.Append(v.(int16))
	case *array.Int32Builder:
		b.Append(v.(int32))
	case *array.Int64Builder:
		b.Append(v.(int64))
	case *array.Float32Builder:
		b.Append(v.(float32))
	case *array.Float64Builder:
		b.Append(v.(float64))
	case *array.Decimal128Builder:
		b.Append(v.(decimal128.Num))
	case *array.StringBuilder:
		b.Append(v.(string))
	case *array.BinaryBuilder:
		b.Append(v.([]byte))
	case *array.Date32Builder:
		b.Append(v.(arrow.Date32))
	case *array.TimestampBuilder:
		b.Append(v.(arrow.Timestamp))
	default:
		panic(fmt.Sprintf("%T", b))
	}
}

// fill appends n entries of a type; nested ones have values of the shape. nulls is the percentage of nulls. Lists of
// one null and structs of nulls are left out, because they are read as null.
func fill(r *rand.Rand, b array.Builder, s shape, n, nulls int) {
	for i := range n {
		if r.IntN(100) < nulls {
			b.AppendNull()
			continue
		}
		switch b := b.(type) {
		case *array.MapBuilder:
			b.Append(true)
			for k := range r.IntN(4) {
				appendValue(b.KeyBuilder(), fmt.Sprint("k", k))
				fill(r, b.ItemBuilder(), s, 1, nulls)
			}
		case *array.ListBuilder:
			b.Append(true)
			switch k := r.IntN(5); k {
			case 1:
				fill(r, b.ValueBuilder(), s, 1, 0)
			default:
				fill(r, b.ValueBuilder(), s, k, nulls)
			}
		case *array.StructBuilder:
			b.Append(true)
			for k := range b.NumField() {
				if k == 0 {
					fill(r, b.FieldBuilder(k), s, 1, 0)
				} else {
					fill(r, b.FieldBuilder(k), s, 1, nulls)
				}
			}
		default:
			appendValue(b, s.make(r, i))
		}
	}
}

// gridTable is a table of the grid.
type gridTable struct {
	name  string
	rows  int
	nulls int
	opts  map[string]string
	wrap  func(t arrow.DataType) arrow.DataType // nil: flat
	drawn []drawnColumn                         // used in place of one column per shape
	seed  uint64
}

// drawnColumn is a random column.
type drawnColumn struct {
	name  string
	shape string
	t     arrow.DataType
	nulls int
}

// lots returns n tables with random columns, nesting, nulls and options.
func lots(seed uint64, n int) (out []gridTable) {
	item := func(t arrow.DataType) arrow.Field { return arrow.Field{Name: "item", Type: t, Nullable: true} }
	for i := range n {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		g := gridTable{name: fmt.Sprintf("lot_%d_%d", seed, i), rows: 1 + r.IntN(1+r.IntN(3000)), seed: r.Uint64(),
			opts: map[string]string{}}
		var sortable, text []string
		all := slices.Sorted(maps.Keys(shapes))
		for k := range 1 + r.IntN(9) {
			c := drawnColumn{name: fmt.Sprint("c", k), shape: all[r.IntN(len(all))],
				nulls: []int{0, 0, 3, 30, 100}[r.IntN(5)]}
			c.t = shapes[c.shape].t
			flat := r.IntN(3) > 0
			for depth := 1 + r.IntN(5); depth > 0 && !flat; depth-- {
				switch r.IntN(3) {
				case 0:
					c.t = arrow.ListOfField(item(c.t))
				case 1:
					c.t = arrow.StructOf(arrow.Field{Name: "a", Type: c.t, Nullable: true},
						arrow.Field{Name: "b", Type: shapes[c.shape].t, Nullable: true})
				default:
					c.t = arrow.MapOf(arrow.BinaryTypes.String, c.t)
				}
			}
			switch {
			case flat && slices.Contains(sortableShapes, c.shape):
				sortable = append(sortable, c.name)
			case flat && c.t.ID() == arrow.STRING:
				text = append(text, c.name)
			}
			g.drawn = append(g.drawn, c)
		}
		g.opts["compression"] = []string{"snappy", "zstd", "gzip"}[r.IntN(3)]
		g.opts["page-rows"] = fmt.Sprint(1 + r.IntN([]int{40, 1000, 32000}[r.IntN(3)]))
		g.opts["local-dictionary"] = fmt.Sprint(r.IntN(3) > 0)
		g.opts["local-dictionary-threshold"] = fmt.Sprint(1 + r.IntN(2000))
		g.opts["blocklet-size"], g.opts["page-size"] = fmt.Sprint(1+r.IntN(3)), fmt.Sprint(1+r.IntN(3))
		g.opts["memory"] = fmt.Sprint(20_000 + r.IntN(2_000_000))
		r.Shuffle(len(sortable), func(i, k int) { sortable[i], sortable[k] = sortable[k], sortable[i] })
		if by := sortable[:r.IntN(len(sortable)+1)]; len(by) > 0 {
			g.opts["sort-columns"] = strings.Join(by, ",")
			if k := r.IntN(len(by) + 1); k > 0 {
				g.opts["inverted-index"] = strings.Join(by[:k], ",")
			}
		}
		if len(text) > 0 && r.IntN(2) == 0 {
			g.opts["long-strings"] = text[0]
		}
		out = append(out, g)
	}
	return out
}

// lotsOf returns random tables for the seed in STOA_SEED, or for a fixed seed.
func lotsOf(t *testing.T, n int) []gridTable {
	seed, err := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64)
	if err != nil {
		seed = 8
	}
	t.Logf("STOA_SEED=%d", seed)
	return lots(seed, n)
}

// grid is type × nulls × codec × local dictionary × pages × sort × inverted index × nesting; the types are covered by
// the columns of each table.
func grid() (out []gridTable) {
	add := func(name string, rows, nulls int, wrap func(t arrow.DataType) arrow.DataType, opts ...string) {
		g := gridTable{name: name, rows: rows, nulls: nulls, opts: map[string]string{}, wrap: wrap}
		for _, o := range opts {
			k, v, _ := strings.Cut(o, "=")
			g.opts[k] = v
		}
		out = append(out, g)
	}
	for _, codec := range []string{"snappy", "zstd", "gzip"} {
		for _, nulls := range []int{0, 20, 100} {
			for _, dict := range []string{"true", "false"} {
				add(fmt.Sprintf("flat_%s_%d_%s", codec, nulls, dict), 2500, nulls, nil, "compression="+codec,
					"local-dictionary="+dict, "page-rows=700")
			}
		}
	}
	for _, s := range sortableShapes {
		for i, inverted := range []string{"", s} {
			add(fmt.Sprintf("sorted_%s_%d", s, i), 2000, 10*i, nil, "sort-columns="+s, "inverted-index="+inverted,
				"page-rows=800", fmt.Sprintf("local-dictionary=%v", i == 0))
		}
	}
	add("sorted_three", 3000, 15, nil, "sort-columns=str_few,date,int_three", "inverted-index=str_few,int_three",
		"page-rows=1000")
	add("sorted_pieces", 3000, 15, nil, "sort-columns=ts,str_many", "memory=100000")
	add("fallback", 4000, 5, nil, "local-dictionary-threshold=1000", "page-rows=500")
	add("blocklets", 30000, 5, nil, "blocklet-size=1", "local-dictionary=false")
	add("long", 500, 5, nil, "long-strings=str_long,str_many")
	item := func(t arrow.DataType) arrow.Field { return arrow.Field{Name: "item", Type: t, Nullable: true} }
	list := func(t arrow.DataType) arrow.DataType { return arrow.ListOfField(item(t)) }
	strct := func(t arrow.DataType) arrow.DataType {
		return arrow.StructOf(arrow.Field{Name: "a", Type: t, Nullable: true},
			arrow.Field{Name: "b", Type: t, Nullable: true})
	}
	dictionary := func(t arrow.DataType) arrow.DataType { return arrow.MapOf(arrow.BinaryTypes.String, t) }
	for name, wrap := range map[string]func(t arrow.DataType) arrow.DataType{"list": list, "struct": strct,
		"map":         dictionary,
		"list_list":   func(t arrow.DataType) arrow.DataType { return list(list(t)) },
		"list_struct": func(t arrow.DataType) arrow.DataType { return list(strct(t)) },
		"struct_list": func(t arrow.DataType) arrow.DataType { return strct(list(t)) }} {
		for _, nulls := range []int{0, 20} {
			add(fmt.Sprintf("%s_%d", name, nulls), 1200, nulls, wrap, "page-rows=500",
				fmt.Sprintf("local-dictionary=%v", nulls == 0))
		}
	}
	return out
}

// gridBatch makes the rows of a table: an id, and a column of each shape.
func gridBatch(g gridTable) arrow.RecordBatch {
	r := rand.New(rand.NewPCG(1, uint64(len(g.name))))
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32}}
	if g.drawn != nil {
		return drawnBatch(g, fields)
	}
	names := []string{"id"}
	for _, n := range slices.Sorted(maps.Keys(shapes)) {
		t := shapes[n].t
		if g.wrap != nil {
			t = g.wrap(t)
		}
		fields = append(fields, arrow.Field{Name: n, Type: t, Nullable: true})
		names = append(names, n)
	}
	sc := arrow.NewSchema(fields, nil)
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, sc)
	defer b.Release()
	for i := range g.rows {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
	}
	for i, n := range names[1:] {
		fill(r, b.Field(i+1), shapes[n], g.rows, g.nulls)
	}
	return b.NewRecordBatch()
}

func drawnBatch(g gridTable, fields []arrow.Field) arrow.RecordBatch {
	for _, c := range g.drawn {
		fields = append(fields, arrow.Field{Name: c.name, Type: c.t, Nullable: true})
	}
	b := array.NewRecordBuilder(arrowMemory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i := range g.rows {
		b.Field(0).(*array.Int32Builder).Append(int32(i))
	}
	r := rand.New(rand.NewPCG(g.seed, 1))
	for i, c := range g.drawn {
		fill(r, b.Field(i+1), shapes[c.shape], g.rows, c.nulls)
	}
	return b.NewRecordBatch()
}

// inInputOrder restores the order in which the rows were written.
func inInputOrder(rows []line) {
	id := func(l line) int {
		n, _ := strconv.Atoi(l["id"])
		return n
	}
	slices.SortFunc(rows, func(a, b line) int { return id(a) - id(b) })
}

// lines returns the rows of a batch as text.
func lines(b arrow.RecordBatch) (out []line) {
	for i := range int(b.NumRows()) {
		l := line{}
		for k := range int(b.NumCols()) {
			l[b.ColumnName(k)] = cell(b.Column(k), i)
		}
		out = append(out, l)
	}
	return out
}

// writeGrid writes a table of the grid and returns the rows that were written.
func writeGrid(t *testing.T, g gridTable, dir string) (*arrow.Schema, []line) {
	t.Helper()
	b := gridBatch(g)
	w, err := stoa.Create(t.Context(), dir+"/", b.Schema(),
		stoa.CreateOptions{Formats: formats, To: "carbon", Opts: g.opts, Rows: -1})
	if err != nil {
		t.Fatal(err)
	}
	for i := int64(0); i < b.NumRows(); i += 333 {
		part := b.NewSlice(i, min(i+333, b.NumRows()))
		if err := w.Write(t.Context(), part); err != nil {
			t.Fatal(err)
		}
		part.Release()
	}
	if _, err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return b.Schema(), lines(b)
}

// TestGridReadBack reads part of the grid (all of it with STOA_LONG) with our own reader. It does not judge the writer,
// but if TestJudged fails, it shows whether the reader or the writer is wrong.
func TestGridReadBack(t *testing.T) {
	var tables []gridTable
	for i, g := range grid() {
		if (i%8 == 0 || os.Getenv("STOA_LONG") != "") && (i <= 8 || !testing.Short()) {
			tables = append(tables, g)
		}
	}
	n := 16
	if testing.Short() {
		n = 8
	}
	for _, g := range append(tables, lotsOf(t, n)...) {
		t.Run(g.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "t")
			_, want := writeGrid(t, g, dir)
			_, got, err := read(t, dir, stoa.OpenOptions{}, stoa.ScanSpec{})
			if err != nil {
				t.Fatal(err)
			}
			if g.opts["sort-columns"] != "" {
				inInputOrder(got)
			}
			if d := differ(got, want, false); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestJudged has the real row reader read the grid, in full and with a filter on one value of each column that the
// judge can filter by.
func TestJudged(t *testing.T) {
	tables := append(grid(), lotsOf(t, 30)...)
	rows, _, filtered := judged(t, tables)
	t.Logf("COUNT %d tables with %d filters, %d rows that we wrote, read the same by the real row reader", len(tables),
		filtered, rows)
}

// TestFuzzed has it read random tables for the duration in STOA_FUZZ.
func TestFuzzed(t *testing.T) {
	if os.Getenv("STOA_CARBON_READ") == "" {
		t.Skip("STOA_CARBON_READ is not set: see interop/carbon")
	}
	fuzz.Run(t, "carbon", 40, func(t *testing.T, first uint64) int {
		var tables []gridTable
		for seed := first; seed < first+40; seed++ {
			tables = append(tables, lots(seed, 1)...)
		}
		_, cells, _ := judged(t, tables)
		return cells
	})
}

// judged writes tables and compares the rows that the real row reader returns. To prove that the comparison can fail,
// it also compares rows with one cell changed.
func judged(t *testing.T, tables []gridTable) (rows, cells, filtered int) {
	t.Helper()
	judge := os.Getenv("STOA_CARBON_READ")
	if judge == "" {
		t.Skip("STOA_CARBON_READ is not set: see interop/carbon")
	}
	home := t.TempDir()
	type asked struct {
		g      gridTable
		out    string
		filter string
		want   []line
		sc     *arrow.Schema
	}
	var all []asked
	var list strings.Builder
	ask := func(a asked, dir string) {
		a.out = filepath.Join(home, fmt.Sprintf("%d.jsonl", len(all)))
		fmt.Fprintf(&list, "%s\t%s", dir, a.out)
		if a.filter != "" {
			fmt.Fprintf(&list, "\t%s", a.filter)
		}
		list.WriteByte('\n')
		all = append(all, a)
	}
	for _, g := range tables {
		dir := filepath.Join(home, g.name)
		sc, want := writeGrid(t, g, dir)
		ask(asked{g: g, want: want, sc: sc}, dir)
		if g.wrap != nil || g.nulls == 100 || g.drawn != nil {
			continue
		}
		for _, f := range sc.Fields() {
			switch f.Type.ID() {
			case arrow.INT16, arrow.INT32, arrow.INT64, arrow.STRING:
			default:
				continue
			}
			value := want[len(want)/2][f.Name]
			if value == "null" {
				continue
			}
			var some []line
			for _, l := range want {
				if l[f.Name] == value {
					some = append(some, l)
				}
			}
			if text := strings.Trim(value, `"`); text != "" {
				ask(asked{g: g, filter: f.Name + "=" + text, want: some, sc: sc}, dir)
			}
		}
	}
	todo := filepath.Join(home, "list")
	if err := os.WriteFile(todo, []byte(list.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(judge, todo).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, a := range all {
		name := a.g.name
		if a.filter != "" {
			name += "?" + a.filter
			filtered++
		}
		if why, err := os.ReadFile(a.out + ".err"); err == nil {
			t.Errorf("%s: %.1500s", name, why)
			continue
		}
		got := wanted(a.sc, jsonRows(t, a.out))
		rows += len(got)
		cells += len(got) * a.sc.NumFields()
		inInputOrder(got)
		if d := differ(got, a.want, false); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
		if a.g.name == tables[0].name && a.filter == "" {
			got[len(got)/2][a.sc.Field(a.sc.NumFields()-1).Name] = "changed on purpose"
			if differ(got, a.want, false) == "" {
				t.Errorf("%s: a changed cell: got no difference, want one", name)
			} else {
				t.Logf("%s, a changed cell: noticed: %s", name, differ(got, a.want, false))
			}
		}
	}
	return rows, cells, filtered
}
