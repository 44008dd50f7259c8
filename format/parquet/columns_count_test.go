package parquet

import (
	"slices"
	"testing"

	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// TestRowsByColumns: if a bit of a row group's number of rows flips, opening fails, but recovery counts rows by the
// columns, yields all of them, and reports the wrong number.
func TestRowsByColumns(t *testing.T) {
	intact := ourFile(t)
	tree := store.NewMemory(map[string][]byte{"t": intact})
	tg := format.Target{Tree: tree, Name: "t"}
	back, err := openReader(t.Context(), tg, format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want, tried := recovered(back), 0
	var counts []region.Node
	inGroups := false
	for n, err := range Format.Describe(t.Context(), tg, format.DescribeOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if inGroups = inGroups || n.Name == "row_groups"; inGroups && n.Name == "num_rows" {
			counts = append(counts, n)
		}
	}
	for _, n := range counts {
		for bit := range 7 {
			data := slices.Clone(intact)
			data[n.At.End()-1] ^= 1 << bit
			tree.Put("t", data)
			tried++
			if r, err := openReader(t.Context(), tg, format.OpenOptions{}); err == nil {
				r.Close()
				t.Errorf("bit %d at %d: open: got no error, want one", bit, n.At.End()-1)
			}
			r, found, err := recoverReader(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				t.Errorf("bit %d at %d: %v", bit, n.At.End()-1, err)
				continue
			}
			if got := recovered(r); !slices.Equal(got, want) {
				t.Errorf("bit %d at %d: got %d rows, want the file's %d rows", bit, n.At.End()-1, len(got), len(want))
			}
			if !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Severity == region.Error }) {
				t.Errorf("bit %d at %d: got %v, want an error finding", bit, n.At.End()-1, found)
			}
		}
	}
	if tried < 20 {
		t.Errorf("got %d bits tried, want 20 or more", tried)
	}
}
