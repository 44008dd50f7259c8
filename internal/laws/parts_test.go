package laws_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/region"
	"stoa/store"
)

// TestMissingPart: opening, listing and verifying, by directory or by pattern, report a gap in the numbers of a table's
// files as an error; names that are numbered in other ways prove nothing.
func TestMissingPart(t *testing.T) {
	tree := func(names ...string) store.Tree {
		files := map[string][]byte{}
		for i, name := range names {
			files["t/"+name] = fmt.Appendf(nil, "n\n%d\n", i)
		}
		return store.NewMemory(files)
	}
	isPart := func(f region.Finding) bool {
		return f.Code == "dir.part.missing" && f.Severity == region.Error && f.Lost != 0
	}
	for _, c := range []struct {
		names []string
		want  int
	}{
		{[]string{"part-00000.csv", "part-00001.csv", "part-00002.csv"}, 0},
		{[]string{"part-00000.csv", "part-00002.csv"}, 1},
		{[]string{"part-00001.csv", "part-00004.csv"}, 3},
		{[]string{"part-00002.csv"}, 2},
		{[]string{"part-00099.csv", "part-00200.csv"}, 0},
		{[]string{"part-20240101.csv", "part-20240103.csv"}, 0},
		{[]string{"part-00000-d1f4.csv", "part-00002-d1f4.csv", "part-1.csv", "part-3.csv"}, 0},
	} {
		for _, uri := range []string{"t", "t/*.csv"} {
			o := stoa.OpenOptions{Tree: tree(c.names...)}
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
