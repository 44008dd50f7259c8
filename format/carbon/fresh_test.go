package carbon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
)

// TestFresh compares tables that CarbonData's SDK has just written with the output of its own row reader:
// STOA_CARBON_FRESH is a directory of them, each with table/ and reader.jsonl (or .gz), made by interop/carbon.
func TestFresh(t *testing.T) {
	dir := os.Getenv("STOA_CARBON_FRESH")
	if dir == "" {
		t.Skip("STOA_CARBON_FRESH is not set: see interop/carbon")
	}
	tables, err := filepath.Glob(filepath.Join(dir, "*", "table"))
	if err != nil || len(tables) < 20 {
		t.Fatalf("got %d tables, %v", len(tables), err)
	}
	rows := 0
	for _, place := range tables {
		home := filepath.Dir(place)
		t.Run(filepath.Base(home), func(t *testing.T) {
			expected := filepath.Join(home, "reader.jsonl")
			if _, err := os.Stat(expected); err != nil {
				expected += ".gz"
			}
			rows += fresh(t, place, jsonRows(t, expected))
		})
	}
	t.Logf("COUNT %d tables with %d rows, written by the real SDK, read equal", len(tables), rows)
}

func fresh(t *testing.T, place string, want []map[string]any) int {
	files, err := filepath.Glob(filepath.Join(place, "*.carbondata"))
	if err != nil || len(files) == 0 {
		t.Fatal("no data files", err)
	}
	var all []line
	var sc *arrow.Schema
	for _, f := range files {
		s, rows, err := read(t, f, stoa.OpenOptions{}, stoa.ScanSpec{})
		if err != nil {
			t.Fatal(err)
		}
		sc, all = s, append(all, rows...)
	}
	for _, f := range sc.Fields() { // the row reader returns null for empty binary values; no nulls were written
		if f.Type.ID() == arrow.BINARY {
			for _, r := range want {
				if r[f.Name] == nil {
					r[f.Name] = ""
				}
			}
		}
	}
	expected := wanted(sc, want)
	if d := differ(all, expected, false); d != "" {
		t.Error(strings.TrimSpace(d))
	}
	// The directory alone: its files are read through their indexes, as programs using the SDK do.
	_, all, err = read(t, place, stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if d := differ(all, expected, false); d != "" {
		t.Errorf("as a directory of %d files: %s", len(files), strings.TrimSpace(d))
	}
	return len(all)
}
