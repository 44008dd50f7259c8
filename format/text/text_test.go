package text

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/ipc/sample"
	"stoa/internal/cells"
	"stoa/internal/typewords"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// write writes the batches to an object "t".
func write(t testing.TB, f format.Format, opts map[string]string, batches ...arrow.RecordBatch) *store.Memory {
	t.Helper()
	tree := store.NewMemory(nil)
	ctx := context.Background()
	w, err := f.Create(ctx, tree.Sink("t"), batches[0].Schema(), format.WriteOptions{Rows: -1, Opts: opts})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range batches {
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := w.Close(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sum.Bytes != int64(len(tree.Bytes("t"))) {
		t.Errorf("summary says %d bytes, there are %d", sum.Bytes, len(tree.Bytes("t")))
	}
	return tree
}

func tree(text string) *store.Memory { return store.NewMemory(map[string][]byte{"t": []byte(text)}) }

// read returns all batches of "t", and the errors between them. cols nil means all.
func read(f format.Format, tr store.Tree, opts map[string]string, cols []int, rows vec.Range) (sc *arrow.Schema,
	out []arrow.RecordBatch, errs []error) {
	ctx := context.Background()
	r, err := f.Open(ctx, format.Target{Tree: tr, Name: "t"}, format.OpenOptions{Opts: opts})
	if err != nil {
		return nil, nil, []error{err}
	}
	defer r.Close()
	if cols == nil {
		for i := range r.Columns() {
			cols = append(cols, i)
		}
	}
	for b, err := range r.(format.Batcher).Batches(ctx, format.RowGroup{}, format.Query{Cols: cols}, rows,
		memory.NewGoAllocator()) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		b.Retain()
		out = append(out, b)
	}
	return r.Schema(), out, errs
}

// lines returns a text as JSON lines, for comparison.
func lines(t testing.TB, f format.Format, text string, opts map[string]string) string {
	t.Helper()
	sc, got, errs := read(f, tree(text), opts, nil, vec.Range{})
	if errs != nil {
		t.Fatalf("%q: %v", text, errs)
	}
	var buf bytes.Buffer
	w := cells.NewJSONLWriter(&buf, sc)
	for _, b := range got {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	return buf.String()
}

var all = sample.Schema(slices.Concat(sample.Scalars(), sample.Rare(), sample.Nested(), sample.NestedRare())...)

var negativeZero = regexp.MustCompile(`-0\.0([,}\]]|$)`)

// TestJSONNegativeZero: written as -0, as arrow-go does, negative zero is an integer to most readers.
func TestJSONNegativeZero(t *testing.T) {
	for _, typ := range []arrow.DataType{arrow.FixedWidthTypes.Float16, arrow.PrimitiveTypes.Float32,
		arrow.PrimitiveTypes.Float64} {
		b := array.NewBuilder(memory.DefaultAllocator, typ)
		if err := textSetter(b, typ)([]byte("-0")); err != nil {
			t.Fatal(err)
		}
		a := b.NewArray()
		got := string(cells.AppendJSON(nil, a, 0))
		if f, err := strconv.ParseFloat(got, 64); err != nil || !math.Signbit(f) || got != "-0.0" {
			t.Errorf("%s: %s, %v", typ, got, err)
		}
		again := array.NewBuilder(memory.DefaultAllocator, typ)
		if err := textSetter(again, typ)([]byte(got)); err != nil {
			t.Fatal(err)
		}
		if x := string(cells.AppendJSON(nil, again.NewArray(), 0)); x != got {
			t.Errorf("%s: %s is read as %s", typ, got, x)
		}
	}
}

// TestJSONIsArrows compares every value with arrow-go's own JSON.
func TestJSONIsArrows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, nulls := range []float64{0, 0.3} {
		b := sample.Batch(r, all, 400, nulls)
		for k, a := range b.Columns() {
			for i := range a.Len() {
				theirs, err := json.Marshal(a.GetOneForMarshal(i))
				if err != nil {
					t.Fatal(err)
				}
				ours := negativeZero.ReplaceAll(cells.AppendJSON(nil, a, i), []byte("-0$1")) // see TestJSONNegativeZero
				var x, y any
				d := json.NewDecoder(bytes.NewReader(ours))
				d.UseNumber()
				if err := d.Decode(&x); err != nil {
					t.Fatalf("%s: %s: %v", b.ColumnName(k), ours, err)
				}
				d = json.NewDecoder(bytes.NewReader(theirs))
				d.UseNumber()
				if err := d.Decode(&y); err != nil {
					t.Fatal(err)
				}
				decimals := strings.Contains(a.DataType().String(), "decimal") // TestJSONDecimals has their digits
				if !reflect.DeepEqual(x, y) && !sameNumber(x, y) && !(decimals && sameDecimals(x, y)) {
					t.Fatalf("%s[%d]: %s, arrow-go has %s", b.ColumnName(k), i, ours, theirs)
				}
			}
		}
	}
}

// sameDecimals compares JSON values whose texts are numbers, however many zeros they end with.
func sameDecimals(x, y any) bool {
	switch a := x.(type) {
	case string:
		b, ok := y.(string)
		p, ok1 := new(big.Rat).SetString(a)
		q, ok2 := new(big.Rat).SetString(b)
		return ok && (a == b || ok1 && ok2 && p.Cmp(q) == 0)
	case []any:
		b, ok := y.([]any)
		return ok && slices.EqualFunc(a, b, sameDecimals)
	case map[string]any:
		b, ok := y.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameDecimals)
	}
	return reflect.DeepEqual(x, y) || sameNumber(x, y)
}

