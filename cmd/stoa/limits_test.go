//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
)

// TestEveryReaderHasBudgets: every verb that opens files has the flags for budgets, and their values reach the formats.
func TestEveryReaderHasBudgets(t *testing.T) {
	verbs := 0
	for _, cmd := range rootCmd(cli.NewApp(nil, os.Stdout, os.Stderr)).Commands() {
		if cmd.Flags().Lookup("max-page") == nil {
			continue
		}
		verbs++
		for _, name := range []string{"memory", "max-fields", "max-depth", "max-metadata"} {
			if cmd.Flags().Lookup(name) == nil {
				t.Errorf("%s has no --%s", cmd.Name(), name)
			}
		}
	}
	if verbs < 15 {
		t.Errorf("got %d verbs that read, want 15 or more", verbs)
	}
	f := source.SourceFlags{Memory: "3MiB", MaxPage: "5kB", MaxMeta: "7B", Limits: format.Limits{Fields: 11, Depth: 13}}
	if l, err := f.AllLimits(); err != nil ||
		l != (format.Limits{Page: 5000, Metadata: 7, Fields: 11, Depth: 13, Opening: 3 << 20}) {
		t.Errorf("got %+v, %v, want the values of the flags", l, err)
	}
}

// TestBudgetsAreNotDamage: every verb, including recover and verify, refuses a file that exceeds a budget with status 1
// and the word limit.
func TestBudgetsAreNotDamage(t *testing.T) {
	dir := t.TempDir()
	for name, rows := range map[string]string{"wide.jsonl": `{"a":1,"b":2,"c":3}` + "\n",
		"wide.csv": "a,b,c\n1,2,3\n"} {
		place := filepath.Join(dir, name)
		if err := os.WriteFile(place, []byte(rows), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"cat", "count", "schema", "verify", "verify --deep", "recover -o OUT.arrow",
			"convert -o OUT.arrow", "cat --damaged skip-rows", "convert --all -o OUT/"} {
			if st, out := runOver(t, verb+" --max-fields 2", place); st != cli.StatusCannot ||
				!strings.Contains(out, "limit") {
				t.Errorf("%s %s: got status %d, want %d and a limit: %s", verb, name, st, cli.StatusCannot, out)
			}
		}
	}
	file := filepath.Join(dir, "k.cfile")
	copyFile(t, "../../corpus/kudu/1.18.1/key_int32/k.ck.cfile", file)
	for _, flag := range []string{"--max-page 100B", "--max-metadata 10B"} {
		for _, verb := range []string{"cat", "verify", "verify --deep", "convert -o OUT.arrow"} {
			if st, out := runOver(t, verb+" "+flag, file); st != cli.StatusCannot || !strings.Contains(out, "limit") {
				t.Errorf("%s %s: got status %d, want %d and a limit: %s", verb, flag, st, cli.StatusCannot, out)
			}
		}
	}
}

// TestLimitsOfTheOutput: rows that are read within larger limits are written, and checked, within the same limits.
func TestLimitsOfTheOutput(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, "wide.csv")
	line := strings.Repeat("1,", 1<<16) + "1\n" // one more than by default
	var head strings.Builder
	for i := range 1<<16 + 1 {
		fmt.Fprintf(&head, ",c%d", i)
	}
	if err := os.WriteFile(place, []byte(head.String()[1:]+"\n"+line), 0o644); err != nil {
		t.Fatal(err)
	}
	verbs := []string{"convert --all --to arrow -o OUT/", "convert -o OUT.arrow", "cat -o OUT.arrow"}
	if testing.Short() {
		verbs = verbs[:1]
	}
	for _, verb := range verbs {
		if st, out := runOver(t, verb+" --source-opt header=true --max-fields 70000", place); st != cli.StatusFine {
			t.Errorf("%s: got status %d, want %d: %s", verb, st, cli.StatusFine, out)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
