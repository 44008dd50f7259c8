package carbon_test

import (
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/pred"
	"stoa/store"
)

// dataRead are the data files that a filter had read, and how many rows it gave.
func dataRead(t *testing.T, place, where string) (files map[string]bool, rows int) {
	t.Helper()
	e, err := pred.Parse(where)
	if err != nil {
		t.Fatal(err)
	}
	counter := store.NewCounter(store.Local{})
	_, got, err := read(t, place, stoa.OpenOptions{Tree: counter}, stoa.ScanSpec{Filter: e})
	if err != nil {
		t.Fatal(err)
	}
	files = map[string]bool{}
	for _, r := range counter.Reads() {
		if strings.HasSuffix(r.Name, ".carbondata") {
			files[filepath.Base(r.Name)] = true
		}
	}
	return files, len(got)
}

// TestIndexPrunes: with a filter, files that the index file knows to have no such rows are not opened; and a partition's directory
// that has another value neither.
func TestIndexPrunes(t *testing.T) {
	for _, x := range []struct {
		table, where string
		files, rows  int
	}{
		{"managed_part", "country = 'x y/z'", 1, 5},
		{"managed_part", "y = 1999", 0, 0},
		{"managed_bucket", "id = -5", 0, 0},
		{"managed_gsort", "id < -1", 0, 0},
		{"managed1", "id = -1", 0, 0},
	} {
		files, rows := dataRead(t, filepath.Join(golden2, "managed", x.table), x.where)
		if len(files) != x.files || rows != x.rows {
			t.Errorf("%s where %s: %d data files were read, want %d; %d rows, want %d", x.table, x.where, len(files), x.files, rows, x.rows)
		}
	}
}
