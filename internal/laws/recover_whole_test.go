package laws_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/region"
)

// TestRecoverWhole: recovery of a table that reads without an error returns the same rows and reports no error.
func TestRecoverWhole(t *testing.T) {
	dir := "corpus"
	if whole := os.Getenv("STOA_CORPUS"); whole != "" && !testing.Short() {
		dir = whole
	}
	formats := stoa.Formats
	tried, files := map[string]int{}, 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if strings.HasSuffix(path, ".gz") { // dumps
			return nil
		}
		if files++; testing.Short() && files%3 > 0 {
			return nil
		}
		want, table, err := allRows(path, stoa.OpenOptions{Formats: formats}, stoa.ScanSpec{})
		// not a table, several tables, or deliberately damaged; the formats' own tests cover these
		if err != nil || len(table.Sources()) == 0 {
			return nil
		}
		if slices.ContainsFunc(table.Findings(), func(f region.Finding) bool { return f.Severity == region.Error }) {
			return nil
		}
		tried[table.Sources()[0].Format]++
		got, table, err := allRows(path, stoa.OpenOptions{Formats: formats, Recover: true},
			stoa.ScanSpec{Damaged: stoa.SkipRows})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: recovery gives %d rows, reading %d, or the rows differ", path, len(got), len(want))
		}
		for _, f := range table.Findings() {
			if f.Severity == region.Error {
				t.Errorf("%s: recovery reports %s: %s", path, f.Code, f.Message)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("recovered as they are read: %v", tried)
	for _, name := range []string{"cfile", "redfile", "trevni", "carbon"} {
		if tried[name] == 0 {
			t.Errorf("no %s was tried", name)
		}
	}
}

// allRows reads a table as text.
func allRows(path string, o stoa.OpenOptions, spec stoa.ScanSpec) (rows []string, table *stoa.Table, err error) {
	table, err = stoa.Open(context.Background(), path, o)
	if err != nil {
		return nil, nil, err
	}
	defer table.Close()
	for b, err := range table.Scan(context.Background(), spec) {
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, textOf(b)...)
	}
	return rows, table, nil
}
