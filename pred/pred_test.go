package pred

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
)

var rewrite = flag.Bool("rewrite", false, "rewrite testdata/errors.txt")

// TestBind: predicates and the result of Bind, as text; "" is an error.
func TestBind(t *testing.T) {
	for _, c := range [][2]string{
		{"i8 < 1000", "i8 not in ()"},
		{"i8 = 1000", "i8 in ()"},
		{"i8 != 1000", "i8 not in ()"},
		{"i8 > 1e400", ""},
		{"i32 < 1e-400", ""},
		{"f64 = -0.001e-400", ""},
		{"f64 in (float '1e-400')", ""},
		{"f64 = 0.00e-400", "f64 = 0e+00"},
		{"f64 = -0e9", "f64 = 0e+00"},
		{"i32 < 5e-324", "i32 <= 0"},
		{"f64 = 3e-324", "f64 = 5e-324"},
		{"i8 < float 'NaN'", "i8 not in ()"},
		{"i8 >= float 'Infinity'", "i8 in ()"},
		{"i8 > float '-Infinity'", "i8 not in ()"},
		{"i32 > 3.5", "i32 >= 4"},
		{"i32 < 3.5", "i32 <= 3"},
		{"i32 = 3.5", "i32 in ()"},
		{"i32 = 3.0", "i32 = 3"},
		{"i32 = 3e0", "i32 = 3"},
		{"i32 > -3.5", "i32 >= -3"},
		{"i32 between 3.5 and 4.5", "i32 = 4"},
		{"i32 between 3.5 and 3.6", "i32 in ()"},
		{"i32 between 7 and 3", "i32 in ()"},
		{"i32 not between -9e9 and 3", "i32 > 3"},
		{"i32 not between 3 and 9e99", "i32 < 3"},
		{"u8 > 254.5", "u8 = 255"},
		{"u8 >= 0", "u8 not in ()"},
		{"u64 > 18446744073709551614", "u64 > 18446744073709551614"},
		{"u64 > 18446744073709551616", "u64 in ()"},
		{"i64 in (5, 3, 3.0, 3.5, 9e99, null)", "i64 in (3, 5, null)"},
		{"not i64 in (5)", "i64 not in (5)"},
		{"f32 = 0.1", "f32 = 1.0000000149011612e-01"},
		{"f32 > 1e300", "f32 >= float 'Infinity'"},
		{"f32 = 1e300", "f32 in ()"},
		{"f64 > 9007199254740993", "f64 >= 9.007199254740994e+15"},
		{"f64 <= float 'NaN'", "f64 not in ()"},
		{"f64 > float 'NaN'", "f64 in ()"},
		{"f64 = -0.0", "f64 = 0e+00"},
		{"d128 = 1.5", "d128 = 1.500"},
		{"d128 > 1.0005", "d128 >= 1.001"},
		{"dneg = 1500", "dneg = decimal '15e2'"},
		{"dneg > 1501", "dneg >= decimal '16e2'"},
		{"d_32 > timestamp '2020-01-01T12:00:00Z'", "d_32 >= date '2020-01-02'"},
		{"d_32 = '2020-01-01'", "d_32 = date '2020-01-01'"},
		{"ts_s = '2020-01-01'", "ts_s = timestamp '2020-01-01T00:00:00Z'"},
		{"ts_s > '2020-01-01 00:00:00.5'", "ts_s >= timestamp '2020-01-01T00:00:01Z'"},
		{"ts_ns < '2999-01-01'", "ts_ns not in ()"},
		{"ts_ms = '2020-01-01 00:00:00.5+01:00'", "ts_ms = timestamp '2019-12-31T23:00:00.5Z'"},
		{"t32s = '03:04'", "t32s = time '03:04:00'"},
		{"t32s > '03:04:00.5'", "t32s >= time '03:04:01'"},
		{"s >= ''", "s not in ()"},
		{"s < ''", "s in ()"},
		{"s = x'61'", "s = 'a'"},
		{"bin = 'a'", "bin = x'61'"},
		{"s like 'abc'", "s = 'abc'"},
		{"s not like 'a\\%'", "s != 'a%'"},
		{"s like '%%'", "s not in ()"},
		{"s like 'a%'", "s like 'a%'"},
		{"b", "b = true"},
		{"not b", "b != true"},
		{"b >= false", "b not in ()"},
		{"ds > 'x'", "ds > 'x'"},
		{"di > 3.5", "di >= 4"},
		{"nul = 3", "nul = 3"},
		{"i8 = null", "null"},
		{"i8 between null and 3", "null and i8 <= 3"},
		{"i8 not between 3 and null", "null or i8 < 3"},
		{"not (i8 < 3 and (s is null or not s = 'a'))", "i8 >= 3 or s is not null and s = 'a'"},
		{"list is null", "list is null"},
		{`st."a.b".w > 3`, `st."a.b".w > 3e+00`},
		{`st."a.b".and = 'x'`, `st."a.b".and = 'x'`},
		{`"null" = 'x'`, `"null" = 'x'`},
		{"dur > 5", "dur > 5"},
		{"d256 > 123456789012345678901234567890", "d256 > 123456789012345678901234567890"},
	} {
		e, err := Parse(c[0])
		if err == nil {
			e, err = Bind(e, testSchema)
		}
		got := ""
		if err == nil {
			got = e.String()
		}
		if got != c[1] {
			t.Errorf("%s: got %s (%v), want %s", c[0], got, err, c[1])
		}
	}
}

