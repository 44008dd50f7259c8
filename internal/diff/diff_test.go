package diff

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format/formattest"
)

// column0 returns a column of the type, from JSON values.
func column0(t *testing.T, dt arrow.DataType, values string) arrow.Array {
	t.Helper()
	a, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(values))
	if err != nil {
		t.Fatalf("%s %s: %v", dt, values, err)
	}
	return a
}

// input returns a table of these columns, divided into batches of at most n rows.
func input(n int, names string, cols ...arrow.Array) Input {
	var fields []arrow.Field
	for i, name := range strings.Split(names, ",") {
		fields = append(fields, arrow.Field{Name: name, Type: cols[i].DataType(), Nullable: true})
	}
	sc := arrow.NewSchema(fields, nil)
	all := array.NewRecordBatch(sc, cols, int64(cols[0].Len()))
	return Input{sc, func() iter.Seq2[arrow.RecordBatch, error] {
		return func(yield func(arrow.RecordBatch, error) bool) {
			for at := int64(0); at < all.NumRows(); at += int64(n) {
				if !yield(all.NewSlice(at, min(all.NumRows(), at+int64(n))), nil) {
					return
				}
			}
		}
	}}
}

// TestValues: values that two types have in common are equal, and differences are shown as people write them.
func TestValues(t *testing.T) {
	dec := func(p, s int32) arrow.DataType { return &arrow.Decimal128Type{Precision: p, Scale: s} }
	dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	point := func(names ...string) arrow.DataType {
		var f []arrow.Field
		for _, n := range names {
			f = append(f, arrow.Field{Name: n, Type: arrow.PrimitiveTypes.Float64, Nullable: true})
		}
		return arrow.StructOf(f...)
	}
	oneOf := func(dense bool, types ...arrow.DataType) arrow.DataType {
		var f []arrow.Field
		var codes []arrow.UnionTypeCode
		for i, dt := range types {
			f = append(f, arrow.Field{Name: fmt.Sprint("m", i), Type: dt, Nullable: true})
			codes = append(codes, arrow.UnionTypeCode(3+2*i))
		}
		if dense {
			return arrow.DenseUnionOf(f, codes)
		}
		return arrow.SparseUnionOf(f, codes)
	}
	for _, c := range []struct {
		a      arrow.DataType
		av     string
		b      arrow.DataType
		bv     string
		differ string // the rows that differ, as shown; "": equal; "-": nothing in common
	}{
		{arrow.PrimitiveTypes.Int8, `[1,-128,null,0]`, arrow.PrimitiveTypes.Int64, `[1,-128,null,1]`, "3: 0 1"},
		{arrow.PrimitiveTypes.Uint64, `[18446744073709551615,1]`, arrow.PrimitiveTypes.Int64, `[-1,1]`,
			"0: 18446744073709551615 -1"},
		{arrow.PrimitiveTypes.Float32, `[0.5,-0.0,2]`, arrow.PrimitiveTypes.Float64, `[0.5,0,2.25]`, "2: 2 2.25"},
		{arrow.PrimitiveTypes.Int32, `[3,4]`, arrow.PrimitiveTypes.Float64, `[3,4.5]`, "1: 4 4.5"},
		{arrow.PrimitiveTypes.Uint64, `[9007199254740993,18446744073709551615,9007199254740992,5]`,
			arrow.PrimitiveTypes.Float64, `[9007199254740992,18446744073709551616,9007199254740992,5]`,
			"0: 9007199254740993 9.007199254740992e+15, 1: 18446744073709551615 1.8446744073709552e+19"},
		{arrow.ListOf(arrow.PrimitiveTypes.Float64), `[[9007199254740992,1],[null,2]]`,
			arrow.ListOf(arrow.PrimitiveTypes.Int64), `[[9007199254740993,1],[null,2]]`,
			"0: [9.007199254740992e+15, 1] [9007199254740993, 1]"},
		{dec(38, 2), `["90071992547409930.00","0.10","12.00"]`, arrow.PrimitiveTypes.Float64,
			`[90071992547409930,0.1,12]`, "0: 90071992547409930 9.007199254740994e+16"},
		{dec(10, 2), `["1.50","-0.07","0.00","120.00"]`, dec(20, 4), `["1.5000","-0.0700","0","12"]`, "3: 120 12"},
		{dec(10, 2), `["3.00","-0.07"]`, arrow.PrimitiveTypes.Int16, `[3,0]`, "1: -0.07 0"},
		{dict, `["a","b",null]`, arrow.BinaryTypes.LargeString, `["a","","x"]`, `1: "b" "", 2: null "x"`},
		{arrow.BinaryTypes.String, `["null","a"]`, arrow.BinaryTypes.String, `[null,"a"]`, `0: "null" null`},
		{arrow.FixedWidthTypes.Date32, `["2024-02-29"]`, arrow.FixedWidthTypes.Timestamp_ms,
			`["2024-02-29 00:00:00Z"]`, ""},
		{arrow.FixedWidthTypes.Timestamp_us, `["1969-12-31 23:59:59.5Z"]`, arrow.FixedWidthTypes.Timestamp_ns,
			`["1969-12-31 23:59:59.500000001Z"]`, "0: 1969-12-31 23:59:59.5 1969-12-31 23:59:59.500000001"},
		{arrow.FixedWidthTypes.Boolean, `[true,false]`, arrow.FixedWidthTypes.Boolean, `[true,true]`, "1: false true"},
		{arrow.FixedWidthTypes.Boolean, `[true,false,true]`, arrow.BinaryTypes.String, `["true","no","True"]`,
			"1: false no"},
		{dec(10, 4), `["-0.0100","-0.0004","3"]`, arrow.BinaryTypes.String, `["-0.01","-4e-04","3.1"]`, "2: 3 3.1"},
		{arrow.PrimitiveTypes.Float64, `[427485397962877.25,0.5,-0.0]`, arrow.BinaryTypes.String,
			`["427485397962877.25","0.50","0"]`, ""},
		{arrow.BinaryTypes.String, `["12","x","1e400","1e999999999"]`, arrow.PrimitiveTypes.Int32, `[12,1,2,3]`,
			"1: x 1, 2: 1" + strings.Repeat("0", 400) + " 2, 3: 1e999999999 3"},
		{arrow.FixedWidthTypes.Timestamp_us,
			`["2023-11-14 22:06:30.76683Z","1970-01-01 00:00:04Z","1970-01-01 00:00:05Z",null]`,
			arrow.BinaryTypes.String, `["2023-11-14T22:06:30.76683Z","1970-01-01T01:00:04+01:00",` +
				`"1970-01-01T00:00:05.1Z",null]`,
			"2: 1970-01-01 00:00:05 1970-01-01 00:00:05.1"},
		{arrow.FixedWidthTypes.Date32, `["2024-02-29","2024-02-29"]`, arrow.BinaryTypes.LargeString,
			`["2024-02-29","29.2.2024"]`, "1: 2024-02-29 29.2.2024"},
		{arrow.FixedWidthTypes.Time64us, `["10:00:00.5","10:00:00"]`, arrow.BinaryTypes.String,
			`["10:00:00.500","10:00"]`, ""},
		{arrow.ListOf(arrow.PrimitiveTypes.Int8), `[[1,null],[],null]`,
			arrow.LargeListOf(arrow.PrimitiveTypes.Int32), `[[1,null],null,[]]`, "1: [] null, 2: null []"},
		{point("x", "y"), `[{"x":1,"y":2},{"x":1,"y":null}]`, point("y", "x"), `[{"x":1,"y":2},{"x":1,"y":3}]`,
			"1: {x: 1, y: null} {x: 1, y: 3}"},
		{point("x"), `[{"x":1}]`, point("z"), `[{"z":1}]`, "-"},
		{point("x"), `[{"x":1}]`, arrow.PrimitiveTypes.Int8, `[1]`, "-"},
		{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int8), `[[{"key":"k","value":1}]]`,
			arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int64), `[[{"key":"k","value":2}]]`,
			`0: [{key: "k", value: 1}] [{key: "k", value: 2}]`},
		{arrow.Null, `[null,null]`, arrow.PrimitiveTypes.Int8, `[null,7]`, "1: null 7"},
		// a null of a union is null, whichever member has it
		{oneOf(true, arrow.PrimitiveTypes.Int8, arrow.Null, arrow.BinaryTypes.String),
			`[[3,1],[5,null],[3,null],[7,null],[7,"1"],[5,null]]`,
			oneOf(false, arrow.PrimitiveTypes.Int64, arrow.Null, arrow.BinaryTypes.String),
			`[[3,1],[3,null],[5,null],[3,null],[3,1],[7,""]]`, `4: [7, "1"] [3, 1], 5: null [7, ""]`},
		{arrow.ListOf(oneOf(true, arrow.PrimitiveTypes.Int8, arrow.Null)), `[[[3,1],[5,null]],[[5,null]]]`,
			arrow.ListOf(oneOf(true, arrow.PrimitiveTypes.Int8, arrow.Null)), `[[[3,1],[3,null]],[[3,0]]]`,
			"1: [null] [[3, 0]]"},
		{oneOf(true, arrow.Null, arrow.Null), `[[3,null],[5,null]]`, arrow.Null, `[null,null]`, ""},
		{oneOf(true, arrow.PrimitiveTypes.Int8), `[[3,1]]`, arrow.PrimitiveTypes.Int8, `[1]`, "-"},
		{oneOf(true, arrow.PrimitiveTypes.Int8), `[[3,1]]`, oneOf(true, arrow.Null, arrow.Null), `[[3,null]]`, "-"},
		// 66 6f 6f 62 is foob; these are the vectors of RFC 4648.
		{arrow.BinaryTypes.Binary, `["","Zg==","Zm9vYg==","Zm9vYmFy",null]`, arrow.BinaryTypes.String,
			`["","Zg==","Zm9vYg==","Zm9vYmFz",null]`, `3: "foobar" "Zm9vYmFz"`},
		// text that is not base64, even if only by its unused last bits, equals nothing in a base64 column, not even
		// the bytes that it represents
		{arrow.BinaryTypes.Binary, `["Zg==","Zg==","Zm9vYg==","Zm9vYmFy"]`, arrow.BinaryTypes.String,
			`["Zg==","Zh==","Zm9vYg==","Zm9vYmFy"]`, `1: "f" "Zh=="`},
		{arrow.BinaryTypes.Binary, `["Zg==","Zg=="]`, arrow.BinaryTypes.String, `["Zg==","Zg==\n"]`, `1: "f" "Zg==\n"`},
		{arrow.BinaryTypes.Binary, `["Zg==","Zg==","Zm9v"]`, arrow.BinaryTypes.String, `["Zg==","Zg==","foo"]`,
			`2: "foo" "foo"`},
		// bytes that are text equal that text, even if it could be base64
		{arrow.BinaryTypes.Binary, `["Zm9vYg==","YmFyeg=="]`, arrow.BinaryTypes.String, `["foob","barz"]`, ""},
		{arrow.BinaryTypes.Binary, `["Zm9vYg==","YmFyeg==","YQ=="]`, arrow.BinaryTypes.String,
			`["foob","barz","YQ=="]`, `2: "a" "YQ=="`},
		// two values are not equal to one: a and YQ== against YQ== and YQ==, in both orders
		{arrow.BinaryTypes.Binary, `["YQ==","WVE9PQ=="]`, arrow.BinaryTypes.String, `["YQ==","YQ=="]`, `0: "a" "YQ=="`},
		{arrow.BinaryTypes.Binary, `["WVE9PQ==","YQ=="]`, arrow.BinaryTypes.String, `["YQ==","YQ=="]`, `1: "a" "YQ=="`},
		{arrow.BinaryTypes.LargeString, `["Zm9v","Zm9v"]`, &arrow.FixedSizeBinaryType{ByteWidth: 3},
			`["Zm9v","Zm9w"]`, `1: "Zm9v" "fop"`},
		{arrow.BinaryTypes.Binary, `["Wmc9PQ=="]`, arrow.BinaryTypes.String, `["Zg=="]`, ""},
		{arrow.BinaryTypes.Binary, `["Zg=="]`, arrow.BinaryTypes.String, `["Wmc9PQ=="]`, `0: "f" "Wmc9PQ=="`},
		{arrow.BinaryTypes.String, `["Zg=="]`, arrow.BinaryTypes.LargeString, `["f"]`, `0: "Zg==" "f"`},
		{arrow.ListOf(arrow.BinaryTypes.Binary), `[["Zg==",null],["Zg=="]]`, arrow.ListOf(arrow.BinaryTypes.String),
			`[["Zg==",null],["Zg==","Zg=="]]`, `1: ["f"] ["Zg==", "Zg=="]`},
		{arrow.StructOf(arrow.Field{Name: "b", Type: arrow.BinaryTypes.Binary, Nullable: true}),
			`[{"b":"Zg=="},{"b":null}]`,
			arrow.StructOf(arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true}),
			`[{"b":"Zg=="},{"b":"Zg=="}]`,
			`1: {b: null} {b: "Zg=="}`},
	} {
		for _, batch := range []int{1, 3, 100} {
			r, err := Run(context.Background(), input(batch, "v", column0(t, c.a, c.av)),
				input(2, "v", column0(t, c.b, c.bv)), Options{Examples: 100})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range r.Examples {
				got = append(got, fmt.Sprintf("%d: %s %s", x.At[0], x.Cells[0].A, x.Cells[0].B))
			}
			text := strings.Join(got, ", ")
			if len(r.Schema) == 1 && r.Schema[0].Incomparable {
				text = "-"
			}
			if text != c.differ || int(r.Changed) != len(got) {
				t.Errorf("%s %s against %s %s: got %q (%d changed), want %q", c.a, c.av, c.b, c.bv, text, r.Changed,
					c.differ)
			}
		}
	}
}

