package session

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/verbs"
)

// The rows of the suite are made by DuckDB, from formulas, and written by it as Parquet, which it reads itself: that is
// what every other format is held against.
const (
	facts = `SELECT i::BIGINT AS id, (i * 7919 % 1000)::INTEGER AS k, (i % 17)::SMALLINT AS s,
	CASE WHEN i % 11 = 0 THEN NULL ELSE 'name ' || (i * 31 % 97) END AS name, (i % 1000) / 8.0 AS f,
	((i * 13) % 100000 / 100)::DECIMAL(12, 2) AS price, DATE '2020-01-01' + (i % 700)::INTEGER AS day,
	TIMESTAMPTZ '2024-02-29 12:00:00+00' + to_seconds(i * 37) AS ts, i % 3 = 0 AS flag,
	CASE WHEN i % 5 = 0 THEN NULL ELSE (i * 17 % 251)::INTEGER END AS n,
	repeat(chr((65 + i % 26)::INTEGER), (i % 30)::INTEGER) AS t
	FROM range(ROWS) r(i)`
	dims = `SELECT i::INTEGER AS k, 'group ' || i % 12 AS grp, (i * i % 7919)::BIGINT AS w FROM range(800) r(i)`
	nest = `SELECT i::BIGINT AS id, {'a': (i % 9)::INTEGER, 'b': 'x' || i % 4} AS st,
	CASE WHEN i % 7 = 0 THEN NULL ELSE list_transform(range(i % 5), lambda x: (x + i)::INTEGER) END AS l
	FROM range(ROWS) r(i)`
)

// suite are the queries, over f, d and e, whose results have one order.
func suite() (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	conditions := []string{"k < 100", "k BETWEEN 300 AND 320", "name LIKE 'name 1%'", "name LIKE '%7'", "name IS NULL",
		"name IS NOT NULL AND n IS NULL", "day = DATE '2020-02-29'", "day > DATE '2021-06-01' AND flag",
		"price > 123.45", "price IN (0.00, 0.13, 999.99)", "f = 0.125", "f > 124 OR k = 7", "NOT flag AND s = 3",
		"id IN (1, 5, 7, 11, 13, 17, 19, 23)",
		"ts >= TIMESTAMPTZ '2024-03-01 00:00:00+00' AND ts < TIMESTAMPTZ '2024-03-01 06:00:00+00'",
		"n = 250 OR n < 3", "t = ''", "t > 'ZZ'", "t LIKE '_'", "length(t) = 3 AND k > 900", "k % 7 = 3 AND k < 50",
		"lower(name) = 'name 12'", "coalesce(n, 0) = 0", "CASE WHEN flag THEN k < 10 ELSE k > 990 END",
		"id NOT IN (SELECT id FROM f WHERE k > 5)", "s <> 5 AND s != 6 AND s < 8"}
	for _, c := range conditions {
		add("SELECT * FROM f WHERE %s ORDER BY id", c)
		add("SELECT count(*), count(n), sum(price), min(name), max(day) FROM f WHERE %s", c)
		add("SELECT s, count(*), sum(k), avg(f) FROM f WHERE %s GROUP BY s ORDER BY s", c)
		add("SELECT d.grp, count(*), sum(f.price) FROM f JOIN d USING (k) WHERE %s GROUP BY ALL ORDER BY ALL",
			strings.ReplaceAll(strings.ReplaceAll(c, "k ", "f.k "), "k%", "f.k%"))
	}
	for _, c := range []string{"id", "k", "s", "name", "f", "price", "day", "ts", "flag", "n", "t"} {
		add("SELECT count(DISTINCT %[1]s), min(%[1]s), max(%[1]s) FROM f", c)
		add("SELECT %[1]s, count(*) FROM f GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 20", c)
		add("SELECT id, %[1]s, row_number() OVER (PARTITION BY s ORDER BY id) FROM f WHERE id < 300 ORDER BY id", c)
		add("SELECT id, lag(%[1]s) OVER (ORDER BY id) FROM f ORDER BY id DESC LIMIT 50", c)
		add("SELECT a.id, b.%[1]s FROM f a JOIN f b ON a.id = b.id + 1 WHERE a.k < 30 ORDER BY 1", c)
	}
	for i := range 15 {
		add("SELECT * FROM f ORDER BY id LIMIT 10 OFFSET %d", i*97)
		add("SELECT k, w FROM d WHERE w > %d ORDER BY k", i*500)
		add("SELECT f.id, d.grp FROM f LEFT JOIN d ON f.k = d.k AND d.w < %d WHERE f.id < 200 ORDER BY 1", i*600)
	}
	return append(out,
		"SELECT count(*) FROM f", "SELECT count(*), count(*) FROM f, d", "SELECT 1 FROM f LIMIT 3",
		"SELECT count(*) FROM (FROM f UNION ALL FROM f)", "SELECT DISTINCT s, flag FROM f ORDER BY ALL",
		"WITH x AS (SELECT k, sum(price) p FROM f GROUP BY k) SELECT * FROM x a JOIN x b USING (k) ORDER BY k LIMIT 20",
		"SELECT id FROM f WHERE k = (SELECT max(k) FROM d) ORDER BY id",
		"SELECT id FROM f WHERE EXISTS (SELECT 1 FROM d WHERE d.k = f.k AND d.w = 0) ORDER BY id",
		"SELECT s, list(id ORDER BY id) FROM f WHERE id < 40 GROUP BY s ORDER BY s",
		"SELECT string_agg(name, ',' ORDER BY id) FROM f WHERE id < 60",
		"SELECT quantile_cont(f, 0.5), stddev(k), approx_count_distinct(flag) FROM f",
		"SELECT * FROM (PIVOT (SELECT s, flag, k FROM f WHERE s < 4) ON flag USING sum(k) GROUP BY s) ORDER BY s")
}

