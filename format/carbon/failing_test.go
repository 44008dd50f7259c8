package carbon_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa/format"
	"stoa/format/carbon"
	"stoa/store"
	"stoa/store/faulty"
)

// TestFailingStore: a failing store is never mistaken for one without tables. Whichever operation fails, probing and
// listing a table, or a store of tables, yield either the same result or that error.
func TestFailingStore(t *testing.T) {
	table := managedDel(t)
	files := map[string][]byte{}
	for _, name := range table.Names() {
		files["store/db/"+name] = table.Bytes(name)
	}
	tree := store.NewMemory(files)
	for _, place := range []string{"store", "store/db", "store/db/t"} {
		if _, err := tree.Stat(t.Context(), place); err != nil {
			t.Fatal(err)
		}
		failed := 0
		for k := int64(-1); ; k++ {
			probing := &faulty.Tree{Tree: tree, At: k, Mode: faulty.Fail}
			match, err := carbon.Format.Probe(t.Context(), format.Target{Tree: probing, Name: place})
			if k < 0 && (err != nil || match == format.No) {
				t.Fatalf("%s: %v, %v", place, match, err)
			}
			if err == nil && match == format.No {
				t.Errorf("%s: operation %d fails: got no table and no error", place, k)
			}
			listing := &faulty.Tree{Tree: tree, At: k, Mode: faulty.Fail}
			tables, reported := []string{}, false
			for e, err := range carbon.Format.List(t.Context(), format.Target{Tree: listing, Name: place}) {
				reported = reported || errors.Is(err, faulty.Err) || slices.ContainsFunc(e.Meta,
					func(m format.KeyValue) bool { return m.Key == "error" })
				tables = append(tables, e.Table)
			}
			if !reported && len(tables) != 1 {
				t.Errorf("%s: operation %d fails: got %d tables and no error", place, k, len(tables))
			}
			if reported {
				failed++
			}
			if k >= 0 && !probing.Hit.Load() && !listing.Hit.Load() {
				break
			}
		}
		if failed < 3 {
			t.Errorf("%s: got %d failures reported", place, failed)
		}
	}
}

// TestFailingPartitions does the same for a partitioned table without the files that describe the partitions.
func TestFailingPartitions(t *testing.T) {
	whole := loaded(t, filepath.Join(golden2, "managed/managed_part"))
	files := map[string][]byte{}
	for _, name := range whole.Names() {
		if !strings.HasPrefix(name, "t/Metadata/") {
			files[name] = whole.Bytes(name)
		}
	}
	tree, failed := store.NewMemory(files), 0
	for k := int64(-1); ; k++ {
		probing := &faulty.Tree{Tree: tree, At: k, Mode: faulty.Fail}
		match, err := carbon.Format.Probe(t.Context(), format.Target{Tree: probing, Name: "t"})
		if k < 0 && (err != nil || match == format.No) {
			t.Fatalf("%v, %v", match, err)
		}
		if err == nil && match == format.No {
			t.Errorf("operation %d fails: got no table and no error", k)
		}
		if err != nil {
			failed++
		}
		if k >= 0 && !probing.Hit.Load() {
			break
		}
	}
	if failed < 3 {
		t.Errorf("got %d failures reported", failed)
	}
}