func TestTolerance(t *testing.T) {
	a := column0(t, arrow.PrimitiveTypes.Float64, `[1,1,1000,1,null]`)
	b := column0(t, arrow.PrimitiveTypes.Float64, `[1,1.01,1001,1.5,0]`)
	for _, c := range []struct {
		abs, rel float64
		changed  int64
	}{{0, 0, 4}, {0.02, 0, 3}, {0, 0.0011, 3}, {0.02, 0.0011, 2}, {10, 0, 1}, {math.Inf(1), 0, 1}} {
		for _, wrap := range []bool{false, true} {
			x, y := arrow.Array(a), arrow.Array(b)
			if wrap { // the same inside a struct
				x, y = inStruct(a), inStruct(b)
			}
			r, err := Run(context.Background(), input(9, "v", x), input(9, "v", y),
				Options{Absolute: c.abs, Relative: c.rel})
			if err != nil || r.Changed != c.changed {
				t.Errorf("%v, in a struct %v: %d changed, want %d (%v)", c, wrap, r.Changed, c.changed, err)
			}
		}
	}
	nan := array.NewFloat64Builder(memory.DefaultAllocator)
	nan.AppendValues([]float64{math.NaN(), math.Inf(1), math.NaN()}, nil)
	x := nan.NewArray()
	nan.AppendValues([]float64{math.Float64frombits(0xfff8000000000007), math.Inf(-1), 1}, nil)
	r, err := Run(context.Background(), input(9, "v", x), input(9, "v", nan.NewArray()), Options{Absolute: 1e300})
	if err != nil || r.Changed != 2 {
		t.Errorf("NaN and infinities: %d changed (%v)", r.Changed, err)
	}
}

