package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamedStoa: a query after WITH, a table or a view may have the name of the function stoa.
func TestNamedStoa(t *testing.T) {
	key := quote(demo(t) + "/key.cfile")
	call := "(SELECT count(*) FROM stoa(" + key + "))"
	for query, want := range map[string]string{
		"WITH stoa(a) AS (SELECT 1) SELECT a FROM stoa":                                                 "1",
		"WITH x AS (SELECT 1), stoa (a) AS (FROM x) SELECT a FROM stoa":                                 "1",
		"WITH x AS (SELECT 1), stoa (a) AS MATERIALIZED (FROM x) SELECT a FROM stoa":                    "1",
		"WITH x AS (SELECT 1), stoa (a) AS NOT MATERIALIZED (FROM x) SELECT a FROM stoa":                "1",
		"WITH RECURSIVE stoa(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM stoa WHERE n<3) FROM stoa":       "1 2 3",
		"CREATE TEMP TABLE stoa(a INT); INSERT INTO stoa(a) VALUES (7); SELECT a FROM stoa":             "7",
		"CREATE VIEW stoa(a) AS SELECT 5; SELECT a FROM stoa":                                           "5",
		"WITH stoa(a) AS (SELECT 1) SELECT a + " + call + " FROM stoa":                                  "401",
		"SELECT count(*) FROM range(2) r, stoa(" + key + ") AS s(v)":                                    "800",
		"SELECT count(*) FROM (stoa(" + key + ") a JOIN stoa(" + key + ") b USING (value))":             "400",
		"WITH y AS (SELECT 1), x AS (FROM stoa(" + key + ", damaged := 'fail')) SELECT count(*) FROM x": "400",
	} {
		status, out, errs := run("-f", "csv", query)
		_, rows, _ := strings.Cut(out, "\n")
		if got := strings.Join(strings.Fields(rows), " "); status != 0 || got != want {
			t.Errorf("%s: status %d, %q, expected %q: %s", query, status, got, want, errs)
		}
	}
}

// TestAttachHash: the names of directories may have signs that also separate a table's name.
func TestAttachHash(t *testing.T) {
	from, dir := demo(t), filepath.Join(t.TempDir(), "a#b")
	for _, to := range []string{dir, dir + "/c#d"} {
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(dir+"/kudu", os.DirFS(from+"/kudu")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir+"/c#d", os.DirFS(from+"/carbon")); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(from + "/key.cfile")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/key.cfile", b, 0o600); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"SELECT count(*) AS n FROM k.key":                              `{"n":400}`,
		"SELECT count(*) AS n FROM k.d_major":                          `{"n":1619}`,
		"SELECT count(*) AS n FROM " + quote(dir+"/key.cfile"):         `{"n":400}`,
		"SELECT count(*) AS n FROM " + quote(dir+"/kudu#d_major"):      `{"n":1619}`,
		"SELECT count(*) AS n FROM stoa_ls(" + quote(dir+"/c#d") + ")": `{"n":1}`,
	} {
		status, out, errs := run("-q", "--attach", "k="+dir, query)
		if status != 0 || strings.TrimSpace(out) != want {
			t.Errorf("%s: status %d, %s, expected %s: %s", query, status, out, want, errs)
		}
	}
}

// TestAttachAlike: of the tables of a place that have one name, in any case, the first has it, and of the others that
// is said, with their addresses.
func TestAttachAlike(t *testing.T) {
	from, dir := demo(t), t.TempDir()
	b, err := os.ReadFile(from + "/key.cfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"a/key.cfile", "b/KEY.cfile", "other.cfile"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, to)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	status, out, errs := run("-f", "csv", "--attach", "k="+dir, "--table", "key="+dir+"/b/KEY.cfile",
		"SELECT (SELECT count(*) FROM k.key) + (SELECT count(*) FROM k.other) + (SELECT count(*) FROM key) AS n")
	if status != 0 || out != "n\n1200\n" || strings.Count(errs, "has this name; --table") != 1 ||
		!strings.Contains(errs, "b/KEY.cfile") {
		t.Errorf("status %d, %q, %s", status, out, errs)
	}
}
