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

// TestRecover: if a column's footer and index are lost, reading loses the column, but recovery finds its pages.
func TestRecover(t *testing.T) {
	files := load(t, "testdata/history")
	f, tablets := layout(t, store.NewMemory(files))
	want := expected(t, "testdata", "d_major", "final")
	all := blocksOf(t, f, tablets, "d_major")
	for _, column := range []string{"a", "e", "h", "ts"} {
		for _, at := range all[column] {
			// damages the footer beyond parsing
			tree := with(files, at.Object, flipped(flipped(files[at.Object], at.End()-30), at.End()-4))
			rows, lost, err := readAll(t, tree, "#d_major", nil, stoa.ScanSpec{Damaged: stoa.SkipRows})
			if err != nil || len(lost) != 1 || lost[0].Column != column {
				t.Fatal(err, lost)
			}
			if lacking := missing(t, rows, want); len(lacking) == 0 {
				t.Errorf("column %s: got all rows by reading, want some missing", column)
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
			if lacking := missing(t, rows, want); len(lacking) > 0 {
				t.Errorf("column %s: recovery lost %d rows: %v", column, len(lacking), lost)
			}
			reported := false
			for _, x := range tb.Findings() {
				reported = reported || strings.HasPrefix(x.Code, "cfile.footer") && x.Column == column
			}
			if !reported {
				t.Errorf("column %s: got %v, want the damaged footer reported", column, tb.Findings())
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

// TestMissingTablet: if a tablet of a partitioned table is missing, the others are read, and the gap is an error
// finding of opening and verify; with partial=true there is none.
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
			t.Errorf("%s: got %v, %+v, want kudu.tablet.missing", x.Table, err, found)
		}
		if found := openedIn(t, tree, "#"+x.Table, map[string]string{"partial": "true"}).Findings(); reported(found,
			"kudu.tablet.missing", "") {
			t.Errorf("%s, partial: got %+v, want no kudu.tablet.missing", x.Table, found)
		}
		bad, _ := findings(t, tree, "", x.Table)
		if !reported(bad, "kudu.tablet.missing", "") {
			t.Errorf("%s: verify: got %v, want kudu.tablet.missing", x.Table, bad)
		}
		rows, _, err := readAll(t, tree, "#"+x.Table, map[string]string{"partial": "true"}, stoa.ScanSpec{})
		if err != nil || len(rows) == 0 || !slices.Equal(rows, some) {
			t.Errorf("%s: got %d rows, %v, want %d, as without partial", x.Table, len(rows), err, len(some))
		}
	}
	if gaps == 0 {
		t.Error("got no table with a missing tablet, want one")
	}
	for _, tb := range tablets {
		if tb.HasData() {
			continue
		}
		_, _, err := readAll(t, tree, "#"+tb.ID, nil, stoa.ScanSpec{})
		if !errors.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "tombstone") {
			t.Errorf("a tombstone: got %v, want class Unsupported", err)
		}
	}
}

// TestCorpusExchangedRecords swaps the metadata of two log containers. Then records of blocks may point to other
// blocks, or into the middle of them, with intact pages of the right type that begin with row 0: recovery must not take
// these for the column's. All cells that it returns are those of the undamaged directory, or null.
func TestCorpusExchangedRecords(t *testing.T) {
	files := load(t, filepath.Join(corpus(t), "fs_log"))
	intact, err := recovered(t, store.NewMemory(files), false, stoa.ScanSpec{})
	if err != nil || len(intact.cells) != 1619 {
		t.Fatal(err, len(intact.cells))
	}
	want := map[string][]string{}
	for _, row := range intact.cells {
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
	cells, lost := 0, 0
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
					t.Fatalf("%s, %s: column %d of row %s: got %s, want %v", a, b, c, row[0], x, right)
				default:
					cells++
				}
			}
		}
	}
	if len(names) < 10 || cells == 0 || lost == 0 {
		t.Errorf("got %d containers, %d right cells, %d null ones, want 10 or more and some of both", len(names), cells,
			lost)
	}
}
