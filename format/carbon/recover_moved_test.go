package carbon_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/format/carbon"
	"stoa/region"
	"stoa/store"
)

// TestMovedBytes: a few bytes missing from a page, or added to it, also lose the footer, because they change its
// offset. They cost cells of no other column: later chunks are found at their current offsets.
func TestMovedBytes(t *testing.T) {
	for _, name := range []string{"v3/allprim_zstd/table", "v3/decimals/table"} {
		tree := loaded(t, filepath.Join(golden2, name))
		i := slices.IndexFunc(tree.Names(), func(n string) bool { return strings.HasSuffix(n, ".carbondata") })
		file := tree.Names()[i]
		whole := tree.Bytes(file)
		_, right, err := read(t, file, stoa.OpenOptions{Tree: tree}, stoa.ScanSpec{})
		if err != nil || len(right) == 0 {
			t.Fatal(len(right), err)
		}
		var at []int // the middles of pages
		for n, err := range carbon.Format.Describe(t.Context(), format.Target{Tree: tree, Name: file},
			format.DescribeOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if n.Name == "data" && n.Depth == 4 && n.At.Len >= 40 {
				at = append(at, int(n.At.Off+n.At.Len/2))
			}
		}
		if len(at) < 4 {
			t.Fatalf("%s: %d pages", name, len(at))
		}
		for i, mid := range at[:len(at)-1] { // after the last one there is no chunk to be found
			by := []int{1, 7, 32}[i%3]
			movedBytes(t, file, slices.Delete(slices.Clone(whole), mid-by/2, mid-by/2+by), right)
			movedBytes(t, file, slices.Insert(slices.Clone(whole), mid, make([]byte, by)...), right)
		}
	}
}

// movedBytes compares the rows that recovery returns from a harmed file with the original rows.
func movedBytes(t *testing.T, file string, damaged []byte, right []line) {
	t.Helper()
	var moved bool
	rows, err := nulled(t, file, damaged, func(f region.Finding) {
		moved = moved || f.Code == "carbon.chunk.damaged"
	})
	var other []string // columns with other cells
	for k := range min(len(rows), len(right)) {
		for c, v := range right[k] {
			if rows[k][c] != v && !slices.Contains(other, c) {
				other = append(other, c)
			}
		}
	}
	if err != nil || len(rows) != len(right) || len(other) > 1 || !moved {
		t.Errorf("a file of %d bytes: got %d rows of %d, %v, other cells in %v; told that bytes moved: %t",
			len(damaged), len(rows), len(right), err, other, moved)
	}
}

// nulled returns the rows that recovery returns from a single file, with null for lost cells.
func nulled(t *testing.T, file string, b []byte, each func(region.Finding)) ([]line, error) {
	t.Helper()
	o := stoa.OpenOptions{Tree: store.NewMemory(map[string][]byte{file: b}), From: "carbon", Recover: true,
		Formats: formats}
	tab, err := stoa.Open(t.Context(), file, o)
	if err != nil {
		return nil, err
	}
	for _, f := range tab.Findings() {
		each(f)
	}
	if err := tab.Close(); err != nil {
		return nil, err
	}
	_, rows, err := read(t, file, o, stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(region.Loss) {}})
	return rows, err
}