func inStruct(a arrow.Array) arrow.Array {
	s, err := array.NewStructArray([]arrow.Array{a}, []string{"f"})
	if err != nil {
		panic(err)
	}
	return s
}

// TestByKey compares the rows found by key with a map, also with so little memory that the tables are divided.
func TestByKey(t *testing.T) {
	const rows = 3000
	r := rand.New(rand.NewPCG(10, 1))
	var keys, vals [2][]int64
	perm := [2][]int{r.Perm(rows), r.Perm(rows)}
	for side := range 2 {
		for _, k := range perm[side] {
			if (k+side)%13 == 0 { // missing on this side
				continue
			}
			v := int64(k) * 3
			if side == 1 && k%50 == 7 {
				v++
			}
			keys[side], vals[side] = append(keys[side], int64(k)), append(vals[side], v)
		}
	}
	in := func(side int) Input {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		b.AppendValues(keys[side], nil)
		k := b.NewArray()
		b.AppendValues(vals[side], nil)
		return input(97, "k,v", k, b.NewArray())
	}
	other := map[int64]int64{}
	for i, k := range keys[1] {
		other[k] = vals[1][i]
	}
	var want Result
	for i, k := range keys[0] {
		switch v, ok := other[k]; {
		case !ok:
			want.Only[0]++
		case v == vals[0][i]:
			want.Same++
		default:
			want.Changed++
		}
	}
	want.Only[1] = int64(len(keys[1])) - want.Same - want.Changed
	if want.Changed == 0 || want.Only[0] == 0 {
		t.Fatal("nothing differs")
	}
	for _, memory := range []int64{1 << 30, 100_000, 20_000} {
		got, err := Run(context.Background(), in(0), in(1), Options{On: []string{"k"}, Memory: memory, Examples: 5})
		if err != nil {
			t.Fatal(err)
		}
		if got.Same != want.Same || got.Changed != want.Changed || got.Only != want.Only ||
			got.Rows != [2]int64{int64(len(keys[0])), int64(len(keys[1]))} || len(got.Examples) != 5 {
			t.Errorf("%d bytes: got %+v, want %+v", memory, got, want)
		}
		if (got.Parts > 1) != (memory < 1<<30) {
			t.Errorf("%d bytes: the tables were read %d times", memory, got.Parts)
		}
	}
	if _, err := Run(context.Background(), in(0), in(1),
		Options{On: []string{"nosuch"}, Memory: 1 << 30}); !errors.Is(err, fault.Invalid) {
		t.Errorf("a key that is not there: %v", err)
	}
}

