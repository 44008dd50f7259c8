package kudufs_test

import (
	"errors"
	"path/filepath"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format/kudu/kudufs"
)

// TestTwoServersInOne: if blocks of another server, of a table with the same columns and number of rows, have the ids
// of a server's blocks, no row is returned as if it were certain.
func TestTwoServersInOne(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		rows := [][2]any{{1, name + "x"}, {2, name + "y"}, {3, name + "z"}}
		if err := write(t, filepath.Join(dir, name), kudufs.WriteOptions{Table: name, Key: []string{"k"},
			Manager: "log"}, rows); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(dir, "a", "tserver", "data")
	other, err := filepath.Glob(filepath.Join(dir, "b", "tserver", "data", "*.*"))
	if err != nil || len(other) != 2 {
		t.Fatal(other, err)
	}
	for _, name := range other {
		copyFile(t, name, filepath.Join(own, filepath.Base(name)))
	}
	tab, err := stoa.Open(t.Context(), filepath.Join(dir, "a")+"#a", stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Columns: []string{"s"}}) {
		if err == nil || !errors.Is(err, fault.Corrupt) {
			t.Errorf("%v, %v", b, err)
		}
	}
}
