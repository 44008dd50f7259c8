package parquet

import (
	"slices"
	"testing"

	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// TestRowsByColumns: whichever bit of a row group's number of rows is another, its columns, which have a value a row,
// say how many there are: recovery gives every row, and reports the number.
func TestRowsByColumns(t *testing.T) {
	whole := ourFile(t)
	tree := store.NewMemory(map[string][]byte{"t": whole})
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
			data := slices.Clone(whole)
			data[n.At.End()-1] ^= 1 << bit
			tree.Put("t", data)
			tried++
			if r, err := openReader(t.Context(), tg, format.OpenOptions{}); err == nil {
				r.Close()
				t.Errorf("bit %d at %d: the file opens as if nothing were wrong", bit, n.At.End()-1)
			}
			r, found, err := recoverReader(t.Context(), tg, format.OpenOptions{})
			if err != nil {
				t.Errorf("bit %d at %d: %v", bit, n.At.End()-1, err)
				continue
			}
			if got := recovered(r); !slices.Equal(got, want) {
				t.Errorf("bit %d at %d: %d rows of %d, or others", bit, n.At.End()-1, len(got), len(want))
			}
			if !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Severity == region.Error }) {
				t.Errorf("bit %d at %d: nothing is reported: %v", bit, n.At.End()-1, found)
			}
		}
	}
	if tried < 20 {
		t.Errorf("%d bits were tried", tried)
	}
}