// TestCodedByKey: rows with the same key are equal if the text of one is the other's bytes in base64, even if the key
// occurs twice.
func TestCodedByKey(t *testing.T) {
	a := input(2, "k,v", column0(t, arrow.PrimitiveTypes.Int8, `[1,2,2,3]`),
		column0(t, arrow.BinaryTypes.Binary, `["Zg==","Zm8=","Zm9v","Zg=="]`))
	b := input(3, "k,v", column0(t, arrow.PrimitiveTypes.Int8, `[3,2,2,1]`),
		column0(t, arrow.BinaryTypes.String, `["Zh==","Zm9v","Zm8=","Zg=="]`))
	r, err := Run(context.Background(), a, b, Options{On: []string{"k"}, Examples: 9, Memory: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if r.Same != 3 || r.Changed != 1 || len(r.Examples) != 1 || r.Examples[0].At != [2]int64{3, 0} {
		t.Errorf("%+v", r)
	}
}

// TestReadings: whether text is base64 is decided once per column, and separately for each column, whatever the order
// of the rows, by position and by key.
func TestReadings(t *testing.T) {
	bin, str := arrow.BinaryTypes.Binary, arrow.BinaryTypes.String
	// plain: words of four letters, which are also valid base64; coded: as in CSV; mixed: a is plain text, and b is in
	// base64
	rows := [][6]string{
		{"Zm9vYg==", "foob", "Zm9v", "Zm9v", "YQ==", "a"},
		{"YmFyeg==", "barz", "/w==", "/w==", "Yg==", "Yg=="},
		{"cXV1eA==", "quux", "", "", "Yw==", "c"},
	}
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		var cols [6]arrow.Array
		for c := range cols {
			var words []string
			for _, i := range order {
				words = append(words, fmt.Sprintf("%q", rows[i][c]))
			}
			cols[c] = column0(t, []arrow.DataType{bin, str}[c%2], "["+strings.Join(words, ",")+"]")
		}
		k := column0(t, arrow.PrimitiveTypes.Int8, `[1,2,3]`)
		for _, on := range [][]string{nil, {"k"}} {
			a, b := input(2, "k,plain,coded,mixed", k, cols[0], cols[2], cols[4]),
				input(3, "k,plain,coded,mixed", k, cols[1], cols[3], cols[5])
			r, err := Run(context.Background(), a, b, Options{On: on, Examples: 9, Memory: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(r.Cells) != "map[mixed:1]" || r.Same != 2 || r.Changed != 1 || len(r.Schema) != 3 ||
				r.Rows != [2]int64{3, 3} {
				t.Errorf("rows %v, on %v: %+v", order, on, r)
			}
			// one column is better read as base64, the other is not, although it could be
			a, b = input(2, "k,plain,coded", k, cols[0], cols[2]),
				input(3, "k,plain,coded", k, column0(t, str, `["foob","foob","foob"]`), cols[3])
			if r, err = Run(context.Background(), a, b, Options{On: on, Memory: 1 << 20}); err != nil ||
				fmt.Sprint(r.Cells) != "map[plain:2]" || r.Changed != 2 {
				t.Errorf("rows %v, on %v: %+v, %v", order, on, r, err)
			}
		}
	}
}

// TestSameKey: among rows with the same key, equal rows are paired first, in any order, then the others in order. Rows
// that cannot be divided are reported.
func TestSameKey(t *testing.T) {
	small := func(values string) arrow.Array { return column0(t, arrow.PrimitiveTypes.Int8, values) }
	a := input(2, "k,v", small(`[1,1,null,1,1]`), small(`[1,2,3,4,5]`))
	b := input(3, "k,v", small(`[2,null,1,1,1]`), small(`[7,3,9,4,1]`))
	r, err := Run(context.Background(), a, b, Options{On: []string{"k"}, Memory: 1 << 20, Examples: 9})
	if err != nil || r.Same != 3 || r.Changed != 1 || r.Only != [2]int64{1, 1} || r.Cells["v"] != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	var got []string
	for _, x := range r.Examples {
		got = append(got, fmt.Sprint(x.At, x.Key, x.Cells))
	}
	// In the order of b, followed by the rows only in a.
	if want := "[-1 0] [{k  2}] [{v  7}], [1 2] [{k 1 1}] [{v 2 9}], [4 -1] [{k 1 }] [{v 5 }]"; strings.ReplaceAll(
		strings.Join(got, ", "), "][", "] [") != want {
		t.Errorf("%s, want %s", strings.Join(got, ", "), want)
	}
	if _, err := Run(context.Background(), a, b, Options{On: []string{"k"}, Memory: 10}); !errors.Is(err, fault.Limit) {
		t.Errorf("too little memory: %v", err)
	}
	many := input(100, "k,v", small("["+strings.Repeat("1,", 999)+"1]"), small("["+strings.Repeat("1,", 999)+"1]"))
	if _, err := Run(context.Background(), b, many, Options{On: []string{"k"}, Memory: 2000}); !errors.Is(err,
		fault.Limit) {
		t.Errorf("too little memory for rows that wait: %v", err)
	}
}

// TestRowsInAnyOrder: tables with the same rows in any order are equal, and the number of differing rows equals that of
// counting rows by key and value, however little memory there is.
func TestRowsInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7))
	for try := range 30 {
		keys, values := 1+rnd.IntN(40), 1+rnd.IntN(60)
		var rows [2][][2]int64
		for i := range 400 {
			x := [2]int64{int64(rnd.IntN(keys)), int64(rnd.IntN(values))}
			rows[0] = append(rows[0], x)
			switch {
			case try%3 > 0 && i%17 == 3:
				x[1] += 1000
			case try%3 > 1 && i%29 == 4:
				x[0] += 7
			}
			rows[1] = append(rows[1], x)
		}
		rnd.Shuffle(400, func(i, j int) { rows[1][i], rows[1][j] = rows[1][j], rows[1][i] })
		want := wantResult(rows)
		for _, memory := range []int64{1 << 30, 30_000} {
			got, err := Run(context.Background(), pairsOf(rows[0]), pairsOf(rows[1]),
				Options{On: []string{"k"}, Memory: memory, Examples: 20})
			if errors.Is(err, fault.Limit) && keys < 8 {
				continue
			}
			if err != nil {
				t.Fatalf("%d keys, %d bytes: %v", keys, memory, err)
			}
			if got.Same != want.Same || got.Changed != want.Changed || got.Only != want.Only ||
				got.Cells["v"] != want.Changed || got.Rows != [2]int64{400, 400} {
				t.Errorf("%d keys, %d values, %d bytes: %+v, want %+v", keys, values, memory, got, want)
			}
			if n := min(20, want.Changed+want.Only[0]+want.Only[1]); int64(len(got.Examples)) != n {
				t.Errorf("%d examples, want %d", len(got.Examples), n)
			}
			if memory < 1<<30 && got.Parts == 1 {
				t.Errorf("%d bytes: not divided", memory)
			}
		}
	}
}