// TestJSONDecimals: decimals have all digits of their scale, as in CSV, and no exponent.
func TestJSONDecimals(t *testing.T) {
	for value, want := range map[string]string{"1.5": "1.50000", "0": "0.00000", "-0.00001": "-0.00001",
		"100": "100.00000", "-7": "-7.00000", "9999.99999": "9999.99999"} {
		for _, typ := range []arrow.DataType{&arrow.Decimal32Type{Precision: 9, Scale: 5},
			&arrow.Decimal64Type{Precision: 18, Scale: 5}, &arrow.Decimal128Type{Precision: 38, Scale: 5},
			&arrow.Decimal256Type{Precision: 76, Scale: 5}} {
			b := array.NewBuilder(memory.DefaultAllocator, typ)
			if err := b.AppendValueFromString(value); err != nil {
				t.Fatal(err)
			}
			if got := string(cells.AppendJSON(nil, b.NewArray(), 0)); got != `"`+want+`"` {
				t.Errorf("%s as %s: expected %q, found %s", value, typ, want, got)
			}
		}
	}
}

func sameNumber(x, y any) bool {
	a, ok1 := x.(json.Number)
	b, ok2 := y.(json.Number)
	f, _ := a.Float64()
	g, _ := b.Float64()
	return ok1 && ok2 && f == g
}

// TestRoundTrip writes and reads back every type, with the schema given.
func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	types := slices.Concat(sample.Scalars(), sample.Rare(), sample.Nested(), sample.NestedRare())
	for _, f := range []format.Format{CSV, TSV, JSONL} {
		for _, dt := range types {
			sc := sample.Schema(dt)
			spec := map[string]string{"schema": fmt.Sprintf("%q: %s", sc.Field(0).Name, dt)}
			if _, err := typewords.Parse(spec["schema"]); err != nil {
				if dt.ID() == arrow.DICTIONARY {
					continue
				}
				t.Fatal(spec, err)
			}
			want := sample.Batch(r, sc, 300, 0.2)
			_, got, errs := read(f, write(t, f, nil, want), spec, nil, vec.Range{})
			if errs != nil {
				t.Errorf("%s %s: %v", f.Name, dt, errs[0])
				continue
			}
			if len(got) != 1 || got[0].NumRows() != 300 {
				t.Errorf("%s %s: %d batches", f.Name, dt, len(got))
				continue
			}
			if !array.ApproxEqual(want.Column(0), got[0].Column(0), array.WithNaNsEqual(true),
				array.WithAbsTolerance(0)) {
				for i := range 300 {
					a, b := cells.AppendJSON(nil, want.Column(0), i), cells.AppendJSON(nil, got[0].Column(0), i)
					if !bytes.Equal(a, b) {
						t.Errorf("%s %s: row %d: wrote %s, read %s", f.Name, dt, i, a, b)
						break
					}
				}
			}
		}
	}
}