// TestEval: predicates and the rows of a small column that they select.
func TestEval(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	floats := []float64{-inf, -1, math.Copysign(0, -1), 0, 3.5, inf, nan}
	for pred, want := range map[string]string{
		"x > 3":                              "   4 5 6",
		"x > float 'Infinity'":               "6",
		"x = float 'NaN'":                    "6",
		"x >= float 'NaN'":                   "6",
		"x < float 'NaN'":                    "0 1 2 3 4 5",
		"x <= float 'Infinity'":              "0 1 2 3 4 5",
		"x = 0":                              "2 3",
		"x < 0":                              "0 1",
		"x in (-0.0, float 'NaN')":           "2 3 6",
		"x not in (0, float 'NaN')":          "0 1 4 5",
		"x != 0":                             "0 1 4 5 6",
		"not x > 3":                          "0 1 2 3",
		"x between -1 and 0":                 "1 2 3",
		"x not between -1 and 0":             "0 4 5 6",
		"x between 0 and float 'NaN'":        "2 3 4 5 6",
		"x is null":                          "7",
		"x is not null":                      "0 1 2 3 4 5 6",
		"x in ()":                            "",
		"x not in ()":                        "0 1 2 3 4 5 6",
		"x not in (1, null)":                 "",
		"x in (3.5, null)":                   "4",
		"x = null or x is null":              "7",
		"x between null and 0":               "",
		"x not between null and 0":           "4 5 6",
		"not (x > 3 or x < 0)":               "2 3",
		"not (x > 3 and x < 4) or x is null": "0 1 2 3 5 6 7",
		"true":                               "0 1 2 3 4 5 6 7",
		"null or not false":                  "0 1 2 3 4 5 6 7",
		"null":                               "",
	} {
		b := array.NewFloat64Builder(memory.DefaultAllocator)
		b.AppendValues(floats, nil)
		b.AppendNull()
		a := b.NewArray()
		sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: a.DataType()}}, nil)
		sel, err := must(Bind(must(Parse(pred)), sc)).Eval(a.Len(), func(string) arrow.Array { return a }, nil)
		if err != nil {
			t.Errorf("%s: %v", pred, err)
			continue
		}
		var got []string
		for i := range a.Len() {
			if sel.Has(i) {
				got = append(got, fmt.Sprint(i))
			}
		}
		if strings.Join(got, " ") != strings.TrimSpace(want) {
			t.Errorf("%s: got %v, want %s", pred, got, want)
		}
	}
}