// pairsOf returns a table of rows k, v.
func pairsOf(rows [][2]int64) Input {
	var cols [2]arrow.Array
	for c := range cols {
		b := array.NewInt64Builder(memory.DefaultAllocator)
		for _, x := range rows {
			b.Append(x[c])
		}
		cols[c] = b.NewArray()
	}
	return input(37, "k,v", cols[0], cols[1])
}

// wantResult returns the result of comparing two tables, computed by its definition.
func wantResult(rows [2][][2]int64) (want Result) {
	var of [2]map[[2]int64]int64
	var keys [2]map[int64]int64
	for side := range rows {
		of[side], keys[side] = map[[2]int64]int64{}, map[int64]int64{}
		for _, x := range rows[side] {
			of[side][x]++
			keys[side][x[0]]++
		}
	}
	for x, n := range of[0] {
		both := min(n, of[1][x])
		want.Same += both
		keys[0][x[0]] -= both
		keys[1][x[0]] -= both
	}
	for k := range int64(100) {
		both := min(keys[0][k], keys[1][k])
		want.Changed += both
		want.Only[0] += keys[0][k] - both
		want.Only[1] += keys[1][k] - both
	}
	return want
}

// TestNearRows: within a tolerance as many rows of a key as possible are paired, after the equal ones; of very many,
// those at the same position.
func TestNearRows(t *testing.T) {
	reals := func(values string) arrow.Array { return column0(t, arrow.PrimitiveTypes.Float64, values) }
	for _, c := range []struct {
		a, b          string
		same, changed int64
	}{
		{`[1,1.1]`, `[1.05,0.95]`, 2, 0},             // the first row of b fits both of a, the second only the first
		{`[1,1.1,1.2]`, `[1.15,1.05,0.95]`, 3, 0},    //
		{`[1,1.1]`, `[1,0.95]`, 1, 1},                // equal rows first
		{`[1,2,3]`, `[3.05,1.01,2.02]`, 3, 0},        //
		{`[1,2,3]`, `[9,1.01,2.02]`, 2, 1},           //
		{`[null,2]`, `[2.0001,null]`, 2, 0},          //
		{`[1,1,1]`, `[1.01,1.02,1.03,1.04]`, 3, 0},   //
		{`[1,1,1,1]`, `[1.01,1.02,7,8,9,10]`, 2, 2},  //
		{`[5,1,1,1]`, `[1.01,1.02,1.03,5.01]`, 4, 0}, //
	} {
		a, b := reals(c.a), reals(c.b)
		key := func(n int) arrow.Array {
			return column0(t, arrow.PrimitiveTypes.Int8, "["+strings.Repeat("1,", n-1)+"1]")
		}
		r, err := Run(context.Background(), input(2, "k,v", key(a.Len()), a), input(2, "k,v", key(b.Len()), b),
			Options{On: []string{"k"}, Memory: 1 << 20, Absolute: 0.1 + 1e-12})
		if err != nil || r.Same != c.same || r.Changed != c.changed || r.Only[1] != max(0, int64(b.Len()-a.Len())) {
			t.Errorf("%s and %s: %+v, %v", c.a, c.b, r, err)
		}
	}
	const n = 5000
	keys, x, y := array.NewInt8Builder(memory.DefaultAllocator), array.NewFloat64Builder(memory.DefaultAllocator),
		array.NewFloat64Builder(memory.DefaultAllocator)
	for i := range n {
		keys.Append(1)
		x.Append(float64(i))
		y.Append(float64(i) + 0.01)
	}
	k := keys.NewArray()
	r, err := Run(context.Background(), input(999, "k,v", k, x.NewArray()), input(999, "k,v", k, y.NewArray()),
		Options{On: []string{"k"}, Memory: 1 << 30, Absolute: 0.1})
	if err != nil || r.Same != n {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestSchemas(t *testing.T) {
	col := func(n int) arrow.Array {
		return column0(t, arrow.PrimitiveTypes.Int8, "["+strings.TrimSuffix(strings.Repeat("1,", n), ",")+"]")
	}
	a, b := input(9, "x,y,z", col(3), col(3), col(3)), input(9, "z,x,w", col(5), col(5), col(5))
	r, err := Run(context.Background(), a, b, Options{Examples: 9})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range r.Schema {
		kinds = append(kinds, c.Kind+" "+c.Name)
	}
	if got := strings.Join(kinds, ", "); got != "only in a y, only in b w, order " {
		t.Error(got)
	}
	if r.Same != 3 || r.Only != [2]int64{0, 2} || r.Rows != [2]int64{3, 5} || len(r.Examples) != 2 ||
		r.Examples[0].At != [2]int64{-1, 3} {
		t.Errorf("%+v", r)
	}
}

// TestEveryType: random cells of every type equal themselves, however the batches are divided, and the form is
// self-delimiting.
func TestEveryType(t *testing.T) {
	types := []arrow.DataType{
		arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Int16, arrow.PrimitiveTypes.Int32,
		arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Uint8, arrow.PrimitiveTypes.Uint64,
		arrow.PrimitiveTypes.Float32, arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Boolean,
		arrow.BinaryTypes.String, arrow.BinaryTypes.Binary,
		arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Timestamp_us,
		&arrow.Decimal128Type{Precision: 18, Scale: 3},
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, dt := range types {
		arr := formattest.Random(r, dt, 300, 20)
		res, err := Run(context.Background(), input(7, "v", arr), input(11, "v", arr), Options{})
		if err != nil || res.Same != 300 || res.Changed != 0 {
			t.Errorf("%s: %+v, %v", dt, res, err)
		}
		s := pair(dt, dt)
		var row []byte
		var each [][]byte
		for i := range arr.Len() {
			c := s.append(nil, arr, i, 0)
			each, row = append(each, c), append(row, c...)
		}
		for i, want := range each {
			var c []byte
			if c, row = s.cut(row); !slices.Equal(c, want) {
				t.Fatalf("%s: cell %d is cut to %x, not %x", dt, i, c, want)
			}
		}
	}
}