// TestRoundTripWide is TestRoundTrip with all types side by side, over several batches.
func TestRoundTripWide(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	sc := sample.Schema(slices.Concat(sample.Scalars()[:13], sample.Nested()[:2])...)
	var spec []string
	for _, f := range sc.Fields() {
		spec = append(spec, fmt.Sprintf("%q: %s", f.Name, f.Type))
	}
	want := sample.Batch(r, sc, 66_000, 0.1)
	for _, f := range []format.Format{CSV, JSONL} {
		tr := write(t, f, nil, want)
		opts := map[string]string{"schema": strings.Join(spec, ", ")}
		for _, rows := range []vec.Range{{}, {From: 65_990, To: 80_000}, {From: 65_530, To: 65_540}} {
			_, got, errs := read(f, tr, opts, []int{3, 12}, rows)
			if errs != nil {
				t.Fatal(errs)
			}
			if rows == (vec.Range{}) {
				rows.To = 66_000
			}
			rows = rows.Intersect(vec.Range{To: 66_000})
			n := int64(0)
			for _, b := range got {
				for k, c := range []int{3, 12} {
					part := array.NewSlice(want.Column(c), rows.From+n, rows.From+n+b.NumRows())
					if !array.Equal(part, b.Column(k)) {
						t.Errorf("%s %v: column %d differs", f.Name, rows, c)
					}
				}
				n += b.NumRows()
			}
			if n != rows.Len() {
				t.Errorf("%s %v: %d rows", f.Name, rows, n)
			}
		}
	}
}

