package kudu_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// A column's footer and index are lost: reading loses the column, recovery finds its pages.
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
			tb, err := stoa.Open(context.Background(), "#d_major",
				stoa.OpenOptions{Formats: []format.Format{kudu.Format}, Tree: tree, Recover: true})
			if err != nil {
				t.Fatal(err)
			}
			defer tb.Close()
			lost = nil
			rows = rows[:0]
			for b, err := range tb.Scan(context.Background(),
				stoa.ScanSpec{Damaged: stoa.SkipRows, Lost: func(l region.Loss) { lost = append(lost, l) }}) {
				if err != nil {
					t.Fatal(err)
				}
				rows = append(rows, lines(b)...)
			}
			if gone := missing(t, rows, want); len(gone) > 0 {
				t.Errorf("column %s: recovery lost %d rows: %v", column, len(gone), lost)
			}
			reported := false
			for _, x := range tb.Findings() {
				reported = reported || strings.HasPrefix(x.Code, "cfile.footer") && x.Column == column
			}
			if !reported {
				t.Errorf("column %s: the damaged footer is not reported: %v", column, tb.Findings())
			}
		}
	}
}

// reported reports whether there is an error finding with a code, and a word in its message.
func reported(found []region.Finding, code, word string) bool {
	return slices.ContainsFunc(found, func(x region.Finding) bool {
		return x.Code == code && x.Severity == region.Error && strings.Contains(x.Message, word)
	})
}

// A tablet of a partitioned table is missing: the others are read, and the gap is an error finding, of verify, too;
// with partial=true it is none.
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
		some, _, err := readAll(t, tree, "#"+x.Table, nil, stoa.ScanSpec{})
		if found := openedIn(t, tree, "#"+x.Table, nil).Findings(); err != nil ||
			!reported(found, "kudu.tablet.missing", "partial=true") {
			t.Errorf("%s: %v %+v", x.Table, err, found)
		}
		if found := openedIn(t, tree, "#"+x.Table, map[string]string{"partial": "true"}).Findings(); reported(found,
			"kudu.tablet.missing", "") {
			t.Errorf("%s: %+v", x.Table, found)
		}
		bad, _ := findings(t, tree, "", x.Table)
		if !reported(bad, "kudu.tablet.missing", "") {
			t.Errorf("%s: verify does not report it: %v", x.Table, bad)
		}
		rows, _, err := readAll(t, tree, "#"+x.Table, map[string]string{"partial": "true"}, stoa.ScanSpec{})
		if err != nil || len(rows) == 0 || !slices.Equal(rows, some) {
			t.Errorf("%s: %d rows, %d without partial, %v", x.Table, len(rows), len(some), err)
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

// The metadata of two log containers is exchanged. Where a block is then recorded, another one may lie, or the middle
// of one, with intact pages of the right type that begin with row 0: recovery must not take these for the column's. All
// cells that it returns are those of the undamaged directory, or null.
func TestCorpusExchangedRecords(t *testing.T) {
	files := load(t, filepath.Join(corpus(t), "fs_log"))
	whole, err := recovered(t, store.NewMemory(files), false, stoa.ScanSpec{})
	if err != nil || len(whole.cells) != 1619 {
		t.Fatal(err, len(whole.cells))
	}
	want := map[string][]string{}
	for _, row := range whole.cells {
		want[row[0]] = row
	}
	f, tablets := layout(t, store.NewMemory(files))
	records := map[string]bool{}
	for _, places := range blocksOf(t, f, tablets, "d_major") {
		for _, at := range places {
			records[strings.TrimSuffix(at.Object, ".data")+".metadata"] = true
		}
	}
	names := slices.Sorted(maps.Keys(records))
	given, lost := 0, 0
	for n := range len(names) * len(names) {
		a, b := names[n%len(names)], names[n/len(names)]
		if a >= b || testing.Short() && n%5 > 0 {
			continue
		}
		bad := maps.Clone(files)
		bad[a], bad[b] = files[b], files[a]
		got, err := recovered(t, store.NewMemory(bad), true, stoa.ScanSpec{Damaged: stoa.NullCells})
		if err != nil {
			t.Errorf("%s, %s: %v", a, b, err)
			continue
		}
		for _, row := range got.cells {
			for c, x := range row {
				switch right := want[row[0]]; {
				case x == "null" || row[0] == "null":
					lost++
				case right == nil || x != right[c]:
					t.Fatalf("%s, %s: column %d of row %s is %s instead of %v", a, b, c, row[0], x, right)
				default:
					given++
				}
			}
		}
	}
	if len(names) < 10 || given == 0 || lost == 0 {
		t.Errorf("%d containers; %d cells, %d are null", len(names), given, lost)
	}
}