func TestPrune(t *testing.T) {
	i, f, s := Int, Float, String
	for _, c := range []struct {
		pred     string
		min, max Value
		b        Bounds
		want     Verdict
	}{
		{"i32 > 5", i(1), i(5), Bounds{Rows: 9}, None},
		{"i32 > 5", i(6), i(9), Bounds{Rows: 9}, All},
		{"i32 > 5", i(6), i(9), Bounds{Rows: 9, Nulls: 1}, Some},
		{"i32 > 5", i(6), i(9), Bounds{Rows: 9, Nulls: -1}, Some},
		{"i32 > 5", i(6), i(9), Bounds{Rows: 9, Nulls: 9}, None},
		{"i32 > 5", i(6), i(9), Bounds{Rows: 0}, None},
		{"i32 > 5", i(5), i(6), Bounds{Rows: 9}, Some},
		{"i32 > 5", i(9), i(6), Bounds{Rows: 9}, Some},
		{"i32 > 5", i(1), Null(), Bounds{Rows: 9}, Some},
		{"i32 > 5", s("1"), i(5), Bounds{Rows: 9}, Some},
		{"i32 != 5", i(5), i(5), Bounds{Rows: 9}, None},
		{"i32 = 5", i(5), i(5), Bounds{Rows: -1}, All},
		{"i32 in (4,5,6)", i(4), i(6), Bounds{Rows: 9}, All},
		{"i32 in (4,6)", i(4), i(6), Bounds{Rows: 9}, Some},
		{"i32 in (4,6)", i(5), i(5), Bounds{Rows: 9}, None},
		{"i32 not in (4,6)", i(5), i(5), Bounds{Rows: 9}, All},
		{"i32 is null", i(5), i(5), Bounds{Rows: 9}, None},
		{"i32 is null", Null(), Null(), Bounds{Rows: 9, Nulls: 9}, All},
		{"i32 is not null", Null(), Null(), Bounds{Rows: 9, Nulls: 9}, None},
		{"i8 < 1000", Null(), Null(), Bounds{Rows: 9}, All},
		{"i8 < 1000", Null(), Null(), Bounds{Rows: 9, Nulls: -1}, Some},
		{"f64 > 5", f(1), f(5), Bounds{Rows: 9}, Some},
		{"f64 > 5", f(1), f(5), Bounds{Rows: 9, NoNaN: true}, None},
		{"f64 > 5", f(6), f(7), Bounds{Rows: 9}, All},
		{"f64 < 5", f(6), f(7), Bounds{Rows: 9}, None},
		{"f64 < 5", f(1), f(2), Bounds{Rows: 9}, Some},
		{"f64 < 5", f(1), f(math.NaN()), Bounds{Rows: 9, NoNaN: true}, Some},
		{"f64 = 0.0", f(math.Copysign(0, -1)), f(0), Bounds{Rows: 9, NoNaN: true}, All},
		{"s > 'b'", s("a"), s("b"), Bounds{Rows: 9}, None},
		{"s > 'b'", s("a"), s("b"), Bounds{Rows: 9, MaxCut: true}, Some},
		{"s >= 'c'", s("a"), s("b"), Bounds{Rows: 9, MaxCut: true}, None},
		{"s < 'c'", s("a"), s("b"), Bounds{Rows: 9, MaxCut: true}, All},
		{"s = 'b'", s("b"), s("b"), Bounds{Rows: 9, MaxCut: true}, Some},
		{"s like 'abc%'", s("abd"), s("b"), Bounds{Rows: 9}, None},
		{"s like 'abc%'", s("abc"), s("abczzz"), Bounds{Rows: 9}, All},
		{"s like 'abc%'", s("abc"), s("abc"), Bounds{Rows: 9, MaxCut: true}, All},
		{"s not like 'abc%'", s("abc"), s("abc"), Bounds{Rows: 9, MaxCut: true}, None},
		{"s like 'abc%d'", s("abd"), s("b"), Bounds{Rows: 9}, None},
		{"s like 'abc%d'", s("abc"), s("abc"), Bounds{Rows: 9}, Some},
		{"s like '%d'", s("abc"), s("abc"), Bounds{Rows: 9}, Some},
		{"ts_us > '2020-01-01'", Date(0), Timestamp(0, 1000), Bounds{Rows: 9}, None},
		{"not (i32 > 5 or i32 < 2)", i(2), i(5), Bounds{Rows: 9}, All},
	} {
		c.b.Min, c.b.Max = &c.min, &c.max
		if got := mustBind(t, must(Parse(c.pred))).Prune(func(string) *Bounds { return &c.b }); got != c.want {
			t.Errorf("%s, %s … %s %+v: got %s, want %s", c.pred, c.min, c.max, c.b, got, c.want)
		}
	}
}