func TestCSV(t *testing.T) {
	for _, c := range []struct{ in, opts, want string }{
		{"a,b\n1,x\n2,y\n", "", `{"a":1,"b":"x"}{"a":2,"b":"y"}`},
		{"a,b\r\n1,x\r\n2,\"y\"\r\n", "", `{"a":1,"b":"x"}{"a":2,"b":"y"}`},
		{"\xEF\xBB\xBFa\n1\n", "", `{"a":1}`},
		{"a,b\n1,\"x\ny\"\n2,\"q\"\"q\"", "", `{"a":1,"b":"x\ny"}{"a":2,"b":"q\"q"}`},
		{"a,b\n,\"\"\n1,\n", "", `{"a":null,"b":""}{"a":1,"b":null}`},
		{"a,b\n,NULL\n1,\"NULL\"\n", "null=NULL types=string", `{"a":"","b":null}{"a":"1","b":"NULL"}`},
		{"1;2\n3;4\n", "header=false delimiter=;", `{"c1":1,"c2":2}{"c1":3,"c2":4}`},
		{"a,a\n1,2\n", "", `{"a":1,"a_2":2}`},
		{"a,b\n\n1,2\n\n", "", `{"a":1,"b":2}`},
		{"a\n\nx\n", "", `{"a":null}{"a":"x"}`},
		{"a\n1\n2.5\n", "", `{"a":1}{"a":2.5}`},
		{"a\n007\n1\n", "", `{"a":"007"}{"a":"1"}`},
		{"a\n9007199254740993\n", "", `{"a":9007199254740993}`},
		{"a\n18446744073709551615\n1\n", "", `{"a":18446744073709551615}{"a":1}`},
		{"a\n18446744073709551616\n1\n", "", `{"a":"18446744073709551616"}{"a":"1"}`},
		{"a\n18446744073709551615\n-1\n", "", `{"a":"18446744073709551615"}{"a":"-1"}`},
		{"a\ntrue\nFALSE\n", "", `{"a":true}{"a":false}`},
		{"a\n2024-02-29\n\n", "", `{"a":"2024-02-29"}{"a":null}`},
		{"a\n2023-02-29\n", "", `{"a":"2023-02-29"}`},
		{"a\n2024-02-29T01:02:03Z\n2024-02-29T01:02:03.5+01:00\n", "",
			`{"a":"2024-02-29T01:02:03Z"}{"a":"2024-02-29T00:02:03.5Z"}`},
		{"a\n2024-02-29 01:02:03.123456789\n2024-01-01\n", "",
			`{"a":"2024-02-29T01:02:03.123456789"}{"a":"2024-01-01T00:00:00"}`},
		{"a\nNaN\n-Inf\n", "", `{"a":"NaN"}{"a":"-Inf"}`},
		{"a,b\n1,x\"y\n", "", `{"a":1,"b":"x\"y"}`},
		{"a,b\n1,2", "", `{"a":1,"b":2}`},
		{"a,b\n1,2\r\n", "types=string", `{"a":"1","b":"2"}`},
		{"a\n0x10\n1_0\n", "", `{"a":"0x10"}{"a":"1_0"}`},
		{"", "", ``},
		{"a,b\n", "", ``},
	} {
		opts := map[string]string{}
		for _, o := range strings.Fields(c.opts) {
			k, v, _ := strings.Cut(o, "=")
			opts[k] = v
		}
		if got := strings.ReplaceAll(lines(t, CSV, c.in, opts), "\n", ""); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
}

func TestJSONL(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"{\"a\":1}\n\n{\"a\":2}", `{"a":1}{"a":2}`},
		{"\xEF\xBB\xBF{\"a\":1}\r\n", `{"a":1}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740993}`},
		{"{\"a\":1}\n{\"a\":2.5}\n", `{"a":1}{"a":2.5}`},
		{"{\"a\":1}\n{\"b\":2}\n", `{"a":1,"b":null}{"a":null,"b":2}`},
		{"{\"b\":1,\"a\":2}\n{\"a\":3,\"b\":4}\n", `{"b":1,"a":2}{"b":4,"a":3}`},
		{`{"s":{"x":1,"y":[1,2,null]},"l":[]}`, `{"s":{"x":1,"y":[1,2,null]},"l":[]}`},
		{`{"s":[{"x":1},{"y":"é\u00e9\ud83d\ude00"},null]}`,
			`{"s":[{"x":1,"y":null},{"x":null,"y":"éé😀"},null]}`},
		{"{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":[1, 2]}\n{\"a\":null}\n", `{"a":"1"}{"a":"x"}{"a":"[1, 2]"}{"a":null}`},
		{`{"a":null,"b":{}}`, `{"a":null,"b":"{}"}`},
		{`{"a":"2024-01-01"}`, `{"a":"2024-01-01"}`},
		{`{"a":1e400}`, `{"a":"1e400"}`},
		{"", ""},
	} {
		if got := strings.ReplaceAll(lines(t, JSONL, c.in, nil), "\n", ""); got != c.want {
			t.Errorf("%q: %s, want %s", c.in, got, c.want)
		}
	}
}

