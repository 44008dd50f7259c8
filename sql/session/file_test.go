package session

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/verbs"
)

// TestFileOfAScript: the file of -o appears when all statements have succeeded, and only then; one that was there
// stays as it was until then.
func TestFileOfAScript(t *testing.T) {
	bad := quote(demo(t) + "/damaged/key.cfile")
	for script, want := range map[string]struct {
		status int
		file   string // "": it is as before
	}{
		"SELECT 1 AS a": {0, "a\n1\n"},
		"SELECT 1 AS a; CREATE TABLE x AS FROM range(3)": {0, "a\n1\n"},
		"CREATE TABLE x AS SELECT 5 AS b; FROM x":        {0, "b\n5\n"},
		"SELECT 1 AS a; FROM " + bad:                     {3, ""},
		"SELECT 1 AS a; CREATE TABLE x AS FROM " + bad:   {3, ""},
		"SELECT 1 AS a; SELECT 2 AS b":                   {2, ""},
		"SELECT 1 AS a; EXPLAIN SELECT 2 AS b":           {2, ""},
		"SELECT 1 AS a; SELEKT":                          {2, ""},
		"CREATE TABLE x AS SELECT 1":                     {2, ""},
	} {
		for _, before := range []string{"", "what was there"} {
			dir := t.TempDir()
			file := filepath.Join(dir, "out.csv")
			if before != "" {
				if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			status, out, errs := run("--force", "-o", file, script)
			got, _ := os.ReadFile(file)
			expected := want.file
			if want.file == "" {
				expected = before
			}
			if status != want.status || string(got) != expected || out != "" {
				t.Errorf("%s: status %d, file %q, output %q: %s; expected %d, %q", script, status, got, out, errs,
					want.status, expected)
			}
			left, _ := filepath.Glob(dir + "/*")
			hidden, _ := filepath.Glob(dir + "/.*")
			if want := map[bool]int{true: 1, false: 0}[expected != ""]; len(left)+len(hidden) != want {
				t.Errorf("%s: left behind: %q %q", script, left, hidden)
			}
		}
	}
}

// TestScripts: a script comes from a file, or, named - or not at all, from standard input.
func TestScripts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.sql")
	if err := os.WriteFile(file, []byte("SELECT 1 AS n; SELECT 2 AS n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--script", file}, {"--script", "-"}, {}} {
		var out, errs bytes.Buffer
		in := "SELECT 1 AS n; -- a comment; with a semicolon\nSELECT 2 AS n;\n"
		a := verbs.NewApp(strings.NewReader(in), &out, &errs)
		status, _ := verbs.RunWith(stoa.Session(context.Background()), a, verbs.SQLWords(args), Run)
		if status != 0 || out.String() != "{\"n\":1}\n{\"n\":2}\n" {
			t.Errorf("%q: status %d, %s %s", args, status, out.String(), errs.String())
		}
	}
}

// TestProgress: the line of the progress bar counts a table as often as it is read.
func TestProgress(t *testing.T) {
	q := newAsked(t, flagsFor(t))
	key := quote(demo(t) + "/key.cfile")
	for query, want := range map[string]string{
		"SELECT sum(value) FROM " + key: "[############] 100%  400 of 400 rows read",
		"SELECT count(*) FROM " + key + " a JOIN " + key + " b ON a.value <= b.value": "[############] 100%  " +
			"800 of 800 rows read",
		"SELECT sum(value) FROM " + key + " WHERE value > 3": "210 rows read",
	} {
		if q.answer(t, query); q.line() != want {
			t.Errorf("%s: %s, expected %s", query, q.line(), want)
		}
	}
}

// TestExplainJSON: explain (format json) is one document of JSON, in which each table's scan says what is read; other
// forms are DuckDB's, and -o takes them.
func TestExplainJSON(t *testing.T) {
	dir := demo(t)
	key := quote(dir + "/key.cfile")
	query := "SELECT count(*) FROM " + key + " a JOIN " + key + " b USING (value) WHERE value > 3"
	var levels int
	var look func(doc any)
	look = func(doc any) {
		switch doc := doc.(type) {
		case []any:
			for _, one := range doc {
				look(one)
			}
		case map[string]any:
			if scan, ok := doc["stoa"].(map[string]any); ok {
				in, _ := scan["scan"].(map[string]any)
				if scan["table"] != dir+"/key.cfile" || in["filter"] != "value > 3" {
					t.Errorf("%v", scan)
				}
				all, _ := in["levels"].([]any)
				levels += len(all)
			}
			look(doc["children"])
		}
	}
	for _, explain := range []string{"EXPLAIN (FORMAT json) ", "EXPLAIN (ANALYZE, FORMAT json) "} {
		status, out, errs := run(explain + query)
		var doc any
		if err := json.Unmarshal([]byte(out), &doc); status != 0 || err != nil {
			t.Fatalf("%s: status %d, %v, %s: %.300s", explain, status, err, errs, out)
		}
		levels = 0
		if look(doc); levels < 8 {
			t.Errorf("%s: %d levels of the scans: %s", explain, levels, out)
		}
		file := filepath.Join(t.TempDir(), "plan.json")
		if status, out, errs = run("-o", file, explain+query); status != 0 || out != "" {
			t.Errorf("%s: status %d, %s, %s", explain, status, out, errs)
		}
		if b, err := os.ReadFile(file); err != nil || !json.Valid(b) {
			t.Errorf("%s: %v: %.300s", explain, err, b)
		}
	}
	if status, out, errs := run("EXPLAIN (FORMAT html) " + query); status != 0 ||
		!strings.HasSuffix(strings.TrimSpace(out), "</html>") {
		t.Errorf("status %d, %s: %s", status, errs, out)
	}
	if status, out, errs := run("EXPLAIN " + query); status != 0 ||
		strings.Count(out, "\n  filter    value > 3\n") != 2 {
		t.Errorf("status %d, %s: %s", status, errs, out)
	}
}