func TestKeyRange(t *testing.T) {
	for pred, want := range map[string]string{
		"i32 > 3 and i32 <= 9 and i32 < 9 and i32 >= 1": "(3 9)",
		"i32 = 5":                     "[5 5]",
		"i32 in (7, 2, 5)":            "[2 7]",
		"i32 in (7, 2) and i32 in ()": "(null null)",
		"i32 between 2.5 and 7":       "[3 7]",
		"i32 > 3 or i32 < 1":          "(- -)",
		"s like 'ab%c'":               "['ab' 'ac')",
		"s like 'ab!%%' escape '!'":   "['ab%' 'ab&')",
		"s like '%c'":                 "(- -)",
		"s like 'ab'":                 "['ab' 'ab']",
		"not s != 'x' and i32 > 2":    "['x' 'x']",
		"ts_us >= '2020-01-01' and ts_us < '2020-01-02'": "[timestamp '2020-01-01T00:00:00Z' timestamp " +
			"'2020-01-02T00:00:00Z')",
	} {
		e := mustBind(t, must(Parse(pred)))
		low, high, li, hi := e.KeyRange(e.Columns()[0])
		show := func(v *Value) string {
			if v == nil {
				return "-"
			}
			return v.String()
		}
		got := map[bool]string{true: "[", false: "("}[li] + show(low) + " " + show(high) +
			map[bool]string{true: "]", false: ")"}[hi]
		if got != want {
			t.Errorf("%s: got %s, want %s", pred, got, want)
		}
	}
}

func TestEquals(t *testing.T) {
	for pred, want := range map[string]string{
		"i32 = 5":                   "[5] true",
		"i32 in (7, 2, null)":       "[2 7] true",
		"i32 in (7, 2) and i32 = 7": "[7] true",
		"i32 in (7, 2) and i32 = 8": "[] true",
		"i32 > 3":                   "[] false",
		"i32 = 3 or i32 = 4":        "[] false",
		"i32 between 3 and 3.5":     "[3] true",
	} {
		vs, ok := mustBind(t, must(Parse(pred))).Equals("i32")
		if got := fmt.Sprint(vs, ok); got != want {
			t.Errorf("%s: got %s, want %s", pred, got, want)
		}
	}
}

// TestErrors compares the messages of Parse and Bind with testdata/errors.txt: after each line with > comes its
// message.
func TestErrors(t *testing.T) {
	const file = "testdata/errors.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, line := range strings.Split(string(b), "\n") {
		text, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		e, err := Parse(strings.ReplaceAll(text, "⏎", "\n"))
		if err == nil {
			_, err = Bind(e, testSchema)
		}
		if !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Unsupported) {
			t.Errorf("%s: %v", text, err)
		}
		fmt.Fprintf(&out, "> %s\n%v\n\n", text, err)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	if out.String() != string(b) {
		t.Errorf("the messages have changed:\n%s", out.String())
	}
}

func TestJSON(t *testing.T) {
	e := must(Parse("i32 > 3.5 and not (s in ('a', x'00ff', null) or u64 = 18446744073709551615) and f64 = " +
		"float 'NaN' and s like 'a!%%' escape '!' and ts_s < timestamp '2020-01-01' and b"))
	const want = `{"op":"and","args":[{"op":"\u003e","column":"i32","values":[{"decimal":"3.5"}]},` +
		`{"op":"not","args":[{"op":"or","args":[{"op":"in","column":"s","values":["a",{"bytes":"00ff"},null]},` +
		`{"op":"=","column":"u64","values":[{"uint":"18446744073709551615"}]}]}]},` +
		`{"op":"=","column":"f64","values":[{"float":"NaN"}]},{"op":"like","column":"s","values":["a!%%"],` +
		`"escape":"!"},` +
		`{"op":"\u003c","column":"ts_s","values":[{"timestamp":"2020-01-01T00:00:00Z"}]},{"op":"=","column":"b",` +
		`"values":[true]}]}`
	if got := string(must(json.Marshal(e))); got != want {
		t.Errorf("%s", got)
	}
	for _, s := range []string{
		`{"op":"="}`, `{"op":"=","column":"s"}`, `{"op":"and","args":[null]}`, `{"op":"x"}`,
		`{"op":"=","column":"s","values":[{"int":"x"}]}`,
		`{"op":"=","column":"s","values":[{"int":"1","uint":"1"}]}`,
		`{"op":"=","column":"s","values":[{"date":"2020-02-30"}]}`,
		`{"op":"not"}`, `{"op":"true","column":"s"}`, `{"op":"like","column":"s","values":[{"int":"1"}]}`,
		`{"op":"like","column":"s","values":["a\\"]}`, `{"op":"like","column":"s","values":["a"],"escape":"ab"}`,
		strings.Repeat(`{"op":"not","args":[`, 300) + `{"op":"true"}` + strings.Repeat(`]}`, 300),
	} {
		var e Expr
		err := json.Unmarshal([]byte(s), &e)
		if err == nil {
			_ = e.String()
			_, err = Bind(&e, testSchema)
		}
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("%.100s: %v", s, err)
		}
	}
}

