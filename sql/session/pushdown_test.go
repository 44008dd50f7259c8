package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/sql/tables"
)

// The rows of these tests: a hundred thousand, sorted by most of their columns, so that pages have ranges.
const sorted = `SELECT i::BIGINT AS id, printf('name %05d', i) AS name, DATE '2020-01-01' + (i // 1000)::INTEGER AS day,
	(i / 8)::DECIMAL(12, 2) AS price, CASE WHEN i < 50000 THEN NULL ELSE i::INTEGER END AS n,
	TIMESTAMPTZ '2024-01-01 00:00:00+00' + to_seconds(i) AS ts, repeat('x', 50) || i AS wide
	FROM range(100000) r(i)`

// sortedTable writes them to a file, or a directory, with one of stoa's writers.
func (q *asked) sortedTable(t *testing.T, name, options string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	q.must(t, "COPY ("+sorted+") TO "+quote(file)+" ("+options+")")
	return file
}

// only returns the only table that was read.
func (q *asked) only(t *testing.T) *tables.Source {
	t.Helper()
	if len(q.opened) != 1 {
		t.Fatalf("expected one open table, found %d", len(q.opened))
	}
	for _, s := range q.opened {
		return s
	}
	return nil
}

var numbers = regexp.MustCompile(`[0-9]+`)

// counts returns the numbers in the line of explain's output that begins with level.
func counts(t *testing.T, explained, level string) (read, of int) {
	t.Helper()
	for _, line := range strings.Split(explained, "\n") {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), level+" ")
		all := numbers.FindAllString(rest, 2)
		if !ok || len(all) < 2 {
			continue
		}
		read, _ = strconv.Atoi(all[0])
		of, _ = strconv.Atoi(all[1])
		return read, of
	}
	t.Errorf("%s is not in what explain says:\n%s", level, explained)
	return 0, 0
}

// TestPushedDown: conditions reach the scan: it returns only rows for which they are true, and skips pages that cannot
// have any; unused columns are not read.
func TestPushedDown(t *testing.T) {
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	file := q.sortedTable(t, "x.parquet", "FORMAT stoa, page_rows 2000")
	for _, c := range []struct {
		where, filter string
		rows          int // for which it is true
		pages         int // pages of the filter's first column that may have such rows, at most; 0: all
		column        string
	}{
		{"id = 77777", "id = 77777", 1, 1, "id"},
		{"77777 = id", "id = 77777", 1, 1, "id"},
		{"id IN (3, 99000)", "id in (3, 99000)", 2, 2, "id"},
		{"id BETWEEN 100 AND 199", "id between 100 and 199", 100, 1, "id"},
		{"id >= 100 AND id <= 199", "id between 100 and 199", 100, 1, "id"},
		{"NOT (id >= 10 AND id < 99990)", "", 20, 2, "id"},
		{"name LIKE 'name 123%'", "name like 'name 123%' escape '!'", 100, 1, "name"},
		{"name = 'name 00007' OR name > 'name 99989'", "", 11, 2, "name"},
		{"n IS NULL", "n is null", 50_000, 25, "n"},
		{"n IS NOT NULL AND id < 50010", "", 10, 26, "id"},
		{"day = DATE '2020-02-01'", "day = date '2020-02-01'", 1000, 1, "day"},
		{"day BETWEEN '2020-02-01' AND '2020-02-02'", "day between date '2020-02-01' and date '2020-02-02'", 2000, 2,
			"day"},
		{"price > 12490", "price > 12490.00", 79, 1, "price"},
		{"price = 0.25", "price = 0.25", 1, 1, "price"},
		{"ts < TIMESTAMPTZ '2024-01-01 00:01:00+00'", "ts < timestamp '2024-01-01T00:01:00Z'", 60, 1, "ts"},
		{"NOT (id >= 10)", "id < 10", 10, 1, "id"},
		{"length(name) = 10 AND id < 10", "id < 10", 10, 1, "id"},
		{"name LIKE '%99999'", "", 1, 0, "name"},
	} {
		query := "SELECT count(wide) FROM " + quote(file) + " WHERE " + c.where
		if got := q.answer(t, query); got != fmt.Sprintf("{\"count(wide)\":%d}\n", c.rows) {
			t.Errorf("%s: found %s, expected %d rows", c.where, got, c.rows)
		}
		if read := q.only(t).Read.Load(); read != int64(c.rows) {
			t.Errorf("%s: the scan gave %d rows, expected %d", c.where, read, c.rows)
		}
		said := q.answer(t, "EXPLAIN "+query)
		if c.filter != "" && !strings.Contains(said, "  filter    "+c.filter+"\n") {
			t.Errorf("%s: expected the filter %s in\n%s", c.where, c.filter, said)
		}
		read, of := counts(t, said, "pages of "+c.column)
		if of != 50 || c.pages > 0 && read > c.pages || c.pages == 0 && read != 50 {
			t.Errorf("%s: %d of %d pages of %s are read, expected at most %d of 50", c.where, read, of, c.column,
				c.pages)
		}
		if strings.Contains(said, "pages of price") != (c.column == "price") {
			t.Errorf("%s: a column that nobody wants is read:\n%s", c.where, said)
		}
	}
}

