package kudu_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stoa"
	"stoa/format/kudu"
	"stoa/region"
	"stoa/store"
)

// blockFile is the name of the file in files with a block of the file block manager.
func blockFile(t testing.TB, files map[string][]byte, id string) string {
	t.Helper()
	for n := range files {
		if strings.HasSuffix(n, "/00"+id) {
			return n
		}
	}
	t.Fatalf("no block %s", id)
	return ""
}

// reportedAt returns the error findings of reading a snapshot of a table.
func reportedAt(t testing.TB, tree store.Tree, place, at string) (out string) {
	t.Helper()
	tb, err := stoa.Open(context.Background(), place,
		stoa.OpenOptions{Tree: tree, Opts: map[string]string{"at": at, "wal": "false", "partial": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	defer tb.Close()
	rowsOf(t, tb, stoa.ScanSpec{Damaged: stoa.SkipRows})
	for _, f := range tb.Findings() {
		if f.Severity >= region.Error {
			out += f.Code + ": " + f.Message + "\n"
		}
	}
	return out
}

// TestForeignDelta: each delta file of d_major, put in place of autoinc's only UNDO file, is recognized by its number
// of deletions, its rows, or its columns. One exception updates only columns and rows that autoinc has; then missing
// insertions are reported.
func TestForeignDelta(t *testing.T) {
	files, other := load(t, "testdata/file"), load(t, "testdata/history")
	_, tablets := layout(t, store.NewMemory(files))
	_, others := layout(t, store.NewMemory(other))
	undo := blockFile(t, files, fmt.Sprint(tablets[0].RowSets[0].Undo[0].ID))
	if s := reportedAt(t, store.NewMemory(files), "", "1"); s != "" {
		t.Errorf("undamaged: %s", s)
	}
	n := 0
	var unknown []uint64
	for _, tb := range others {
		for _, set := range tb.RowSets {
			for _, b := range slices.Concat(set.Redo, set.Undo) {
				tree := with(files, undo, other[blockFile(t, other, fmt.Sprint(b.ID))])
				reported := reportedAt(t, tree, "", "1")
				if reported == "" {
					t.Errorf("block %d: got no error, want one", b.ID)
				}
				bad, _ := findings(t, tree, "", "")
				damaged := slices.ContainsFunc(bad,
					func(x region.Finding) bool { return x.Code == "kudu.delta.damaged" })
				if damaged != strings.Contains(reported, "kudu.delta.damaged") {
					t.Errorf("block %d: read reports %q, verify %+v", b.ID, reported, bad)
				}
				if !damaged {
					unknown = append(unknown, b.ID)
				}
				n++
			}
		}
	}
	if n < 3 || !slices.Equal(unknown, []uint64{72791677272240}) {
		t.Errorf("got %d delta files, unrecognized %v, want only 72791677272240", n, unknown)
	}
}

// TestForeignUndo: an intact UNDO file of another rowset is reported when a snapshot needs it. An UNDO file that has
// only insertions, and of fewer rows than the rowset, cannot be recognized and is not tested.
func TestForeignUndo(t *testing.T) {
	files := kudu.Unpack(t, filepath.Join(corpus(t), "fs_file", "full_with_wal.tar.zst"))
	for _, x := range []struct {
		table, undo, other, want string // other's bytes replace those of undo
	}{
		{"d_raw", "72791677272270", "72791677272020", "undo 6000 insertions"}, // of ck, 6,000 rows
		{"d_wal", "72791677272225", "72791677272205", "but the rowset has"},   // a REDO file of d_raw
		{"d_wal", "72791677272225", "72791677272211", "but the rowset has"},   // a REDO file of its own table
	} {
		name := blockFile(t, files, x.undo)
		tree := with(files, name, bytes.Clone(files[blockFile(t, files, x.other)]))
		if s := reportedAt(t, store.NewMemory(files), "tserver#"+x.table, moments["p2"]); s != "" {
			t.Errorf("%s, undamaged: %s", x.table, s)
		}
		if s := reportedAt(t, tree, "tserver#"+x.table, moments["p2"]); !strings.Contains(s, "kudu.delta.damaged") ||
			!strings.Contains(s, x.want) {
			t.Errorf("%+v: got %q", x, s)
		}
	}
}

// TestForeignRedo: any other block in place of the only REDO file loses all rows of the rowset, whatever its own
// statistics are, because the changes in the right file are unknown. Some delta files are recognized only by the number
// of live rows.
func TestForeignRedo(t *testing.T) {
	files := load(t, "testdata/history")
	want := slices.Sorted(maps.Keys(lineSet(expectedLines(t, "testdata", "d_major", "final"))))
	fs, tablets := layout(t, store.NewMemory(files))
	var redo string
	deltas := map[string]bool{}
	for kind, places := range blocksOf(t, fs, tablets, "d_major") {
		for _, at := range places {
			if deltas[at.Object] = kind == "redo" || kind == "undo"; kind == "redo" {
				redo = at.Object
			}
		}
	}
	others, live := 0, 0
	for _, name := range blockFiles(files) {
		if name == redo {
			continue
		}
		tree := with(files, redo, files[name])
		for _, again := range []bool{false, true} {
			got, err := recovered(t, tree, again, stoa.ScanSpec{Damaged: stoa.SkipRows})
			if err != nil {
				t.Errorf("%s, recover %t: %v", name, again, err)
				continue
			}
			others++
			wrong, reported := len(missingOf(want, got.lines())), codes(got.findings, region.Error)
			if deltas[name] && strings.Contains(reported, "kudu.rowset.live") {
				live++
			}
			if wrong != 0 || len(got.lost) == 0 {
				t.Errorf("%s, recover %t: got %d wrong rows, %d losses, %q, want no wrong rows and a loss", name, again,
					wrong, len(got.lost), reported)
			}
		}
	}
	if others != 60 || live != 8 {
		t.Errorf("got %d attempts, %d recognized by the number of live rows, want 60, 8", others, live)
	}
}
