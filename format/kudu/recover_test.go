package kudu_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// A column's footer and index are gone: reading loses the column, recovery finds its pages again.
func TestRecover(t *testing.T) {
	files := load(t, "testdata/history")
	f, tablets := layout(t, store.NewMemory(files))
	want := expected(t, "testdata", "d_major", "final")
	all := blocksOf(t, f, tablets, "d_major")
	for _, column := range []string{"a", "e", "h", "ts"} {
		for _, at := range all[column] {
			// the footer's beginning is where nobody can parse it any more
			tree := with(files, at.Object, flipped(flipped(files[at.Object], at.End()-30), at.End()-4))
			rows, lost, err := readAll(t, tree, "#d_major", nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
			if err != nil || len(lost) != 1 || lost[0].Column != column {
				t.Fatal(err, lost)
			}
			if gone := missing(t, rows, want); len(gone) == 0 {
				t.Error("nothing is missing")
			}
			tb, err := stoa.Open(context.Background(), "#d_major", stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: tree, Recover: true})
			if err != nil {
				t.Fatal(err)
			}
			defer tb.Close()
			lost = nil
			rows = rows[:0]
			for b, err := range tb.Scan(context.Background(), stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { lost = append(lost, l) }}) {
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, lines(b)...)
			}
			if gone := missing(t, rows, want); len(gone) > 0 {
				t.Errorf("column %s: recovery lost %d rows: %v", column, len(gone), lost)
			}
			told := false
			for _, x := range tb.Findings() {
				told = told || strings.HasPrefix(x.Code, "cfile.footer") && x.Column == column
			}
			if !told {
				t.Errorf("column %s: the footer is not told: %v", column, tb.Findings())
			}
		}
	}
}

// A tablet of a partitioned table is not there: opening refuses, verify names it, partial=true reads on.
func TestMissingTablet(t *testing.T) {
	files := load(t, "testdata/log")
	tree := store.NewMemory(files)
	_, tablets := layout(t, tree)
	gaps := 0
	for _, x := range entries(t, tree, "") {
		if fact(x, "missing_tablets") == "" {
			continue
		}
		gaps++
		_, _, err := readAll(t, tree, "#"+x.Table, nil, stoa.ScanSpec{})
		if !errors.Is(err, fault.Corrupt) || !strings.Contains(err.Error(), "partial=true") {
			t.Errorf("%s: %v", x.Table, err)
		}
		bad, _ := findings(t, tree, "", x.Table)
		told := false
		for _, y := range bad {
			told = told || y.Code == "kudu.tablet.missing"
		}
		if !told {
			t.Errorf("%s: verify does not tell: %v", x.Table, bad)
		}
		rows, _, err := readAll(t, tree, "#"+x.Table, map[string]string{"partial": "true"}, stoa.ScanSpec{})
		if err != nil || len(rows) == 0 {
			t.Errorf("%s: %d rows, %v", x.Table, len(rows), err)
		}
	}
	if gaps == 0 {
		t.Error("no table lacks a tablet")
	}
	for _, tb := range tablets {
		if tb.HasData() {
			continue
		}
		_, _, err := readAll(t, tree, "#"+tb.ID, nil, stoa.ScanSpec{})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "tombstone") {
			t.Errorf("a tombstone: %v", err)
		}
	}
}
