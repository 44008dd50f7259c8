package kudu_test

import (
	"maps"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// TestIdleBlocks: a damaged bloom filter or ad-hoc index is a warning that says that the rows are whole, and they are;
// it hides no error of another block of the rowset.
func TestIdleBlocks(t *testing.T) {
	files := load(t, "testdata/history")
	f, tablets := layout(t, store.NewMemory(files))
	autoinc := load(t, "testdata/file") // its key has two columns, so it has an ad-hoc index
	g, others := layout(t, store.NewMemory(autoinc))
	for _, x := range []struct {
		files             map[string][]byte
		table, kind, data string
	}{
		{files: files, table: "d_major", kind: "bloom", data: "redo"},
		{files: autoinc, table: "autoinc", kind: "adhoc-index", data: "v"},
		{files: autoinc, table: "autoinc", kind: "bloom", data: "v"},
	} {
		all := blocksOf(t, f, tablets, x.table)
		if x.table == "autoinc" {
			all = blocksOf(t, g, others, x.table)
		}
		at, data := all[x.kind][0], all[x.data][0]
		tree := with(x.files, at.Object, flipped(x.files[at.Object], at.Off+40))
		for _, depth := range []format.Depth{format.Quick, format.Sums, format.Deep} {
			warned := false
			o := format.OpenOptions{Depth: depth}
			for y := range kudu.Format.Verify(t.Context(), format.Target{Tree: tree}, o) {
				warned = warned || y.Severity == region.Warning && strings.Contains(y.Message, "the rows are whole")
				if y.Severity == region.Error {
					t.Errorf("%s of %s: %+v", x.kind, x.table, y)
				}
			}
			if !warned && (depth != format.Quick || x.kind == "bloom") { // others are not read then
				t.Errorf("%s of %s: no warning", x.kind, x.table)
			}
		}
		rows, lost, err := readAll(t, tree, "#"+x.table, nil, stoa.ScanSpec{})
		if err != nil || len(lost) > 0 {
			t.Errorf("%s of %s: %v, %v", x.kind, x.table, err, lost)
		}
		compare(t, rows, expected(t, "testdata", x.table, "final"))

		twice := maps.Clone(x.files)
		for _, hit := range []fault.Span{at, data} {
			twice[hit.Object] = flipped(twice[hit.Object], hit.Off+40)
		}
		tree = store.NewMemory(twice)
		bad, _ := findings(t, tree, "", "")
		if codes(bad, region.Error) == "" {
			t.Errorf("%s and %s of %s: %+v", x.kind, x.data, x.table, bad)
		}
	}
}