// TestErrors checks the locations in errors, and that reading continues after a bad row.
func TestErrors(t *testing.T) {
	big := "a,b\n" + strings.Repeat("1,x\n", 1000)
	for _, c := range []struct {
		f    format.Format
		in   string
		opts map[string]string
		rows int64
		want string
	}{
		{CSV, big + "1,y\noops,z\n2,z\n", nil, 1002,
			`t[4008+4]: corrupt: line 1003, column "a": the type was inferred from the first rows; give a schema, ` +
				`or types=string: "oops" is not a value of type int64`},
		{CSV, big + "1\n2,z\n", nil, 1001,
			`t[4004+2]: corrupt: line 1002: 1 fields, the table has 2 columns: the row cannot be cut into columns`},
		{CSV, "a,b\n1,\"x\n", nil, 0, `t[6+3]: corrupt: line 2: the quote that is opened here is not closed`},
		{CSV, "a,b\n1,\"x\"y\n", nil, 0,
			`t[6+3]: corrupt: line 2: a closing quote is followed by 'y' instead of a separator or the end of the ` +
				`line`},
		{CSV, "a\n300\n1\n", map[string]string{"schema": "a: uint8 not null"}, 1,
			`t[2+3]: corrupt: line 2, column "a": "300" is not a value of type uint8`},
		{JSONL, "{\"a\":1}\n{\"a\":}\n{\"a\":3}\n", map[string]string{"schema": "a: int64"}, 2,
			`t[13+1]: corrupt: line 2, column "a": '}' where a value is expected`},
		{JSONL, "{\"a\":{\"b\":[1]}}\n{\"a\":{\"b\":[2,\"x\"]}}\n{\"a\":{\"b\":[3]}}\n",
			map[string]string{"schema": "a: struct<b: list<int8>>"}, 2,
			`t[29+1]: corrupt: line 2, column "a.b": "x" is not a value of type int8`},
		{JSONL, "{\"a\":1}\n{\"a\":1,\"b\":2}\n", map[string]string{"schema": "a: int64"}, 1,
			`t[19+1]: corrupt: line 2: the key "b" is not in the schema`},
		{JSONL, "{\"a\":1}\n{\"a\":1,\"a\":2}\n", map[string]string{"schema": "a: int64"}, 1,
			`t[19+1]: corrupt: line 2: the key "a" occurs twice`},
		{JSONL, "{\"a\":1}\n[1]\n", map[string]string{"schema": "a: int64"}, 1,
			`t[8+1]: corrupt: line 2: '[' where an object is expected`},
		{JSONL, strings.Repeat("[", 10_000), nil, 0,
			`t[0+10000]: limit: line 1: more than 64 levels of nested arrays and objects (depth limit)`},
	} {
		_, got, errs := read(c.f, tree(c.in), c.opts, nil, vec.Range{})
		var n int64
		for _, b := range got {
			n += b.NumRows()
		}
		if len(errs) != 1 || errs[0].Error() != c.want || n != c.rows {
			t.Errorf("%s: %d rows, want %d\n got %v\nwant %s", c.f.Name, n, c.rows, errs, c.want)
		}
	}
	if _, _, errs := read(JSONL, tree("{\"a\":1,\"b\":2}\n"),
		map[string]string{"schema": "a: int64", "unknown": "ignore"}, nil, vec.Range{}); errs != nil {
		t.Error(errs)
	}
}

func TestGzip(t *testing.T) {
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	fmt.Fprint(w, "a,b\n1,2\n3,4\n")
	w.Close()
	if got := lines(t, CSV, z.String(), nil); got != "{\"a\":1,\"b\":2}\n{\"a\":3,\"b\":4}\n" {
		t.Error(got)
	}
	for i := 11; i < z.Len(); i++ {
		_, _, errs := read(CSV, tree(z.String()[:i]), nil, nil, vec.Range{})
		if len(errs) == 0 || !errors.Is(errs[0], fault.Corrupt) {
			t.Errorf("cut at %d: %v", i, errs)
		}
	}
	for name, whole := range map[string]bool{"t.csv": true, "t.csv.gz": false} { // gzip output of no input is not empty
		in, err := newInput(t.Context(), openIn(t, store.NewMemory(map[string][]byte{name: nil}), name),
			format.Target{Name: name}, format.Limits{})
		if whole != (err == nil) || !whole && !errors.Is(err, fault.Corrupt) {
			t.Errorf("an empty %s: %v, %v", name, in, err)
		}
	}
}