func TestTyped(t *testing.T) {
	for _, f := range testSchema.Fields() {
		for _, x := range []int64{0, 1, 77, 100} {
			v := Typed(f.Type, x)
			if v.Kind == KindNull || f.Type.ID() == arrow.BOOL && x > 1 {
				continue
			}
			if got, ok := v.Stored(f.Type); !ok || got != x {
				t.Errorf("%s: Typed(%d) is %s, Stored as %d, %v", f.Name, x, v, got, ok)
			}
		}
	}
	for _, c := range []struct {
		t    arrow.DataType
		x    int64
		want string
	}{
		{&arrow.TimestampType{Unit: arrow.Microsecond}, -1, "timestamp '1969-12-31T23:59:59.999999Z'"},
		{&arrow.TimestampType{Unit: arrow.Second}, math.MaxInt64, "timestamp '+292277026596-12-04T15:30:07Z'"},
		{&arrow.TimestampType{Unit: arrow.Second}, math.MinInt64, "timestamp '-292277022657-01-27T08:29:52Z'"},
		{arrow.FixedWidthTypes.Date32, -719529, "date '-0001-12-31'"},
		{&arrow.Decimal64Type{Precision: 9, Scale: 2}, -5, "-0.05"},
		{arrow.PrimitiveTypes.Uint64, -1, "18446744073709551615"},
	} {
		v := Typed(c.t, c.x)
		if v.String() != c.want {
			t.Errorf("%s %d: %s", c.t, c.x, v)
		}
		var j Value
		if err := json.Unmarshal(must(json.Marshal(v)), &j); err != nil || !j.Equal(v) {
			t.Errorf("%s came back as %s: %v", v, j, err)
		}
		if e, err := Parse("x = " + v.String()); err != nil || !e.Values[0].Equal(v) {
			t.Errorf("%s came back as %s: %v", v, e, err)
		}
	}
}

// TestCivil: days and dates agree with package time, for the years that it formats.
func TestCivil(t *testing.T) {
	for d := int64(-800_000); d < 2_932_000; d += 37 {
		at := time.Unix(d*daySeconds, 0).UTC()
		want := at.Format("2006-01-02")
		if at.Year() < 0 {
			continue
		}
		if got := formatDate(d); got != want {
			t.Fatalf("day %d: got %s, want %s", d, got, want)
		}
		if got, ok := parseDate(want); !ok || got != d {
			t.Fatalf("%s: got day %d, want %d", want, got, d)
		}
	}
	for _, s := range []string{"", "2020", "2020-1-1", "2020-02-30", "2021-02-29", "2020-00-01", "2020-01-32",
		"99999999999999-01-01", "2020-01-01x", "20-01-01"} {
		if _, ok := parseDate(s); ok {
			t.Errorf("%q parses as a date", s)
		}
	}
	for _, s := range []string{"2020-01-01T", "2020-01-01T24:00:00Z", "2020-01-01T23:60:00Z",
		"2020-01-01T23:00:60Z", "2020-01-01T00:00:00.Z", "2020-01-01T00:00:00.1234567890Z", "2020-01-01T00:00:00+1",
		"2020-01-01T00:00:00+24:00", "2020-01-01 00"} {
		if _, _, ok := parseTimestamp(s); ok {
			t.Errorf("%q parses as a timestamp", s)
		}
	}
}

