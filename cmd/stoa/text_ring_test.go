package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/internal/effort"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// ringTypes are Arrow's types, each with rows in arrow-go's JSON (not ours): extremes, NaN and infinities, and nulls.
var ringTypes = []struct {
	typ  arrow.DataType
	json string
}{
	{arrow.FixedWidthTypes.Boolean, `[true,null,false]`},
	{arrow.PrimitiveTypes.Int8, `[-128,null,127]`},
	{arrow.PrimitiveTypes.Int16, `[-32768,null,32767]`},
	{arrow.PrimitiveTypes.Int32, `[-2147483648,null,2147483647]`},
	{arrow.PrimitiveTypes.Int64, `[-9223372036854775808,null,9223372036854775807]`},
	{arrow.PrimitiveTypes.Uint8, `[0,null,255]`},
	{arrow.PrimitiveTypes.Uint16, `[0,null,65535]`},
	{arrow.PrimitiveTypes.Uint32, `[0,null,4294967295]`},
	{arrow.PrimitiveTypes.Uint64, `[0,null,18446744073709551615,9223372036854775808]`},
	{arrow.FixedWidthTypes.Float16, `[0.5,null,"NaN","+Inf","-Inf",-0.0,65504,6.0e-8]`},
	{arrow.PrimitiveTypes.Float32, `[0.1,null,"NaN","+Inf","-Inf",-0.0,3.4028235e38,1e-45]`},
	{arrow.PrimitiveTypes.Float64, `[0.1,null,"NaN","+Inf","-Inf",-0.0,1.7976931348623157e308,5e-324,` +
		`12345678901234567890]`},
	{&arrow.Decimal128Type{Precision: 9, Scale: 2}, `["1.50",null,"-9999999.99","0"]`},
	{&arrow.Decimal128Type{Precision: 38, Scale: 10},
		`["1234567890123456789012345678.0123456789",null,"-0.0000000001"]`},
	{&arrow.Decimal256Type{Precision: 70, Scale: 3}, `["-1234567890123456789012345678901234567890.125",null]`},
	{arrow.BinaryTypes.String, `["","null",null,"a,b\"c'\\d\ne\u0001é😀"," x ","NaN","[1]","\ufeffx"]`},
	{arrow.BinaryTypes.LargeString, `["",null,"x"]`},
	{arrow.BinaryTypes.Binary, `["",null,"AP8=","YWJj"]`},
	{arrow.BinaryTypes.LargeBinary, `["",null,"AP8="]`},
	{&arrow.FixedSizeBinaryType{ByteWidth: 3}, `["AP8A",null]`},
	{arrow.FixedWidthTypes.Date32, `["1969-12-31",null,"2024-02-29","0001-01-01","9999-12-31"]`},
	{arrow.FixedWidthTypes.Date64, `["1969-12-31",null,"2024-02-29"]`},
	{arrow.FixedWidthTypes.Time32s, `["00:00:00",null,"23:59:59"]`},
	{arrow.FixedWidthTypes.Time32ms, `["00:00:00.001",null,"23:59:59.999"]`},
	{arrow.FixedWidthTypes.Time64us, `["00:00:00.000001",null,"23:59:59.999999"]`},
	{arrow.FixedWidthTypes.Time64ns, `["00:00:00.000000001",null,"23:59:59.999999999"]`},
	{&arrow.TimestampType{Unit: arrow.Second}, `["1969-12-31 23:59:59",null,"2024-02-29 01:02:03"]`},
	{&arrow.TimestampType{Unit: arrow.Millisecond}, `["1969-12-31 23:59:59.999",null,"2024-02-29 01:02:03.004"]`},
	{&arrow.TimestampType{Unit: arrow.Microsecond}, `["1969-12-31 23:59:59.999999",null,"2024-02-29 01:02:03.000004"]`},
	{&arrow.TimestampType{Unit: arrow.Nanosecond},
		`["1969-12-31 23:59:59.999999999",null,"2024-02-29 01:02:03.000000004"]`},
	{&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"},
		`["1969-12-31T23:59:59.999999Z",null,"2024-02-29T01:02:03.000004Z"]`},
	{&arrow.TimestampType{Unit: arrow.Millisecond, TimeZone: "Europe/Berlin"},
		`["1969-12-31T23:59:59.999Z",null,"2024-10-27T00:30:00Z","2024-10-27T01:30:00Z"]`},
	{&arrow.TimestampType{Unit: arrow.Second, TimeZone: "-03:30"}, `["1969-12-31T23:59:59Z",null]`},
	{arrow.FixedWidthTypes.Duration_s, `["-1s",null,"9223372036854775807s"]`},
	{arrow.FixedWidthTypes.Duration_ms, `["5ms",null]`},
	{arrow.FixedWidthTypes.Duration_us, `["5us",null]`},
	{arrow.FixedWidthTypes.Duration_ns, `["5ns",null,"-7ns"]`},
	{arrow.FixedWidthTypes.MonthInterval, `[{"months":-1},null]`},
	{arrow.FixedWidthTypes.DayTimeInterval, `[{"days":-1,"milliseconds":5},null]`},
	{arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months":1,"days":-1,"nanoseconds":5},null]`},
	{arrow.Null, `[null,null]`},
	{arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1,null,-3],null,[]]`},
	{arrow.ListOf(arrow.PrimitiveTypes.Int64), `[null,null]`},
	{arrow.ListOf(arrow.BinaryTypes.Binary), `[["AP8=",null,""],null,[]]`},
	{arrow.ListOf(arrow.PrimitiveTypes.Float64), `[["NaN",null,"-Inf",-0.0],null,[]]`},
	{arrow.ListOf(arrow.ListOf(arrow.BinaryTypes.String)), `[[["a",null],null,[]],null,[]]`},
	{arrow.LargeListOf(arrow.PrimitiveTypes.Uint64), `[[18446744073709551615,null],null,[]]`},
	{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int16), `[[1,null],null,[3,4]]`},
	{arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32),
		`[[{"key":"a","value":1},{"key":"","value":null}],null,[]]`},
	{arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.ListOf(arrow.BinaryTypes.Binary)),
		`[[{"key":1,"value":["AP8="]},{"key":2,"value":null}],null,[]]`},
	{arrow.StructOf(arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "b c", Type: arrow.BinaryTypes.Binary, Nullable: true}),
		`[{"a":1,"b c":"AP8="},null,{"a":null,"b c":null}]`},
	{arrow.StructOf(arrow.Field{Name: "d", Type: &arrow.Decimal128Type{Precision: 12, Scale: 4}, Nullable: true},
		arrow.Field{Name: "m", Type: arrow.MapOf(arrow.BinaryTypes.String, arrow.FixedWidthTypes.Date32),
			Nullable: true},
		arrow.Field{Name: "t", Type: arrow.ListOf(&arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}),
			Nullable: true}),
		`[{"d":"1.25","m":[{"key":"k","value":"2024-02-29"}],"t":["2024-02-29T01:02:03.000004Z",null]},null,` +
			`{"d":null,"m":null,"t":null}]`},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String},
		`["a",null,"b","a"]`},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.Binary},
		`["AP8=",null]`},
	{&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int16, ValueType: arrow.PrimitiveTypes.Float64},
		`[0.5,null,-0.0,0.5]`},
	{arrow.ListOf(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}),
		`[["a",null,"b"],null,[]]`},
}

// ringWriters are the formats that can be written, with the names of their outputs.
var ringWriters = []struct{ to, out string }{
	{"arrow", "t.arrow"}, {"parquet", "t.parquet"}, {"cfile", "t/"}, {"trevni", "t.trv"}, {"trevni-avro", "t.trv"},
	{"redfile", "t.red"}, {"carbon", "t/"},
}

// TestTextRing: the text that cat prints, read by the original schema and written to every format that supports the
// type, yields the same rows.
func TestTextRing(t *testing.T) {
	held := map[string]int{}
	for n, c := range ringTypes {
		if testing.Short() && n%3 != 0 && n < len(ringTypes)-4 {
			continue
		}
		dir := t.TempDir()
		source := filepath.Join(dir, "s.arrow")
		writeRing(t, source, c.typ, c.json)
		for _, w := range ringWriters {
			first := filepath.Join(dir, w.to, "first", w.out)
			if st, _ := runText(t, nil, "convert", source, "-q", "--to", w.to, "-o", first); st != cli.StatusFine {
				continue // the format does not support the type
			}
			held[w.to]++
			schema := filepath.Join(dir, w.to+".schema")
			if st, printed := runText(t, nil, "schema", first, "-f", "json", "-o", schema); st != cli.StatusFine {
				t.Fatalf("%s, %s: schema: %s", c.typ, w.to, printed)
			}
			for k, form := range []string{"jsonl", "csv", "tsv"} {
				if !effort.All() && k != n/3%3 {
					continue
				}
				what := fmt.Sprintf("%d %s, %s by %s", n, c.typ, w.to, form)
				text, again := filepath.Join(dir, w.to+"."+form), filepath.Join(dir, w.to, form, w.out)
				if st, printed := runText(t, nil, "cat", first, "-f", form, "-o", text); st != cli.StatusFine {
					t.Errorf("%s: cat: %s", what, printed)
					continue
				}
				if st, printed := runText(t, nil, "convert", text, "--schema", schema, "-q", "--to", w.to, "-o",
					again); st != cli.StatusFine {
					b, _ := os.ReadFile(text)
					t.Errorf("%s: convert: %s\n%s", what, printed, b)
					continue
				}
				if st, printed := runText(t, nil, "diff", first, again); st != cli.StatusFine ||
					!strings.Contains(printed, "all the same") {
					b, _ := os.ReadFile(text)
					t.Errorf("%s: %s\n%s", what, printed, b)
				}
				const last = "again" // finds differences that diff ignores, such as the sign of zero
				if st, printed := runText(t, nil, "cat", again, "-f", form, "--force", "-o",
					filepath.Join(dir, last)); st != cli.StatusFine || !sameFile(t, text, filepath.Join(dir, last)) {
					t.Errorf("%s: got different text the second time: %s", what, printed)
				}
			}
		}
	}
	t.Logf("types supported: %v", held)
	if !testing.Short() && (held["arrow"] != len(ringTypes) || held["parquet"] < 30 || held["redfile"] < 10 ||
		held["carbon"] < 10 || held["cfile"] < 10 || held["trevni"] < 10) {
		t.Errorf("got too few types: %v", held)
	}
}

func sameFile(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := os.ReadFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(x, y)
}

// runText runs the command, and makes the directory of its output before.
func runText(t *testing.T, in *bytes.Buffer, args ...string) (int, string) {
	t.Helper()
	if i := len(args) - 1; args[i-1] == "-o" {
		if err := os.MkdirAll(filepath.Dir(strings.TrimSuffix(args[i], "/")), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if in == nil {
		in = new(bytes.Buffer)
	}
	return run(context.Background(), args, in, &out, &out), out.String()
}

// writeRing writes a table of one column, v, and its row numbers, by arrow-go alone.
func writeRing(t *testing.T, name string, typ arrow.DataType, rows string) {
	t.Helper()
	v, _, err := array.FromJSON(memory.DefaultAllocator, typ, strings.NewReader(rows))
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	ids := array.NewInt32Builder(memory.DefaultAllocator)
	for i := range v.Len() {
		ids.Append(int32(i))
	}
	sc := arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int32},
		{Name: "v", Type: typ, Nullable: true}}, nil)
	b := array.NewRecordBatch(sc, []arrow.Array{ids.NewArray(), v}, int64(v.Len()))
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	w, err := ipc.NewFileWriter(f, ipc.WithSchema(sc))
	if err == nil {
		err = w.Write(b)
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestConvertAllToText: convert --all to text formats finds every value when it reads its output back.
func TestConvertAllToText(t *testing.T) {
	for n, c := range ringTypes {
		if testing.Short() && n%4 != 1 {
			continue
		}
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
		writeRing(t, filepath.Join(dir, "in", "s.arrow"), c.typ, c.json)
		for _, to := range []string{"csv", "tsv", "jsonl"} {
			st, printed := runText(t, nil, "convert", "--all", filepath.Join(dir, "in"), "--to", to, "-o",
				filepath.Join(dir, to))
			if st != cli.StatusFine || !strings.Contains(printed, " equal") {
				t.Errorf("%s to %s: got status %d, want 0 and equal: %s", c.typ, to, st, printed)
			}
		}
	}
}

// TestLoadText: the text that cat prints of a CarbonData table can be loaded into a table with the same columns, and
// yields the same rows.
func TestLoadText(t *testing.T) {
	loaded := 0
	for n, c := range ringTypes {
		dir := t.TempDir()
		source, schema := filepath.Join(dir, "s.arrow"), filepath.Join(dir, "s.json")
		writeRing(t, source, c.typ, c.json)
		if st, printed := runText(t, nil, "schema", source, "-f", "json", "-o", schema); st != cli.StatusFine {
			t.Fatal(printed)
		}
		table := func(name string) string { return filepath.Join(dir, "store") + "#" + name }
		if st, _ := runText(t, nil, "create", table("first"), "--schema", schema); st != cli.StatusFine {
			continue // CarbonData has no such type
		}
		if st, _ := runText(t, nil, "load", table("first"), source); st != cli.StatusFine {
			continue // nor does it have all of its values
		}
		if loaded++; testing.Short() && n%3 != 0 {
			continue
		}
		for _, form := range []string{"jsonl", "csv", "tsv"} {
			what := fmt.Sprintf("%s by %s", c.typ, form)
			text := filepath.Join(dir, "t."+form)
			if st, printed := runText(t, nil, "cat", table("first"), "-f", form, "-o", text); st != cli.StatusFine {
				t.Fatalf("%s: %s", what, printed)
			}
			if st, printed := runText(t, nil, "create", table(form), "--schema", schema); st != cli.StatusFine {
				t.Fatalf("%s: %s", what, printed)
			}
			if st, printed := runText(t, nil, "load", table(form), text); st != cli.StatusFine {
				b, _ := os.ReadFile(text)
				t.Errorf("%s: load: %s\n%s", what, printed, b)
				continue
			}
			if st, printed := runText(t, nil, "diff", table("first"), table(form)); st != cli.StatusFine ||
				!strings.Contains(printed, "all the same") {
				t.Errorf("%s: %s", what, printed)
			}
		}
	}
	if loaded < 15 {
		t.Errorf("got %d types loaded, want 15 or more", loaded)
	}
	t.Logf("%d types", loaded)
}