// TestPushedThroughJoins: a condition on one side that holds for the other, too, reaches both; one around a subquery or
// a view reaches the table in it.
func TestPushedThroughJoins(t *testing.T) {
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	a, b := q.sortedTable(t, "a.parquet", "FORMAT stoa"), q.sortedTable(t, "b.cfiles/", "FORMAT cfile")
	q.must(t, "CREATE VIEW v AS SELECT id AS key, name FROM "+quote(a))
	key := "SELECT count(*), min(name) FROM v WHERE key = 5"
	apart := "WITH x AS MATERIALIZED (FROM v) SELECT count(*), min(name) FROM x WHERE key < 7"
	inner := "SELECT count(*), min(s.wide), min(r.name) FROM (FROM " + quote(a) +
		" WHERE id < 9) s, v r WHERE r.key = s.id"
	for query, want := range map[string]map[string]int64{ // rows from the scans
		"SELECT count(*), min(a.wide), min(b.wide) FROM " + quote(a) + " a JOIN " + quote(b) +
			" b USING (id) WHERE a.id < 50": {a: 50, b: 50},
		"SELECT count(*), min(a.wide), min(b.wide) FROM " + quote(a) + " a JOIN " + quote(b) +
			" b USING (id) WHERE b.id IN (7, 70000)": {b: 2}, // a gets it only while DuckDB joins
		"SELECT count(*), min(a.wide), min(b.wide) FROM " + quote(a) + " a, " + quote(b) +
			" b WHERE a.id = b.id AND a.id BETWEEN 10 AND 12 AND b.name > ''": {a: 3, b: 3},
		"SELECT count(*), min(a.wide) FROM " + quote(a) + " a LEFT JOIN " + quote(b) +
			" b ON a.id = b.id AND b.day = '2020-01-01' WHERE a.id < 50": {a: 50},
		key:   {a: 1},
		apart: {},
		inner: {},
	} {
		if got := q.answer(t, query); strings.HasPrefix(got, "error") || strings.Contains(got, `"count_star()":0`) {
			t.Errorf("%s: %s", query, got)
		}
		for file, rows := range want {
			for ask, s := range q.opened {
				if ask.Address == file && s.Read.Load() != rows {
					t.Errorf("%s: the scan of %s gave %d rows, expected %d", query, file, s.Read.Load(), rows)
				}
			}
		}
	}
}

// TestCountsReadNothing: a count alone reads no column, and only little of the file.
func TestCountsReadNothing(t *testing.T) {
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	for _, name := range []string{"x.parquet", "x.trv", "x.red", "x.arrow"} {
		file := q.sortedTable(t, name, "FORMAT stoa")
		size, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		q.answer(t, "DESCRIBE FROM "+quote(file)) // opens it
		before := bytesRead(t)
		if got := q.answer(t, "SELECT count(*) AS n FROM "+quote(file)); got != "{\"n\":100000}\n" {
			t.Errorf("%s: %s", name, got)
		}
		counted := bytesRead(t) - before
		before = bytesRead(t)
		q.answer(t, "SELECT max(wide) FROM "+quote(file))
		one := bytesRead(t) - before
		before = bytesRead(t)
		q.answer(t, "SELECT max(id), max(name), max(day), max(price), max(n), max(ts), max(wide) FROM "+quote(file))
		all := bytesRead(t) - before
		t.Logf("%s: %d bytes: a count reads %d, one column %d, all %d", name, size.Size(), counted, one, all)
		if name != "x.arrow" && (counted > size.Size()/4 || one >= all) {
			t.Errorf("%s: a count reads %d, one column %d, all %d bytes of %d", name, counted, one, all, size.Size())
		}
		said := q.answer(t, "EXPLAIN SELECT count(*) FROM "+quote(file))
		if !strings.Contains(said, "none: rows are counted") {
			t.Errorf("%s: %s", name, said)
		}
		q.forget()
	}
}