func openIn(t *testing.T, tree store.Tree, name string) store.Source {
	t.Helper()
	src, err := tree.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func TestProbe(t *testing.T) {
	for _, c := range []struct {
		name, in        string
		csv, tsv, jsonl format.Match
	}{
		{"x.csv", "a,b\n1,2\n", format.Likely, format.No, format.No},
		{"x.tsv", "a\tb\n1\t2\n", format.No, format.Likely, format.No},
		{"x", "a,b\n1,2\n", format.Maybe, format.No, format.No},
		{"x", "a\tb\n1\t2\n", format.No, format.Maybe, format.No},
		{"x", "{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":2}\n", format.No, format.No, format.Likely},
		{"x.jsonl", "", format.No, format.No, format.Likely},
		{"x.csv", "", format.Likely, format.No, format.No},
		{"x.csv", "PAR1\x00\x01", format.No, format.No, format.No},
		{"x.jsonl", "PAR1\x00\x01", format.No, format.No, format.No},
		{"x.jsonl", "[\n1,\n2]\n", format.No, format.No, format.No},
		{"x.jsonl", "null\n{\"a\":1}\n", format.No, format.No, format.No},
		{"x.jsonl", "\nnull\n[1]\n\x00\n", format.No, format.No, format.No},
		{"x.jsonl", "{\"a\":1,}\n{\"a\":1}\n", format.No, format.No, format.Maybe},
		{"x.ndjson", "\x00\x00\n{\"a\":\"\xff\"}\n", format.No, format.No, format.Maybe},
		{"x.jsonl", strings.Repeat("\x00", 70000) + "\n{\"a\":1}\n", format.No, format.No, format.Maybe},
		{"x.jsonl", strings.Repeat("\x00", 65000) + strings.Repeat(" {}", 300) + "\n{\"a\":1}\n", format.No,
			format.No, format.Maybe},
		{"x.jsonl", strings.Repeat("\x00", 70000), format.No, format.No, format.Maybe},
		{"x", strings.Repeat("\x00", 70000) + "\n{\"a\":1}\n", format.No, format.No, format.No},
		{"x.jsonl", "PAR1" + strings.Repeat("\x00", 70000), format.No, format.No, format.No},
		{"x.jsonl", "a,b\n{\"x\":1},2\n3,4\n", format.Maybe, format.No, format.No},
		{"x.jsonl", "a\tb\n{\"x\":1}\t2\n3\t4\n", format.No, format.Maybe, format.No},
		{"x.jsonl", "{\"a\":1, \"b\":2,\n{\"a\":1, \"b\":2}\n{\"a\":1, \"b\":2}\n", format.No, format.No, format.Maybe},
		{"x.jsonl", "{\"a\":1, \"b\":2\n{\"a\":1, \"b\":2}\n{\"a\":1, \"b\":2}\n", format.Maybe, format.No,
			format.Maybe},
		{"x", "{\"a\":1,}\n{\"a\":1}\n", format.No, format.No, format.No},
		{"x", "just words\nand more\n", format.No, format.No, format.No},
		{"x", "{\n \"a\": 1\n}\n", format.No, format.No, format.No},
	} {
		tr := store.NewMemory(map[string][]byte{c.name: []byte(c.in)})
		for _, f := range []struct {
			f    format.Format
			want format.Match
		}{{CSV, c.csv}, {TSV, c.tsv}, {JSONL, c.jsonl}} {
			m, err := f.f.Probe(context.Background(), format.Target{Tree: tr, Name: c.name})
			if m != f.want || err != nil {
				t.Errorf("%s of %s %.60q: %d, %v, want %d", f.f.Name, c.name, c.in, m, err, f.want)
			}
		}
	}
}

// TestManyMalformedRows: the first thousand bad rows are reported one by one, the others as one finding, and no bad row
// costs allocations for columns that it lacks.
func TestManyMalformedRows(t *testing.T) {
	const rows = 6000 // the schema is inferred from the first 1000
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "{\"k%d\":%d}\n", i, i)
	}
	tr := tree(text.String())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var found []region.Finding
	lost := int64(0)
	for f := range JSONL.Verify(context.Background(), format.Target{Tree: tr, Name: "t"}, format.OpenOptions{}) {
		if f.Code == "jsonl.row" {
			found = append(found, f)
			lost += f.Lost
		}
	}
	runtime.ReadMemStats(&after)
	if n := (after.Mallocs - before.Mallocs) / rows; n > 100 {
		t.Errorf("%d allocations a row", n)
	}
	if len(found) != maxReportedRows+1 || lost != rows-sampleRows {
		t.Fatalf("%d findings, %d rows lost", len(found), lost)
	}
	if one, last := found[maxReportedRows-1], found[maxReportedRows]; one.Rows != [2]int64{1999, 2000} ||
		last.Rows != [2]int64{2000, rows} || last.Lost != 4000 {
		t.Errorf("%+v\n%+v", one, last)
	}
	if _, batches, errs := read(JSONL, tr, nil, nil, vec.Range{}); len(batches) != 1 ||
		batches[0].NumRows() != 1000 || len(errs) != 5000 {
		t.Errorf("%d batches, %d errors", len(batches), len(errs))
	}
}