func TestPath(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}, {"a.b"}, {""}, {"", ""}, {`"`, "x"}, {`a"b`, "c.d", "e"},
		{"and", "or"}, {"é", "1"}} {
		p := JoinPath(names...)
		if got := SplitPath(p); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", names) {
			t.Errorf("%q: %s: %q", names, p, got)
		}
		e, err := Parse(Test(p, OpIsNull).String())
		if err != nil || e.Column != p {
			t.Errorf("%q: %v %v", names, e, err)
		}
	}
}

// TestFloatKeys: floats of 16 bits have different keys, in order, except zeros and NaNs.
func TestFloatKeys(t *testing.T) {
	last := math.Inf(-1)
	for k := -infinityKey(16) + 1; k <= infinityKey(16); k++ {
		f := keyFloat(k, 16)
		if f <= last {
			t.Fatalf("%d: %g after %g", k, f, last)
		}
		last = f
	}
	for h := range 1 << 16 {
		f, g := naiveHalf(uint16(h)), keyFloat(floatKey(uint64(h), 16), 16)
		if f != g && (f == f || g == g) {
			t.Fatalf("%#x: got %g, want %g", h, g, f)
		}
	}
	for _, c := range []struct {
		lit   string
		want  float64 // the largest float not above lit, or the nearest
		exact bool
	}{
		{"65504.0", 65504, true}, {"65519.0", 65504, true}, {"65520.0", 65504, false}, {"-65519.0", -65504, true},
		{"-65520.0", math.Inf(-1), false},
		{"65505", 65504, false}, {"-65505", math.Inf(-1), false}, {"-65536", math.Inf(-1), false},
		{"65536", 65504, false},
		{"1e-9", 0, false}, {"-1e-9", -0x1p-24, false}, {"5e-8", 0x1p-24, true}, {"0.1", 0x1.998p-4, true},
		{"2049", 2048, false}, {"2049.0", 2048, true}, {"2051.0", 2052, true},
	} {
		p := floats(16).placeFloat(must(parseNumber(c.lit)))
		if got := keyFloat(int64(p.at[3]), 16); got != c.want || p.exact != c.exact {
			t.Errorf("%s: got %g, %v, want %g, %v", c.lit, got, p.exact, c.want, c.exact)
		}
	}
}

// TestMalformedArrays: Eval does not panic on arrays of a wrong type or length; its errors are of class Bug.
func TestMalformedArrays(t *testing.T) {
	b := mustBind(t, must(Parse("s > 'a' and i32 > 3 and ds = 'a' and b and fsb > x'00' and d128 > 1")))
	data := func(typ arrow.DataType, n int, bufs ...[]byte) arrow.Array {
		var out []*memory.Buffer
		for _, x := range bufs {
			if x == nil {
				out = append(out, nil)
			} else {
				out = append(out, memory.NewBufferBytes(x))
			}
		}
		return array.MakeFromData(array.NewData(typ, n, out, nil, 0, 0))
	}
	for _, c := range b.Conjuncts() {
		typ := typeOf(c.Column)
		arrs := []arrow.Array{nil, array.NewNull(2), data(arrow.PrimitiveTypes.Int64, 3, nil, make([]byte, 24)),
			data(arrow.PrimitiveTypes.Int64, 4, nil, make([]byte, 32))}
		switch c.Column {
		case "i32":
			arrs = append(arrs, data(typ, 4, []byte{}, make([]byte, 16))) // fine: no validity
		}
		for _, a := range arrs {
			_, err := c.Eval(4, func(string) arrow.Array { return a }, nil)
			if err != nil && !errors.Is(err, fault.Bug) {
				t.Errorf("%s: %v", c, err)
			}
		}
	}
	if _, err := must(Parse("s = 'a'")).Eval(4, nil, nil); !errors.Is(err, fault.Bug) {
		t.Error(err)
	}
	short := array.NewInt8Builder(memory.DefaultAllocator)
	short.AppendValues([]int8{0, 5}, nil)
	words := array.NewStringBuilder(memory.DefaultAllocator)
	words.AppendValues([]string{"a"}, nil)
	d := array.NewDictionaryArray(dict(arrow.PrimitiveTypes.Int8, arrow.BinaryTypes.String), short.NewArray(),
		words.NewArray())
	e := mustBind(t, must(Parse("ds = 'a'")))
	if _, err := e.Eval(2, func(string) arrow.Array { return d }, nil); !errors.Is(err, fault.Bug) {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	b, err := os.ReadFile("testdata/errors.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range strings.Split(string(b), "\n") {
		f.Add(strings.TrimPrefix(line, "> "))
	}
	for _, s := range []string{"a.b > 3.5 and not (x in (1, -2e3, null) or y like 'a!%' escape '!')",
		"t between date '2020-01-01' and timestamp '2020-01-01 03:04:05.5+02:00'",
		`"a""b".c is not null -- why`, "x'00' <> q or 0xFF = q",
		"d = decimal '1e-5' and f < float '-inf' and time '03:04' <= t", "flag"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Parse(s)
		if err != nil {
			if !errors.Is(err, fault.Invalid) {
				t.Fatal(err)
			}
			return
		}
		text := e.String()
		again, err := Parse(text)
		if err != nil || !sameExpr(e, again, false) || again.String() != text {
			t.Fatalf("%q is %q and then %q: %v", s, text, again, err)
		}
		var j Expr
		if err := json.Unmarshal(must(json.Marshal(e)), &j); err != nil || !sameExpr(e, &j, false) {
			t.Fatalf("%q: %s: %v", s, &j, err)
		}
		if b, err := Bind(e, testSchema); err == nil {
			b.Prune(func(string) *Bounds { return &Bounds{Rows: 1} })
			for _, c := range b.Columns() {
				b.KeyRange(c)
				b.Equals(c)
			}
		} else if !errors.Is(err, fault.Invalid) && !errors.Is(err, fault.Unsupported) {
			t.Fatal(err)
		}
	})
}

