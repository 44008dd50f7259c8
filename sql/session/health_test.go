package session

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"stoa/cmd/stoa/verbs"
)

// demo returns a directory with small files that real systems wrote, and damaged copies of some.
func demo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/try"
	var none strings.Builder
	if status, err := verbs.Run(t.Context(), []string{"demo", dir, "--damage"}, strings.NewReader(""), &none,
		&none); status != 0 {
		t.Fatal(err)
	}
	return dir
}

// documents returns a verb's JSON output, one document per line or one in all.
func documents(t *testing.T, args ...string) (out []map[string]any) {
	t.Helper()
	var text, errs strings.Builder
	status, err := verbs.Run(t.Context(), args, strings.NewReader(""), &text, &errs)
	if status != 0 && status != 3 {
		t.Fatalf("%q: status %d, %v, %s", args, status, err, errs.String())
	}
	for d := json.NewDecoder(strings.NewReader(text.String())); d.More(); {
		var one map[string]any
		if err := d.Decode(&one); err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		out = append(out, one)
	}
	return out
}

// TestHealthFunctions: each function has a row for each result of its verb, with the known values of these files.
func TestHealthFunctions(t *testing.T) {
	dir := demo(t)
	key, bad, kudu := dir+"/key.cfile", dir+"/damaged/key.cfile", dir+"/kudu"
	q := newAsked(t, flagsFor(t))
	count := func(call string) string {
		return strings.TrimSpace(q.answer(t, "SELECT count(*) AS n FROM "+call))
	}
	for call, args := range map[string][]string{
		"stoa_ls(" + quote(dir) + ")":       {"ls", dir, "-f", "jsonl"},
		"stoa_stats(" + quote(key) + ")":    {"stats", key, "-f", "jsonl"},
		"stoa_verify(" + quote(bad) + ")":   {"verify", bad, "-f", "jsonl"},
		"stoa_verify(" + quote(dir) + ")":   {"verify", dir, "-f", "jsonl"},
		"stoa_describe(" + quote(key) + ")": {"describe", key, "-f", "jsonl"},
	} {
		if docs := documents(t, args...); count(call) != fmt.Sprintf(`{"n":%d}`, len(docs)) || len(docs) == 0 {
			t.Errorf("%s: %s, the verb says %d things", call, count(call), len(docs))
		}
	}
	for _, c := range [][2]string{
		{"SELECT code, start, length, from_row, to_row FROM stoa_verify(" + quote(bad) + ")",
			`{"code":"cfile.block.checksum","start":539,"length":525,"from_row":128,"to_row":256}`},
		{"SELECT count(*) AS n FROM stoa_verify(" + quote(key) + ")", `{"n":0}`},
		{"SELECT sum(rows) > 400 AS more FROM stoa_ls(" + quote(dir) + ") WHERE rows > 0", `{"more":true}`},
		{"SELECT rows, nulls, max FROM stoa_stats(" + quote(key) + ")", ""},
		{"SELECT min(start) AS f, max(start + length) AS l FROM stoa_describe(" + quote(key) + ")", ""},
		{"SELECT considered, read FROM stoa_explain(" + quote(key) +
			", filter := 'value > 2000000000') WHERE level = 'rows'", `{"considered":400,"read":11}`},
		{"SELECT DISTINCT table_name FROM stoa_history(" + quote(kudu) + ")", `{"table_name":"d_major"}`},
		{"SELECT event FROM stoa_history(" + quote(kudu) + ") WHERE hybrid = '7353330694704910336' LIMIT 1",
			`{"event":"last"}`},
		{"SELECT count(*) AS n FROM stoa_diff(" + quote(key) + ", " + quote(key) + ")", `{"n":0}`},
		{"SELECT difference, count(*) AS n FROM stoa_diff(" + quote(key) + ", " + quote(bad) +
			", damaged := 'null-cells') GROUP BY ALL", `{"difference":"cell","n":128}`},
		// Health can be joined with other health, and with rows.
		{"SELECT v.code FROM stoa_ls(" + quote(dir) + ") l JOIN stoa_verify(" + quote(bad) +
			") v ON v.object = l.name", `{"code":"cfile.block.checksum"}`},
		{"SELECT count(*) AS n FROM stoa(" + quote(bad) + ", damaged := 'skip-rows') r, stoa_verify(" + quote(bad) +
			") v", `{"n":272}`},
	} {
		query, want := c[0], c[1]
		got := strings.TrimSpace(q.answer(t, query))
		if strings.HasPrefix(got, "error") || got == "" || want != "" && got != want {
			t.Errorf("%s\nfound    %s\nexpected %s", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"FROM stoa_verify(" + quote(dir+"/absent") + ")":              "no such file",
		"FROM stoa_stats(" + quote(key) + ", damaged := 'x')":         "no policy",
		"FROM stoa_explain(" + quote(key) + ", filter := 'nobody=1')": "nobody",
		"FROM stoa_diff(" + quote(key) + ")":                          "stoa_diff",
		"FROM stoa_verify(NULL)":                                      "NULL",
	} {
		if got := q.answer(t, query); !strings.HasPrefix(got, "error") || !strings.Contains(got, want) {
			t.Errorf("%s: %s, expected an error with %q", query, got, want)
		}
	}
}

// TestMoments: --at, and the argument at, read a Kudu table as of a time; formats without history ignore an --at for
// all tables.
func TestMoments(t *testing.T) {
	dir := demo(t)
	table := dir + "/kudu#d_major"
	rows := func(at string) string {
		var out, errs strings.Builder
		args := []string{"cat", table, "-f", "jsonl"}
		if at != "" {
			args = append(args, "--at", at)
		}
		if status, err := verbs.Run(t.Context(), args, strings.NewReader(""), &out, &errs); status != 0 {
			t.Fatal(status, err, errs.String())
		}
		return out.String()
	}
	now, first := rows(""), rows("first")
	if now == first || len(first) < 20 {
		t.Fatalf("the table did not change: %d and %d bytes", len(now), len(first))
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{now, []string{"FROM " + quote(table)}},
		{first, []string{"--at", "first", "FROM " + quote(table)}},
		{first, []string{"FROM stoa(" + quote(table) + ", at := 'first')"}},
		{now, []string{"--at", "first", "FROM stoa(" + quote(table) + ", at := 'last')"}},
		{first, []string{"--at", "first", "--attach", "k=" + dir + "/kudu", "FROM k.d_major"}},
		{first, []string{"--at", "first", "--table", "t=" + table, "FROM t"}},
		{"{\"n\":400}\n", []string{"--at", "first", "SELECT count(*) AS n FROM " + quote(dir+"/key.cfile")}},
	} {
		status, out, errs := run(append([]string{"-q", "-f", "jsonl"}, c.args...)...)
		if status != 0 || out != c.want {
			t.Errorf("%q: status %d, %d bytes, expected %d: %s", c.args, status, len(out), len(c.want), errs)
		}
	}
	// Where a time means nothing, that is said, once, of the tables that are read.
	both := []string{"--at", "first", "--attach", "k=" + dir + "/kudu", "--table", "key=" + dir + "/key.cfile",
		"SELECT count(*) FROM key, k.d_major; SELECT count(*) FROM key"}
	if status, _, errs := run(both...); status != 0 || strings.Count(errs, "--at means nothing to ") != 1 ||
		!strings.Contains(errs, "key.cfile: its format keeps no past") {
		t.Errorf("a moment of all: status %d, %s", status, errs)
	}
	last := "FROM stoa(" + quote(table) + ", options := 'at=last')"
	if _, out, errs := run("-q", "-f", "jsonl", "--at", "first", last); out != now {
		t.Errorf("what a table's own options say is less than --at: %s", errs)
	}
	if status, _, errs := run("FROM stoa(" + quote(dir+"/key.cfile") + ", at := 'first')"); status == 0 {
		t.Errorf("a moment of a CFile: %s", errs)
	}
	early := "FROM stoa(" + quote(table) + ", at := '2000-01-01T00:00:00Z'"
	if status, _, errs := run(early + ")"); status != 1 || !strings.Contains(errs, "options := 'partial=true'") {
		t.Errorf("before the first moment: status %d, %s", status, errs)
	}
	if status, out, errs := run("-q", early+", options := 'partial=true')"); status != 0 && status != 3 || out != "" {
		t.Errorf("before the first moment, partial: status %d, %s, %s", status, out, errs)
	}
	// What changed between two moments.
	status, out, errs := run("SELECT count(*) AS n FROM (FROM stoa(" + quote(table) + ", at := 'last') EXCEPT FROM " +
		"stoa(" + quote(table) + ", at := 'first'))")
	if status != 0 || strings.Contains(out, ":0}") {
		t.Errorf("status %d: %s %s", status, out, errs)
	}
}
