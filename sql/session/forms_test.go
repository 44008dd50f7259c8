package session

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"stoa/cmd/stoa/verbs"
)

// three are rows that need care in output formats: quotation marks, commas, line ends, nulls, an empty text.
const three = `SELECT * FROM (VALUES (1, 'a,"b"', true), (2, NULL, false), (3, 'x|y' || chr(10) || 'z', NULL),
	(4, '', true)) t(n, s, f)`

// TestForms: every format of -f, on standard output and as the file of -o, read by another program.
func TestForms(t *testing.T) {
	texts := []string{`a,"b"`, "", "x|y\nz", ""}
	for form, check := range map[string]func(t *testing.T, out string){
		"csv": func(t *testing.T, out string) {
			all, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			if err != nil || len(all) != 5 || !slices.Equal(all[0], []string{"n", "s", "f"}) || all[1][1] != texts[0] ||
				all[3][1] != texts[2] {
				t.Errorf("%q, %v", all, err)
			}
			if !strings.Contains(out, "2,,false\n") || !strings.Contains(out, "4,\"\",true\n") {
				t.Errorf("null and an empty text: %s", out)
			}
		},
		"jsonl": func(t *testing.T, out string) { sameRows(t, strings.Split(strings.TrimSpace(out), "\n")) },
		"json": func(t *testing.T, out string) {
			var all []json.RawMessage
			if err := json.Unmarshal([]byte(out), &all); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			var lines []string
			for _, one := range all {
				lines = append(lines, string(one))
			}
			sameRows(t, lines)
		},
		"tsv": func(t *testing.T, out string) {
			if lines := strings.Split(out, "\n"); lines[0] != "n\ts\tf" || !strings.HasPrefix(lines[1], "1\t") {
				t.Errorf("%s", out)
			}
		},
		"markdown": func(t *testing.T, out string) {
			if lines := strings.Split(strings.TrimSpace(out), "\n"); len(lines) != 6 ||
				lines[0] != "| n | s | f |" || !strings.Contains(lines[4], `x\|y`) {
				t.Errorf("%s", out)
			}
		},
		"table":    func(t *testing.T, out string) { has(t, out, "(4 rows)", "int32") },
		"vertical": func(t *testing.T, out string) { has(t, out, "n", "4") },
		"arrow": func(t *testing.T, out string) {
			r, err := ipc.NewReader(strings.NewReader(out))
			if err != nil {
				t.Fatal(err)
			}
			defer r.Release()
			n := 0
			for r.Next() {
				n += int(r.RecordBatch().NumRows())
			}
			if n != 4 || r.Err() != nil {
				t.Errorf("%d rows, %v", n, r.Err())
			}
		},
		"parquet": func(t *testing.T, out string) {
			file := filepath.Join(t.TempDir(), "x.parquet")
			if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
			status, read, errs := run("SELECT count(*) AS c, max(s) AS m FROM read_parquet(" + quote(file) + ")")
			if status != 0 || read != "{\"c\":4,\"m\":\"x|y\\nz\"}\n" {
				t.Errorf("status %d: %s %s", status, read, errs)
			}
		},
	} {
		t.Run(form, func(t *testing.T) {
			status, out, errs := run("-f", form, three)
			if status != 0 {
				t.Fatalf("status %d: %s", status, errs)
			}
			check(t, out)
			file := filepath.Join(t.TempDir(), "out")
			if status, _, errs = run("-f", form, "-o", file, three); status != 0 {
				t.Fatalf("status %d: %s", status, errs)
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if form != "arrow" { // the file differs from the stream
				check(t, string(b))
			}
		})
	}
}

func has(t *testing.T, out string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(out, w) {
			t.Errorf("expected %q in\n%s", w, out)
		}
	}
}

