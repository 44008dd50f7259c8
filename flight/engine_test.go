package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"stoa/cmd/stoa/verbs"
	"stoa/internal/sqltext"
)

// built is the directory of stoa-sql, which TestMain removes.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "stoa-flight")
	if err != nil {
		return "", err
	}
	if made := os.Getenv("STOA_SQL"); made != "" { // the program, if it is there already
		return dir, os.Symlink(made, filepath.Join(dir, "stoa-sql"))
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "stoa-sql"), ".")
	cmd.Dir, cmd.Env = "../sql", append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

func TestMain(m *testing.M) {
	status := m.Run()
	if !testing.Short() {
		if dir, _ := built(); dir != "" {
			os.RemoveAll(dir)
		}
	}
	os.Exit(status)
}

// database puts stoa-sql on the PATH of a test.
func database(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("building stoa-sql takes long")
	}
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// TestEngine: with stoa-sql a statement may be anything that reads: the names are those of the catalogue, and what is
// computed is what a model computes of the rows that a scan returns.
func TestEngine(t *testing.T) {
	database(t)
	dir := demo(t)
	c := client(t, started(t, nil, dir))
	ids := scanned(t, dir+"/kudu#d_major", []string{"id"}, "")
	odd := 0
	for _, id := range ids {
		odd += int(id[len(id)-1]-'0') & 1
	}
	slices.SortFunc(ids, func(a, b string) int { return len(b)*1000 + strings.Compare(b, a) - len(a)*1000 })
	n := len(ids)
	const countAndMax = "select count(*) as n, max(id) m from d_major"
	for statement, want := range map[string][]string{
		countAndMax: {fmt.Sprintf("%d|%s", n, ids[0])},
		"select id from stoa.demo.d_major order by id desc limit 3;":                          ids[:3],
		"select x.id from demo.d_major x join \"demo\".D_Major y using (id) order by 1 desc":  ids,
		"with w as (select id % 2 as r from d_major) select count(*) from w where r = 1":      {fmt.Sprint(odd)},
		"select count(*) from demo.d_major where demo.d_major.id in (select id from D_MAJOR)": {fmt.Sprint(n)},
		"select (select count(*) from 'flat.red') as a, (select count(*) from \"key.cfile\")": {"500|400"},
		"select 1 as a, 2 as a -- end": {"1|2"},
		"select count(*) from d_major, (select 7 as d) s where id >= 0 and 'from nope' <> 'x'": {fmt.Sprint(n)},
		"from range(3) t(i) select i * 2":                                                        {"0", "2", "4"},
		"select column_name from (describe d_major) limit 1":                                     {"id"},
		"select sum(n) from (select count(*) n from d_major group by b)":                         {fmt.Sprint(n)},
		"select count(*) from d_major where current_date > date '2000-01-01' and id is not null": {fmt.Sprint(n)},
	} {
		got, err := asked(t, c, statement)
		if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: got %.200q, %v; want %.200q", statement, got, err, want)
		}
		p, err := c.Prepare(t.Context(), statement)
		if err != nil {
			t.Errorf("%s: %v", statement, err)
			continue
		}
		info, err := p.Execute(t.Context())
		if err != nil {
			t.Errorf("%s: %v", statement, err)
			continue
		}
		again, sc, err := fetch(t.Context(), c, info)
		if err != nil || strings.Join(again, "\n") != strings.Join(want, "\n") || !sc.Equal(p.DatasetSchema()) {
			t.Errorf("%s, prepared: got %.200q of %v, %v", statement, again, sc, err)
		}
	}
	secret := filepath.Join(filepath.Dir(dir), "secret.csv")
	if err := os.WriteFile(secret, []byte("word\nxyzzy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for statement, want := range map[string]codes.Code{
		"select nope + 1 from d_major":                                codes.InvalidArgument,
		"select nope from d_major":                                    codes.InvalidArgument,
		"select 1; select 2":                                          codes.InvalidArgument,
		"select count(*) from nowhere group by 1":                     codes.InvalidArgument,
		"drop view d_major":                                           codes.InvalidArgument,
		"select ) limit 0":                                            codes.InvalidArgument,
		"select 1) limit 0; create table x as (select 1":              codes.InvalidArgument,
		`select max(value) from "damaged/key.cfile"`:                  codes.DataLoss,
		`select count(*) + 1 from "damaged/cut.cfile"`:                codes.DataLoss,
		"select * from read_csv('" + secret + "')":                    codes.InvalidArgument,
		"select * from '" + secret + "' order by 1":                   codes.InvalidArgument,
		"select * from stoa('" + secret + "') order by 1":             codes.InvalidArgument,
		"copy (select 1) to '" + dir + "/out.csv'":                    codes.InvalidArgument,
		"select * from (copy (select 1) to '" + dir + "/out.csv')":    codes.InvalidArgument,
		"select max(word) from read_text('" + secret + "') t(word)":   codes.InvalidArgument,
		"select " + strings.Repeat("1 + ", 60_000) + "1 from d_major": codes.InvalidArgument,
	} {
		rows, err := asked(t, c, statement)
		if code := status.Code(err); err == nil || code != want && code != codes.Unknown && code != codes.NotFound ||
			strings.Contains(fmt.Sprint(rows, err), "xyzzy") {
			t.Errorf("%.80q: got %q, %v, want %v", statement, rows, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "out.csv")); err == nil {
		t.Error("a file was written")
	}
}

// TestEngineEnds: a statement that fails in the middle does not look whole, one that is cancelled or that nobody reads
// ends its process.
func TestEngineEnds(t *testing.T) {
	database(t)
	c := client(t, started(t, nil, demo(t)))
	late := "select if(i < 3000000, i, cast('x' || i as bigint)) as i from range(4000000) t(i)"
	info, err := c.Execute(t.Context(), late)
	if err != nil {
		t.Fatal(err)
	}
	if rows, _, err := fetch(t.Context(), c, info); err == nil || len(rows) == 0 {
		t.Errorf("a statement that fails late: %d rows, %v", len(rows), err)
	}
	endless := "select count(*) + 1 as n from range(1000000000000) t(i) where hash(i) = 1"
	for name, end := range map[string]func(context.CancelFunc, *flight.FlightInfo){
		"cancelled": func(_ context.CancelFunc, info *flight.FlightInfo) {
			c.CancelFlightInfo(context.Background(), &flight.CancelFlightInfoRequest{Info: info})
		},
		"left": func(cancel context.CancelFunc, _ *flight.FlightInfo) { cancel() },
	} {
		for range maxProcesses + 1 { // each turn must come back
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			info, err := c.Execute(ctx, endless)
			if err != nil {
				t.Fatal(name, err)
			}
			begin := time.Now()
			time.AfterFunc(300*time.Millisecond, func() { end(cancel, info) })
			if rows, _, err := fetch(ctx, c, info); err == nil || time.Since(begin) > 10*time.Second {
				t.Errorf("%s: %d rows, %v after %s", name, len(rows), err, time.Since(begin))
			}
			cancel()
		}
	}
}

// typed are tables of the types that values of parameters may have; the key of each row is its number.
var typedCSV = "k,i,d,t,s\n"

// TestParameters: the value of a parameter selects the rows that it selects in a model, whatever bytes it has; both by
// predicates and by the engine.
func TestParameters(t *testing.T) {
	dir := t.TempDir()
	texts := []string{"", "'", "--", "a'b", `\`, "?", "é", "/*", "$$", "0", "-1", "null", "%", "x'00'", "\n"}
	var b bytes.Buffer
	b.WriteString(typedCSV)
	for k, s := range texts {
		fmt.Fprintf(&b, "%d,%d,%d.%02d,2024-01-%02d,%q\n", k, k*k-40, k-7, k, k+1, strings.ReplaceAll(s, `"`, `""`))
	}
	text := filepath.Join(dir, "p.csv")
	csv := strings.ReplaceAll(strings.ReplaceAll(b.String(), `\\`, `\`), `\n"`, "\n\"")
	if err := os.WriteFile(text, []byte(csv), 0o666); err != nil {
		t.Fatal(err)
	}
	place := filepath.Join(dir, "place")
	if err := os.Mkdir(place, 0o777); err != nil {
		t.Fatal(err)
	}
	stoaRun(t, "convert", "-q", text, "--source-opt", "header=true", "-o", filepath.Join(place, "p.parquet"))
	t.Run("predicates", func(t *testing.T) {
		t.Setenv("PATH", "")
		parametersOf(t, client(t, started(t, nil, place)), texts, `select k from "p.parquet" where `)
	})
	t.Run("engine", func(t *testing.T) {
		database(t)
		parametersOf(t, client(t, started(t, nil, place)), texts, `select k + 0 as k from "p.parquet" where `)
	})
}

func parametersOf(t *testing.T, c *flightsql.Client, texts []string, statement string) {
	t.Helper()
	ask := func(where string, values ...any) []string {
		t.Helper()
		p, err := c.Prepare(t.Context(), statement+where)
		if err != nil {
			t.Fatalf("%s: %v", where, err)
		}
		defer p.Close(t.Context())
		if got := p.ParameterSchema().NumFields(); got != len(values) {
			t.Fatalf("%s: %d parameters", where, got)
		}
		row := rowOf(t, p.ParameterSchema(), values)
		defer row.Release()
		p.SetParameters(row)
		info, err := p.Execute(t.Context())
		if err != nil {
			t.Fatalf("%s %q: %v", where, values, err)
		}
		rows, _, err := fetch(t.Context(), c, info)
		if err != nil {
			t.Fatalf("%s %q: %v", where, values, err)
		}
		slices.Sort(rows)
		return rows
	}
	for k, s := range texts {
		if s == "" || s == "null" {
			continue // nulls in the text
		}
		if got := ask("s = ?", s); !slices.Equal(got, []string{fmt.Sprint(k)}) {
			t.Errorf("s = %q: %q", s, got)
		}
		if got := ask("i=? and k=?", k*k-40, k); !slices.Equal(got, []string{fmt.Sprint(k)}) {
			t.Errorf("i = %d: %q", k*k-40, got)
		}
		if got := ask("i-?<0 and k = ?", k*k-41, k); len(got) != 0 {
			t.Errorf("i - %d < 0: %q", k*k-41, got)
		}
		day := arrow.Date32FromTime(time.Date(2024, 1, k+1, 0, 0, 0, 0, time.UTC))
		if got := ask("t between ? and ? and s in (?,?)", day, day, s, "nobody"); !slices.Equal(got,
			[]string{fmt.Sprint(k)}) {
			t.Errorf("t, s in %q: %q", s, got)
		}
	}
	if got := ask("k < 5 and s = ?", nil); len(got) != 0 {
		t.Errorf("null: %q", got)
	}
	p, err := c.Prepare(t.Context(), statement+"k = ?")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Execute(t.Context()); status.Code(err) != codes.InvalidArgument {
		t.Errorf("without a value: %v", err)
	}
	for _, k := range []int{3, 1, 3} { // a statement is executed as often as one likes
		row := rowOf(t, p.ParameterSchema(), []any{k})
		p.SetParameters(row)
		info, err := p.Execute(t.Context())
		row.Release()
		if err != nil {
			t.Fatalf("executed again: %v", err)
		}
		if rows, _, err := fetch(t.Context(), c, info); err != nil || !slices.Equal(rows, []string{fmt.Sprint(k)}) {
			t.Errorf("executed again with %d: got %q, %v", k, rows, err)
		}
	}
	p.Close(t.Context())
}

// rowOf makes a row of values: numbers, dates and texts, of the types of a schema where they fit.
func rowOf(t *testing.T, sc *arrow.Schema, values []any) arrow.RecordBatch {
	t.Helper()
	var fields []arrow.Field
	for i, v := range values {
		f := sc.Field(i)
		if _, ok := v.(int); ok {
			f.Type = arrow.PrimitiveTypes.Int64
		}
		fields = append(fields, f)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema(fields, nil))
	defer b.Release()
	for i, v := range values {
		switch v := v.(type) {
		case nil:
			b.Field(i).AppendNull()
		case int:
			b.Field(i).(*array.Int64Builder).Append(int64(v))
		case string:
			b.Field(i).(*array.StringBuilder).Append(v)
		case arrow.Date32:
			b.Field(i).(*array.Date32Builder).Append(v)
		default:
			t.Fatalf("%T", v)
		}
	}
	return b.NewRecordBatch()
}

// TestNamedTables: names of tables are found where tables are named, and not in texts, comments and columns.
func TestNamedTables(t *testing.T) {
	for statement, want := range map[string]string{
		"select a from b": "b",
		"select a.b, c from x.y.z join \"q\".\"r s\" using (k)":   "c x.y.z q.r s k",
		"select 'from a' /* from b */ from c -- from d":           "c",
		"select $$ from a $$ from b, lateral (from e)":            "b lateral from e",
		"with w as (select 1) select * from w":                    "select w",
		"select e'from \\' from a' from b where c in (1, 2) or d": "b 1 2",
		"from 'it''s' select 1":                                   "it's",
		"":                                                        "",
		"from":                                                    "",
		"from a.":                                                 "a",
		"from a..b":                                               "a",
		"select extract(year from day) from t":                    "year day t",
	} {
		var got []string
		for _, n := range tableNames(statement, sqltext.Lex(statement)) {
			got = append(got, strings.Join(n.parts, "."))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", statement, got, want)
		}
	}
}

// TestEngineRandom: statements and values at random through the server: none panics, and what is computed is what a
// model computes.
func TestEngineRandom(t *testing.T) {
	database(t)
	dir := demo(t)
	c := client(t, started(t, nil, dir))
	ids := scanned(t, dir+"/kudu#d_major", []string{"id"}, "")
	numbers := make([]int64, len(ids))
	for i, s := range ids {
		fmt.Sscan(s, &numbers[i])
	}
	seed := uint64(27)
	r := rand.New(rand.NewPCG(seed, seed))
	for range 20 {
		lo := numbers[r.IntN(len(numbers))]
		m := r.Int64N(7) + 2
		var n, sum int64
		for _, x := range numbers {
			if x >= lo && x%m == 1 {
				n++
				sum += x
			}
		}
		p, err := c.Prepare(t.Context(), "select count(*) as n, coalesce(sum(id), 0) as s "+
			"from demo.d_major where id >= ? and id % ? = 1")
		if err != nil {
			t.Fatal(err)
		}
		p.SetParameters(rowOf(t, p.ParameterSchema(), []any{int(lo), int(m)}))
		info, err := p.Execute(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		rows, _, err := fetch(t.Context(), c, info)
		if want := fmt.Sprintf("%d|%d", n, sum); err != nil || len(rows) != 1 || rows[0] != want {
			t.Errorf("seed %d: id >= %d, %% %d: %q, %v, want %s", seed, lo, m, rows, err, want)
		}
	}
}

// TestLiterals: a value is written so that the engine reads it back.
func TestLiterals(t *testing.T) {
	database(t)
	raw := []byte{0, 255, '\'', '\\'}
	b := array.NewBinaryBuilder(memory.DefaultAllocator, arrow.BinaryTypes.Binary)
	defer b.Release()
	b.Append(raw)
	text, err := literal(b.NewArray(), true)
	if err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	if s := verbs.Query(t.Context(), []string{t.TempDir()}, "select hex("+text+") as h", "csv", &out, &notes); s != 0 ||
		!strings.EqualFold(strings.TrimPrefix(strings.TrimSpace(out.String()), "h\n"), hex.EncodeToString(raw)) {
		t.Errorf("%s: status %d, %q, %s", text, s, &out, &notes)
	}
}
