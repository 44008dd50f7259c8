package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format/ipc/sample"
)

// TestTypes: values of every Arrow type pass through DuckDB unchanged, or become text where it has no type for
// them; values outside its range are an error that names the column.
func TestTypes(t *testing.T) {
	types := slices.Concat(sample.Scalars(), sample.Rare(), sample.Nested(), sample.NestedRare())
	q := newAsked(t, flagsFor(t))
	refused := 0
	for i, typ := range types {
		sc := sample.Schema(typ)
		file := filepath.Join(t.TempDir(), "in.arrow")
		write(t, file, sc, rand.New(rand.NewPCG(uint64(i), 1)))
		what := fmt.Sprintf("%d %s", i, typ)
		out := filepath.Join(t.TempDir(), "out.arrow")
		if err := q.to(out, "FROM "+quoteName(file)); err != nil {
			refused++
			t.Logf("%s: refused: %v", what, err)
			continue
		}
		want, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if id := typ.ID(); id == arrow.INTERVAL_MONTHS || id == arrow.INTERVAL_DAY_TIME {
			intervals(t, what, want, out) // the comparison of tables handles no other kinds
		} else {
			alike(t, what, want, out)
		}
		want.Close()
	}
	t.Logf("%d types, %d refused", len(types), refused)
	if refused > 3 { // durations of seconds and of nanoseconds, and intervals with nanoseconds, beyond microseconds
		t.Errorf("expected 3 types with values that DuckDB cannot have, found %d", refused)
	}
}

func write(t *testing.T, file string, sc *arrow.Schema, r *rand.Rand) {
	t.Helper()
	ctx := context.Background()
	w, err := stoa.Create(ctx, file, sc, stoa.CreateOptions{NoCheck: true})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b := sample.Batch(r, sc, 1500, 0.1)
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	if _, err := w.Close(ctx); err != nil {
		t.Fatal(err)
	}
}

// intervals compares intervals of months, or of days and milliseconds, with those of all three.
func intervals(t *testing.T, what string, want *stoa.Table, file string) {
	t.Helper()
	got, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	a, b := spans(t, want), spans(t, got)
	if !slices.Equal(a, b) || len(a) < 4000 {
		t.Errorf("%s: %d cells, expected %d, or others", what, len(b), len(a))
	}
}

// spans returns the cells of a table's only column, an interval.
func spans(t *testing.T, table *stoa.Table) (out []string) {
	t.Helper()
	for batch, err := range table.Scan(context.Background(), stoa.ScanSpec{}) {
		if err != nil {
			t.Fatal(err)
		}
		c := batch.Column(0)
		for i := range c.Len() {
			v := arrow.MonthDayNanoInterval{}
			switch c := c.(type) {
			case *array.MonthInterval:
				v.Months = int32(c.Value(i))
			case *array.DayTimeInterval:
				v.Days, v.Nanoseconds = c.Value(i).Days, int64(c.Value(i).Milliseconds)*1_000_000
			case *array.MonthDayNanoInterval:
				v = c.Value(i)
			}
			if c.IsNull(i) {
				out = append(out, "null")
			} else {
				out = append(out, fmt.Sprint(v))
			}
		}
	}
	return out
}

// TestNegative: negative numbers of every size, and the limits of their types.
func TestNegative(t *testing.T) {
	types := []arrow.DataType{&arrow.Decimal32Type{Precision: 4, Scale: 1},
		&arrow.Decimal32Type{Precision: 9, Scale: 9},
		&arrow.Decimal64Type{Precision: 9, Scale: 0}, &arrow.Decimal64Type{Precision: 18, Scale: 3},
		&arrow.Decimal128Type{Precision: 4, Scale: 2}, &arrow.Decimal128Type{Precision: 9, Scale: 2},
		&arrow.Decimal128Type{Precision: 18, Scale: 2}, &arrow.Decimal128Type{Precision: 38, Scale: 2}}
	q := newAsked(t, flagsFor(t))
	for _, typ := range types {
		p, s := typ.(arrow.DecimalType).GetPrecision(), typ.(arrow.DecimalType).GetScale()
		most := strings.Repeat("9", int(p-s)) + "." + strings.Repeat("9", int(s))
		json := fmt.Sprintf(`[{"x": "-%[1]s"}, {"x": null}, {"x": "%[1]s"}, {"x": "0"}]`,
			"0"+strings.TrimSuffix(most, "."))
		sc := arrow.NewSchema([]arrow.Field{{Name: "x", Type: typ, Nullable: true}}, nil)
		b, _, err := array.RecordFromJSON(memory.DefaultAllocator, sc, strings.NewReader(json))
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		file := filepath.Join(t.TempDir(), "x.arrow")
		w, err := stoa.Create(context.Background(), file, sc, stoa.CreateOptions{NoCheck: true})
		if err == nil {
			err = w.Write(context.Background(), b)
		}
		if err == nil {
			_, err = w.Close(context.Background())
		}
		if err != nil {
			t.Fatal(err)
		}
		most = strings.TrimSuffix(most, ".")
		zero := "0"
		if s > 0 {
			zero = "0." + strings.Repeat("0", int(s))
		}
		if p == s {
			zero = zero[1:] // in DuckDB's notation
		}
		want := []string{"-" + most, "none", most, zero}
		got, err := q.Texts(context.Background(), "SELECT coalesce(x::VARCHAR, 'none') FROM "+quote(file))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: found %q, %v; expected %q", typ, got, err, want)
		}
	}
}

