package laws_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// TestMissingPart: opening, listing and verifying, by directory or by pattern, report as an error a gap in the numbers
// of a table's files, and a file that the manifest lists and that is gone; names that are numbered in other ways prove
// nothing.
func TestMissingPart(t *testing.T) {
	tree := func(names, listed []string) store.Tree {
		files := map[string][]byte{}
		for i, name := range names {
			files["t/"+name] = fmt.Appendf(nil, "n\n%d\n", i)
		}
		if listed != nil {
			files["t/_stoa_manifest.json"] = manifestOf(t, listed...)
		}
		return store.NewMemory(files)
	}
	isPart := func(f region.Finding) bool {
		return f.Code == "dir.part.missing" && f.Severity == region.Error && f.Lost != 0
	}
	for _, c := range []struct {
		names, listed []string // listed by a manifest
		want          int
	}{
		{[]string{"part-00000.csv", "part-00001.csv", "part-00002.csv"}, nil, 0},
		{[]string{"part-00000.csv", "part-00002.csv"}, nil, 1},
		{[]string{"part-00001.csv", "part-00004.csv"}, nil, 3},
		{[]string{"part-00002.csv"}, nil, 2},
		{[]string{"part-00099.csv", "part-00200.csv"}, nil, 0},
		{[]string{"part-20240101.csv", "part-20240103.csv"}, nil, 0},
		{[]string{"part-00000-d1f4.csv", "part-00002-d1f4.csv", "part-1.csv", "part-3.csv"}, nil, 0},
		{[]string{"part-00000.csv", "part-00001.csv"}, []string{"part-00000.csv", "part-00001.csv"}, 0},
		{[]string{"part-00000.csv"}, []string{"part-00000.csv", "part-00001.csv"}, 1},
		{[]string{"part-00001.csv"}, []string{"part-00000.csv", "part-00001.csv", "x.csv"}, 2},
		{[]string{"part-00000.csv", "part-00003.csv"}, []string{"part-00000.csv", "part-00003.csv"}, 0},
	} {
		for _, uri := range []string{"t", "t/*.csv"} {
			o := stoa.OpenOptions{Tree: tree(c.names, c.listed)}
			tab, err := stoa.Open(t.Context(), uri, o)
			if err != nil {
				t.Fatalf("%v: %v", c.names, err)
			}
			opened, listed, verified := 0, 0, 0
			for _, f := range tab.Findings() {
				if isPart(f) {
					opened++
				}
			}
			tab.Close()
			for _, err := range stoa.List(t.Context(), uri, o) {
				if errors.Is(err, fault.Corrupt) {
					listed++
				}
			}
			var found []region.Finding
			for f, err := range stoa.Verify(t.Context(), uri, o) {
				if err != nil {
					t.Errorf("%v %s: %v", c.names, uri, err)
				}
				if found = append(found, f); isPart(f) {
					verified++
				}
			}
			if got := []int{opened, listed, verified}; !slices.Equal(got, []int{c.want, c.want, c.want}) {
				t.Errorf("%v %s: open, list and verify report %v missing files, want %d each: %v", c.names, uri, got,
					c.want, found)
			}
		}
	}
}

// manifestOf is a manifest that lists files, as docs/splits.md has it.
func manifestOf(t *testing.T, names ...string) []byte {
	t.Helper()
	files := []map[string]any{}
	for _, name := range names {
		files = append(files, map[string]any{"name": name, "rows": 1, "bytes": -1})
	}
	text, err := json.Marshal(map[string]any{"stoa_manifest": 1, "format": "csv", "jobs": []string{"j"},
		"files": files})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestCutManifest: wherever a manifest is cut, opening, listing and verifying report it, and all files are read.
func TestCutManifest(t *testing.T) {
	whole := manifestOf(t, "part-00000.csv", "part-00001.csv")
	for n := range whole {
		o := stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{"t/_stoa_manifest.json": whole[:n],
			"t/part-00000.csv": []byte("n\n1\n"), "t/part-00001.csv": []byte("n\n2\n")})}
		tab, err := stoa.Open(t.Context(), "t", o)
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		rows, err := tab.Count(t.Context(), stoa.ScanSpec{})
		bad := func(f region.Finding) bool { return f.Severity == region.Error && f.Code == "file.unreadable" }
		opened := slices.ContainsFunc(tab.Findings(), bad)
		tab.Close()
		listed, verified := false, false
		for _, err := range stoa.List(t.Context(), "t", o) {
			listed = listed || errors.Is(err, fault.Corrupt)
		}
		for f, err := range stoa.Verify(t.Context(), "t", o) {
			verified = verified || err == nil && bad(f)
		}
		if rows != 2 || err != nil || !opened || !listed || !verified {
			t.Errorf("cut at %d: %d rows, %v; reported by open %v, list %v, verify %v", n, rows, err, opened, listed,
				verified)
		}
	}
}