// nestedSuite are queries over e, which not every format can hold.
func nestedSuite() []string {
	return []string{"SELECT * FROM e ORDER BY id LIMIT 100", "SELECT st.a, count(*) FROM e GROUP BY 1 ORDER BY 1",
		"SELECT id, unnest(l) u FROM e ORDER BY id, u LIMIT 200", "SELECT sum(len(l)), count(l) FROM e",
		"SELECT id, l[2], st.b FROM e WHERE st.a = 3 AND len(l) > 2 ORDER BY id",
		"SELECT st, count(*) FROM e GROUP BY st ORDER BY st",
		"SELECT list_sum(l) q, count(*) FROM e GROUP BY q ORDER BY q"}
}

// stored is a way in which rows are stored.
type stored struct {
	name  string
	place func(dir, table string) string
	to    string
	nests bool
}

// formats are how the rows are stored: the place of a table of a name. The directories of Kudu's servers have all
// tables; CFile and RED1 have no nested ones here.
var formats = []stored{
	{"cfile", func(d, t string) string { return d + "/" + t + ".cfiles/" }, "cfile", false},
	{"trevni", func(d, t string) string { return d + "/" + t + ".trv" }, "trevni", true},
	{"redfile", func(d, t string) string { return d + "/" + t + ".red" }, "redfile", true},
	{"carbon", func(d, t string) string { return d + "/" + t + ".carbondata" }, "carbon", true},
	{"kudu", func(d, t string) string { return d + "/" + t + ".kudu/" }, "kudu-fs", false},
}

// TestSuite: queries over the same rows in five formats give what DuckDB gives of its own Parquet.
func TestSuite(t *testing.T) {
	dir, rows := t.TempDir(), 20_000
	if testing.Short() {
		rows = 1000
	}
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	for name, text := range map[string]string{"f": facts, "d": dims, "e": nest} {
		text = strings.ReplaceAll(text, "ROWS", strconv.Itoa(rows))
		q.must(t, "COPY ("+text+") TO '"+dir+"/"+name+".parquet' (FORMAT parquet)")
	}
	queries, nested := suite(), nestedSuite()
	want := map[string]string{}
	q.views(t, func(table string) string { return "read_parquet('" + dir + "/" + table + ".parquet')" }, true)
	for _, s := range append(slices.Clone(queries), nested...) {
		if want[s] = q.answer(t, s); strings.HasPrefix(want[s], "error") {
			t.Errorf("%s: %s", s, want[s])
		}
	}
	for _, fm := range formats {
		if testing.Short() && fm.name != "cfile" && fm.name != "carbon" {
			continue
		}
		tables := []string{"f", "d"}
		if fm.nests {
			tables = append(tables, "e")
		}
		for _, table := range tables {
			place := fm.place(dir, table)
			if err := convert(dir+"/"+table+".parquet", place, fm.to); err != nil {
				t.Fatalf("%s: %v", fm.name, err)
			}
		}
		q.views(t, func(table string) string { return sourceOf(fm.name, fm.place(dir, table), table) }, fm.nests)
		asked := slices.Clone(queries)
		if fm.nests {
			asked = append(asked, nested...)
		}
		wrong := 0
		for _, s := range asked {
			if got := q.answer(t, s); got != want[s] {
				if wrong++; wrong <= 5 {
					t.Errorf("%s: %s\nfound    %.300s\nexpected %.300s", fm.name, s, got, want[s])
				}
			}
		}
		t.Logf("COUNT %s: %d queries, %d wrong", fm.name, len(asked), wrong)
	}
}

func sourceOf(format, place, table string) string {
	if format == "kudu" {
		return quote(strings.TrimSuffix(place, "/") + "#" + table)
	}
	return quote(place)
}

func convert(from, to, format string) error {
	args := []string{"convert", from, "-o", to, "--to", format}
	if format == "kudu-fs" {
		table := strings.TrimSuffix(filepath.Base(from), ".parquet")
		key, err := keyOf(from, table)
		if err != nil {
			return err
		}
		args = append(args, "--opt", "key="+key, "--opt", "table="+table)
	}
	var out, errs strings.Builder
	status, err := verbs.Run(context.Background(), args, strings.NewReader(""), &out, &errs)
	if status != 0 {
		return fmt.Errorf("%v: status %d, %s %v", args, status, errs.String(), err)
	}
	return nil
}

// keyOf is the primary key of a table in a file of Parquet: its first column, unless tpchKeys knows better.
func keyOf(file, table string) (string, error) {
	if key, ok := tpchKeys[table]; ok {
		return key, nil
	}
	t, err := stoa.Open(context.Background(), file, stoa.OpenOptions{})
	if err != nil {
		return "", err
	}
	defer t.Close()
	return t.Schema().Field(0).Name, nil
}

func (q *asked) must(t *testing.T, statement string) {
	t.Helper()
	if err := q.Statement(context.Background(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (q *asked) views(t *testing.T, of func(table string) string, nested bool) {
	t.Helper()
	tables := []string{"f", "d"}
	if nested {
		tables = append(tables, "e")
	}
	for _, table := range tables {
		q.must(t, "CREATE OR REPLACE VIEW "+table+" AS FROM "+of(table))
	}
}

// answer is what a query gives, as lines.
func (q *asked) answer(t *testing.T, query string) string {
	t.Helper()
	q.out.Reset()
	if err := q.Statement(context.Background(), query); err != nil {
		return "error: " + err.Error()
	}
	if err := q.app.Stdout.Flush(); err != nil {
		t.Fatal(err)
	}
	return q.out.String()
}
