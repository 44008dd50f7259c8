package carbon_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa"
)

// TestCorpusV1V2 reads the managed tables of formats 1 and 2, and compares them with the generator's formula and, where
// available, with what CarbonData 1.0.0 itself read.
func TestCorpusV1V2(t *testing.T) {
	dir := corpusDir(t)
	ran := 0
	for _, e := range manifest(t, dir) {
		if e.Format != "V1" && e.Format != "V2" {
			continue
		}
		ran++
		t.Run(e.Table, func(t *testing.T) { corpusV12(t, dir, e) })
	}
	t.Logf("%d tables", ran)
	if ran != 6 {
		t.Errorf("got %d tables, want 6", ran)
	}
}

// nested parses the formula's texts of lists and structs, whose items are separated by $.
func nested(sc *arrow.Schema, rows []map[string]any) {
	for _, r := range rows {
		for _, f := range sc.Fields() {
			s, ok := r[f.Name].(string)
			if !ok || !arrow.IsNested(f.Type.ID()) {
				continue
			}
			var parts []any
			for _, x := range strings.Split(s, "$") {
				parts = append(parts, x)
			}
			r[f.Name] = parts
		}
	}
}

func corpusV12(t *testing.T, dir string, e entry) {
	sc, got, err := read(t, filepath.Join(dir, e.Path), stoa.OpenOptions{}, stoa.ScanSpec{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != e.Rows {
		t.Fatalf("got %d rows, want %d", len(got), e.Rows)
	}
	want := jsonRows(t, filepath.Join(dir, e.Input))
	if n := sc.NumFields(); n != len(want[0]) {
		t.Errorf("got %d columns, want %d", n, len(want[0]))
	}
	nested(sc, want)
	if d := differ(byID(got), byID(wanted(sc, want)), false); d != "" {
		t.Error("rows differ from the formula:\n" + d)
	}
	if e.Actual != "" {
		want := jsonRows(t, filepath.Join(dir, e.Actual))
		for _, r := range want { // the real reader prints the text that stands for null in a dictionary
			for k, v := range r {
				if v == "@NU#LL$!" {
					r[k] = nil
				}
			}
		}
		if d := differ(got, wanted(sc, want), false); d != "" {
			t.Error("rows differ from CarbonData's reader:\n" + d)
		}
	}
}

// byID sorts rows by their ids, which are unique.
func byID(rows []line) []line {
	rows = slices.Clone(rows)
	slices.SortFunc(rows, func(a, b line) int { return strings.Compare(a["id"], b["id"]) })
	return rows
}
