package kudu_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/store"
)

// entries returns the entries of List, by table.
func entries(t testing.TB, tree store.Tree, dir string) map[string]format.Entry {
	t.Helper()
	out := map[string]format.Entry{}
	for e, err := range kudu.Format.List(context.Background(), format.Target{Tree: tree, Name: dir}) {
		if err != nil {
			t.Fatal(err)
		}
		out[e.Table] = e
	}
	return out
}

func fact(e format.Entry, key string) string {
	for _, m := range e.Meta {
		if m.Key == key {
			return m.Value
		}
	}
	return ""
}

// TestCorpusCatalog: with a master's directory, the tablets that must exist are known, even for tables without hash
// buckets.
func TestCorpusCatalog(t *testing.T) {
	dir := corpus(t)
	files := kudu.Unpack(t, filepath.Join(dir, "fs_log", "full_with_wal.tar.zst"))
	tree := store.NewMemory(files)
	all := entries(t, tree, "")
	if len(all) != 24 || all["part"].Rows != 400 || fact(all["part"], "missing_tablets") != "" ||
		fact(all["part"], "tablets") != "4" {
		t.Errorf("%d tables, %+v", len(all), all["part"])
	}
	rows, _, err := readAll(t, tree, "#sys.catalog", nil, stoa.ScanSpec{Columns: []string{"entry_type", "entry_id"}})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, r := range rows {
		kinds[strings.Fields(r)[0]]++
	}
	if kinds["1"] != 24 || kinds["2"] != 27 {
		t.Errorf("the catalogue has %v", kinds)
	}

	_, tablets := layout(t, tree)
	for _, tb := range tablets {
		if tb.Table != "part" && tb.Table != "key_int8" {
			continue
		}
		less := maps.Clone(files)
		for name := range files {
			if strings.Contains(name, tb.ID) {
				delete(less, name)
			}
		}
		tree := store.NewMemory(less)
		if e := entries(t, tree, "")[tb.Table]; fact(e, "missing_tablets") != "1" {
			t.Errorf("%+v", e)
		}
		_, _, err := readAll(t, tree, "#"+tb.Table, nil, stoa.ScanSpec{})
		if tb.Table == "part" { // its other tablets are still read
			if err != nil || !reported(openedIn(t, tree, "#part", nil).Findings(), "kudu.tablet.missing", tb.ID) {
				t.Error(tb.Table, err)
			}
		} else if !errors.Is(err, fault.Corrupt) {
			t.Error(tb.Table, err)
		}
	}
}

// TestCorpusSpecial: a table in two data directories, also with one of them missing, and encrypted data.
func TestCorpusSpecial(t *testing.T) {
	dir := corpus(t)
	md := kudu.Unpack(t, filepath.Join(dir, "special", "md.tar.zst"))
	all := entries(t, store.NewMemory(md), "")
	if len(all) != 1 {
		t.Fatalf("%d tables", len(all))
	}
	for name, e := range all {
		rows, _, err := readAll(t, store.NewMemory(md), "#"+name, nil, stoa.ScanSpec{})
		if err != nil || len(rows) != 2000 || e.Rows != 2000 {
			t.Errorf("%d rows of %d, %v", len(rows), e.Rows, err)
		}
		// one of the data directories is missing: its cells are lost, and the rest is read
		less := maps.Clone(md)
		for f := range md {
			if strings.Contains(f, "/d2/") {
				delete(less, f)
			}
		}
		got, lost, err := readAll(t, store.NewMemory(less), "#"+name, nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, r := range rows {
			seen[r] = true
		}
		for _, r := range got {
			if !seen[r] {
				t.Fatalf("a row that was never there: %s", r)
			}
		}
		if n := lostRows(t, lost); int64(len(rows)-len(got)) > n || n == 0 {
			t.Errorf("%d rows of %d, %d are reported as lost", len(got), len(rows), n)
		}
		if _, _, err := readAll(t, store.NewMemory(less), "#"+name, nil, stoa.ScanSpec{}); !errors.Is(err,
			fault.Corrupt) {
			t.Error(err)
		}
	}
	enc := store.NewMemory(kudu.Unpack(t, filepath.Join(dir, "special", "enc.tar.zst")))
	if _, err := stoa.Open(context.Background(), "",
		stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: enc}); !errors.Is(err, fault.Unsupported) ||
		!strings.Contains(err.Error(), "encrypted") {
		t.Error(err)
	}
	bad, _ := findings(t, enc, "", "")
	if len(bad) != 1 || bad[0].Code != "kudu.unsupported" {
		t.Errorf("%+v", bad)
	}
}