func sameRows(t *testing.T, lines []string) {
	t.Helper()
	want := []any{`a,"b"`, nil, "x|y\nz", ""}
	if len(lines) != 4 {
		t.Fatalf("%q", lines)
	}
	for i, line := range lines {
		var row struct {
			N int
			S any
			F any
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.N != i+1 || row.S != want[i] {
			t.Errorf("%s: %v", line, err)
		}
	}
}

// TestNothingPartial: where a query ends with damage, the file of -o does not exist, an output that is one document is
// not closed, and the status is 3.
func TestNothingPartial(t *testing.T) {
	dir := t.TempDir()
	var none strings.Builder
	if status, err := verbs.Run(t.Context(), []string{"demo", dir + "/try", "--damage"}, strings.NewReader(""), &none,
		&none); status != 0 {
		t.Fatal(err)
	}
	bad := quote(dir + "/try/damaged/key.cfile")
	for _, form := range []string{"csv", "tsv", "jsonl", "json", "table", "vertical", "markdown", "arrow", "parquet"} {
		file := filepath.Join(dir, "out."+form)
		status, _, errs := run("-f", form, "-o", file, "FROM "+bad)
		if status != 3 || !strings.Contains(errs, "[539+525]") {
			t.Errorf("%s: status %d, %s", form, status, errs)
		}
		if left, _ := filepath.Glob(dir + "/*out*"); len(left) > 0 {
			t.Errorf("%s: left behind: %q", form, left)
		}
		var out string
		status, out, errs = run("-f", form, "FROM "+bad)
		if status != 3 {
			t.Errorf("%s: status %d, %s", form, status, errs)
		}
		if strings.Contains(out, " rows)") || json.Valid([]byte(out)) && out != "" {
			t.Errorf("%s: looks whole: %.300s", form, out)
		}
	}
	for _, statement := range []string{"COPY (FROM " + bad + ") TO " + quote(dir+"/new.cfile"),
		"CREATE TABLE " + quote(dir+"/new.trv") + " AS FROM " + bad,
		"COPY (FROM " + bad + ") TO " + quote(dir+"/new.parquet") + " (FORMAT stoa)",
		"COPY (FROM " + bad + ") TO " + quote(dir+"/new.cfiles/") + " (FORMAT cfile)"} {
		if status, _, errs := run(statement); status != 3 || !strings.Contains(errs, "[539+525]") {
			t.Errorf("%s: status %d, %s", statement, status, errs)
		}
		if left, _ := filepath.Glob(dir + "/*new*"); len(left) > 0 {
			t.Errorf("%s: left behind: %q", statement, left)
		}
	}
}

// TestWriters: COPY TO writes each format that stoa writes, and reading it yields what was written. For the formats
// that DuckDB reads, it reads them.
func TestWriters(t *testing.T) {
	dir := t.TempDir()
	rows := `SELECT i::BIGINT AS id, 'name ' || i % 7 AS s, i / 4 AS d, i % 2 = 0 AS f, (i % 50)::INTEGER AS k
		FROM range(1000) r(i)`
	q := newAsked(t, flagsFor(t))
	same := "SELECT count(*) AS n FROM (FROM (" + rows + ") EXCEPT ALL SELECT id, s, d, f, k FROM @)"
	for to, from := range map[string]string{
		"x.trv": "'@'", "x.arrow": "'@'", "x.red": "'@'",
		"x.avro.trv (FORMAT 'trevni-avro')":               "'@'",
		"x.cfiles/ (FORMAT cfile)":                        "'@'",
		"x.carbondata":                                    "'@'",
		"x.jsonl (FORMAT stoa)":                           "read_json('@')",
		"x.csv (FORMAT stoa)":                             "read_csv('@')",
		"x.tsv (FORMAT stoa)":                             "read_csv('@')",
		"x.parquet (FORMAT stoa)":                         "read_parquet('@')",
		"duck.parquet (FORMAT parquet)":                   "'@'",
		"ice/ (FORMAT iceberg)":                           "'@'",
		"delta/ (FORMAT delta)":                           "'@'",
		"lake/ (FORMAT 'iceberg,delta')":                  "stoa('@', format := 'delta')",
		"kudu/ (FORMAT 'kudu-fs', key id, table t)":       "'@#t'",
		"backup/ (FORMAT 'kudu-backup', key id, table t)": "read_parquet('@/*/*/*.parquet')",
	} {
		name, options, _ := strings.Cut(to, " ")
		place := filepath.Join(dir, name) + strings.Repeat("/", strings.Count(name, "/"))
		if err := q.Statement(t.Context(), "COPY ("+rows+") TO "+quote(place)+" "+options); err != nil {
			t.Errorf("%s: %v", to, err)
			continue
		}
		source := strings.ReplaceAll(from, "@", strings.TrimSuffix(place, "/"))
		for _, query := range []string{strings.ReplaceAll(same, "@", source),
			"SELECT count(*) - 1000 AS n FROM " + source} {
			if got := q.answer(t, query); got != "{\"n\":0}\n" {
				t.Errorf("%s: %s: %s", to, query, got)
			}
		}
	}
	for _, c := range [][2]string{
		{"CREATE TABLE " + quote(dir+"/new.cfiles/") + " AS SELECT 1 AS a", "does not say which format"},
		{"COPY (SELECT 1 AS a) TO " + quote(dir+"/z.trv"), ""},
		{"COPY (SELECT 2 AS a) TO " + quote(dir+"/z.trv"), ""}, // replaced, as with -o
		{"COPY (FROM " + quote(dir+"/z.trv") + ") TO " + quote(dir+"/z.trv"), "also a source"},
		{"COPY (SELECT 1 AS a) TO " + quote(dir+"/y.trv") + " (nonsense 1)", "nonsense"},
		{"COPY (SELECT 1 AS a) TO " + quote(dir+"/y.parquet") + " (FORMAT stoa, page_rows 10, compression zstd)", ""},
	} {
		statement, want := c[0], c[1]
		err := q.Statement(t.Context(), statement)
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// TestCreateTable: CREATE TABLE of a name that is a file's writes the file or says why not: it neither replaces what is
// there unless told so, nor makes a table in memory that nobody meant.
func TestCreateTable(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/x.trv"
	count := "SELECT sum(a) AS n FROM " + quote(file)
	for _, c := range []struct {
		statement string // with @ for the file
		status    int
		says      string
		n         string // what the file has afterwards; "": it is not there
	}{
		{"CREATE TEMP TABLE '@' AS SELECT 1 AS a", 2, "not temporary", ""},
		{"CREATE OR REPLACE TEMPORARY TABLE '@' AS SELECT 1 AS a", 2, "not temporary", ""},
		{"CREATE TABLE '@' (a INTEGER)", 2, "come from a query", ""},
		{"CREATE TABLE '@.unknown' AS SELECT 1 AS a", 2, "does not say which format", ""},
		{"COPY (SELECT 1 AS a) TO '@.unknown' (FORMAT stoa)", 2, "does not say which format", ""},
		{"CREATE TABLE IF NOT EXISTS '@' AS SELECT 1 AS a", 0, "1 rows", "1"},
		{"CREATE TABLE IF NOT EXISTS '@' AS SELECT 2 AS a", 0, "stays as it is", "1"},
		{"CREATE TABLE '@' AS SELECT 3 AS a", 2, "already", "1"},
		{"CREATE OR REPLACE TABLE IF NOT EXISTS '@' AS SELECT 4 AS a", 2, "Parser Error", "1"},
		{"CREATE OR REPLACE TABLE '@' AS SELECT 5 AS a", 0, "1 rows", "5"},
		{"COPY (SELECT 6 AS a) TO '@'", 0, "1 rows", "6"},
		{`CREATE TEMP TABLE "t.trv" AS SELECT 7 AS a; SELECT a FROM "t.trv"`, 0, "", "6"},
		{`CREATE TABLE "u.trv" (a INTEGER); SELECT a FROM "u.trv"`, 0, "", "6"},
	} {
		statement := strings.ReplaceAll(c.statement, "@", file)
		if status, _, errs := run(statement); status != c.status || !strings.Contains(errs, c.says) {
			t.Errorf("%s: status %d, %q; expected %d, %q", statement, status, errs, c.status, c.says)
		}
		if _, err := os.Stat(file); (err == nil) != (c.n != "") {
			t.Errorf("%s: %v", statement, err)
		}
		if c.n == "" {
			continue
		}
		if status, out, errs := run("-f", "csv", count); status != 0 || out != "n\n"+c.n+"\n" {
			t.Errorf("%s: the file has %q; expected %s: %s", statement, out, c.n, errs)
		}
	}
}