// bytesRead returns how many bytes the process has read so far.
func bytesRead(t *testing.T) int64 {
	t.Helper()
	b, err := os.ReadFile("/proc/self/io")
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(b), "rchar: ")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(line, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLimitEndsScans: when a query has enough rows, its scans end: of two million rows only some batches are read.
func TestLimitEndsScans(t *testing.T) {
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	rows := 2_000_000
	for _, fm := range []string{"x.trv", "x.parquet"} {
		file := filepath.Join(t.TempDir(), fm)
		made := fmt.Sprintf("SELECT i::BIGINT AS i, hash(i)::VARCHAR AS s FROM range(%d) r(i)", rows)
		q.must(t, "COPY ("+made+") TO "+quote(file)+" (FORMAT stoa)")
		before := bytesRead(t)
		q.answer(t, "SELECT max(s) FROM "+quote(file))
		all := bytesRead(t) - before
		for _, query := range []string{"SELECT s FROM %s LIMIT 5", "SELECT s FROM %s LIMIT 5 OFFSET 100",
			"SELECT s FROM %s WHERE i %% 2 = 1 LIMIT 5", "SELECT s FROM (SELECT s FROM %s LIMIT 5)",
			"SELECT EXISTS (SELECT s FROM %s)"} {
			before = bytesRead(t)
			got := q.answer(t, fmt.Sprintf(query, quote(file)))
			if n := strings.Count(got, "\n"); n != 5 && !strings.Contains(query, "EXISTS") {
				t.Errorf("%s: %d rows: %.200s", query, n, got)
			}
			read, part := q.only(t).Read.Load(), bytesRead(t)-before
			if read > int64(rows/4) || part > all/2 {
				t.Errorf("%s of %s: the scan gave %d rows and read %d bytes; all are %d and %d", query, fm, read, part,
					rows, all)
			}
		}
		q.forget()
	}
}

// TestEstimates: the optimizer gets the number of rows of a table, even if only an estimate.
func TestEstimates(t *testing.T) {
	q := newAsked(t, &verbs.SQLFlags{Threads: 1})
	for _, name := range []string{"x.parquet", "x.trv", "x.red"} {
		file := q.sortedTable(t, name, "FORMAT stoa")
		if said := q.answer(t, "EXPLAIN FROM "+quote(file)); !strings.Contains(said, "100,000 rows") &&
			!strings.Contains(said, "100000 rows") {
			t.Errorf("%s: no estimate of 100000 rows in\n%s", name, said)
		}
	}
}

// TestExplainsFilters: explain describes a filter as stoa explain does the same predicate.
func TestExplainsFilters(t *testing.T) {
	q := newAsked(t, &verbs.SQLFlags{Threads: 1})
	file := q.sortedTable(t, "x.parquet", "FORMAT stoa")
	said := q.answer(t, "EXPLAIN SELECT name FROM "+quote(file)+" WHERE id = 5")
	read, of := counts(t, said, "pages of id")
	var out strings.Builder
	args := []string{"explain", file, "--where", "id = 5", "--columns", "name", "-f", "json"}
	status, err := verbs.Run(stoa.Session(context.Background()), args, strings.NewReader(""), &out, &out)
	if status != 0 || !strings.Contains(out.String(), fmt.Sprintf(`"considered":%d`, of)) {
		t.Errorf("status %d, %v: %s; explain in SQL: %d of %d", status, err, out.String(), read, of)
	}
}