// TestLongRecords: a record that exceeds an eighth of the page limit by more than one read is refused, compressed or
// not, whatever the size of the buffer at that point; a shorter record is read.
func TestLongRecords(t *testing.T) {
	const limit = 1 << 20
	o := format.OpenOptions{Limits: format.Limits{Page: limit * recordPart}}
	for size := limit / 2; size <= 3*limit; size += 100_000 {
		long := strings.Repeat("x", size)
		for f, text := range map[*format.Format]string{&CSV: "a,b\n1,2\n3," + long + "\n4,5\n",
			&JSONL: "{\"a\":1}\n{\"a\":\"" + long + "\"}\n{\"a\":3}\n"} {
			for _, s := range []string{text, zipped(text)} {
				var limited error
				r, err := f.Open(t.Context(), format.Target{Tree: tree(s), Name: "t"}, o)
				if err == nil {
					for _, err := range r.(format.Batcher).Batches(t.Context(),
						format.RowGroup{Part: "t", Rows: -1}, format.Query{Cols: []int{0}}, vec.Range{}, nil) {
						if errors.Is(err, fault.Limit) {
							limited = err
						}
					}
				} else if errors.Is(err, fault.Limit) {
					limited = err
				}
				if size < limit-100 && limited != nil || size > limit+inputChunk && limited == nil {
					t.Errorf("%s, a record of %d bytes, text of %d: %v", f.Name, size, len(s), limited)
				}
			}
		}
	}
}

func TestVerify(t *testing.T) {
	tr := tree("a\n1\nx\n2\n")
	var codes []string
	for f := range CSV.Verify(context.Background(), format.Target{Tree: tr, Name: "t"},
		format.OpenOptions{Opts: map[string]string{"schema": "a: int64"}}) {
		codes = append(codes, fmt.Sprint(f.Code, f.Rows))
	}
	if fmt.Sprint(codes) != "[csv.row[1 2]]" {
		t.Error(codes)
	}
}

// FuzzCSV and FuzzJSONL must not panic, and must locate every error.
func FuzzCSV(f *testing.F) {
	f.Add("a,b\n1,\"x\"\"\ny\"\r\n2.5,\n")
	f.Add(zipped("a,b\n1,2\n"))
	f.Fuzz(func(t *testing.T, s string) { fuzz(t, CSV, s) })
}

func FuzzJSONL(f *testing.F) {
	f.Add("{\"a\":1,\"b\":[{\"x\":\"\\u00e9\"}],\"c\":{\"d\":null}}\n{\"a\":2.5}\n")
	f.Add(zipped("{\"a\":1}\n"))
	f.Fuzz(func(t *testing.T, s string) { fuzz(t, JSONL, s) })
}

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(s))
	w.Close()
	return b.String()
}

