package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCatchUpOverDeletes: tables in which Iceberg's library and Spark have deleted rows, by positions, by values, or by
// deletion vectors, are refused by what they have, with nothing written, or get the rows of the source.
// So it is where the last snapshot or version is stoa's, over the files that the others left.
func TestCatchUpOverDeletes(t *testing.T) {
	const others, ours = "others have changed", "as if stoa had written it last"
	for name, want := range map[string][2]string{ // what is said of it as it is, and as if; "": it gets the rows
		"iceberg/testdata/equality":        {others, "equality deletes"},
		"iceberg/testdata/equality-parted": {others, "equality deletes"},
		"iceberg/testdata/spark-v23":       {others, ""},
		"delta/testdata/spark-v2json":      {"writer feature deletionVectors", "has a deletion vector"},
	} {
		from, err := filepath.Abs("../../format/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for i, what := range []string{"as it is", ours} {
			t.Run(name+" "+what, func(t *testing.T) {
				t.Chdir(t.TempDir())
				if err := os.CopyFS("t", os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				if i > 0 {
					claim(t, "t")
				}
				rows := rowsAsText(t, "t")
				must(t, "convert", "t", "-o", "in.arrow", "--limit", "3", "-q")
				before := filesOf(t, "t")
				got := said("\x00", "convert", "--catch-up", "in.arrow", "-o", "t")
				t.Logf("%s", got)
				if want[i] == "" {
					src := rowsAsText(t, "in.arrow")
					if !slices.Equal(rowsAsText(t, "t"), src) || len(src) >= len(rows) {
						t.Errorf("%s: other rows than the source", got)
					}
					return
				}
				after := filesOf(t, "t")
				if !strings.Contains(got, want[i]) || strings.HasSuffix(got, "status: 0") ||
					!maps.EqualFunc(before, after, bytes.Equal) {
					t.Errorf("%s: %d files, %d before", got, len(after), len(before))
				}
			})
		}
	}
}

// claim makes the last snapshot or version one of stoa, in a table whose protocol does not say that it has vectors.
func claim(t *testing.T, dir string) {
	t.Helper()
	for pattern, change := range map[string][2]string{
		"/metadata/*.metadata.json": {`"operation"\s*:`, `"engine-name":"stoa","operation":`},
		"/_delta_log/*.json":        {`"engineInfo"\s*:\s*"[^"]*"`, `"engineInfo":"stoa"`}} {
		names, _ := filepath.Glob(dir + pattern)
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			b = regexp.MustCompile(`"engine-name"\s*:\s*"[^"]*",?`).ReplaceAll(b, nil)
			b = regexp.MustCompile(change[0]).ReplaceAll(b, []byte(change[1]))
			b = regexp.MustCompile(`"writerFeatures":\[[^]]*\]`).ReplaceAll(b, []byte(`"writerFeatures":[]`))
			if err := os.WriteFile(name, b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rowsAsText returns the sorted rows.
func rowsAsText(t *testing.T, place string) []string {
	t.Helper()
	return slices.Sorted(strings.Lines(must(t, "cat", place, "-f", "jsonl")))
}