// TestFind: a path names nested fields, and a field with dots in its name only if there are no such nested fields.
func TestFind(t *testing.T) {
	i64, f64, s := arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String
	in := func(names ...arrow.Field) arrow.DataType { return arrow.StructOf(names...) }
	sc := []arrow.Field{{Name: "a.b", Type: i64},
		{Name: "a", Type: in(arrow.Field{Name: "b", Type: f64}, arrow.Field{Name: "c.d", Type: s})},
		{Name: "x.y", Type: i64}, {Name: "x",
			Type: in(arrow.Field{Name: "y", Type: in(arrow.Field{Name: "z", Type: s})})},
		{Name: "p.q", Type: in(arrow.Field{Name: "r", Type: f64})}, {Name: "twice", Type: i64},
		{Name: "twice", Type: s}}
	for path, want := range map[string]string{
		"a.b": "[1 0]", `"a"."b"`: "[1 0]", `"a.b"`: "[0]", "a.c.d": "[1 1]", `a."c.d"`: "[1 1]",
		"x.y": "[3 0]", `"x.y"`: "[2]", "x.y.z": "[3 0 0]",
		`"x.y".z`: "column \"x.y\".z: \"x.y\" is of type int64 and has no fields",
		"p.q.r":   "[4 0]", "p.q": "[4]", "twice": "column twice: there are several of this name",
		"p.r": "no column p.r; did you mean",
	} {
		at, f, err := Find(sc, path)
		got := fmt.Sprint(at)
		if err != nil {
			got = err.(*fault.Error).Reason
		} else if at[0] == 1 && len(at) == 2 && f.Name != []string{"b", "c.d"}[at[1]] {
			t.Errorf("%s: field %s", path, f.Name)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

// TestCaret: the caret is below the terminal cell of the error's position: wide characters take two cells, combining
// marks none.
func TestCaret(t *testing.T) {
	for text, cells := range map[string]int{
		"s = 'abc' nonsense":           10,
		"s = '漢字' nonsense":            11,
		"s = 'e\u0301\u0301' nonsense": 8,
		"s\t=\t'a' nonsense":           8,
		"s = '\u009b31m' nonsense":     11, // a control character is shown as a blank
		"s = '😀' nonsense":             9,
	} {
		_, err := Parse(text)
		lines := strings.Split(fmt.Sprint(err), "\n")
		if len(lines) != 3 || lines[2] != strings.Repeat(" ", 2+cells)+"^" {
			t.Errorf("%q: %v, the caret should have %d cells before it", text, err, cells)
		}
	}
}
