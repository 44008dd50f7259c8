package redfile_test

import (
	"slices"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa"
	"stoa/format"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// TestPartsOfAnotherTable: files of another table among the parts are not read as parts, whichever of the two fields
// that identify their table is damaged. If most of the table is left, recovery returns it, and no row of the other
// table.
func TestPartsOfAnotherTable(t *testing.T) {
	const meta, part = "out/_metadata.red", "out/part-00002.red"
	damaged := func(b []byte, at int) []byte {
		b = slices.Clone(b)
		b[at] ^= 0x55
		return b
	}
	for what, put := range map[string]func(o, other map[string][]byte){
		"a part whose sync block is damaged": func(o, other map[string][]byte) { o[part] = damaged(other[part], 60) },
		"a part, and the metadata is damaged": func(o, other map[string][]byte) {
			o[part], o[meta] = other[part], damaged(o[meta], 4)
		},
		"the first part, and the metadata is damaged": func(o, other map[string][]byte) {
			delete(o, "out/part-00003.red")
			delete(o, part)
			o["out/part-00000.red"], o[meta] = other["out/part-00000.red"], damaged(o[meta], 4)
		},
		"a part in the place of the metadata": func(o, other map[string][]byte) { o[meta] = other[part] },
		"a part in the place of the metadata, which is called a part": func(o, other map[string][]byte) {
			o[meta], o[part] = other[part], o[meta]
		},
	} {
		whole, other := splitTable(t, map[string]string{}), splitTableFrom(t, 7000, "row-group", map[string]string{})
		put(whole, other)
		tree := store.NewMemory(whole)
		if !slices.ContainsFunc(findings(format.Target{Tree: tree, Name: "out"}),
			func(f region.Finding) bool { return f.Severity == region.Error }) {
			t.Errorf("%s: verify reports no error", what)
		}
		for _, back := range []bool{false, true} {
			rows, foreign := rowsOfTwo(t, tree, back)
			if foreign > 0 || back && rows < 10 {
				t.Errorf("%s, recovered %v: %d rows, %d of another table", what, back, rows, foreign)
			}
		}
	}
}

// rowsOfTwo reads everything, and counts the rows of the table, and those of the other table, which are numbered from
// 7000 on.
func rowsOfTwo(t *testing.T, tree store.Tree, back bool) (rows, foreign int) {
	t.Helper()
	tab, err := stoa.Open(t.Context(), "out", stoa.OpenOptions{Tree: tree, Recover: back})
	if err != nil {
		return 0, 0
	}
	defer tab.Close()
	for b, err := range tab.Scan(t.Context(), stoa.ScanSpec{Damaged: stoa.SkipRows}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range b.Column(0).(*array.Int64).Int64Values() {
			if rows++; id > 5000*1000003 {
				foreign++
			}
		}
	}
	return rows, foreign
}

// TestRecoverUnevenRowGroups: without sync blocks and metadata, a row group that is far larger than the others is found
// completely.
func TestRecoverUnevenRowGroups(t *testing.T) {
	for _, rows := range []int{33, 41, 63, 95} {
		data := writeSample(t, rows, map[string]string{"row-group-rows": "30", "sync": "0", "index": "false"})
		nodes, err := describeAll(target(data))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			if n.Name == "file_metadata" {
				clear(data[n.At.Off:])
				break
			}
		}
		if n := checkRecovered(t, target(data).Tree, "f.red"); n != rows {
			t.Errorf("%d rows of %d", n, rows)
		}
	}
}

// TestRecoverCountOfValues: without metadata of the file, the number of values in the metadata of a column is compared
// with its pages, and the pages with the other columns: no row is invented, and none is lost.
func TestRecoverCountOfValues(t *testing.T) {
	whole := writeSample(t, 40, map[string]string{"generation": "A", "sync": "0", "index": "false"})
	nodes, err := describeAll(target(whole))
	if err != nil {
		t.Fatal(err)
	}
	counts, end := []int64{}, int64(0)
	for _, n := range nodes {
		if n.Name == "num_values" && n.Value == "40" {
			counts = append(counts, n.At.Off+1)
		}
		if n.Depth == 0 && n.Name == "file_metadata" {
			end = n.At.Off
		}
	}
	if len(counts) < 2 {
		t.Fatal(counts)
	}
	for _, at := range counts {
		data := slices.Clone(whole[:end+5])
		data[at] ^= 0x04
		r, _, err := redfile.Format.Recover(ctx, target(data), format.OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
		if err != nil || len(groups) != 1 || groups[0].Rows != 40 {
			t.Errorf("%d: %+v, %v", at, groups, err)
			continue
		}
		for col := range r.Columns() {
			if _, err := chunkText(r, target(data), groups[0], col); err != nil {
				t.Errorf("%d, column %d: %v", at, col, err)
			}
		}
	}
}