// TestNoArrowType: values of DuckDB's types that Arrow does not have come as text, which is said; where a statement
// cannot be asked for text, it is refused before it runs.
func TestNoArrowType(t *testing.T) {
	most := "340282366920938463463374607431768211455"
	for _, c := range []struct{ value, want string }{
		{"TIMETZ '10:00:00+02'", `"10:00:00+02"`}, {most + "::UHUGEINT", `"` + most + `"`},
		{"BIT '10100000011'", `"10100000011"`}, {"(" + most + "::UHUGEINT)::BIGNUM", `"` + most + `"`},
		{"[" + most + "::UHUGEINT, NULL]", `"[` + most + `, NULL]"`}, {"{'a': BIT '1'}", `"{'a': 1}"`},
		{"MAP {'a': TIMETZ '10:00:00-03:30'}", `"{a='10:00:00-03:30'}"`}, {"union_value(k := BIT '01')", `"01"`},
		{"[BIT '01']::BIT[1]", `"[01]"`}, {"42::VARIANT", `"42"`}, {"NULL::BIT", "null"},
	} {
		status, out, errs := run("-f", "jsonl", "SELECT 1 AS n, "+c.value+" AS x, 2 AS n ORDER BY 1 -- all")
		if status != 0 || out != "{\"n\":1,\"x\":"+c.want+",\"n_1\":2}\n" ||
			!strings.Contains(errs, "column x is given as text") {
			t.Errorf("%s: status %d, %s %s; expected %s", c.value, status, out, errs, c.want)
		}
	}
	dir := demo(t)
	key := quote(dir + "/key.cfile")
	status, out, errs := run("-q", "SELECT max(a.value::UHUGEINT) = max(a.value) AS s, count(*)::UHUGEINT AS n "+
		"FROM "+key+" a JOIN "+key+" b USING (value) WHERE a.value > 0")
	if status != 0 || out != "{\"s\":true,\"n\":\"210\"}\n" {
		t.Errorf("status %d, %s %s", status, out, errs)
	}
	q := newAsked(t, flagsFor(t))
	q.must(t, "CREATE TABLE x (b BIT)")
	if got := q.answer(t, "INSERT INTO x VALUES ('1') RETURNING b"); !strings.Contains(got, "no type for BIT") {
		t.Errorf("RETURNING: %s", got)
	}
	if got := q.answer(t, "SELECT count(*) AS n FROM x"); got != "{\"n\":0}\n" {
		t.Errorf("it ran: %s", got)
	}
	zeros := strings.Repeat("0", 38)
	for _, number := range []string{"170141183460469231731687303715884105727::HUGEINT", "-1" + zeros + "::HUGEINT",
		"[NULL, 1" + zeros + "::HUGEINT]"} {
		if got := q.answer(t, "SELECT "+number+" AS h"); !strings.Contains(got, "h: a number has more than 38 digits") {
			t.Errorf("%s: %s", number, got)
		}
	}
	nines := strings.Repeat("9", 38)
	if got := q.answer(t, "SELECT -"+nines+"::HUGEINT AS h"); got != "{\"h\":\"-"+nines+"\"}\n" {
		t.Errorf("38 digits: %s", got)
	}
}

// TestUUID: a column of UUIDs, at any depth, is to a query what it is where DuckDB reads the file itself.
func TestUUID(t *testing.T) {
	q := newAsked(t, flagsFor(t))
	file := filepath.Join(t.TempDir(), "u.parquet")
	q.must(t, `COPY (SELECT i, CASE WHEN i % 7 < 6 THEN md5(i::VARCHAR)::UUID END AS u,
		CASE WHEN i % 5 < 4 THEN [u, NULL, md5('a' || i)::UUID] END AS l, {'a': u, 'b': 'x'} AS s
		FROM (SELECT unnest(range(5000)) AS i)) TO `+quote(file)+" (FORMAT parquet)")
	for query, want := range map[string]string{
		"SELECT count(*) AS n FROM (FROM @ EXCEPT ALL FROM read_parquet(@))":                                  "0",
		"SELECT count(*) AS n FROM (FROM read_parquet(@) EXCEPT ALL FROM @)":                                  "0",
		"SELECT count(*) AS n FROM (DESCRIBE FROM @) WHERE column_type = 'UUID' OR column_type LIKE '%UUID%'": "3",
		"SELECT max(i) AS n FROM @ WHERE u = '1f0e3dad-9990-8345-f743-9f8ffabdffc4'":                          "19",
		"SELECT a.n - b.n AS n FROM (SELECT count(*) AS n FROM @ WHERE u < md5('1')::UUID) a, " +
			"(SELECT count(*) AS n FROM read_parquet(@) WHERE u < md5('1')::UUID) b": "0",
		"SELECT count(*) AS n FROM @ a JOIN read_parquet(@) b USING (u)": "4286",
	} {
		query = strings.ReplaceAll(query, "@", quote(file))
		if got := q.answer(t, query); got != "{\"n\":"+want+"}\n" {
			t.Errorf("%s: %s, expected %s", query, got, want)
		}
	}
}