func fuzz(t *testing.T, f format.Format, s string) {
	_, got, errs := read(f, tree(s), nil, nil, vec.Range{})
	for _, err := range errs {
		var e *fault.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
	}
	for _, b := range got {
		for _, c := range b.Columns() {
			if err := array.ValidateFull(c); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	sc := sample.Schema(arrow.PrimitiveTypes.Int64, arrow.BinaryTypes.String,
		arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Float64))
	for _, f := range []format.Format{CSV, JSONL} {
		whole := write(t, f, nil, sample.Batch(r, sc, 5, 0.3)).Bytes("t")
		for i := range whole {
			fuzz(t, f, string(whole[:i]))
			for _, x := range []byte{1, 2, 0x20, 0x80} {
				b := slices.Clone(whole)
				b[i] ^= x
				fuzz(t, f, string(b))
			}
		}
	}
}

func TestCell(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	b := sample.Batch(r, all, 100, 0.2)
	for _, a := range b.Columns() {
		for i := range a.Len() {
			_ = cells.AppendCell(nil, a, i)
		}
	}
}

func BenchmarkWriteJSONL(b *testing.B) { benchmarkWrite(b, JSONL) }
func BenchmarkWriteCSV(b *testing.B)   { benchmarkWrite(b, CSV) }

var benchSchema = sample.Schema(arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Float64, arrow.BinaryTypes.String,
	&arrow.TimestampType{Unit: arrow.Microsecond}, arrow.FixedWidthTypes.Boolean)

func benchmarkWrite(b *testing.B, f format.Format) {
	batch := sample.Batch(rand.New(rand.NewPCG(6, 6)), benchSchema, 10_000, 0.1)
	b.SetBytes(int64(len(write(b, f, nil, batch).Bytes("t"))))
	for b.Loop() {
		write(b, f, nil, batch)
	}
}

func BenchmarkReadJSONL(b *testing.B) { benchmarkRead(b, JSONL) }
func BenchmarkReadCSV(b *testing.B)   { benchmarkRead(b, CSV) }

func benchmarkRead(b *testing.B, f format.Format) {
	tr := write(b, f, nil, sample.Batch(rand.New(rand.NewPCG(6, 6)), benchSchema, 100_000, 0.1))
	b.SetBytes(int64(len(tr.Bytes("t"))))
	var spec []string
	for _, f := range benchSchema.Fields() {
		spec = append(spec, fmt.Sprintf("%q: %s", f.Name, f.Type))
	}
	for b.Loop() {
		if _, _, errs := read(f, tr, map[string]string{"schema": strings.Join(spec, ",")}, nil,
			vec.Range{}); errs != nil {
			b.Fatal(errs)
		}
	}
}

// TestLeaks leaves the loop early, and reads to the end: all memory comes back.
func TestLeaks(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	ctx := context.Background()
	r := rand.New(rand.NewPCG(7, 7))
	batch := sample.Batch(r, sample.Schema(slices.Concat(sample.Scalars(), sample.Nested())...), 300, 0.2)
	for _, c := range []format.Format{CSV, JSONL} {
		rd, err := c.Open(ctx, format.Target{Tree: write(t, c, nil, batch), Name: "t"}, format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		q := format.Query{}
		for i := range rd.Columns() {
			q.Cols = append(q.Cols, i)
		}
		for _, leave := range []bool{true, false} {
			for _, rows := range []vec.Range{{}, {From: 10, To: 20}} {
				for _, err := range rd.(format.Batcher).Batches(ctx, format.RowGroup{Rows: -1}, q, rows, mem) {
					if err != nil {
						t.Fatal(err)
					}
					if leave {
						break
					}
				}
			}
		}
		rd.Close()
	}
}
