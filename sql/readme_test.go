package main

import (
	"os"
	"strings"
	"testing"
)

// TestReadme: the README's session of SQL is what the command prints.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, session, found := strings.Cut(string(b), "<!-- sql: a test runs it -->\n```console\n$ stoa sql \"")
	query, rest, ended1 := strings.Cut(session, "\"\n")
	want, _, ended2 := strings.Cut(rest, "```\n")
	if !found || !ended1 || !ended2 || want == "" {
		t.Fatal("README.md has no session of SQL")
	}
	dir := programs(t)
	for _, args := range [][]string{{"demo", "try", "-q"}, {"sql", "-f", "table", query}} {
		c := command(dir, "stoa", args...)
		c.Dir = dir
		status, out, errs := ended(t, c)
		if status != 0 {
			t.Fatalf("%q: status %d, %s", args, status, errs)
		}
		if args[0] == "sql" && out != want {
			t.Errorf("got\n%swant\n%s", out, want)
		}
	}
}
